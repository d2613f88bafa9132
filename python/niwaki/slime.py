"""slime's policy loss with the correction, as its custom loss.

    --loss-type custom_loss --custom-loss-function-path niwaki.slime.loss
    --custom-config-path niwaki.yaml           # one line, niwaki_correction: tempered:0.1

The loss is slime's own (`policy_loss_function`: clip, dual clip, off-policy masks, truncated weights, KL, entropy, reducers, metrics);
the ratio that it clips is the corrected one. With context parallelism the log-ratios of a sample are gathered from its shards, with
their gradient, so that a token's prefix is the whole one.
"""

from __future__ import annotations

import contextvars
import functools
from typing import Any

from ._door import Door, asked, multiplying
from ._pinned import pinned

TESTED = ("0.2.4", "0.3.1")
"""The oldest and the newest version of slime that the tests ran with."""

pinned("niwaki.slime", "slime", *TESTED, source="THUDM/slime")

__all__ = ["loss"]

_BATCH: contextvars.ContextVar[tuple[Door, Any] | None] = contextvars.ContextVar("niwaki.slime", default=None)


def loss(args: Any, batch: Any, logits: Any, sum_of_sample_mean: Any) -> Any:
    """What slime calls; `niwaki_correction` and `niwaki_routing` of its custom configuration say which correction, else the
    environment variables `NIWAKI_CORRECTION` and `NIWAKI_ROUTING`, else it is `tempered:0.1`."""
    from slime.backends.megatron_utils import loss as theirs

    if args.advantage_estimator in ("gspo", "cispo"):
        raise ValueError(
            f"--advantage-estimator is {args.advantage_estimator}, whose ratio is not that of tokens inside slime's clip; "
            "use --loss-type policy_loss with it, or another estimator"
        )
    _correct(theirs)
    door = _door(getattr(args, "niwaki_correction", None), getattr(args, "niwaki_routing", None))
    before = _BATCH.set((door, batch))
    try:
        return theirs.policy_loss_function(args, batch, logits, sum_of_sample_mean)
    finally:
        _BATCH.reset(before)


@functools.cache
def _door(correction: str | None, routing: bool | None) -> Door:
    member, flows = asked(correction, routing)
    return Door(multiplying(member, "slime's own clip"), flows)


def _correct(theirs: Any) -> None:
    """Puts the correction before the clip, for the batch that `loss` is given."""
    plain = theirs.compute_policy_loss
    if hasattr(plain, "niwaki"):
        return

    @functools.wraps(plain)
    def corrected(ppo_kl: Any, advantages: Any, eps_clip: float, eps_clip_high: float, *args: Any, **kwargs: Any) -> Any:
        here = _BATCH.get()
        if here is not None:
            ppo_kl = _shifted(*here, ppo_kl, (eps_clip, eps_clip_high, kwargs.get("eps_clip_c")))
        return plain(ppo_kl, advantages, eps_clip, eps_clip_high, *args, **kwargs)

    corrected.niwaki = True  # type: ignore[attr-defined]
    theirs.compute_policy_loss = corrected


def _shifted(door: Door, batch: Any, ppo_kl: Any, clip: Any) -> Any:
    """slime's log-ratios, of the old policy to the one now, with the log of the factor taken off."""
    import torch
    from slime.backends.megatron_utils.cp_utils import all_gather_with_cp, slice_log_prob_with_cp

    sizes = list(zip(batch["total_lengths"], batch["response_lengths"]))
    # Where a sample's shards are apart, each is as long as its advantages.
    parts = (-ppo_kl).split([len(part) for part in batch["advantages"]])
    whole = [all_gather_with_cp(part, *size) for part, size in zip(parts, sizes)]
    together = all(len(part) == len(found) for part, found in zip(parts, whole))
    advantages = [part.expand(len(found)) for part, found in zip(batch["advantages"], whole)] if together else None
    shifted = door.shift(whole, [torch.zeros_like(found) for found in whole], batch["loss_masks"], advantages, clip)
    return -torch.cat([slice_log_prob_with_cp(found, *size) for found, size in zip(shifted, sizes)])
