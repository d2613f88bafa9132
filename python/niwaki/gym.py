"""Shops as a Gymnasium `VectorEnv` with action masks: thousands of schedules under construction per call; token tasks of your own.

    >>> from niwaki.gym import ShopVectorEnv
    >>> env = ShopVectorEnv(num_envs=4, task="job-shop", order="active", jobs=3, machines=2)
    >>> observation, info = env.reset(seed=0)
    >>> observation["features"].shape, observation["context"].shape, info["action_mask"].shape
    ((4, 6, 8), (4, 7), (4, 6))

The tasks, their orders of construction, what a policy sees and what a schedule pays are those of `niwaki train`. All orders
but a job shop's `list` are canonical, so that the process is a tree and the correction is exact on it.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

from . import _native
from ._arrays import whole
from .shop import Instance, Placed, Schedule

__all__ = ["ShopEnv", "ShopVectorEnv", "TokenVectorEnv"]

_ARGUMENTS = {"kind": "task", "training": "pool", "pool": "seed"}
"""What keys of a run's spec are called here, where the names differ."""


@dataclass
class _Seen:
    """What a step fills, `[lanes, …]` each."""

    features: np.ndarray
    context: np.ndarray
    open: np.ndarray
    reward: np.ndarray
    done: np.ndarray
    makespan: np.ndarray
    late: np.ndarray


class ShopVectorEnv(VectorEnv):
    """`num_envs` shops, one choice in each per step; all take as many steps.

    Observation: `features` `[candidates, features]` describe the instance (candidates are jobs, in a job shop operations),
    `context` `[context]` the state, `open` `[candidates]` what may be chosen. Action: a candidate that is open;
    `info["action_mask"]` says the same. Reward: 0, and at the end what the schedule pays. `info` also has `makespan` and
    `late` (jobs), 0 before the end. Lanes that have ended begin again at the next step (Gymnasium's `NEXT_STEP`), on an
    instance drawn from the pool.

    Args:
        task: `flow-shop`, `job-shop`, `lags` (two machines, rests between them, due dates), `single-machine` or
            `two-orders`.
        instances: shops of one shape that make up the pool; `pool` draws of the task where None.
        jobs, machines: the size of drawn instances; the paper's where None.
        order: of a job shop: `non-delay` (the default), `active`, `machine` or `list`.
        hidden: whether lags and due dates are kept out of the features.
        both, slack: of `two-orders`: whether both have a due date, and how much later than possible.
        reward: `deadline` (1 if the makespan is at most `deadline` · C*, 1.05 unless given), `makespan` (−makespan / C*) or
            `due-dates` (1 if no job is late). The default is `due-dates` where jobs have them, else `deadline`.
        patience: seconds for which the optimum C* of an instance may be sought; then the best known counts.
        seed: of the draws.
        copy: whether observations are the caller's to keep; without, each step overwrites the last one's.

    Raises ValueError with a sentence that names the argument.
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        num_envs: int = 1,
        *,
        task: str = "flow-shop",
        instances: Sequence[Instance] | None = None,
        jobs: int | None = None,
        machines: int | None = None,
        order: str | None = None,
        hidden: bool | None = None,
        both: bool | None = None,
        slack: int | None = None,
        reward: str | None = None,
        deadline: float | None = None,
        patience: float | None = None,
        pool: int = 64,
        seed: int = 0,
        copy: bool = True,
    ) -> None:
        self.num_envs = _count("num_envs", num_envs)
        keys = {"kind": task, "order": order, "hidden": hidden, "reward": reward, "deadline": deadline, "patience": patience}
        keys |= {"jobs": jobs, "machines": machines, "both": both, "slack": slack}
        if instances is None:
            keys |= {"training": _count("pool", pool), "pool": seed, "validation": 1}
        else:
            instances = list(instances)
            if not instances or not all(isinstance(one, Instance) for one in instances):
                raise ValueError("instances must be niwaki.shop.Instance, at least one")
            for name, given in (("jobs", jobs), ("machines", machines), ("both", both), ("slack", slack)):
                if given is not None:
                    raise ValueError(f"{name} is that of the instances; leave it out")
        settings = [f"task.{key}={_toml(value)}" for key, value in keys.items() if value is not None]
        natives = None if instances is None else [one._native for one in instances]
        try:
            self._native = _native.Lanes([*settings, "policy.kind=pointer"], natives, self.num_envs)
        except ValueError as error:
            named = lambda found: _ARGUMENTS.get(found[1], found[1])
            raise ValueError(re.sub(r"\btask\.(\w+)", named, str(error))) from None
        self.task = task
        self.instances = instances or [Instance(one, f"{task} {index}") for index, one in enumerate(self._native.instances())]
        self.optima = np.array(self._native.optima())
        """The best known makespan of each instance."""
        candidates, features, context, self.horizon = self._native.sizes()
        self.single_action_space = spaces.Discrete(candidates)
        numbers = lambda *shape: spaces.Box(0.0, np.inf, shape, np.float32)
        self.single_observation_space = spaces.Dict(
            {
                "features": numbers(candidates, features),
                "context": numbers(context),
                "open": spaces.MultiBinary(candidates),
            }
        )
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self._seen = _Seen(
            features=np.zeros((num_envs, candidates, features), np.float32),
            context=np.zeros((num_envs, context), np.float32),
            open=np.zeros((num_envs, candidates), np.uint8),
            reward=np.zeros(num_envs),
            done=np.zeros(num_envs, np.bool_),
            makespan=np.zeros(num_envs, np.uint32),
            late=np.zeros(num_envs, np.uint32),
        )
        self._lane_instances = np.zeros(num_envs, np.uint32)
        self._never = np.zeros(num_envs, np.bool_)
        self._copy = copy

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        """Starts every lane; `options["instances"]` `[num_envs]` names those of the pool."""
        super().reset(seed=seed)
        chosen = (options or {}).get("instances")
        self._lane_instances = self._draw() if chosen is None else whole("instances", chosen, np.uint32, "[num_envs]")
        self._native.reset(self._lane_instances, self._seen)
        return self._observe(), self._info()

    def step(self, actions: Any) -> tuple[dict, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Takes one choice in every lane. Raises ValueError for one that is closed; no lane has moved then."""
        actions = whole("actions", actions, np.int64, "[num_envs]")
        if self._seen.done[0]:
            self._lane_instances = self._draw()
        self._native.step(actions, self._lane_instances, self._seen)
        keep = np.copy if self._copy else np.asarray
        return self._observe(), keep(self._seen.reward), keep(self._seen.done), self._never, self._info()

    def action_masks(self) -> np.ndarray:
        """Which actions are open, `[num_envs, candidates]`, under the name that sb3-contrib looks for."""
        return self._seen.open.astype(np.bool_)

    def instance(self, lane: int) -> Instance:
        """The instance that a lane builds a schedule for."""
        return self.instances[self._lane_instances[lane]]

    def schedule(self, lane: int) -> Schedule:
        """What a lane has scheduled so far; a Gantt chart in notebooks."""
        placed = tuple(Placed(*row) for row in self._native.schedule(_count("lane", lane, 0)))
        instance = self.instance(lane)
        return Schedule(placed, instance.machines, instance.name or instance.kind)

    def _draw(self) -> np.ndarray:
        return self.np_random.integers(len(self.instances), size=self.num_envs, dtype=np.uint32)

    def _observe(self) -> dict[str, np.ndarray]:
        seen = self._seen
        keep = np.copy if self._copy else np.asarray
        return {"features": keep(seen.features), "context": keep(seen.context), "open": keep(seen.open.view(np.int8))}

    def _info(self) -> dict[str, np.ndarray]:
        seen = self._seen
        keep = np.copy if self._copy else np.asarray
        return {"action_mask": keep(seen.open.view(np.bool_)), "makespan": keep(seen.makespan), "late": keep(seen.late)}


class ShopEnv(gymnasium.Env):
    """One lane of `ShopVectorEnv` under Gymnasium's plain interface, for trainers that take single environments."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, **arguments: Any) -> None:
        self._lanes = ShopVectorEnv(1, **arguments)
        self.action_space = self._lanes.single_action_space
        self.observation_space = self._lanes.single_observation_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        """Starts on an instance drawn from the pool; `options["instances"]` of one number names it."""
        super().reset(seed=seed)
        observation, info = self._lanes.reset(seed=seed, options=options)
        return _first(observation), _first(info)

    def step(self, action: Any) -> tuple[dict, float, bool, bool, dict]:
        """Takes one choice."""
        observation, reward, done, cut, info = self._lanes.step(np.asarray(action).reshape(-1))
        return _first(observation), float(reward[0]), bool(done[0]), bool(cut[0]), _first(info)

    def action_masks(self) -> np.ndarray:
        """Which actions are open, `[candidates]`."""
        return self._lanes.action_masks()[0]

    def schedule(self) -> Schedule:
        """What was scheduled so far; a Gantt chart in notebooks."""
        return self._lanes.schedule(0)


class TokenVectorEnv(VectorEnv):
    """`num_envs` sequences of a token task of your own, one token in each per step: a tree, on which the correction is exact.

    A task has three methods: `vocab()` and `horizon()`, whole numbers, and `reward(tokens)`, what a whole sequence pays.
    Observation: the tokens so far, one-hot, `[horizon · vocab]`, zeros for those to come.

    >>> class AllEqual:
    ...     def vocab(self): return 3
    ...     def horizon(self): return 2
    ...     def reward(self, tokens): return float(tokens[0] == tokens[1])
    >>> env = TokenVectorEnv(AllEqual(), 2)
    >>> _ = env.reset()
    >>> _ = env.step([0, 1])
    >>> env.step([0, 2])[1].tolist()
    [1.0, 0.0]
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, task: Any, num_envs: int = 1) -> None:
        for method in ("vocab", "horizon", "reward"):
            if not callable(getattr(task, method, None)):
                raise ValueError(f"task has no method {method}; a token task has vocab(), horizon() and reward(tokens)")
        self.task, self.num_envs = task, _count("num_envs", num_envs)
        self.vocab, self.horizon = _count("vocab", task.vocab(), 2), _count("horizon", task.horizon())
        self.single_action_space = spaces.Discrete(self.vocab)
        self.single_observation_space = spaces.Box(0.0, 1.0, (self.horizon * self.vocab,), np.float32)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self._tokens = np.zeros((num_envs, 0), np.int64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Starts every sequence."""
        super().reset(seed=seed)
        self._tokens = np.zeros((self.num_envs, 0), np.int64)
        return self._observe(), {}

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Appends a token to every sequence; whole ones are paid, and begin again at the next step."""
        never = np.zeros(self.num_envs, np.bool_)
        if self._tokens.shape[1] == self.horizon:
            return *self.reset()[:1], np.zeros(self.num_envs), never, never, {}
        actions = whole("actions", actions, np.int64, "[num_envs]")
        if actions.shape != (self.num_envs,) or actions.min() < 0 or actions.max() >= self.vocab:
            raise ValueError(f"actions must be {self.num_envs} tokens from 0 to {self.vocab - 1}")
        self._tokens = np.concatenate([self._tokens, actions[:, None]], 1)
        over = np.full(self.num_envs, self._tokens.shape[1] == self.horizon)
        rewards = np.array([self._reward(row) for row in self._tokens.tolist()]) if over[0] else np.zeros(self.num_envs)
        return self._observe(), rewards, over, never, {}

    def _reward(self, tokens: list[int]) -> float:
        found = float(self.task.reward(tokens))
        if not np.isfinite(found):
            raise ValueError(f"task: it pays {found} for {tokens}; a reward is a finite number")
        return found

    def _observe(self) -> np.ndarray:
        seen = np.zeros((self.num_envs, self.horizon, self.vocab), np.float32)
        lanes, steps = np.indices(self._tokens.shape)
        seen[lanes, steps, self._tokens] = 1.0
        return seen.reshape(self.num_envs, -1)


def _first(values: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: value[0] for name, value in values.items()}


def _count(name: str, value: Any, least: int = 1) -> int:
    try:
        found = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} is {value!r}; give a whole number") from None
    if found < least:
        raise ValueError(f"{name} is {found}; give at least {least}")
    return found


def _toml(value: Any) -> str:
    """A value as a run's spec would write it."""
    return json.dumps(value) if isinstance(value, (bool, str)) else str(value)
