"""Is stale data costing a run its signal? From arrays, DataFrames, files, or a live run.

    >>> import numpy as np
    >>> from niwaki.advise import Advisor
    >>> rng = np.random.default_rng(0)
    >>> advisor = Advisor()
    >>> for iteration in range(4):
    ...     old = -rng.exponential(size=(64, 8)) - 0.5
    ...     new = old + rng.normal(scale=0.05, size=old.shape)
    ...     advisor.update(new, old, rng.normal(size=64), iteration=iteration)
    >>> advisor.advice().facts["steps"]
    2048
"""

from __future__ import annotations

import html
import json
import math
import operator
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from . import _native
from ._batches import NarrowWarning, add, of_frame
from ._dump import Dump

__all__ = ["Advice", "Advisor", "Dump", "Monitor", "NarrowWarning", "Number", "advise"]

@dataclass(frozen=True)
class Number:
    """A measured number with its 95% interval, where the data allows one."""

    name: str
    value: float
    low: float | None
    high: float | None
    about: str


@dataclass(frozen=True)
class Advice:
    """What the data says: the verdict with its reasons, and every number behind it."""

    action: str
    """correction-wasted, short-warmup, reduce-reuse, not-enough-data or no-signal."""
    says: str
    """The verdict in a sentence."""
    because: tuple[str, ...]
    """Why, the deciding reason first."""
    alpha: float | None
    """The strength that a short warmup should take."""
    amplification: float | None
    """How many times as long as PPO's the gradient is at that strength."""
    more: int | None
    """Trajectories that are missing, about."""
    facts: dict[str, Any]
    """How much data there is."""
    numbers: dict[str, Number]
    """The scalars by name."""
    alphas: list[dict[str, Any]]
    """Bias, variance, error and ESS by strength of the correction."""
    amplifications: list[dict[str, Any]]
    """How many times as long as PPO's the gradient is, by strength."""
    iterations: list[dict[str, Any]]
    """The course of the run."""
    positions: list[dict[str, Any]]
    """Prefix ESS and bias witness along the trajectory."""
    ages: list[dict[str, Any]]
    """Drift by the age of the policy that sampled a step; empty without versions or ages."""
    limits: list[dict[str, Any]]
    """What a limit on the age of a trajectory's oldest step would leave."""
    verl: dict[str, float]
    """verl's `rollout_corr/*` metrics."""
    text: str = field(repr=False, default="")
    """The summary that `niwaki advise` prints."""

    def __getitem__(self, name: str) -> float:
        """The value of a number by name."""
        return self.numbers[name].value

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def to_pandas(self, table: Literal["numbers", "iterations", "positions", "alphas"] = "numbers") -> Any:
        """One of the tables as a pandas DataFrame."""
        import pandas

        if table not in ("numbers", "iterations", "positions", "alphas"):
            raise ValueError(f"table is {table!r}; write numbers, iterations, positions or alphas")
        rows = [asdict(number) for number in self.numbers.values()] if table == "numbers" else getattr(self, table)
        return pandas.DataFrame(rows)

    def to_log(self, prefix: str = "niwaki/") -> dict[str, float]:
        """Names and values for W&B (`wandb.log`), MLflow (`mlflow.log_metrics`) or a trainer's logs; finite ones only."""
        found = {name: number.value for name, number in self.numbers.items()}
        found |= {} if self.alpha is None else {"alpha": self.alpha}
        return {f"{prefix}{name}": value for name, value in found.items() if math.isfinite(value)}

    def to_tensorboard(self, writer: Any, step: int, prefix: str = "niwaki/") -> None:
        """Hands the numbers to a `SummaryWriter`, and the verdict as text."""
        for name, value in self.to_log(prefix).items():
            writer.add_scalar(name, value, step)
        writer.add_text(f"{prefix}verdict", self.says, step)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        told = "".join(f"<li>{html.escape(reason)}</li>" for reason in self.because)
        shown = lambda value: "" if value is None else f"{value:.4g}"
        rows = "".join(
            f"<tr><td>{html.escape(number.name)}</td><td>{shown(number.value)}</td>"
            f"<td>{shown(number.low)}</td><td>{shown(number.high)}</td><td>{html.escape(number.about)}</td></tr>"
            for number in self.numbers.values()
        )
        head = "<tr><th>number</th><th>value</th><th>low</th><th>high</th><th>what it is</th></tr>"
        return f"<b>{html.escape(self.says)}</b><ul>{told}</ul><table>{head}{rows}</table>"


@dataclass
class _Settings:
    """What the measurements depend on beside the data, checked."""

    clip: tuple[float, float]
    ess_floor: float
    batch: float | None
    rollout_is: str
    rollout_is_threshold: float
    behaviour: bool


class Advisor:
    """Running measurements over the batches of a run, in constant memory.

    Args:
        clip: the trainer's range, ε or (low, high).
        ess_floor: effective sample size that a correction must keep.
        batch: trajectories per update; the mean of the iterations where None.
        against: what the policy now is held against: `"old"`, or `"behaviour"` for the sampling engine's log-probs.
        rollout_is, rollout_is_threshold: level and bound of verl's weights in the `rollout_corr/*` metrics.
        share: (rank, ranks) where each rank adds its own part of every batch; `tally` and `merge` bring them together, and
            until then the verdict says that it is of a share.

    Threads may add to one advisor. It pickles as its tally.
    """

    def __init__(
        self,
        *,
        clip: float | tuple[float, float] = 0.2,
        ess_floor: float = 0.9,
        batch: int | None = None,
        against: Literal["old", "behaviour"] = "old",
        rollout_is: Literal["token", "sequence"] = "token",
        rollout_is_threshold: float = 2.0,
        share: tuple[int, int] | None = None,
    ) -> None:
        settings = _checked(clip, ess_floor, batch, against, rollout_is, rollout_is_threshold)
        self._native = _native.Advisor(settings, _rank(share))

    @classmethod
    def from_tally(cls, tally: bytes) -> Advisor:
        """What `tally` gave, to go on with; ValueError where the bytes are damaged or of another version."""
        advisor = cls.__new__(cls)
        advisor._native = _native.Advisor.from_tally(_bytes(tally))
        return advisor

    def tally(self) -> bytes:
        """Everything measured, without a single log-prob: some hundred kilobytes however long the run, and its settings. A
        file of it ends in `.tally`, and `niwaki advise rank*.tally` reads those."""
        return self._native.tally()

    def merge(self, tally: bytes | Advisor) -> None:
        """Adds another's tally: the numbers are then those of one advisor that saw both, to the last bit and in any order,
        and groups that span ranks are one. ValueError where the two are not of one run; nothing is added then."""
        other = tally if isinstance(tally, Advisor) else Advisor.from_tally(tally)
        self._native.merge(other._native)

    def __reduce__(self) -> Any:
        return Advisor.from_tally, (self.tally(),)

    @property
    def empty(self) -> bool:
        """Whether nothing was added yet."""
        return self._native.is_empty()

    def update(
        self,
        logprobs: Any,
        old_logprobs: Any = None,
        advantages: Any = None,
        *,
        rewards: Any = None,
        mask: Any = None,
        behaviour_logprobs: Any = None,
        group: Sequence[Any] | None = None,
        iteration: int | Sequence[int] = 0,
        weights: Any = None,
        versions: Any = None,
        ages: Any = None,
        trainer_version: int | None = None,
    ) -> None:
        """Adds a batch.

        Shapes:
            logprobs, old_logprobs, behaviour_logprobs: `[trajectories, steps]` with `mask`, or a list of one array per
                trajectory.
            advantages: as `logprobs`, or `[trajectories]`; made from `rewards` `[trajectories]` where there are none.
            group, weights: `[trajectories]`; iteration: one number, or `[trajectories]`.
            versions, ages: as `logprobs`, or `[trajectories]`: the version of the policy that sampled each token, or how many
                versions old it was. `trainer_version` is that of the policy that is trained; the newest of the iteration where None.

        Raises:
            TypeError, ValueError: with a sentence that names the argument; nothing is added then.
        """
        more = {"rewards": rewards, "mask": mask, "behaviour_logprobs": behaviour_logprobs, "group": group}
        more |= {"iteration": iteration, "weights": weights, "versions": versions, "ages": ages}
        add(self._native, logprobs, old_logprobs, advantages, **more, trainer_version=trainer_version)

    def advice(self) -> Advice:
        """What the batches so far say."""
        if self.empty:
            raise ValueError("nothing was added yet; call update with a batch first")
        return _advice(*self._native.report())


class Monitor:
    """A live run in a dozen numbers for the logs: the newest iteration and a smoothed course, each with its interval, a verdict
    on the last few iterations that says when it changes, and alarms that are told once.

    `Advisor` alone adds up everything since the start, so that a drift of long ago stays in its numbers.

    >>> monitor = Monitor()
    >>> monitor.update([[-1.1], [-0.9]], [[-1.0], [-1.0]], [1.0, -1.0], iteration=0)
    >>> sorted(monitor.to_log())[:3]
    ['niwaki/bias_to_noise', 'niwaki/clip_fraction', 'niwaki/drift']

    Args:
        recent: iterations that the verdict is on.
        alarms: conditions on an iteration's numbers, such as `"ess<0.3"`; each is told once, by `alarm`.
        gather: takes this rank's tally and returns those of all ranks (`niwaki.torch.gather_tallies`); every rank calls `close`
            when it has added its part of an iteration, and only iterations that were closed are shown.
        settings: of `Advisor`; `share` with `gather`, and as `batch` the trajectories of an optimiser's step: of all
            ranks and accumulated micro-batches.
    """

    _SHOWN = ("ess", "kl_k3", "clip_fraction")
    _WITH_INTERVAL = ("drift", "bias_to_noise")
    _SMOOTHING = 0.2
    """Weight of the newest iteration in `drift_smooth`."""

    def __init__(
        self,
        *,
        recent: int = 8,
        alarms: Sequence[str] = (),
        gather: Callable[[bytes], Sequence[bytes]] | None = None,
        **settings: Any,
    ) -> None:
        if recent < 1:
            raise ValueError(f"recent is {recent}; give at least 1")
        self._settings, self._gather = settings, gather
        self._alarms = {text: _native.parse_condition(text) for text in alarms}
        self._whole = Advisor(**settings)
        self._recent: deque[Advisor] = deque(maxlen=recent)
        self._newest: Advisor | None = None
        self._open: Advisor | None = None
        self._iteration: int | None = None
        self._smooth: tuple[float, float] | None = None
        self._told: Advice | None = None

    def update(self, *arrays: Any, iteration: int = 0, **more: Any) -> None:
        """Adds a part of an iteration's batch; arguments as `Advisor.update`'s. Parts of one iteration come together."""
        if iteration != self._iteration and self._open is not None:
            self.close()
        added = Advisor(**self._settings) if self._open is None else self._open
        added.update(*arrays, iteration=iteration, **more)
        self._open, self._iteration = added, iteration

    def close(self) -> Advisor | None:
        """Ends the iteration at hand, brings the ranks' parts together, and returns them; None where no rank had any. The
        next `update` begins another; without `gather` it closes by itself."""
        ended = Advisor(**self._settings) if self._open is None else self._open
        if self._gather is not None:
            first, *others = self._gather(ended.tally())
            ended = Advisor.from_tally(first)
            for other in others:
                ended.merge(other)
        self._open = None
        if ended.empty:
            return None
        self._smooth = self._smoothed(ended.advice())
        self._whole.merge(ended)
        self._recent.append(ended)
        self._newest = ended
        return ended

    @property
    def advice(self) -> Advice:
        """What the whole run says; ValueError before anything was added."""
        return self._together(self._whole)

    @property
    def recent(self) -> Advice:
        """What the last iterations say; ValueError before anything was added."""
        kept = list(self._recent)
        if self._shown_open() and len(kept) == self._recent.maxlen:
            kept = kept[1:]
        return self._together(*kept)

    @property
    def newest(self) -> Advice:
        """What the newest iteration says; ValueError before anything was added."""
        newest = self._open if self._shown_open() else self._newest
        if newest is None:
            raise ValueError("nothing was added yet; call update with a batch first")
        return newest.advice()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show yet."""
        return self._newest is None and not self._shown_open()

    def to_log(self, prefix: str = "niwaki/") -> dict[str, float]:
        """At most a dozen names and values of the newest iteration; finite ones only, and nothing before the first."""
        if self.empty:
            return {}
        newest = self.newest
        found = {name: newest[name] for name in self._WITH_INTERVAL + self._SHOWN}
        for name in self._WITH_INTERVAL:
            low, high = newest.numbers[name].low, newest.numbers[name].high
            found |= {} if low is None or high is None else {f"{name}_low": low, f"{name}_high": high}
        smooth = self._smoothed(newest) if self._shown_open() else self._smooth
        assert smooth is not None, "an iteration was closed"
        value, reach = smooth
        found |= {"drift_smooth": value, "drift_smooth_low": max(value - reach, 0.0), "drift_smooth_high": value + reach}
        return {f"{prefix}{name}": value for name, value in found.items() if math.isfinite(value)}

    def changed(self) -> str | None:
        """The verdict on the last iterations, where it is of another kind than at the last call; None where it stands."""
        if self.empty:
            return None
        found, before = self.recent, self._told
        if before is not None and found.action == before.action:
            return None
        self._told = found
        return found.says if before is None else f"{found.says} (before: {before.says})"

    def alarm(self) -> list[str]:
        """The alarms that the newest iteration meets and that were not told before."""
        rung = []
        newest = None if self.empty else self.newest
        for text, (name, sign, bound) in list(self._alarms.items()):
            if newest is None or not _SIGNS[sign](newest[name], bound):
                continue
            number = newest.numbers[name]
            interval = "" if number.low is None else f" (95%: {number.low:.3g} to {number.high:.3g})"
            rung.append(f"{name} {sign} {bound:g}: {number.value:.3g}{interval} in iteration {self._iteration}")
            del self._alarms[text]
        return rung

    def _shown_open(self) -> bool:
        """Whether what is being added is shown already: where no other rank has a part of it."""
        return self._gather is None and self._open is not None

    def _together(self, *parts: Advisor) -> Advice:
        """The advice of some iterations, and of the one at hand."""
        all_of_them = Advisor(**self._settings)
        for part in parts:
            all_of_them.merge(part)
        if self._shown_open():
            assert self._open is not None, "it is shown"
            all_of_them.merge(self._open)
        return all_of_them.advice()

    def _smoothed(self, newest: Advice) -> tuple[float, float]:
        """The drift, averaged over iterations with weights that fall by a fifth each, and half of its interval: iterations
        draw apart, so that half-widths add as squares."""
        drift = newest.numbers["drift"]
        reach = math.nan if drift.low is None or drift.high is None else 0.5 * (drift.high - drift.low)
        if self._smooth is None:
            return drift.value, reach
        value, before = self._smooth
        kept = 1.0 - self._SMOOTHING
        return value + self._SMOOTHING * (drift.value - value), math.hypot(kept * before, self._SMOOTHING * reach)


_SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def advise(data: Any, *, names: Mapping[str, str] | None = None, **settings: Any) -> Advice:
    """What files, a DataFrame or a mapping of arrays say.

    Args:
        data: a path or several (.jsonl, .npz, .parquet; .tally of each rank; a folder of them); a pandas DataFrame with one row per trajectory; or a mapping
            with the arguments of `Advisor.update`.
        names: field → name, for files whose names `niwaki advise` does not know.
        settings: of `Advisor`.
    """
    if isinstance(data, (str, os.PathLike)):
        data = [data]
    if isinstance(data, Mapping):
        advisor = Advisor(**settings)
        advisor.update(**data)
        return advisor.advice()
    if hasattr(data, "to_dict") and hasattr(data, "columns"):
        return advise(of_frame(data, names or {}), **settings)
    if not isinstance(data, Iterable):
        raise TypeError(f"data is {type(data).__name__}; pass paths, a DataFrame or a mapping of arrays")
    files = [os.fspath(file) for file in data]
    given = {"clip": 0.2, "ess_floor": 0.9, "batch": None, "against": "old", "rollout_is": "token", "rollout_is_threshold": 2.0}
    for name in settings:
        if name not in given:
            raise TypeError(f"{name} is not a setting for files; write one of {', '.join(given)}")
    chosen = next(iter([*sorted({*settings} - {"batch"}), *["names"] * bool(names)]), None)
    return _advice(*_native.advise_files(files, list((names or {}).items()), _checked(**given | settings), chosen))


def _rank(share: Any) -> tuple[int, int] | None:
    """A rank and the number of ranks, checked."""
    if share is None:
        return None
    try:
        rank, ranks = (operator.index(number) for number in share)
    except (TypeError, ValueError):
        raise TypeError(f"share is {share!r}; pass (rank, ranks)") from None
    if not 0 <= rank < ranks <= 1 << 20:
        raise ValueError(f"share is {share!r}; a rank lies in [0, ranks)")
    return rank, ranks


def _bytes(tally: Any) -> bytes:
    """A tally's bytes."""
    if not isinstance(tally, (bytes, bytearray, memoryview)):
        raise TypeError(f"tally is {type(tally).__name__}; pass the bytes of Advisor.tally")
    return bytes(tally)


def _checked(
    clip: Any, ess_floor: Any, batch: Any, against: Any, rollout_is: Any, rollout_is_threshold: Any
) -> _Settings:
    threshold = rollout_is_threshold
    low, high = (clip, clip) if isinstance(clip, (int, float)) else tuple(clip)
    if not (0.0 <= low <= 1.0 and high >= 0.0):
        raise ValueError(f"clip ({low}, {high}): the lower width lies in [0, 1], the upper one is not negative")
    if not 0.0 < ess_floor < 1.0:
        raise ValueError(f"ess_floor is {ess_floor}; it must lie between 0 and 1")
    if batch is not None and batch < 1:
        raise ValueError(f"batch is {batch}; give at least 1")
    if against not in ("old", "behaviour"):
        raise ValueError(f"against is {against!r}; write 'old' or 'behaviour'")
    if rollout_is not in ("token", "sequence"):
        raise ValueError(f"rollout_is is {rollout_is!r}; write 'token' or 'sequence'")
    if not (math.isfinite(threshold) and threshold > 0):
        raise ValueError(f"rollout_is_threshold is {threshold}; it must be a positive number")
    size = None if batch is None else float(batch)
    return _Settings((float(low), float(high)), float(ess_floor), size, rollout_is, float(threshold), against == "behaviour")


def _advice(told: str, text: str) -> Advice:
    found = json.loads(told)
    verdict, measured = found["verdict"], found["measured"]
    value = lambda number: math.nan if number is None else number
    numbers = {entry["name"]: Number(**entry | {"value": value(entry["value"])}) for entry in measured["numbers"]}
    return Advice(
        action=verdict["action"]["kind"],
        says=verdict["says"],
        because=tuple(verdict["because"]),
        alpha=verdict["action"].get("alpha"),
        amplification=verdict["action"].get("amplification"),
        more=verdict["action"].get("more"),
        facts=measured["facts"],
        numbers=numbers,
        alphas=measured["alphas"],
        amplifications=measured["amplifications"],
        iterations=measured["iterations"],
        positions=measured["positions"],
        ages=measured["ages"],
        limits=measured["limits"],
        verl=measured["verl"],
        text=text,
    )
