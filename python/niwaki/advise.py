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
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from . import _native
from ._arrays import flags, floats, ragged

__all__ = ["Advice", "Advisor", "Monitor", "Number", "advise"]

# Arguments under the names of the fields that the measurements speak of.
_ARGUMENTS = {
    "new_log_prob": "logprobs",
    "old_log_prob": "old_logprobs",
    "behaviour_log_prob": "behaviour_logprobs",
    "advantage": "advantages",
    "reward": "rewards",
    "weight": "weights",
}


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


@dataclass
class _Trajectories:
    """What the compiled half takes."""

    offsets: np.ndarray
    old_log_prob: np.ndarray | None
    new_log_prob: np.ndarray
    behaviour_log_prob: np.ndarray | None
    advantage: np.ndarray | None
    reward: np.ndarray | None
    mask: np.ndarray | None
    group: list[Any] | None
    iteration: list[int]
    weight: np.ndarray | None


class Advisor:
    """Running measurements over the batches of a run, in constant memory.

    Args:
        clip: the trainer's range, ε or (low, high).
        ess_floor: effective sample size that a correction must keep.
        batch: trajectories per update; the mean of the iterations where None.
        against: what the policy now is held against: `"old"`, or `"behaviour"` for the sampling engine's log-probs.
        rollout_is, rollout_is_threshold: level and bound of verl's weights in the `rollout_corr/*` metrics.
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
    ) -> None:
        self._settings = _checked(clip, ess_floor, batch, against, rollout_is, rollout_is_threshold)
        self._native = _native.Advisor(self._settings)

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
    ) -> None:
        """Adds a batch.

        Shapes:
            logprobs, old_logprobs, behaviour_logprobs: `[trajectories, steps]` with `mask`, or a list of one array per
                trajectory.
            advantages: as `logprobs`, or `[trajectories]`; made from `rewards` `[trajectories]` where there are none.
            group, weights: `[trajectories]`; iteration: one number, or `[trajectories]`.

        Raises:
            TypeError, ValueError: with a sentence that names the argument; nothing is added then.
        """
        values = {"logprobs": logprobs, "old_logprobs": old_logprobs, "advantages": advantages, "mask": mask}
        values["behaviour_logprobs"] = behaviour_logprobs
        batch = _trajectories(values, rewards, group, iteration, weights)
        try:
            self._native.add(batch)
        except ValueError as error:
            raise ValueError(_renamed(str(error))) from None

    def advice(self) -> Advice:
        """What the batches so far say."""
        if self.empty:
            raise ValueError("nothing was added yet; call update with a batch first")
        return _advice(*self._native.report())


class Monitor:
    """A live run: the batch in hand beside the whole run, in a dozen numbers for the logs.

    `Advisor` alone adds up everything since the start, so that a drift of long ago stays in its numbers. Here numbers are
    those of the newest iteration, each with its interval; the verdict is the whole run's.

    >>> monitor = Monitor()
    >>> monitor.update([[-1.1], [-0.9]], [[-1.0], [-1.0]], [1.0, -1.0], iteration=0)
    >>> sorted(monitor.to_log())[:3]
    ['niwaki/bias_to_noise', 'niwaki/clip_fraction', 'niwaki/drift']
    """

    _SHOWN = ("drift", "ess", "kl_k3", "clip_fraction", "bias_to_noise")
    _WITH_INTERVAL = ("drift", "ess", "bias_to_noise")
    _SMOOTHING = 0.2
    """Weight of the newest iteration in `drift_smooth`."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        self._whole = Advisor(**settings)
        self._newest = Advisor(**settings)
        self._iteration: int | None = None
        self._smooth: float | None = None
        self._told: str | None = None

    def update(self, *arrays: Any, iteration: int = 0, **more: Any) -> None:
        """Adds a part of an iteration's batch; arguments as `Advisor.update`'s. Parts of one iteration come together."""
        if iteration != self._iteration and self._iteration is not None:
            self._smooth = self._smoothed()
        newest = self._newest if iteration == self._iteration else Advisor(**self._settings)
        newest.update(*arrays, iteration=iteration, **more)
        self._whole.update(*arrays, iteration=iteration, **more)
        self._newest, self._iteration = newest, iteration

    @property
    def advice(self) -> Advice:
        """What the whole run says; ValueError before anything was added."""
        return self._whole.advice()

    @property
    def newest(self) -> Advice:
        """What the newest iteration says; ValueError before anything was added."""
        return self._newest.advice()

    def to_log(self, prefix: str = "niwaki/") -> dict[str, float]:
        """At most a dozen names and values of the newest iteration; finite ones only, and nothing before the first."""
        if self._iteration is None:
            return {}
        numbers = self.newest.numbers
        found = {name: numbers[name].value for name in self._SHOWN}
        for name in self._WITH_INTERVAL:
            low, high = numbers[name].low, numbers[name].high
            found |= {} if low is None or high is None else {f"{name}_low": low, f"{name}_high": high}
        found["drift_smooth"] = self._smoothed()
        return {f"{prefix}{name}": value for name, value in found.items() if math.isfinite(value)}

    def changed(self) -> str | None:
        """The run's verdict where it is another than at the last call; None where it stands."""
        if self._iteration is None:
            return None
        says, before = self.advice.says, self._told
        self._told = says
        return None if says == before else says

    def _smoothed(self) -> float:
        """The drift, averaged over iterations with weights that fall by a fifth each."""
        drift = self.newest["drift"]
        return drift if self._smooth is None else self._smooth + self._SMOOTHING * (drift - self._smooth)


def advise(data: Any, *, names: Mapping[str, str] | None = None, **settings: Any) -> Advice:
    """What files, a DataFrame or a mapping of arrays say.

    Args:
        data: a path or several (.jsonl, .npz, .parquet); a pandas DataFrame with one row per trajectory; or a mapping
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
        return advise(_of_frame(data, names or {}), **settings)
    if not isinstance(data, Iterable):
        raise TypeError(f"data is {type(data).__name__}; pass paths, a DataFrame or a mapping of arrays")
    files = [os.fspath(file) for file in data]
    given = Advisor(**settings)._settings
    return _advice(*_native.advise_files(files, list((names or {}).items()), given))


def _of_frame(frame: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """The columns that are arguments of `update`, under their own or the schema's names."""
    taken = {}
    for field_name, argument in {**_ARGUMENTS, "mask": "mask", "group": "group", "iteration": "iteration"}.items():
        for name in (names.get(field_name), argument, field_name):
            if name is not None and name in frame.columns:
                column = frame[name].tolist()
                nested = column and np.ndim(column[0]) > 0
                taken[argument] = [np.asarray(part) for part in column] if nested else column
                break
    if "logprobs" not in taken:
        raise ValueError(f"data has no column logprobs (or new_log_prob); its columns are {', '.join(map(str, frame.columns))}")
    return taken


def _checked(clip: Any, ess_floor: Any, batch: Any, against: Any, rollout_is: Any, threshold: Any) -> _Settings:
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


def _key(key: Any) -> str | int | float:
    """A group's name. Whole numbers stay exact; a float that large does not tell them apart."""
    if isinstance(key, str):
        return key
    try:
        return operator.index(key)
    except TypeError:
        number = float(key)
    if abs(number) >= 2**53:
        raise ValueError(f"group holds {number!r}, which a float does not tell from its neighbours; pass ints or texts")
    return number


def _trajectories(values: dict[str, Any], rewards: Any, group: Any, iteration: Any, weights: Any) -> _Trajectories:
    first = values["logprobs"]
    if ragged(first):
        lengths = [len(part) for part in first]
    else:
        shape = np.shape(first) if not hasattr(first, "shape") else tuple(first.shape)
        if len(shape) != 2:
            raise ValueError(f"logprobs has shape {shape}; pass [trajectories, steps] or a list of arrays")
        lengths = [shape[1]] * shape[0]
    lanes = len(lengths)
    if lanes == 0 or sum(lengths) == 0:
        raise ValueError("logprobs is empty: there is nothing to measure")
    if ragged(first):
        flat = {name: _flat(name, value, lengths) for name, value in values.items()}
    else:
        flat = {name: _padded(name, value, shape) for name, value in values.items()}
    if flat["mask"] is not None and not flat["mask"].any():
        raise ValueError("mask leaves no step of the policy in the batch")
    each = {"rewards": rewards, "weights": weights}
    for name, value in each.items():
        if value is not None:
            each[name] = floats(name, value).astype(np.float64)
            if each[name].shape != (lanes,):
                raise ValueError(f"{name} has shape {each[name].shape}; one per trajectory is ({lanes},)")
    if group is not None and len(group) != lanes:
        raise ValueError(f"group has {len(group)} values for {lanes} trajectories")
    numbers = [int(iteration)] * lanes if np.ndim(iteration) == 0 else [int(number) for number in iteration]
    if len(numbers) != lanes:
        raise ValueError(f"iteration has {len(numbers)} values for {lanes} trajectories")
    if flat["advantages"] is None and each["rewards"] is None:
        raise ValueError("advantages and rewards are both missing; give one of them")
    new = flat["logprobs"]
    assert new is not None, "its shape was read"
    return _Trajectories(
        offsets=np.concatenate(([0], np.cumsum(lengths))).astype(np.uintp),
        old_log_prob=flat["old_logprobs"],
        new_log_prob=new,
        behaviour_log_prob=flat["behaviour_logprobs"],
        advantage=flat["advantages"],
        reward=each["rewards"],
        mask=flat["mask"],
        group=None if group is None else [_key(key) for key in group],
        iteration=numbers,
        weight=each["weights"],
    )


def _flat(name: str, value: Any, lengths: list[int]) -> np.ndarray | None:
    if value is None:
        return None
    kind = flags if name == "mask" else floats
    if not ragged(value):
        found = kind(name, value).astype(np.float64)
        if name == "advantages" and found.shape == (len(lengths),):
            return found
        raise ValueError(f"{name} has shape {found.shape}; pass a list of one array per trajectory")
    parts = [kind(f"{name}[{index}]", part) for index, part in enumerate(value)]
    if [part.shape for part in parts] != [(length,) for length in lengths]:
        raise ValueError(f"{name} does not have the lengths of logprobs, {lengths[:8]}…")
    return np.concatenate(parts).astype(np.float64)


def _padded(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    if value is None:
        return None
    found = (flags if name == "mask" else floats)(name, value)
    if found.shape != shape and not (name == "advantages" and found.shape == shape[:1]):
        raise ValueError(f"{name} has shape {found.shape} where logprobs has {shape}")
    return found.reshape(-1).astype(np.float64)


def _renamed(text: str) -> str:
    return re.sub(r"\b(" + "|".join(_ARGUMENTS) + r")\b", lambda found: _ARGUMENTS[found.group(1)], text)


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
        verl=measured["verl"],
        text=text,
    )
