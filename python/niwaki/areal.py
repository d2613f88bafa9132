"""AReaL's actor loss with the correction, on its packed rows.

    import niwaki.areal
    niwaki.areal.register("tempered:0.1")      # before PPOTrainer

    # Workers that AReaL starts itself: the actor's command, in the configuration
    # actor.scheduling_spec.0.cmd="python -m niwaki.areal"

The loss is AReaL's own (`ppo_actor_loss_fn`: clip, dual clip, rejection sampling, decoupled weights, statistics) on log-probs to
which the log of the correction factor was added, from the proximal policy to the policy now.
"""

from __future__ import annotations

import functools
import runpy
from typing import Any

from ._door import Door, after, asked, multiplying
from ._pinned import pinned
from .correction import Correction

TESTED = ("1.0.0", "1.0.4")
"""The oldest and the newest version of AReaL that the tests ran with."""

pinned("niwaki.areal", "areal", *TESTED)

__all__ = ["register"]


def register(correction: str | Correction | None = None, routing: bool | None = None) -> None:
    """Corrects the actor loss of this process, whether AReaL was imported or is imported later.

    Args:
        correction: a member of the family that multiplies the ratio, by name or as a `Correction`; where None, the one that the
            environment variable `NIWAKI_CORRECTION` names, else `tempered:0.1`.
        routing: whether gradients flow through the factor to earlier tokens; where None, unless `NIWAKI_ROUTING` is 0.
    """
    member, flows = asked(correction, routing)
    door = Door(multiplying(member, "AReaL's own clip"), flows)
    after("areal.trainer.ppo.actor", lambda module: _correct(module, door))


def _correct(module: Any, door: Door) -> None:
    plain = module.ppo_actor_loss_fn
    plain = getattr(plain, "niwaki", plain)

    @functools.wraps(plain)
    def corrected(*, logprobs: Any, proximal_logprobs: Any, advantages: Any, loss_mask: Any, **more: Any) -> Any:
        level, cu_seqlens = more.get("importance_sampling_level", "token"), more.get("cu_seqlens")
        if level != "token":
            raise ValueError(f"actor.importance_sampling_level is {level}: the correction is on token ratios; write token")
        if logprobs.dim() == 1 and cu_seqlens is None:
            raise ValueError("cu_seqlens is missing beside a packed row: where its sequences end is not known")
        high = more.get("eps_clip_higher")
        clip = (more["eps_clip"], more["eps_clip"] if high is None else high, more.get("c_clip"))
        packed = cu_seqlens if logprobs.dim() == 1 else None
        shifted = door.shift(logprobs, proximal_logprobs, loss_mask, advantages, clip, packed)
        given = {"proximal_logprobs": proximal_logprobs, "advantages": advantages, "loss_mask": loss_mask}
        loss, stat = plain(logprobs=shifted, **given, **more)
        # AReaL reads its KL off the log-probs that the loss was given.
        stat["approx_kl"] = (logprobs - proximal_logprobs).detach()
        return loss, stat

    def refused(*_: Any, **__: Any) -> Any:
        raise ValueError("actor.use_sapo_loss: SAPO's gate is another loss, without a place for the correction; set it to false")

    corrected.niwaki = plain  # type: ignore[attr-defined]
    module.ppo_actor_loss_fn = corrected
    module.sapo_loss_fn = refused


if __name__ == "__main__":
    from niwaki.areal import register as _register

    _register()
    runpy.run_module("areal.infra.rpc.rpc_server", run_name="__main__", alter_sys=True)
