"""Paired comparisons, exact sign tests, bootstrap intervals and rliable's aggregates: NumPy in, dataclasses out.

    >>> from niwaki.stats import paired
    >>> found = paired([0.61, 0.66, 0.62, 0.70, 0.64, 0.71, 0.69], [0.55, 0.60, 0.59, 0.62, 0.58, 0.66, 0.63])
    >>> round(found.mean, 4), found.verdict, found.p
    (0.0571, 'ahead', 0.015625)

A bootstrap is a pure function of its data and its seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from . import _native
from ._arrays import floats

__all__ = [
    "Estimate",
    "Interval",
    "Paired",
    "Profile",
    "SignTest",
    "aggregate",
    "auc",
    "bca",
    "correlation",
    "paired",
    "probability_of_improvement",
    "profile",
    "sign_test",
    "silence",
]


@dataclass(frozen=True)
class Interval:
    """A confidence interval at its nominal level."""

    low: float
    high: float
    level: float


@dataclass(frozen=True)
class Estimate:
    """A number with its interval."""

    value: float
    interval: Interval


@dataclass(frozen=True)
class SignTest:
    """Wins, losses and ties of pairs, with exact p-values (ties are left out)."""

    wins: int
    losses: int
    ties: int
    greater: float
    less: float
    two_sided: float


@dataclass(frozen=True)
class Paired:
    """Two arms that share seeds: first − second, pair by pair."""

    differences: np.ndarray
    mean: float
    sem: float
    verdict: str
    """`ahead`, `behind` or `undecided`, of first; `too few pairs to decide` below six pairs. Wrong at most 1 − level of the
    time where the arms are alike."""
    p: float
    """Two-sided: the larger of the exact sign-flip test's and of Student's with Hall's correction for skewness."""
    interval: Interval | None
    """Excludes zero exactly where the verdict is ahead or behind; None where the pairs are too few."""
    sign_test: SignTest


@dataclass(frozen=True)
class Profile:
    """The share of scores above each threshold, with its pointwise band."""

    thresholds: np.ndarray
    shares: np.ndarray
    low: np.ndarray
    high: np.ndarray


def paired(first: Any, second: Any, *, level: float = 0.95) -> Paired:
    """Compares two arms run on the same seeds, and decides which is ahead. Shapes: `[seeds]` each."""
    found = _native.paired(_values("first", first), _values("second", second), level)
    differences, mean, sem, verdict, p, ends, signs = found
    interval = None if ends is None else Interval(*ends)
    return Paired(differences, mean, sem, verdict, p, interval, SignTest(*signs))


def sign_test(first: Any, second: Any) -> SignTest:
    """The exact sign test of pairs. Shapes: `[pairs]` each."""
    return SignTest(*_native.sign_test(_values("first", first), _values("second", second)))


def bca(
    sample: Any,
    statistic: Literal["mean", "median"] = "mean",
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """The BCa interval of a sample's mean or median. Shapes: `[n]`."""
    if statistic not in ("mean", "median"):
        raise ValueError(f"statistic is {statistic!r}; write 'mean' or 'median'")
    return Interval(*_native.bca(_values("sample", sample), statistic == "median", (seed, resamples, level)))


def aggregate(
    scores: Any,
    name: Literal["mean", "median", "iqm", "optimality_gap"] = "iqm",
    *,
    target: float = 1.0,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Estimate:
    """An aggregate of runs × tasks with its stratified interval, as rliable's. Shapes: `[runs, tasks]`."""
    value, interval = _native.aggregate(_matrix("scores", scores), name, target, (seed, resamples, level))
    return Estimate(value, Interval(*interval))


def probability_of_improvement(
    first: Any, second: Any, *, pairs: bool = False, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Estimate:
    """How likely a run of the first arm beats one of the second; `pairs` where runs share seeds.

    Shapes: `[runs, tasks]` each.
    """
    arms = _matrix("first", first), _matrix("second", second)
    value, interval = _native.probability_of_improvement(*arms, pairs, (seed, resamples, level))
    return Estimate(value, Interval(*interval))


def profile(
    scores: Any,
    thresholds: Any,
    *,
    task_means: bool = False,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Profile:
    """The performance profile: the share of scores above each threshold.

    Shapes: scores `[runs, tasks]`, thresholds `[k]`.
    """
    at = _values("thresholds", thresholds)
    shares, low, high = _native.profile(_matrix("scores", scores), at, task_means, (seed, resamples, level))
    return Profile(at, np.array(shares), np.array(low), np.array(high))


def auc(curve: Any, x: Any = None) -> float:
    """The mean height of a learning curve, over its own index or over `x`. Shapes: `[n]`."""
    heights, places = _values("curve", curve), None if x is None else _values("x", x)
    if places is not None and places.shape != heights.shape:
        raise ValueError(f"curve has {heights.size} values where x has {places.size}")
    return _native.auc(heights, places)


def correlation(
    x: Any,
    y: Any,
    *,
    groups: Any = None,
    ranks: bool = False,
    level: float = 0.95,
) -> Estimate:
    """Pearson's correlation (Spearman's with `ranks`, within groups with `groups`) with Fisher's interval.

    Shapes: `[n]` each.
    """
    if groups is not None and ranks:
        raise ValueError("groups and ranks do not go together; choose one")
    names = None
    if groups is not None:
        names = np.unique(np.asarray(groups), return_inverse=True)[1].tolist()
    value, interval = _native.correlation(_values("x", x), _values("y", y), names, ranks, level)
    return Estimate(value, Interval(*interval))


def silence(rates: Any, group: int, batches: int = 1, batch: int | None = None) -> float:
    """Chance that no group of some batches has both a success and a failure, so that nothing can be learned from them (C3).

    `rates` `[instances]` are the success rates of the policy at hand, `group` the trajectories that share an instance and a
    baseline, `batch` those of an iteration (one group if absent; a batch whose baseline is its own mean is one group), and
    `batches` the iterations, of a warmup for instance. Until the first signal the policy stays as it is. Average over runs
    whose policies begin apart.
    """
    lanes = group if batch is None else batch
    if group < 1 or lanes < group or lanes % group:
        raise ValueError(f"batch ({lanes}) must be a multiple of group ({group})")
    if batches < 0:
        raise ValueError(f"batches must be at least 0, got {batches}")
    return float(_native.silence(_values("rates", rates), group, lanes // group * batches))


def _values(name: str, value: Any) -> np.ndarray:
    return _finite(name, value, 1, "one axis")


def _matrix(name: str, value: Any) -> np.ndarray:
    return _finite(name, value, 2, "[runs, tasks]")


def _finite(name: str, value: Any, axes: int, shape: str) -> np.ndarray:
    found = floats(name, value).astype(np.float64, copy=False)
    if found.ndim != axes:
        raise ValueError(f"{name} has shape {found.shape}; pass {shape}")
    if found.size == 0:
        raise ValueError(f"{name} is empty (shape {found.shape})")
    if not np.isfinite(found).all():
        raise ValueError(f"{name}{np.argwhere(~np.isfinite(found))[0].tolist()} is not a finite number")
    return found
