"""What verl imports wherever it is imported, Ray's workers included (the entry point `verl.plugins`): the corrected losses by name.

They are made at their first call, so that a run without them costs nothing and is told nothing.
"""

from __future__ import annotations

from typing import Any

from verl.trainer.ppo import core_algos, rollout_corr_helper

from ._verl_losses import HERE, keeping, listed


class Late:
    """A loss that is made, and takes its own place, when it is first called."""

    def __init__(self, name: str, correction: str, routing: bool) -> None:
        self.name, self.correction, self.routing = name, correction, routing

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from .verl import register

        return register(self.correction, self.name, self.routing)(*args, **kwargs)


for _name, _one in listed().items():
    if _name not in HERE:
        core_algos.register_policy_loss(_name)(Late(_name, **_one))
rollout_corr_helper.apply_bypass_mode = keeping(rollout_corr_helper.apply_bypass_mode)
