"""prime-rl's loss with the correction, as its custom loss.

    [trainer.loss]
    type = "custom"
    import_path = "niwaki.prime_rl.loss"
    kwargs = { correction = "tempered:0.1" }

The loss is prime-rl's own (masks of the trust region, squared log-ratios, weights, metrics); each token's term of the policy
gradient is multiplied by the correction factor, with both channels of its gradient. Its ratio is to the engine that sampled.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from ._door import Door, multiplying
from ._pinned import pinned

TESTED = ("0.7.0", "0.8.0")
"""The oldest and the newest version of prime-rl that the tests ran with."""

pinned("niwaki.prime_rl", "prime-rl", *TESTED, source="PrimeIntellect-ai/prime-rl")

__all__ = ["loss"]


def loss(inputs: Any, correction: str = "tempered:0.1", routing: bool = True, type: str = "default", **settings: Any) -> Any:
    """The loss of one trajectory.

    Args:
        inputs: prime-rl's `LossInputs`.
        correction: a member of the family that multiplies the ratio and reads one trajectory at a time, by name.
        routing: whether gradients flow through the factor to earlier tokens.
        type: prime-rl's own loss that is corrected, `default` or `ipo`.
        settings: of that loss.
    """
    door = _door(correction, routing)
    theirs, config = _own(type, tuple(sorted(settings.items())))
    if inputs.trainer_logprobs.numel() == 0:
        return theirs(inputs, config)
    new, old = inputs.trainer_logprobs[None], inputs.inference_logprobs[None]
    own, advantages = inputs.loss_mask[None], inputs.advantages[None]
    shifted = door.shift(new, old, own, advantages)
    # Both losses are linear in the advantage, but for its sign, which a factor leaves as it is.
    factor = (shifted - new).exp()[0]
    return theirs(dataclasses.replace(inputs, advantages=inputs.advantages * factor), config)


@functools.cache
def _door(correction: str, routing: bool) -> Door:
    return Door(multiplying(correction, "prime-rl's loss", alone=True), routing)


@functools.cache
def _own(kind: str, settings: tuple[tuple[str, Any], ...]) -> tuple[Any, Any]:
    """prime-rl's loss, and its configuration."""
    from prime_rl.configs.trainer import DefaultLossConfig, IPOLossConfig
    from prime_rl.trainer.rl.loss import default_loss_fn, ipo_loss_fn

    known = {"default": (default_loss_fn, DefaultLossConfig), "ipo": (ipo_loss_fn, IPOLossConfig)}
    if kind not in known:
        raise ValueError(f"trainer.loss.kwargs.type is {kind!r}; write 'default' or 'ipo'")
    theirs, config = known[kind]
    return theirs, config(**dict(settings))
