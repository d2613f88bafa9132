"""How much longer the correction makes the gradient of a fresh batch with one advantage per completion, by its length.

    python python/bench/amplification.py [--correction tempered:0.1] [--lanes 16] [--steps 64 512 4096]

Both doors differentiate their own loss on the same tensors: `niwaki.torch.surrogate`, and the `_compute_loss` of `niwaki.trl`'s
trainer against that of TRL's. `norm` is the ratio of the norms of the gradient with respect to the log-probs; `first token` is
the ratio at the first token of a completion, the most that a token counts.
"""

import argparse
import types
import warnings

import torch
from torch_loss import trainer


def batch(given, steps):
    """Log-probs of a batch that was just drawn, and group-relative advantages."""
    torch.manual_seed(0)
    old = -torch.rand((given.lanes, steps)) - 0.2
    rewards = torch.randn(given.lanes // 4, 4)
    advantages = (rewards - rewards.mean(1, keepdim=True)) / rewards.std(1, keepdim=True)
    return old, advantages.reshape(-1)


def ratios(new, plain, corrected):
    """Norm and first token of the corrected gradient over the plain one's."""
    found = []
    for loss in (plain, corrected):
        new.grad = None
        loss().backward()
        found.append(new.grad.clone())
    before, after = found
    return (after.norm() / before.norm()).item(), (after[:, 0] / before[:, 0]).mean().item()


def of_surrogate(given, steps):
    from niwaki.torch import surrogate

    old, advantages = batch(given, steps)
    new = old.clone().requires_grad_()
    loss = lambda member: surrogate(new, old, advantages, correction=member)[0]
    return ratios(new, lambda: loss("ppo"), lambda: loss(given.correction))


def of_trl(given, steps):
    import niwaki.trl
    import trl
    from niwaki._amplification import Watch
    from niwaki.correction import Correction

    old, advantages = batch(given, steps)
    new = old.clone().requires_grad_()
    ids = torch.zeros(old.shape, dtype=torch.long)
    mask = torch.ones_like(ids)
    inputs = {
        "prompt_ids": ids[:, :1], "prompt_mask": mask[:, :1], "completion_ids": ids, "completion_mask": mask,
        "old_per_token_logps": old, "advantages": advantages,
    }
    # What a forward pass of the model would have given.
    trl.GRPOTrainer._get_per_token_logps_and_entropies = lambda *_, **__: (new, torch.zeros_like(old), None)
    ours = {"_routing": True, "_warmup": None, "_warmup_reuse": None, "_reuse": 2, "_read": None, "_generation": 0, "_pass": 0}
    plain = trainer(trl.GRPOTrainer)
    corrected = trainer(niwaki.trl.GRPOTrainer, correction=Correction.parse(given.correction), _watch=Watch(), **ours)
    plain.model = corrected.model = types.SimpleNamespace(training=True)
    return ratios(new, lambda: plain._compute_loss(None, inputs), lambda: corrected._compute_loss(None, inputs))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--correction", default="tempered:0.1")
    parser.add_argument("--lanes", type=int, default=16, help="completions, in groups of four")
    parser.add_argument("--steps", type=int, nargs="+", default=[64, 512, 4096])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{given.correction} on a fresh batch of {given.lanes} completions, one advantage each")
    print(f"{'door':24} {'tokens':>7} {'norm':>8} {'first token':>12}")
    for name, door in (("niwaki.torch.surrogate", of_surrogate), ("niwaki.trl.GRPOTrainer", of_trl)):
        for steps in given.steps:
            norm, first = door(given, steps)
            print(f"{name:24} {steps:7} {norm:7.1f}x {first:11.1f}x")


if __name__ == "__main__":
    main()
