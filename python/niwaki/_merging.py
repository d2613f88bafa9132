"""Whether the process that is played is a tree as the policy sees it: observations of a batch by their digests.

Two trajectories that come to the same observation at the same step by different ways have merged. The path's weight is then an
unbiased stand-in for the ratio of visitations, and what it spreads within a state is a premium on its variance: by the law of
total variance `E[Var(W | s)]` of `Var(W)`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

SAID = 0.01
"""Share of steps from which on something is said."""


def digests(values: Any) -> np.ndarray:
    """A number of 64 bits for each item along the first axis; those of a dict are taken together."""
    if isinstance(values, dict):
        found = np.zeros(1, np.uint64)
        for name in sorted(values):
            found = _mixed(found) + digests(values[name])
        return found
    array = np.ascontiguousarray(values)
    raw = array.reshape(len(array), -1).view(np.uint8)
    words = np.pad(raw, ((0, 0), (0, -raw.shape[1] % 8))).view(np.uint64)
    weights = np.random.default_rng(words.shape[1]).integers(1, 2**63, words.shape[1], np.uint64) * np.uint64(2) + np.uint64(1)
    return _mixed((_mixed(words) * weights).sum(1, dtype=np.uint64))


def _mixed(values: np.ndarray) -> np.ndarray:
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    return values ^ (values >> np.uint64(29))


def merged(states: np.ndarray, actions: np.ndarray, ell: np.ndarray, own: np.ndarray) -> tuple[float, float]:
    """The share of steps in states that another history reached as well, and the share of the path weights' variance that lies
    within states.

    Shapes: `[trajectories, steps]` each; `states` and `actions` are digests, `ell` log-ratios, 0 outside of `own`.
    """
    history, ways = np.zeros(len(states), np.uint64), np.zeros_like(states)
    for step in range(1, states.shape[1]):
        # Everything seen and done before the step.
        history = _mixed(history + _mixed(states[:, step - 1]) + actions[:, step - 1])
        ways[:, step] = history
    keys = _mixed(states + np.arange(states.shape[1], dtype=np.uint64))[own]
    weights = np.exp(np.clip(np.cumsum(ell, 1) - ell, -30.0, 30.0))[own]
    _, place, count = np.unique(keys, return_inverse=True, return_counts=True)
    pairs = np.unique(np.stack([place.astype(np.uint64), ways[own]], 1), axis=0)
    several = np.bincount(pairs[:, 0].astype(np.int64), minlength=len(count)) > 1
    mean = np.bincount(place, weights, len(count)) / count
    within = float(((weights - mean[place]) ** 2).mean())
    # At each step by itself: weights spread more the later the step, whatever the states.
    steps = np.broadcast_to(np.arange(states.shape[1]), states.shape)[own]
    at = np.bincount(steps, weights) / np.maximum(np.bincount(steps), 1)
    total = float(((weights - at[steps]) ** 2).mean())
    return float(several[place].mean()), within / total if total > 0.0 else 0.0


class Merging:
    """Looks at every batch and says once where histories merge."""

    def __init__(self, quiet: bool) -> None:
        self._said = quiet

    def look(self, states: np.ndarray, actions: np.ndarray, ell: np.ndarray, own: np.ndarray) -> dict[str, float]:
        """As `merged`, under the names that the curve has."""
        share, premium = merged(states, actions, ell, own)
        if share > SAID and not self._said:
            self._said = True
            print(
                f"niwaki: {share:.0%} of steps are in states that other histories came to as well (by their observations): the process "
                f"is not a tree as the policy sees it. A correction stays unbiased there; {premium:.0%} of its weights' variance is "
                "spread within states, which exact weights of states would not have",
                file=sys.stderr,
            )
        return {"states/merged": share, "states/premium": premium}
