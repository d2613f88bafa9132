"""What `niwaki.train` is made of beside its loop: policies' answers, losses by name or function, checkpoints, digests, refusals."""

from __future__ import annotations

import difflib
import hashlib
import inspect
import random
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any, Union

import numpy as np
import torch
from gymnasium import Env
from gymnasium.vector import AutoresetMode, VectorEnv
from torch import Tensor, nn

from .correction import Correction, evaluate
from .run import Run
from .torch import surrogate

Loss = Union[str, Correction, Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]]
Objective = Callable[[Tensor, Tensor, Tensor, Tensor, Any], Tensor]

JUDGES = ("critic", "batch", "group")
CLOSED = -1e9
"""The logit of an action that is not open: its probability is exactly zero."""


class Choice:
    """Logits as a distribution, without the checks that cost more than the numbers."""

    def __init__(self, logits: Tensor, mask: Tensor | None) -> None:
        if mask is not None:
            # Lanes that have ended have nothing open, and play nothing.
            logits = logits.masked_fill(~(mask | ~mask.any(-1, keepdim=True)), CLOSED)
        self.logprobs = logits.log_softmax(-1)

    def sample(self) -> Tensor:
        return torch.multinomial(self.logprobs.exp(), 1).squeeze(-1)

    def log_prob(self, action: Tensor) -> Tensor:
        return self.logprobs.gather(-1, action.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.logprobs.exp() * self.logprobs).sum(-1)


class _Whole:
    """A distribution whose action is a vector: one log-prob for all of it."""

    def __init__(self, inner: torch.distributions.Distribution) -> None:
        self.inner = inner

    def sample(self) -> Tensor:
        return self.inner.sample()

    def log_prob(self, action: Tensor) -> Tensor:
        return _summed(self.inner.log_prob(action))

    def entropy(self) -> Tensor:
        return _summed(self.inner.entropy())


def _summed(values: Tensor) -> Tensor:
    return values if values.dim() == 1 else values.flatten(1).sum(1)


def heads(policy: nn.Module, seen: Any, mask: Tensor | None) -> tuple[Any, Tensor | None]:
    """What a policy says of observations: how it acts there, and what it expects."""
    said = policy(seen)
    head, value = said if isinstance(said, tuple) else (said, None)
    if isinstance(head, torch.distributions.Distribution):
        return _Whole(head), value
    if not isinstance(head, Tensor) or head.dim() != 2:
        raise ValueError(f"policy returns {_said(head)}; return logits [lanes, actions] or a distribution, alone or with a value [lanes]")
    return Choice(head, mask), value


def objective_of(loss: Loss, clip: Any) -> tuple[str, Objective]:
    """A loss's name, and the loss as a function of log-probs now and at rollout, advantages, mask and heads."""
    if callable(loss) and not isinstance(loss, Correction):
        return getattr(loss, "__name__", type(loss).__name__), lambda new, old, advantage, own, head: loss(new, old, advantage, own)
    member = Correction.parse(loss)
    if member.rule.written is None:
        return member.name, lambda new, old, advantage, own, head: surrogate(
            new, old, advantage, own, correction=member, clip=clip, metrics=False
        )[0]
    if member.rule.written == "top-entropy" or member.name.startswith("top-entropy"):
        raise ValueError("loss: 'top-entropy' needs entropies of every step; give a function of your own")

    def written(new: Tensor, old: Tensor, advantage: Tensor, own: Tensor, head: Any) -> Tensor:
        arrays = (each.detach().cpu().numpy() for each in (new, old, advantage, own))
        first, second, third, mask = arrays
        found = evaluate(first, second, third, mask=mask, correction=member, clip=clip, densities=not isinstance(head, Choice))
        return -(new * torch.as_tensor(found.cotangent, device=new.device)).sum()

    return member.name, written


def look_at_loss(total: Any, name: str) -> Tensor:
    if not isinstance(total, Tensor) or total.dim() != 0:
        raise ValueError(f"loss '{name}' returned {_said(total)}; return one number, a tensor of shape []")
    return total


def _said(thing: Any) -> str:
    return f"a tensor of shape {list(thing.shape)}" if isinstance(thing, Tensor) else f"a {type(thing).__name__}"


def check(env: Any, advantage: str, steps: int | None, group: int, counts: dict[str, Any]) -> None:
    """Refuses what cannot be trained on, before anything is written."""
    if isinstance(env, Env):
        raise ValueError("env is a single environment; make it a vector: gymnasium.make_vec(id, num_envs=8)")
    if not isinstance(env, VectorEnv):
        raise ValueError(f"env is {type(env).__name__}; give a gymnasium.vector.VectorEnv")
    mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
    if mode != AutoresetMode.NEXT_STEP:
        raise ValueError(f"env resets itself by {mode}; make it with autoreset_mode=AutoresetMode.NEXT_STEP, which is Gymnasium's own")
    if advantage not in JUDGES:
        near = difflib.get_close_matches(str(advantage), JUDGES, 1)
        mend = f"did you mean '{near[0]}'?" if near else f"write {', '.join(JUDGES)}"
        raise ValueError(f"advantage: there is no kind '{advantage}'; {mend}")
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} is {value!r}; give a whole number from 1 up")
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
        raise ValueError(f"steps is {steps!r}; give a whole number from 1 up, or None for whole episodes")
    if steps is not None and advantage != "critic":
        raise ValueError(f"advantage='{advantage}' needs whole episodes; leave steps out, or judge by 'critic'")
    if advantage == "group" and (group < 2 or env.num_envs % group):
        raise ValueError(f"group is {group}; give a number from 2 up that divides the {env.num_envs} lanes")


def task_of(env: VectorEnv) -> str:
    """What an environment is called in results."""
    spec = getattr(env, "spec", None)
    task = getattr(env, "task", None)
    return spec.id if spec is not None else task if isinstance(task, str) else type(env if task is None else task).__name__


def code_of(caller: str, *parts: Any) -> str | None:
    """A digest of the user's files: the one that called, and those of policy, loss and environment. Installed packages are not
    read, nor what the files import."""
    stdlib = Path(sysconfig.get_path("stdlib")).resolve()
    files = {Path(caller)}
    for part in parts:
        try:
            files.add(Path(inspect.getsourcefile(part) or ""))
        except TypeError:
            continue
    digest, found = hashlib.sha256(), False
    for path in sorted({path.resolve() for path in files}, key=lambda path: (path.name, path)):
        ours = Path(__file__).resolve().parent in path.parents
        if not path.is_file() or ours or stdlib in path.parents or {"site-packages", "dist-packages"} & set(path.parts):
            continue
        digest.update(path.read_bytes())
        found = True
    return digest.hexdigest()[:16] if found else None


def set_seed(seed: int, iteration: int) -> None:
    """Every iteration draws from its own seed, so that one that is repeated draws the same."""
    drawn = int(np.random.default_rng((seed, iteration, 1)).integers(2**31))
    torch.manual_seed(drawn)
    np.random.seed(drawn)
    random.seed(drawn)


def pack(run: Run, policy: nn.Module, optimiser: Any, reference: nn.Module | None, mean: float) -> None:
    """Saves what a run goes on from: tensors, and what JSON says beside them."""
    kept = {f"policy.{name}": value for name, value in policy.state_dict().items()}
    if reference is not None:
        kept |= {f"reference.{name}": value for name, value in reference.state_dict().items()}
    state = optimiser.state_dict()
    numbers: dict[str, Any] = {}
    for index, values in state["state"].items():
        for name, value in values.items():
            (kept if isinstance(value, Tensor) else numbers)[f"optimizer.{index}.{name}"] = value
    run.save(kept, mean=mean, groups=state["param_groups"], numbers=numbers)


def unpack(
    arrays: dict[str, np.ndarray], state: dict[str, Any], policy: nn.Module, optimiser: Any, reference: nn.Module | None
) -> float:
    """Puts back what `pack` took; returns the mean return."""

    def values(prefix: str, like: dict[str, Tensor]) -> dict[str, Tensor]:
        found = {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}
        sizes = {name: tuple(value.shape) for name, value in like.items()}
        if {name: value.shape for name, value in found.items()} != sizes:
            raise ValueError("the checkpoint is of a policy with other tensors; give the one that the run began with")
        kept = {name: torch.from_numpy(value) for name, value in found.items()}
        return {name: value if value.dtype == like[name].dtype else value.view(like[name].dtype) for name, value in kept.items()}

    policy.load_state_dict(values("policy.", policy.state_dict()))
    if reference is not None:
        reference.load_state_dict(values("reference.", reference.state_dict()))
    inner: dict[int, dict[str, Any]] = {}
    saved = {name: torch.from_numpy(value) for name, value in arrays.items() if name.startswith("optimizer.")}
    # Tensors of bfloat16 come as their bits; no optimiser keeps such integers.
    saved = {name: value.view(torch.bfloat16) if value.dtype == torch.uint16 else value for name, value in saved.items()}
    for place, value in {**saved, **state["numbers"]}.items():
        _, index, name = place.split(".", 2)
        inner.setdefault(int(index), {})[name] = value
    optimiser.load_state_dict({"state": inner, "param_groups": state["groups"]})
    return float(state["mean"])


def tensors(seen: Any, device: str) -> Any:
    """An observation as tensors: a tensor, or a dict of them by name."""
    if isinstance(seen, dict):
        return {name: tensors(value, device) for name, value in seen.items()}
    if isinstance(seen, tuple):
        raise ValueError("env: observations are tuples; wrap it so that they are arrays, or dicts of arrays")
    found = torch.as_tensor(np.asarray(seen), device=device)
    return found.float() if found.dtype == torch.float64 else found


def shapes(seen: Any) -> Any:
    """The sizes of an observation."""
    return {name: shapes(value) for name, value in seen.items()} if isinstance(seen, dict) else tuple(np.shape(seen))


def pick(seen: Any, places: Tensor) -> Any:
    return {name: value[places] for name, value in seen.items()} if isinstance(seen, dict) else seen[places]


def together(steps: list[Any]) -> Any:
    first = steps[0]
    if isinstance(first, dict):
        return {name: torch.cat([each[name] for each in steps]) for name in first}
    return torch.cat(steps)


def rows_of(own: np.ndarray, ended: np.ndarray) -> np.ndarray:
    """The trajectories of `[steps, lanes]`: the places of each one's steps in a row, −1 behind its end."""
    lanes = own.shape[1]
    rows: list[np.ndarray] = []
    for lane in range(lanes):
        steps = np.flatnonzero(own[:, lane])
        ends = np.flatnonzero(ended[steps, lane]) + 1
        rows += [part * lanes + lane for part in np.split(steps, ends) if len(part)]
    found = np.full((len(rows), max(map(len, rows))), -1)
    for place, row in enumerate(rows):
        found[place, : len(row)] = row
    return found
