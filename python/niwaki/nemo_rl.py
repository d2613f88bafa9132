"""NeMo-RL's clipped loss with the correction.

    uv run python -m niwaki.nemo_rl examples/run_grpo.py --config …

or, in a script of your own before `setup`:

    import niwaki.nemo_rl
    niwaki.nemo_rl.register("tempered:0.1")

The loss is NeMo-RL's own (`ClippedPGLossFn`: clip, dual clip, truncated weights, KL, both aggregations, metrics) on log-probs to
which the log of the correction factor was added. It travels to Ray's workers with the driver's loss; they need niwaki installed.
"""

from __future__ import annotations

import functools
import runpy
import sys
from typing import Any

from ._door import Door, after, asked, multiplying
from ._pinned import pinned
from .correction import Correction

TESTED = ("0.6.0", "0.7.0")
"""The oldest and the newest version of NeMo-RL that the tests ran with."""

pinned("niwaki.nemo_rl", "nemo-rl", *TESTED, source="NVIDIA-NeMo/RL")

from nemo_rl.algorithms.loss.loss_functions import ClippedPGLossFn  # noqa: E402

__all__ = ["CorrectedPGLossFn", "register"]

_MAKERS = ("nemo_rl.algorithms.grpo", "nemo_rl.algorithms.ppo", "nemo_rl.algorithms.single_controller_utils.setup")
"""Modules whose `setup` makes the loss."""

_REFUSED = {
    "disable_ppo_ratio": "there is no ratio to correct",
    "force_on_policy_ratio": "its ratio is 1",
    "sequence_level_importance_ratios": "its ratio is of whole sequences, the correction on tokens",
    "use_cispo": "its ratio is a weight, outside the clip",
    "positive_example_nll_weight": "it reads the log-probs that the correction changes",
}


def register(correction: str | Correction | None = None, routing: bool | None = None) -> None:
    """Has NeMo-RL's `setup` make the corrected loss.

    Args:
        correction: a member of the family that multiplies the ratio and reads one trajectory at a time, by name or as a
            `Correction`; where None, the one that the environment variable `NIWAKI_CORRECTION` names, else `tempered:0.1`.
        routing: whether gradients flow through the factor to earlier tokens; where None, unless `NIWAKI_ROUTING` is 0.
    """
    member, flows = asked(correction, routing)
    made = functools.partial(CorrectedPGLossFn, correction=multiplying(member, "NeMo-RL's own clip", alone=True), routing=flows)
    for name in _MAKERS:
        after(name, lambda module: setattr(module, "ClippedPGLossFn", made))


class CorrectedPGLossFn(ClippedPGLossFn):  # type: ignore[misc]
    """NeMo-RL's `ClippedPGLossFn` with the correction on its ratios."""

    def __init__(self, *args: Any, correction: str | Correction = "tempered:0.1", routing: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, why in _REFUSED.items():
            if getattr(self, name, False):
                raise ValueError(f"loss_fn.{name}: {why}; leave it out")
        self.door = Door(multiplying(correction, "NeMo-RL's own clip", alone=True), routing)

    def __call__(self, next_token_logprobs: Any, data: Any, global_valid_seqs: Any, global_valid_toks: Any) -> Any:
        """Loss and metrics of a micro-batch."""
        new, old = next_token_logprobs, data["prev_logprobs"][:, 1:]
        own = data["token_mask"][:, 1:] * data["sample_mask"].unsqueeze(-1)
        clip = (self.ratio_clip_min, self.ratio_clip_max, self.ratio_clip_c)
        shifted = self.door.shift(new, old, own, data["advantages"][:, 1:], clip)
        # The KL to the reference, and the entropy among the metrics, are those of the log-probs as they are.
        given = "curr_logprobs_unfiltered" in data
        if not given:
            data["curr_logprobs_unfiltered"] = new
        try:
            loss, metrics = super().__call__(shifted, data, global_valid_seqs, global_valid_toks)
        finally:
            if not given:
                data.pop("curr_logprobs_unfiltered")
        if "approx_entropy" in metrics:
            new, engine = new.detach(), data["generation_logprobs"][:, 1:]
            entropies = ((new - engine).exp() * -new * own).sum() / (global_valid_toks + 1e-8)
            metrics["approx_entropy"] = entropies.item()
        return loss, metrics


if __name__ == "__main__":
    from niwaki.nemo_rl import register as _register

    if len(sys.argv) < 2:
        sys.exit("niwaki.nemo_rl: name the script that trains, python -m niwaki.nemo_rl examples/run_grpo.py …")
    _register()
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
