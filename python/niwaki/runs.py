"""Runs out of their folders, as the command's pages read them: how each stands, what it came to, its curve.

    runs = niwaki.runs.read("runs/sweep")
    ours = {run.seed: run.endpoints["auc"] for run in runs if run.arm == "tempered:0.1" and run.is_over}

What `niwaki compare`, `niwaki board`, sweeps and the run's own page print, this returns to the last digit.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Iterator, Literal

import numpy as np

from . import _native

__all__ = ["Run", "Runs", "read"]


@dataclass(frozen=True)
class Run:
    """A run as it stands in its folder."""

    folder: str
    #: The resolved spec, as TOML.
    spec: str
    #: Its loss.
    arm: str
    seed: int
    #: `finished`, `unfinished` (it goes on, or was stopped) or `diverged`.
    standing: Literal["finished", "unfinished", "diverged"]
    #: Iterations done, of those asked for.
    done: int
    iterations: int
    #: What its endpoints are of.
    judged_by: str
    #: A column per measurement, a row per iteration; NaN where an iteration was not evaluated.
    curve: dict[str, np.ndarray] = field(repr=False)
    #: Endpoints by name; none as long as it is not over. What a diverged run did not come to counts as nothing earned.
    endpoints: dict[str, float | None]

    @property
    def is_over(self) -> bool:
        """Whether it is finished or diverged, so that it has endpoints."""
        return self.standing != "unfinished"

    def endpoint(self, name: str) -> float | None:
        """Any endpoint of studies, such as `at:50` or `reached`; None as long as it is not over, or where it has none."""
        return _native.run_endpoint(self.folder, name)


@dataclass(frozen=True)
class Runs:
    """The runs below some folders."""

    runs: list[Run]
    #: Folders that cannot be read, each with its reason.
    damaged: list[tuple[str, str]]

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)


def read(*places: str | os.PathLike[str]) -> Runs:
    """Every run in some folders and below them; those that are unfinished or damaged say so."""
    if not places:
        raise ValueError("no folder was given; name one with runs in it or below it")
    runs, damaged = _native.read_runs([os.fspath(place) for place in places])
    return Runs([Run(**run) for run in runs], damaged)
