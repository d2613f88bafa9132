"""Shops: read, generate, solve, verify, and draw.

    >>> from niwaki.shop import generate
    >>> instance = generate("hard-flow", jobs=6, machines=3, seed=1)
    >>> solution = instance.solve(time=5)
    >>> solution.proven, instance.verify(solution.schedule).makespan == solution.makespan
    (True, True)
"""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import _native
from ._arrays import whole

__all__ = ["Instance", "Placed", "Schedule", "Solution", "Verdict", "generate", "read", "tasks"]


class Placed(NamedTuple):
    """One operation on its machine; everything counts from 0."""

    job: int
    operation: int
    machine: int
    start: int
    end: int


@dataclass(frozen=True)
class Schedule:
    """Every operation with its machine and times; shown as a Gantt chart in notebooks."""

    operations: tuple[Placed, ...]
    machines: int
    title: str = ""
    deadline: int | None = None
    bound: int | None = None

    @property
    def makespan(self) -> int:
        """When the last operation ends."""
        return max((placed.end for placed in self.operations), default=0)

    def to_svg(self) -> str:
        """The Gantt chart."""
        return _native.draw_gantt(self.operations, self.title, self.machines, self.deadline, self.bound)

    def to_pandas(self) -> Any:
        """One row per operation."""
        import pandas

        return pandas.DataFrame(self.operations, columns=Placed._fields)

    def _repr_svg_(self) -> str:
        return self.to_svg()


@dataclass(frozen=True)
class Solution:
    """A checked schedule with the bound that it was held against."""

    schedule: Schedule
    objective: str
    """What was minimised: the makespan, or on a single machine the late jobs."""
    value: int
    """What the schedule reaches."""
    bound: int
    """No schedule reaches less."""

    @property
    def makespan(self) -> int:
        """When the last operation ends."""
        return self.schedule.makespan

    @property
    def proven(self) -> bool:
        """Whether no schedule reaches less."""
        return self.value == self.bound

    @property
    def gap(self) -> float:
        """How far the value may lie above the least, as a share of the bound."""
        return (self.value - self.bound) / max(self.bound, 1)

    def _repr_svg_(self) -> str:
        return self.schedule.to_svg()


@dataclass(frozen=True)
class Verdict:
    """What the independent checker found out about a correct schedule."""

    makespan: int
    violation: int
    late: int


class Instance:
    """A shop to schedule: flow shop, job shop, flexible job shop, lags, single machine."""

    def __init__(self, native: Any, name: str = "", note: str | None = None) -> None:
        self._native = native
        self.name = name
        self.note = note
        """What its file leaves open and how it was settled, if anything."""

    @classmethod
    def flow(cls, times: Any, name: str = "") -> Instance:
        """A flow shop. Shapes: times `[jobs, machines]`, whole numbers."""
        return cls(_native.Instance.flow(whole("times", times, np.uint32, "[jobs, machines]")), name)

    @classmethod
    def job(cls, machines: int, routes: Sequence[Sequence[tuple[int, int]]], name: str = "") -> Instance:
        """A job shop: of each job its operations as (machine, time)."""
        try:
            steps = [[(operator.index(machine), operator.index(time)) for machine, time in route] for route in routes]
        except (TypeError, ValueError):
            raise ValueError("routes must hold pairs of whole numbers, (machine, time), job by job") from None
        worst = [number for number in sum((pair for route in steps for pair in route), ()) if not 0 <= number < 2**32]
        if worst:
            raise ValueError(f"routes holds {worst[0]}; pass numbers from 0 to {2**32 - 1}")
        return cls(_native.Instance.job(machines, steps), name)

    @property
    def kind(self) -> str:
        """Which problem it is."""
        return self._native.kind

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return self._native.jobs

    @property
    def machines(self) -> int:
        """Number of machines."""
        return self._native.machines

    @property
    def operations(self) -> int:
        """Number of operations."""
        return self._native.operations

    @property
    def times(self) -> np.ndarray | None:
        """The times of a flow shop, `[jobs, machines]`; None for other shops."""
        return self._native.times()

    def to_text(self, format: str | None = None) -> str:
        """The instance in a file's layout; its problem's usual one where None."""
        return self._native.text(format)

    def solve(
        self, method: str = "exact", *, time: float = 10.0, seed: int = 0, deadline: int | None = None
    ) -> Solution:
        """A short schedule, checked.

        Args:
            method: `exact`, `neh` and `ig` (flow shops), `johnson`, `jackson` or `rule:NAME`, as `niwaki solve` names
                them.
            time: seconds that `exact` and `ig` may search. Ctrl-C ends it earlier.
            deadline: drawn in the chart.
        """
        return _solution(self, deadline, *self._native.solve(method, float(time), seed))

    def verify(self, schedule: Schedule | Sequence[tuple[int, int, int, int, int]]) -> Verdict:
        """Checks every constraint; ValueError names the first that does not hold."""
        rows = schedule.operations if isinstance(schedule, Schedule) else schedule
        return Verdict(*self._native.verify([tuple(row) for row in rows]))

    def __reduce__(self) -> Any:
        return _unpacked, (*self._native.packed(), self.name, self.note)

    def __repr__(self) -> str:
        return f"<{self.kind}, {self.jobs} jobs, {self.machines} machines, {self.operations} operations>"


def _unpacked(format: str, text: str, name: str, note: str | None) -> Instance:
    """An instance that was pickled: in its problem's usual layout."""
    return Instance(_native.Instance.unpacked(format, text), name, note)


def _solution(
    instance: Instance, deadline: int | None, objective: str, value: int, bound: int, lower: int, rows: list[tuple]
) -> Solution:
    """What the compiled half has found, for an instance."""
    placed = tuple(Placed(*row) for row in rows)
    schedule = Schedule(placed, instance.machines, instance.name or instance.kind, deadline, lower)
    return Solution(schedule, objective, value, bound)


def read(path: str | os.PathLike[str], format: str | None = None) -> Instance:
    """An instance of a file in any layout that `niwaki solve` reads; the layout is recognised unless it is named.

    Raises ValueError for a planner's table with dates, calendars or setups, which the command schedules.
    """
    path = os.fspath(path)
    native, note = _native.read_instance(path, format)
    return Instance(native, os.path.splitext(os.path.basename(path))[0], note)


def generate(
    task: str, *, jobs: int | None = None, machines: int | None = None, seed: int = 0, index: int = 0
) -> Instance:
    """Draws an instance; `tasks()` lists what can be drawn."""
    return Instance(_native.generate(task, jobs, machines, seed, index), f"{task} {index}")


def tasks() -> dict[str, str]:
    """What `generate` can draw, with a sentence each."""
    return dict(_native.tasks())
