"""verl's policy loss with the correction, through verl's own registry.

    import niwaki.verl

    niwaki.verl.register(correction="tempered:0.1")      # before Ray starts; its workers know the loss, too
    # actor_rollout_ref.actor.policy_loss.loss_mode=niwaki

`loss_mode=niwaki` alone is `tempered:0.1`, without a line of code: where niwaki is installed, verl finds it.

The loss is verl's own (`vanilla`: dual clip, aggregation, rollout weights, metrics) on log-probs to which the log of the
correction factor was added, so that its ratio is the corrected one with both channels of its gradient.
"""

from __future__ import annotations

from typing import Any

from ._pinned import pinned

TESTED = ("0.9.1", "0.9.1")
"""The oldest and the newest version of verl that the tests ran with."""

pinned("niwaki.verl", "verl", *TESTED)

from torch import Tensor  # noqa: E402
from verl.trainer.ppo import rollout_corr_helper  # noqa: E402
from verl.trainer.ppo.core_algos import get_policy_loss_fn, register_policy_loss  # noqa: E402

from ._amplification import Watch  # noqa: E402
from ._door import multiplying  # noqa: E402
from ._verl_losses import HERE, keeping, note  # noqa: E402
from .correction import Correction  # noqa: E402
from .torch import corrected_logprobs, watch_amplification  # noqa: E402

__all__ = ["register"]


def register(correction: str | Correction = "tempered:0.1", name: str = "niwaki", routing: bool = True) -> Any:
    """Registers the corrected loss under `name` and returns it. The loss warns once (`niwaki.torch.AmplificationWarning`)
    where the correction more than doubles the norm of the gradient on a batch.

    Args:
        correction: a member of the family that multiplies the ratio, by name or as a `Correction`.
        name: what `policy_loss.loss_mode` selects.
        routing: whether gradients flow through the factor to earlier tokens.

    Processes that this one starts afterwards know the loss by its name (they inherit `NIWAKI_VERL_LOSSES`); a rule of your own
    they do not.
    """
    member = multiplying(correction, "verl's own clip; verl has gspo, cispo and rollout weights of its own")
    vanilla = get_policy_loss_fn("vanilla")
    watch = Watch()

    HERE.add(name)
    if not member.own:
        note(name, member.name, routing)
    rollout_corr_helper.apply_bypass_mode = keeping(rollout_corr_helper.apply_bypass_mode)

    @register_policy_loss(name)
    def corrected(
        old_log_prob: Tensor,
        log_prob: Tensor,
        advantages: Tensor,
        response_mask: Tensor,
        loss_agg_mode: str = "token-mean",
        config: Any = None,
        rollout_is_weights: Tensor | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        batch = (log_prob.detach(), old_log_prob, advantages, response_mask)
        watch_amplification(watch, member, *batch, clip=_clip(config), routing=routing)
        shifted = corrected_logprobs(log_prob, old_log_prob, response_mask, correction=member, routing=routing)
        loss, metrics = vanilla(
            old_log_prob, shifted, advantages, response_mask, loss_agg_mode, config, rollout_is_weights
        )
        own = response_mask.bool()
        count = own.sum().clamp(min=1)
        ell = (log_prob - old_log_prob).detach()
        # verl reads its KL off the log-probs that the loss was given.
        metrics["actor/ppo_kl"] = (-ell.where(own, 0.0).sum() / count).item()
        spread = (shifted - log_prob).detach().exp().where(own, 0.0)
        metrics["niwaki/ess"] = (spread.sum() ** 2 / (spread.square().sum() * count)).item()
        return loss, metrics

    return corrected


def _clip(config: Any) -> tuple[float, float, float]:
    """The range and the dual bound of verl's `vanilla`."""
    low, high = config.clip_ratio_low, config.clip_ratio_high
    low, high = (config.clip_ratio if low is None else low), (config.clip_ratio if high is None else high)
    return low, high, config.get("clip_ratio_c", 3.0)
