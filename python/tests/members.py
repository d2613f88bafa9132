"""Batches and losses on which PyTorch and JAX are held against the kernel."""

import numpy as np

# Every member, at parameters whose bounds bind on these batches.
LOSSES = [
    "ppo",
    "full",
    "tempered:0",
    "tempered:0.1",
    "tempered:0.7",
    "truncated:1",
    "truncated:3",
    "clipped:0.5,0.2",
    "clipped:0.3,inf",
    "self-normalised:0.5",
    "self-normalised",
    "adaptive:0.97",
    "adaptive:0.2",
    "by-length",
    "by-length:1.3",
    "minpro",
    "ctpo",
    "gspo",
    "token-tis:1.1",
    "sequence-tis:1.2",
    "token-mis:0.9,1.1",
    "sequence-mis:0.7,1.4",
    "cispo",
    "cispo:0.2,0.1",
    "dual-clip:1.1",
    "gpg",
    "token-k1:0.9,1.1",
    "token-k2:0.005",
    "token-k3:0.005",
    "sequence-k1:0.7,1.4",
    "mean-k1:0.97,1.03",
]


def batch(lanes=24, steps=17, seed=3, holes=True, kind=np.float64):
    """Log-probs now and then, those of the sampling engine, advantages, a mask with padding and holes, weights."""
    rng = np.random.default_rng(seed)
    old = -rng.exponential(size=(lanes, steps)) - 0.7
    new = old + rng.normal(scale=0.12, size=(lanes, steps))
    behaviour = old + rng.normal(scale=0.1, size=(lanes, steps))
    advantages = rng.normal(size=(lanes, steps))
    mask = np.arange(steps) < rng.integers(1, steps + 1, size=lanes)[:, None]
    if holes:
        mask &= rng.random((lanes, steps)) < 0.8
        mask[0, 0] = True
    weights = rng.random(lanes)
    return tuple(part.astype(kind) for part in (new, old, behaviour, advantages)) + (mask, weights.astype(kind))
