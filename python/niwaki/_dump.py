"""Dumps for `niwaki advise`, in at most eight bytes a token."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from . import _native
from ._batches import add

__all__ = ["Dump"]


class Dump:
    """Writes what a run's batches hold to a folder that `niwaki advise FOLDER` reads: one parquet file for each iteration, of a
    few bytes a token. Log-probs are rounded to a millionth (2⁻²⁰), advantages of single steps to a part in a hundred thousand.

    Args:
        folder: where the files go; made where it is missing.
        budget: tokens to keep of an iteration. Where there are more, whole groups are kept by chance, and count for those that
            were left out: estimates stay unbiased, intervals widen, and the report says that the dump was thinned. Rewards
            are kept of all. None keeps everything.
        rank: the rank whose part of each batch is written, where there are several: each writes files of its own.

    >>> import numpy as np, tempfile
    >>> from niwaki.advise import Dump, advise
    >>> rng = np.random.default_rng(0)
    >>> with Dump(folder := tempfile.mkdtemp(), budget=2000) as dump:
    ...     for iteration in range(4):
    ...         old = -rng.exponential(size=(64, 100)) - 0.5
    ...         new = old + rng.normal(scale=0.05, size=old.shape)
    ...         dump.update(new, old, rng.normal(size=64), group=np.arange(64) // 4, iteration=iteration)
    >>> found = advise(folder)
    >>> found.facts["trajectories"], found.facts["thinned"] > 100
    (256, True)
    """

    def __init__(self, folder: str | os.PathLike[str], *, budget: int | None = None, rank: int | None = None) -> None:
        for name, value, least in (("budget", budget, 1), ("rank", rank, 0)):
            if value is not None and value < least:
                raise ValueError(f"{name} is {value}; give at least {least}")
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._budget, self._rank = budget, rank
        self._native = _native.Dump()
        self._iteration: int | None = None
        self.tokens = 0
        """Tokens of the policy so far, and those of them that were kept."""
        self.kept = 0
        self.bytes = 0
        """Bytes written so far."""

    def update(self, *arrays: Any, iteration: int = 0, **more: Any) -> None:
        """Adds a part of an iteration's batch; arguments as `niwaki.advise.Advisor.update`'s. Parts of one iteration come
        together, and another iteration closes the one before."""
        if iteration != self._iteration:
            self.close()
        add(self._native, *arrays, iteration=iteration, **more)
        self._iteration = iteration

    def close(self) -> Path | None:
        """Writes the iteration at hand, and returns its file; None where nothing was added."""
        if self._iteration is None:
            return None
        place = self.place(self._iteration)
        self._iteration = None
        written, kept, tokens = self._native.take(self._budget)
        part = place.with_suffix(".part")
        part.write_bytes(written)
        part.replace(place)
        self.tokens, self.kept, self.bytes = self.tokens + tokens, self.kept + kept, self.bytes + len(written)
        return place

    def place(self, iteration: int) -> Path:
        """The file of an iteration."""
        own = "" if self._rank is None else f"-{self._rank}"
        return self.folder / f"dump-{iteration:06}{own}.parquet"

    def forget(self, iteration: int) -> None:
        """Removes what the folder has of an iteration and those after it, of this rank: they are drawn again."""
        own = "" if self._rank is None else f"-{self._rank}"
        for place in self.folder.glob(f"dump-*{own}.parquet"):
            number = place.stem.removeprefix("dump-").removesuffix(own)
            if number.isdigit() and int(number) >= iteration:
                place.unlink()

    def __enter__(self) -> Dump:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
