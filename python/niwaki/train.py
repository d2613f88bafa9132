"""PPO with the prefix correction on your environment, policy, loss and optimizer: one file, one loop.

The loop of `train` is the paper's alg:tempered line by line; the helpers below it play, judge and keep. The run stands in a folder
like those of `niwaki train`: curve, checkpoint, TensorBoard, a page, resume after a kill, `niwaki compare`.
"""

from __future__ import annotations

import copy
import math
import os
import sys
import time
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor, nn

from ._merging import Merging, digests
from ._training import (
    Choice, Loss, check, code_of, heads, look_at_loss, objective_of, pack, pick, rows_of, set_seed, shapes, task_of, tensors, together,
    unpack,
)  # fmt: skip
from .run import Run

__all__ = ["train"]

LONGEST = 100_000
"""Steps after which an episode that is played to its end is given up."""


def train(
    env: VectorEnv, policy: nn.Module | Callable[[], nn.Module], *, out: str | os.PathLike[str], iterations: int,
    loss: Loss = "ppo", optimizer: Callable[[Any], torch.optim.Optimizer] | None = None, steps: int | None = None,
    advantage: str = "critic", group: int = 8, reuse: int = 4, minibatches: int = 1, clip: Any = 0.2, gamma: float = 1.0,
    lam: float = 0.95, standardise: bool = True, entropy: float = 0.0, value: float = 0.5, reference_kl: float = 0.0,
    max_norm: float | None = 0.5, anneal: bool = False, save: int = 10, seed: int = 0, device: str = "cpu",
    changed: bool = False, quiet: bool = False,
) -> Run:  # fmt: skip
    """Trains a policy and returns its run, with the policy as `run.policy`. The same call goes on with a run that was cut off, and
    ends with the same bytes on a CPU.

    Args:
        env: a Gymnasium vector environment. `info["action_mask"]` says which actions are open, where it is there.
        policy: maps observations `[lanes, …]` to logits, or to a `torch.distributions.Distribution`, or to either and a value
            `[lanes]`. A function (a class) is called for the policy once the seed is set.
        out: the run's folder.
        loss: a member of the family by name, a `Correction`, or a function of log-probs now, log-probs at rollout, advantages and
            a mask, `[trajectories, steps]` each, to the number to be minimised.
        optimizer: a function of the parameters, Adam at 3e-4 where None.
        steps: steps of every lane per iteration; whole episodes from a new start where None.
        advantage: `critic` (GAE on the policy's value), `batch` (return-to-go less the batch's mean at the step), `group` (less that
            of `group` lanes with the same start).
        reuse, minibatches: epochs on a batch, and parts that its trajectories are dealt into.
        clip: as `niwaki.torch.surrogate`'s.
        entropy, value, reference_kl: weights of the entropy bonus, the critic's loss, and the penalty on leaving the first policy.
        anneal: whether learning rates fall to 0 on a line.
        save: iterations from checkpoint to checkpoint. With `steps`, lanes begin again at each, since environments cannot be saved.
        changed: go on with a run whose code has changed.

    Raises ValueError with a sentence that names the argument.
    """
    check(env, advantage, steps, group, {"iterations": iterations, "reuse": reuse, "minibatches": minibatches, "save": save})
    name, objective = objective_of(loss, clip)
    set_seed(seed, 0)
    source = policy
    policy = (policy if isinstance(policy, nn.Module) else policy()).to(device)
    parameters = [each for each in policy.parameters() if each.requires_grad]
    if not parameters:
        raise ValueError("policy has no parameter that takes a gradient; give a module with requires_grad parameters")
    optimiser = (optimizer or (lambda these: torch.optim.Adam(these, lr=3e-4, eps=1e-5)))(parameters)
    rates = [each["lr"] for each in optimiser.param_groups]
    reference = copy.deepcopy(policy) if reference_kl > 0 else None
    told: dict[str, Any] = dict(steps=steps or 0, advantage=advantage, group=group, minibatches=minibatches, clip=str(clip), gamma=gamma, lam=lam)
    told |= dict(standardise=standardise, entropy=entropy, value=value, reference_kl=reference_kl, max_norm=max_norm or 0.0)
    told |= dict(anneal=anneal, save=save, rate=float(rates[0]), lanes=env.num_envs, optimizer=type(optimiser).__name__)
    told |= dict(policy=f"{type(policy).__name__}, {sum(each.numel() for each in parameters)} parameters")
    code = code_of(sys._getframe(1).f_code.co_filename, source, loss, optimizer, type(env), type(policy))
    run = Run(out, task=task_of(env), iterations=iterations, seed=seed, loss=name, reuse=reuse, code=code, changed=changed, **told)
    run.policy = policy
    with run:
        played = _Lanes(env, steps, group if advantage == "group" else 1, device)
        found = run.restore()
        if found is None and not run.finished:
            pack(run, policy, optimiser, reference, played.mean)
        elif found is not None:
            played.mean = unpack(*found, policy, optimiser, reference)
            if not quiet and not run.finished:
                print(f"niwaki: going on after iteration {run.done} of {iterations} in {out}", file=sys.stderr)
        merging, shown = Merging(quiet), time.monotonic()
        while run.done < iterations:
            at = run.done
            set_seed(seed, at + 1)
            if steps is None or at % save == 0:
                played.restart(int(np.random.default_rng((seed, at)).integers(2**31)))
            if anneal:
                for each, rate in zip(optimiser.param_groups, rates):
                    each["lr"] = rate * (1.0 - at / iterations)
            # Lines 1 and 2: trajectories of the policy as it is, their log-probs, and advantages that stay through all epochs.
            batch = played.play(policy)
            judged, target = _judge(batch, advantage, gamma, lam, standardise, group)
            for _ in range(reuse):
                for rows in torch.randperm(len(batch.rows)).tensor_split(minibatches):
                    # Line 3: a part of the batch, by whole trajectories, `[trajectories, steps]` with a mask.
                    if len(rows) == 0:
                        continue
                    at_rows = batch.rows[rows]
                    at_rows = at_rows[:, : int((at_rows >= 0).sum(1).max())]
                    own = at_rows >= 0
                    flat = at_rows[own]
                    # Line 4: log-probs under the policy at hand.
                    head, estimate = heads(policy, pick(batch.seen, flat), None if batch.mask is None else batch.mask[flat])
                    logprob = head.log_prob(batch.action[flat])
                    new = torch.zeros(own.shape, device=device).masked_scatter(own, logprob)
                    index = at_rows.clamp(min=0)
                    # Lines 5 to 7: the corrected, clipped loss; the critic, the bonus, the penalty.
                    policy_loss = total = look_at_loss(objective(new, batch.old[index] * own, judged[index] * own, own, head), name)
                    if target is not None and estimate is not None:
                        total = total + value * 0.5 * (estimate.reshape(-1) - target[flat]).square().mean()
                    if entropy > 0:
                        total = total - entropy * head.entropy().mean()
                    if reference is not None:
                        with torch.no_grad():
                            first = heads(reference, pick(batch.seen, flat), None if batch.mask is None else batch.mask[flat])[0]
                            apart = first.log_prob(batch.action[flat])
                        apart = apart - logprob
                        total = total + reference_kl * (apart.exp() - 1.0 - apart).mean()
                    if not math.isfinite(total.item()):
                        which = f"loss '{name}' returned" if not math.isfinite(policy_loss.item()) else "the whole loss is"
                        raise ValueError(f"{which} {total.item()} in iteration {at + 1}; a lower learning rate may help")
                    # Line 8.
                    optimiser.zero_grad()
                    if total.requires_grad:
                        total.backward()
                    if all(each.grad is None for each in parameters):
                        raise ValueError(f"policy: no gradient comes from loss '{name}' to its parameters; is something detached?")
                    norm = nn.utils.clip_grad_norm_(parameters, max_norm if max_norm else math.inf)
                    optimiser.step()
            # Line 10: the policy is the one that samples next. What the update did to it on this batch is what the curve says.
            monitored, said = _monitor(batch, policy, judged, clip, merging)
            numbers = {"batch/episodes": float(batch.episodes), "update/loss": policy_loss.item()} | said
            run.log(reward=played.mean, rewarded=batch.rewarded, gradient_norm=norm.item(), batch=monitored, **numbers)
            if run.done % save == 0 or run.done == iterations:
                pack(run, policy, optimiser, reference, played.mean)
            if not quiet and time.monotonic() - shown > 5:
                shown = time.monotonic()
                print(f"niwaki: iteration {run.done} of {iterations}, reward {played.mean:.4g}", file=sys.stderr)
        page = run.finish(str(device))
    if not quiet and page is not None:
        print(f"wrote {page}")
    return run


@dataclass
class _Batch:
    """What was played; steps lie one after the other, `[steps · lanes, …]`, and `rows` `[trajectories, longest]` has their places, −1
    behind a trajectory's end."""

    seen: Any
    mask: Tensor | None
    action: Tensor
    old: Tensor
    rows: Tensor
    value: Tensor | None  # [steps + 1, lanes], as are the next three without the last step
    reward: Tensor
    ended: Tensor
    terminated: Tensor
    own: Tensor
    states: np.ndarray  # digests of what was seen and done
    actions: np.ndarray
    episodes: int
    rewarded: bool


class _Lanes:
    """The environment's lanes and where they stand."""

    def __init__(self, env: VectorEnv, steps: int | None, alike: int, device: str) -> None:
        self.env, self.steps, self.alike, self.device = env, steps, alike, device
        self.mean = 0.0
        """Mean return of the episodes that ended last."""

    def restart(self, seed: int) -> None:
        lanes, alike = self.env.num_envs, self.alike
        if alike == 1:
            seen, info = self.env.reset(seed=seed)
        elif hasattr(self.env, "instances"):
            chosen = np.random.default_rng(seed).integers(len(self.env.instances), size=lanes // alike)
            seen, info = self.env.reset(seed=seed, options={"instances": np.repeat(chosen, alike)})
        else:
            seen, info = self.env.reset(seed=[seed + lane // alike for lane in range(lanes)])
        self.seen, self.info, self.shapes = seen, info, shapes(seen)
        self.returns, self.resets = np.zeros(lanes), np.zeros(lanes, bool)

    @torch.no_grad()
    def play(self, policy: nn.Module) -> _Batch:
        """Plays `steps` in every lane, or every lane's episode to its end."""
        kept: dict[str, list] = {name: [] for name in ("seen", "mask", "action", "old", "value", "reward", "ended", "terminated", "own")}
        over, finished, rewarded = np.zeros(self.env.num_envs, bool), [], False
        while len(kept["own"]) < self.steps if self.steps else not over.all():
            if len(kept["own"]) == LONGEST:
                raise ValueError(f"env: an episode has not ended after {LONGEST} steps; give steps, or a time limit")
            seen, mask = tensors(self.seen, self.device), self.info.get("action_mask")
            if mask is not None:
                mask = torch.as_tensor(np.asarray(mask), dtype=torch.bool, device=self.device)
            head, value = heads(policy, seen, mask)
            action = head.sample()
            own = ~(self.resets | over) if self.steps is None else ~self.resets
            self.seen, reward, terminated, truncated, self.info = self.env.step(action.cpu().numpy())
            if shapes(self.seen) != self.shapes:
                raise ValueError(f"env: the observation is {shapes(self.seen)} at step {len(kept['own']) + 1}, it was {self.shapes}")
            ended = (terminated | truncated) & own
            rewarded |= bool((reward[own] != 0).any())
            self.returns += reward * own
            finished += self.returns[ended].tolist()
            self.returns[ended] = 0.0
            # Gymnasium's next step after an end is the reset, whatever the action.
            self.resets, over = terminated | truncated, over | ended
            step = (seen, mask, action, head.log_prob(action), value, reward, ended, terminated & own, own)
            for name, thing in zip(kept, step):
                kept[name].append(thing)
        if finished:
            self.mean = float(np.mean(finished))
        last = None if kept["value"][0] is None else heads(policy, tensors(self.seen, self.device), None)[1]
        own, ended = np.stack(kept["own"]), np.stack(kept["ended"])
        flags = {name: torch.as_tensor(np.stack(kept[name]), device=self.device) for name in ("reward", "ended", "terminated", "own")}
        flags["reward"] = flags["reward"].float()
        rows = torch.as_tensor(rows_of(own, ended), device=self.device)
        value = None if last is None else torch.stack([each.reshape(-1) for each in [*kept["value"], last]])
        seen, mask = together(kept["seen"]), None if kept["mask"][0] is None else torch.cat(kept["mask"])
        action, plain = torch.cat(kept["action"]), lambda tensor: tensor.cpu().numpy()
        states = digests({name: plain(each) for name, each in seen.items()} if isinstance(seen, dict) else plain(seen))
        whole: dict[str, Any] = {"states": states, "actions": digests(plain(action)), "episodes": len(finished), "rewarded": rewarded}
        return _Batch(seen, mask, action, torch.cat(kept["old"]), rows, value, **flags, **whole)


@torch.no_grad()
def _monitor(batch: _Batch, policy: nn.Module, judged: Tensor, clip: Any, merging: Merging) -> tuple[dict, dict]:
    """The batch under the policy as it is now, for the run's diagnostics, and what else the curve says."""
    own, index = batch.rows >= 0, batch.rows.clamp(min=0)
    flat = batch.rows[own]
    head, _ = heads(policy, pick(batch.seen, flat), None if batch.mask is None else batch.mask[flat])
    new = torch.zeros(own.shape, device=flat.device).masked_scatter(own, head.log_prob(batch.action[flat]))
    array = lambda tensor: (tensor * own).cpu().numpy()
    found = {"logprobs": array(new), "old_logprobs": array(batch.old[index]), "advantages": array(judged[index])}
    found |= {"mask": own.cpu().numpy(), "clip": clip, "densities": not isinstance(head, Choice)}
    states, places = batch.states, index.cpu().numpy()
    told = merging.look(states[places], batch.actions[places], array(new - batch.old[index]), found["mask"])
    return found, {"entropy": head.entropy().mean().item()} | told


def _judge(batch: _Batch, kind: str, gamma: float, lam: float, standardise: bool, group: int) -> tuple[Tensor, Tensor | None]:
    """Advantages `[steps · lanes]`, and what the critic should have said."""
    own, alive = batch.own.float(), (~batch.ended).float()
    if kind == "critic":
        if batch.value is None:
            raise ValueError("policy returns no value beside its logits; return both, or give advantage='batch' or 'group'")
        # A cut episode goes on in the critic's estimate of where it was cut; one that has ended is worth nothing more.
        ahead = batch.value[1:] * (1.0 - batch.terminated.float())
        surprise = (batch.reward + gamma * ahead - batch.value[:-1]) * own
        advantage = _backwards(surprise, gamma * lam * alive)
        target = (advantage + batch.value[:-1]).reshape(-1)
    else:
        to_go = _backwards(batch.reward * own, gamma * alive)
        steps, lanes = to_go.shape
        grouped = (steps, 1, lanes) if kind == "batch" else (steps, lanes // group, group)
        mine, returns = own.reshape(grouped), to_go.reshape(grouped)
        mean = (returns * mine).sum(2, keepdim=True) / mine.sum(2, keepdim=True).clamp(min=1.0)
        advantage, target = ((returns - mean) * mine), None
        if standardise and kind == "group":
            count = mine.sum((0, 2), keepdim=True).clamp(min=2.0)
            advantage = advantage / ((advantage.square().sum((0, 2), keepdim=True) / (count - 1.0)).sqrt() + 1e-6)
        advantage = advantage.reshape(steps, lanes)
    if standardise and kind != "group":
        values = advantage[batch.own]
        advantage = (advantage - values.mean()) / (values.std() + 1e-8) if len(values) > 1 else advantage
    return (advantage * own).reshape(-1), target


def _backwards(values: Tensor, keep: Tensor) -> Tensor:
    """`x_t = values_t + keep_t · x_{t+1}` along the first axis, on the host: a hundred tiny steps."""
    found, rest = values.cpu().numpy().copy(), keep.cpu().numpy()
    for step in range(len(found) - 2, -1, -1):
        found[step] += rest[step] * found[step + 1]
    return torch.as_tensor(found, device=values.device)


class _Called(types.ModuleType):
    """This module, which is what `niwaki.train` names and is called as the function in it."""

    __call__ = staticmethod(train)


sys.modules[__name__].__class__ = _Called
