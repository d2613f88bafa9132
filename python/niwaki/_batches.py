"""Batches of log-probs as the measurements take them: checked, flat, in float64."""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._arrays import flags, floats, ragged

# Arguments under the names of the fields that the measurements speak of.
ARGUMENTS = {
    "new_log_prob": "logprobs",
    "old_log_prob": "old_logprobs",
    "behaviour_log_prob": "behaviour_logprobs",
    "advantage": "advantages",
    "reward": "rewards",
    "weight": "weights",
    "version": "versions",
    "age": "ages",
}

# Arguments that may have one value for each trajectory.
_EITHER = ("advantages", "versions", "ages")


class NarrowWarning(UserWarning):
    """Log-probs of 16 bits were measured."""


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
    version: np.ndarray | None
    age: np.ndarray | None
    trainer_version: int | None


def add(
    native: Any,
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
    """Adds a batch to what takes one, and names arguments where it is refused."""
    values = {"logprobs": logprobs, "old_logprobs": old_logprobs, "advantages": advantages, "mask": mask}
    values |= {"behaviour_logprobs": behaviour_logprobs, "versions": versions, "ages": ages}
    batch = _trajectories(values, rewards, group, iteration, weights)
    batch.trainer_version = None if trainer_version is None else operator.index(trainer_version)
    try:
        native.add(batch)
    except ValueError as error:
        raise ValueError(_renamed(str(error))) from None


def of_frame(frame: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """The columns that are arguments of `update`, under their own or the schema's names."""
    taken = {}
    for field_name, argument in {**ARGUMENTS, "mask": "mask", "group": "group", "iteration": "iteration"}.items():
        here = [name for name in dict.fromkeys((argument, field_name)) if name in frame.columns and field_name not in names]
        if len(here) > 1:
            raise ValueError(f"data has the columns {here[0]} and {here[1]}, which are the same field; keep one, or pass names")
        for name in (names.get(field_name), argument, field_name):
            if name is not None and name in frame.columns:
                column = frame[name].tolist()
                nested = column and np.ndim(column[0]) > 0
                taken[argument] = [np.asarray(part) for part in column] if nested else column
                break
    if "logprobs" not in taken:
        raise ValueError(f"data has no column logprobs (or new_log_prob); its columns are {', '.join(map(str, frame.columns))}")
    return taken


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
            each[name] = _wide(name, value)
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
        version=flat["versions"],
        age=flat["ages"],
        trainer_version=None,
    )


def _marks(name: str, value: Any) -> np.ndarray:
    """The argument as flags."""
    return flags(name, value, copied=True)


def _wide(name: str, value: Any) -> np.ndarray:
    """The argument as float64. Log-probs of 16 bits are what such a trainer computes its ratios from, so they are measured, and
    it is said once that their rounding looks like drift."""
    found = floats(name, value, narrow=True)
    if name.partition("[")[0].endswith("logprobs") and "16" in str(getattr(value, "dtype", "")):
        warnings.warn(
            f"{name} is {value.dtype}: its rounding alone looks like drift; pass float32 log-probs where the trainer has them",
            NarrowWarning,
            stacklevel=6,
        )
    return found.astype(np.float64)


def _flat(name: str, value: Any, lengths: list[int]) -> np.ndarray | None:
    if value is None:
        return None
    kind = _marks if name == "mask" else _wide
    if not ragged(value):
        found = kind(name, value).astype(np.float64)
        if name in _EITHER and found.shape == (len(lengths),):
            return found
        raise ValueError(f"{name} has shape {found.shape}; pass a list of one array per trajectory")
    parts = [kind(f"{name}[{index}]", part) for index, part in enumerate(value)]
    if [part.shape for part in parts] != [(length,) for length in lengths]:
        raise ValueError(f"{name} does not have the lengths of logprobs, {lengths[:8]}…")
    return np.concatenate(parts).astype(np.float64)


def _padded(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    if value is None:
        return None
    found = (_marks if name == "mask" else _wide)(name, value)
    if found.shape != shape and not (name in _EITHER and found.shape == shape[:1]):
        raise ValueError(f"{name} has shape {found.shape} where logprobs has {shape}")
    return found.reshape(-1).astype(np.float64)


def _renamed(text: str) -> str:
    return re.sub(r"\b(" + "|".join(ARGUMENTS) + r")\b", lambda found: ARGUMENTS[found.group(1)], text)
