"""Flow shops as a Gymnasium `VectorEnv` with action masks: thousands of schedules under construction per call.

    >>> from niwaki.gym import FlowShopVectorEnv
    >>> env = FlowShopVectorEnv(num_envs=4, jobs=5, machines=3)
    >>> observation, info = env.reset(seed=0)
    >>> observation["front"].shape, info["action_mask"].shape
    ((4, 3), (4, 5))

The order is the canonical one (the action is the job for the next position), so the process is a tree and the correction
is exact on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

from . import _native
from .shop import Instance, generate

__all__ = ["FlowShopEnv", "FlowShopVectorEnv"]


@dataclass
class _Seen:
    """What a step fills, `[lanes, …]` each."""

    times: np.ndarray
    front: np.ndarray
    mask: np.ndarray
    reward: np.ndarray
    done: np.ndarray
    makespan: np.ndarray


class FlowShopVectorEnv(VectorEnv):
    """`num_envs` flow shops, one job placed in each per step; episodes are `jobs` steps long.

    Observation: `times` `[jobs, machines]` and `front` `[machines]` (when each machine has done what was placed), both as
    shares of the instance's NEH makespan, and `placed` `[jobs]`. Action: a job that is not placed yet;
    `info["action_mask"]` says which. Reward: 0, and at the end 1 − makespan / NEH makespan. Lanes that have ended begin
    again at the next step (Gymnasium's `NEXT_STEP`), on an instance drawn from the pool.

    Args:
        instances: flow shops of one shape; `pool` draws of `task` where None.
        copy: whether observations are the caller's to keep; without, each step overwrites the last one's.
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        num_envs: int = 1,
        *,
        instances: list[Instance] | None = None,
        task: str = "hard-flow",
        jobs: int = 20,
        machines: int = 7,
        pool: int = 64,
        seed: int = 0,
        copy: bool = True,
    ) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs is {num_envs}; give at least 1")
        if instances is None:
            instances = [generate(task, jobs=jobs, machines=machines, seed=seed, index=index) for index in range(pool)]
        times = [instance.times for instance in instances]
        if not times or any(part is None or part.shape != times[0].shape for part in times):
            raise ValueError("instances must be flow shops of one shape, at least one")
        self.instances = instances
        jobs, machines = times[0].shape
        self._native = _native.FlowLanes(np.ascontiguousarray(np.stack(times), np.uint32), num_envs)
        self.num_envs = num_envs
        self.single_action_space = spaces.Discrete(jobs)
        shares = lambda *shape: spaces.Box(0.0, np.inf, shape, np.float32)
        self.single_observation_space = spaces.Dict(
            {"times": shares(jobs, machines), "front": shares(machines), "placed": spaces.MultiBinary(jobs)}
        )
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self._seen = _Seen(
            times=np.zeros((num_envs, jobs, machines), np.float32),
            front=np.zeros((num_envs, machines), np.float32),
            mask=np.zeros((num_envs, jobs), np.bool_),
            reward=np.zeros(num_envs),
            done=np.zeros(num_envs, np.bool_),
            makespan=np.zeros(num_envs, np.uint32),
        )
        self._never = np.zeros(num_envs, np.bool_)
        self._copy = copy

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        """Starts every lane; `options["instances"]` `[num_envs]` names those of the pool."""
        super().reset(seed=seed)
        chosen = (options or {}).get("instances")
        numbers = self._draw() if chosen is None else np.ascontiguousarray(chosen, np.uint32)
        self._native.reset(numbers, self._seen)
        return self._observe(), self._info()

    def step(self, actions: Any) -> tuple[dict, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Places one job in every lane. Raises ValueError for one that is placed already."""
        actions = np.ascontiguousarray(actions, np.int64)
        self._native.step(actions, self._draw() if self._seen.done[0] else self._never_drawn, self._seen)
        keep = np.copy if self._copy else np.asarray
        return self._observe(), keep(self._seen.reward), keep(self._seen.done), self._never, self._info()

    def action_masks(self) -> np.ndarray:
        """Which actions are open, `[num_envs, jobs]`, under the name that sb3-contrib looks for."""
        return self._seen.mask.copy()

    def sequence(self, lane: int) -> list[int]:
        """The jobs that a lane has placed, in order."""
        return self._native.sequence(lane)

    _never_drawn = np.zeros(0, np.uint32)

    def _draw(self) -> np.ndarray:
        return self.np_random.integers(len(self.instances), size=self.num_envs, dtype=np.uint32)

    def _observe(self) -> dict[str, np.ndarray]:
        seen = self._seen
        placed = np.logical_not(seen.mask).view(np.int8)
        keep = np.copy if self._copy else np.asarray
        return {"times": keep(seen.times), "front": keep(seen.front), "placed": placed}

    def _info(self) -> dict[str, np.ndarray]:
        keep = np.copy if self._copy else np.asarray
        return {"action_mask": keep(self._seen.mask), "makespan": keep(self._seen.makespan)}


class FlowShopEnv(gymnasium.Env):
    """One lane of `FlowShopVectorEnv` under Gymnasium's plain interface, for trainers that take single environments."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, **arguments: Any) -> None:
        self._lanes = FlowShopVectorEnv(1, **arguments)
        self.action_space = self._lanes.single_action_space
        self.observation_space = self._lanes.single_observation_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        """Starts on an instance drawn from the pool."""
        super().reset(seed=seed)
        observation, info = self._lanes.reset(seed=seed, options=options)
        return _first(observation), _first(info)

    def step(self, action: Any) -> tuple[dict, float, bool, bool, dict]:
        """Places a job."""
        observation, reward, done, cut, info = self._lanes.step([action])
        return _first(observation), float(reward[0]), bool(done[0]), bool(cut[0]), _first(info)

    def action_masks(self) -> np.ndarray:
        """Which actions are open, `[jobs]`."""
        return self._lanes.action_masks()[0]


def _first(values: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: value[0] for name, value in values.items()}
