"""Any policy loss measured exactly on a process small enough to enumerate: no sampling, no noise.

    >>> from niwaki.oracle import measure
    >>> league = measure("late-only", vocab=3, horizon=3, drift=0.5, seeds=4, losses=["ppo", "full"])
    >>> ppo, full = league
    >>> abs(full.bias) < 1e-12 < ppo.absolute_bias, full.variance > ppo.variance
    (True, True)
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from . import _native
from ._arrays import floats
from ._loss import terms
from .correction import Clip, Correction, clip_range

__all__ = ["League", "Measured", "measure", "rewards"]


@dataclass(frozen=True)
class Measured:
    """One loss on one reward and drift: means over policy pairs, `_sem` their standard errors (nan for one pair)."""

    loss: str
    reward: str
    drift: float
    seeds: int
    bias: float
    """Of the estimated gradient of η along the true one's direction, signed."""
    variance: float
    """Of the estimate from a single trajectory."""
    mse: float
    cosine: float
    """Between the expected update and the gradient of η."""
    ess: float
    mean_kl: float
    absolute_bias: float
    bias_sem: float
    variance_sem: float
    mse_sem: float
    cosine_sem: float
    ess_sem: float
    sigma2_horizon: float
    """σ²T, the drift of the pair."""
    dose: float
    """Σ|b|, the bias witness summed over steps."""
    reweighting_along_eta: float
    routing_along_eta: float
    strength: float
    """The correction's strength that acted."""
    vocab: int
    horizon: int
    clip_low: float | None
    clip_high: float | None
    routing: bool
    batch: int
    """Trajectories in the batches whose update is judged."""
    alignment: float
    """A(N) of such a batch: the part of its update along the gradient of η, over the update's whole size."""
    alignment_sem: float
    batch_cosine: float
    """Mean cosine of drawn batches with the gradient of η: sampled, and nan where none were drawn."""
    batch_cosine_sem: float
    noise_batch: float
    """Trajectories in a batch whose gradient has as much noise as signal."""


@dataclass(frozen=True)
class League(Sequence[Measured]):
    """The losses in the order in which they were asked for, by reward and drift."""

    rows: tuple[Measured, ...]

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Measured]:
        return iter(self.rows)

    @property
    def best(self) -> Measured:
        """The row whose update is aligned best with the gradient of η."""
        return max(self.rows, key=lambda row: row.alignment)

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain values, one object per row, as `niwaki oracle --format json` prints them."""
        return [asdict(row) for row in self.rows]

    def to_pandas(self) -> Any:
        """One row per loss, reward and drift."""
        import pandas

        return pandas.DataFrame(self.to_dict())

    def _repr_html_(self) -> str:
        shown = ("loss", "reward", "drift", "alignment", "absolute_bias", "mse", "mse_sem", "cosine", "ess")
        head = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in shown)
        cell = lambda value: html.escape(value) if isinstance(value, str) else f"{value:.4g}"
        body = "".join(
            "<tr>" + "".join(f"<td>{cell(getattr(row, name))}</td>" for name in shown) + "</tr>" for row in self.rows
        )
        return f"<table><tr>{head}</tr>{body}</table>"


def rewards() -> list[str]:
    """Names of the built-in terminal rewards."""
    return _native.rewards()


@dataclass
class _Question:
    """What the compiled half takes."""

    rewards: list[tuple[str, np.ndarray | None]]
    vocab: int
    horizon: int
    drifts: list[float]
    seeds: list[int]
    logits: tuple[np.ndarray, np.ndarray] | None
    losses: list[Any]
    clip: tuple[float, float, float | None] | None
    routing: bool
    batch: int
    drawn: int


def measure(
    reward: str | Sequence[str] | Mapping[str, Any] | np.ndarray = "late-only",
    *,
    losses: Sequence[str | Correction | Callable[[np.ndarray, np.ndarray], np.ndarray]] | None = None,
    vocab: int | None = None,
    horizon: int | None = None,
    drift: float | Sequence[float] = 1.0,
    seeds: int | Sequence[int] = 25,
    logits: tuple[Any, Any] | None = None,
    clip: Clip = None,
    routing: bool = True,
    batch: int = 256,
    draws: int = 0,
) -> League:
    """Measures every loss exactly on policy pairs that are drawn (`drift`, `seeds`) or given (`logits`).

    Args:
        reward: a built-in terminal reward or several, an array, or a mapping name → array.
        losses: members of the family, and functions of your own from log-ratios and advantages `[sequences, steps]` to the terms of
            their objective; the paper's twelve where None.
        vocab, horizon: tokens and steps, 4 and 6 where None; those of `logits` where they are given.
        drift: standard deviation of the noise that separates a drawn pair's logits.
        seeds: how many pairs, or their seeds.
        logits: those of the policy that sampled and of the one being updated.
        clip: as `niwaki.correction.evaluate`'s; unclipped where None, as the paper measures.
        routing: whether gradients flow through the correction factor.
        batch: trajectories in the batches whose update is judged (`alignment`).
        draws: batches to draw for each pair and loss, for `batch_cosine`.

    Shapes:
        logits: `[prefixes, vocab]` each, prefixes breadth first: (V^T − 1)/(V − 1) rows.
        reward: `[vocab^horizon]` or `[vocab] * horizon`, the first token most significant.

    Raises:
        TypeError, ValueError: with a sentence that names the argument.
    """
    tables = None if logits is None else _tables(logits)
    if tables is not None:
        found = tables[0].shape[1], _native.horizon_of(*tables[0].shape)
        for name, asked, came in (("vocab", vocab, found[0]), ("horizon", horizon, found[1])):
            if asked is not None and asked != came:
                raise ValueError(f"{name} is {asked} where the tables of logits say {came}; leave it out")
        vocab, horizon = found
    vocab, horizon = 4 if vocab is None else vocab, 6 if horizon is None else horizon
    if vocab < 2 or horizon < 1:
        raise ValueError(f"vocab is {vocab} and horizon is {horizon}; give at least 2 and 1")
    drifts = [1.0] if tables is not None else [float(value) for value in np.atleast_1d(drift)]
    for value in drifts:
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"drift is {value}; it must be a positive number")
    numbers = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if not numbers:
        raise ValueError("seeds is empty; give at least one pair")
    for name, count, least in (("batch", batch, 2), ("draws", draws, 0)):
        if not isinstance(count, int) or not least <= count < 2**32:
            raise ValueError(f"{name} is {count!r}; it must be a whole number of at least {least}")
    named = [_loss_of(loss) for loss in (_native.testbed() if losses is None else losses)]
    question = _Question(
        rewards=_rewards(reward, vocab, horizon),
        vocab=vocab,
        horizon=horizon,
        drifts=drifts,
        seeds=numbers,
        logits=tables,
        losses=named,
        clip=clip_range(clip),
        routing=routing,
        batch=batch,
        drawn=draws,
    )
    number = lambda name, one: math.nan if one is None and not name.startswith("clip") else one
    found = json.loads(_native.measure(question))
    rows: list[dict[str, Any]] = [{name: number(name, one) for name, one in row.items()} for row in found]
    known = {field.name for field in fields(Measured)}
    return League(tuple(Measured(**{name: one for name, one in row.items() if name in known}) for row in rows))


def _loss_of(loss: Any) -> Any:
    """A member, or a function of the user's with its name, as the compiled half takes them."""
    if isinstance(loss, (str, Correction)) or not callable(loss):
        return Correction.parse(loss)
    name = getattr(loss, "__name__", type(loss).__name__).strip("<>")
    return name, lambda ell, advantage: terms(loss, name, ell, advantage)


def _tables(logits: tuple[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
    if len(logits) != 2:
        raise ValueError(f"logits has {len(logits)} tables; pass those of the policy that sampled and of the new one")
    old, new = (floats(f"logits[{index}]", table).astype(np.float64, copy=False) for index, table in enumerate(logits))
    if old.ndim != 2 or old.shape != new.shape:
        raise ValueError(f"logits have shapes {old.shape} and {new.shape}; pass two tables [prefixes, vocab]")
    for index, table in enumerate((old, new)):
        if not np.isfinite(table).all():
            at = np.argwhere(~np.isfinite(table))[0].tolist()
            raise ValueError(f"logits[{index}]{at} is not a finite number")
    if _native.horizon_of(*old.shape) is None:
        raise ValueError(f"logits have {old.shape[0]} rows of {old.shape[1]}; (V^T − 1)/(V − 1) rows cover every prefix")
    return old, new


def _rewards(reward: Any, vocab: int, horizon: int) -> list[tuple[str, np.ndarray | None]]:
    if isinstance(reward, str):
        return [(reward, None)]
    if isinstance(reward, Mapping):
        return [(name, _payoff(f"reward[{name!r}]", table, vocab, horizon)) for name, table in reward.items()]
    if isinstance(reward, (list, tuple)) and all(isinstance(name, str) for name in reward):
        return [(name, None) for name in reward]
    return [("reward", _payoff("reward", reward, vocab, horizon))]


def _payoff(name: str, table: Any, vocab: int, horizon: int) -> np.ndarray:
    found = floats(name, table).astype(np.float64, copy=False)
    if found.shape not in ((vocab**horizon,), (vocab,) * horizon):
        raise ValueError(f"{name} has shape {found.shape}; {vocab} tokens over {horizon} steps are ({vocab**horizon},)")
    if not np.isfinite(found).all():
        raise ValueError(f"{name}{np.argwhere(~np.isfinite(found))[0].tolist()} is not a finite number")
    return found.reshape(-1)
