"""OpenRLHF's policy loss with the correction, in every worker that Ray starts.

    ray job submit --runtime-env-json='{"worker_process_setup_hook": "niwaki.openrlhf.register",
      "env_vars": {"NIWAKI_CORRECTION": "tempered:0.1"}}' -- python3 -m openrlhf.cli.train_ppo_ray …

The loss is OpenRLHF's own (`PolicyLoss`: clip, dual clip, rollout weights, aggregation, metrics) on log-probs to which the log of
the correction factor was added, so that its ratio is the corrected one with both channels of its gradient.
"""

from __future__ import annotations

import functools
from typing import Any

from ._door import Door, after, asked, multiplying
from ._pinned import pinned
from .correction import Correction

TESTED = ("0.10.4", "0.11.2")
"""The oldest and the newest version of OpenRLHF that the tests ran with."""

pinned("niwaki.openrlhf", "openrlhf", *TESTED)

__all__ = ["register"]


def register(correction: str | Correction | None = None, routing: bool | None = None) -> None:
    """Corrects the `PolicyLoss` of this process, whether OpenRLHF was imported or is imported later.

    Args:
        correction: a member of the family that multiplies the ratio, by name or as a `Correction`; where None, the one that the
            environment variable `NIWAKI_CORRECTION` names, else `tempered:0.1`.
        routing: whether gradients flow through the factor to earlier tokens; where None, unless `NIWAKI_ROUTING` is 0.
    """
    member, flows = asked(correction, routing)
    door = Door(multiplying(member, "OpenRLHF's own clip"), flows)
    after("openrlhf.models.loss", lambda module: _correct(module.PolicyLoss, door))


def _correct(kind: Any, door: Door) -> None:
    known = hasattr(kind, "niwaki")
    kind.niwaki = door
    if known:
        return
    forward = kind.forward

    @functools.wraps(forward)
    def corrected(
        self: Any, log_probs: Any, old_log_probs: Any, advantages: Any, action_mask: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if self.policy_loss_type != "ppo":
            raise ValueError(
                f"--actor.policy_loss_type is {self.policy_loss_type}: its ratio is of whole sequences, the correction on tokens; write ppo"
            )
        clip = (self.clip_eps_low, self.clip_eps_high, self.dual_clip)
        own = log_probs.new_ones(log_probs.shape) if action_mask is None else action_mask
        shifted = type(self).niwaki.shift(log_probs, old_log_probs, own, advantages, clip)
        found = list(forward(self, shifted, old_log_probs, advantages, action_mask, *args, **kwargs))
        # OpenRLHF reads its KL off the log-probs that the loss was given.
        found[2] = ((old_log_probs - log_probs).detach() * own).sum() / own.sum()
        return tuple(found)

    kind.forward = corrected
