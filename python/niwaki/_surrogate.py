"""The clipped, corrected surrogate on padded arrays, written once for PyTorch and JAX.

Mirrors the Rust kernel member by member: the same reading, the same bounds, the same gate of the clip. A library brings
its operations (`Ops`); gradients are its own automatic ones, so what a constant of the batch is must be said here
(`constant`). Nothing here looks at a value, so it compiles, and stays on the device.

Shapes: `[trajectories, steps]` unless said otherwise; `own` marks the policy's own steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .correction import Correction, Rule

HALVINGS = 40
"""Of the interval in which an ESS floor's strength is sought, as in the kernel."""

ABSENT = -1e30
"""Below every log of a factor."""

TINY = 1e-37
"""Above what single precision flushes to zero."""


@dataclass(frozen=True)
class Ops:
    """What the surrogate asks of an array library."""

    exp: Callable[[Any], Any]
    log: Callable[[Any], Any]
    where: Callable[[Any, Any, Any], Any]
    clip: Callable[[Any, Any, Any], Any]
    constant: Callable[[Any], Any]
    """The value without its gradient."""
    tempered: Callable[[Any, float], Any]
    """`ell[t] + strength · Σ_{i<t} ell[i]`."""
    running_sum: Callable[[Any], Any]
    """`Σ_{i≤t}`, along the steps."""
    minimum_before: Callable[[Any, Any], Any]
    """`min_{i<t}` over own steps, 0 where there is none; its gradient goes to the first step that attains it."""
    take: Callable[[Any, Any], Any]
    """`x[n, index[n, t]]`."""
    place: Callable[[Any, Any], Any]
    """`y[n, index[n, t]] += x[n, t]` on zeros with one column more, which collects what has no place."""
    whole: Callable[[Any], Any]
    """Floats as whole numbers, for an index."""
    floats: Callable[[Any, Any], Any]
    """Flags as floats of the second array's kind."""
    maximum: Callable[[Any, float], Any]
    """Elementwise, with a number."""
    column_maximum: Callable[[Any], Any]
    """Over trajectories, `[1, steps]`."""


def is_tempered(rule: Rule) -> bool:
    """Whether the factor is the prefix ratio to a power and nothing else."""
    free = rule.low == -math.inf and rule.high == math.inf and rule.ess_floor is None and not rule.self_normalised
    return rule.reads == "prefix" and rule.form == "multiply" and rule.amplification is None and free


def positions(ops: Ops, own: Any, like: Any) -> Any:
    """Own steps before each step, as floats."""
    marks = ops.floats(own, like)
    return ops.running_sum(marks) - marks


def reading(ops: Ops, ell: Any, own: Any, rule: Rule) -> Any:
    """The log quantity that a member reads at each own step; `ell` is 0 elsewhere."""
    if rule.reads == "prefix":
        return ops.running_sum(ell) - ell
    if rule.reads == "window":
        assert rule.window is not None, "a rule that was checked has a window"
        # Sums that end `window` own steps earlier, looked up by position.
        before = ops.running_sum(ell) - ell
        at = positions(ops, own, ell)
        packed = _packed(ops, before, at, own)
        earlier = ops.take(packed, ops.whole(ops.maximum(at - float(rule.window), 0.0)))
        return before - earlier
    if rule.reads == "minimum":
        return ops.minimum_before(ell, own)
    if rule.reads == "step":
        return ell
    total = ell.sum(1)[:, None]
    if rule.reads == "sequence-mean":
        total = total / ops.maximum(ops.floats(own, ell).sum(1)[:, None], 1.0)
    return total + 0.0 * ell


def log_factors(ops: Ops, ell: Any, own: Any, rule: Rule, weight: Any = None) -> Any:
    """`log g` at each step; minus infinity where the member drops it."""
    read = reading(ops, ell, own, rule)
    strength = rule.strength
    if rule.amplification is not None:
        strength = _at_lengths(ops, ops.constant(read), own, rule.amplification)
    if rule.ess_floor is not None:
        strength = _strength(ops, ops.constant(read), own, rule, weight)
    raw = strength * read
    factor = raw
    if rule.beyond != "hold":
        within = raw if rule.beyond == "drop" else ops.constant(raw) * 0.0
        factor = ops.where((raw >= rule.low) & (raw <= rule.high), within, -math.inf)
    elif rule.low > -math.inf or rule.high < math.inf:
        factor = ops.clip(raw, rule.low, rule.high)
    if rule.self_normalised:
        factor = factor - _log_mean_by_position(ops, factor, own, weight)
    return factor


def ratios(
    ops: Ops,
    ell: Any,
    own: Any,
    rule: Rule,
    routing: bool,
    weight: Any = None,
    behaviour: Any = None,
    decoupled: Rule | None = None,
) -> tuple[Any, Any]:
    """The log of the ratio inside the clip, and the weight outside it (None where it is 1).

    `behaviour` holds the log-ratios of the old policy to the sampling engine: for members that weigh, or for the weight
    `decoupled` beside a member that does not.
    """
    if rule.form == "weigh":
        read = ell if behaviour is None else behaviour
        outside = ops.constant(ops.exp(log_factors(ops, ops.constant(read), own, rule, weight)))
        return (ell - ops.constant(ell) if behaviour is None else ell), outside
    outside = None
    if decoupled is not None:
        outside = ops.constant(ops.exp(log_factors(ops, ops.constant(behaviour), own, decoupled, weight)))
    if is_tempered(rule) and routing:
        inside = ops.tempered(ell, rule.strength)
    else:
        factor = log_factors(ops, ell, own, rule, weight)
        if not routing:
            factor = ops.constant(factor)
        if rule.form == "multiply":
            inside = factor + ell
        else:
            inside = factor if routing else factor + (ell - ops.constant(ell))
    return ops.where(own, inside, 0.0), outside


def behaviour_rule(member: Correction, given: bool, weight: str | Correction | None) -> Rule | None:
    """The rule of the constant weight from the sampling engine's policy to the old one; None where there is none, or where
    the member is itself that weight. `given`: whether there are the engine's log-probs.

    Raises ValueError where log-probs would not be read, or a weight has none to read.
    """
    if weight is None:
        if given and member.rule.form != "weigh":
            raise ValueError(
                f"behaviour_logprobs: correction '{member}' does not read them; name the weight that they go into, "
                "behaviour_weight='token-tis:2' say, or leave them out"
            )
        return None
    chosen = Correction.parse(weight).for_autodiff()
    if chosen.rule.form != "weigh":
        raise ValueError(f"behaviour_weight '{chosen}' is not a constant weight; give one such as 'token-tis:2' or 'sequence-tis:2'")
    if not given:
        raise ValueError(f"behaviour_weight '{chosen}' needs behaviour_logprobs, those of the engine that sampled")
    if member.rule.form == "weigh":
        raise ValueError(f"behaviour_weight '{chosen}': correction '{member}' is a weight itself; leave one of them out")
    return chosen.rule


def bounds(
    ops: Ops, own: Any, like: Any, rule: Rule, clip: tuple[float, float, float | None] | None, weighed: bool
) -> tuple[Any, Any, float]:
    """Lower, upper and dual bound of the ratio at each step; open without a clip and for weighted score steps."""
    if clip is None or weighed:
        return -math.inf, math.inf, math.inf
    low, high, dual = clip
    dual = rule.dual if dual is None else min(dual, rule.dual)
    if not rule.growing_clip:
        return 1.0 - low, 1.0 + high, dual
    stretch = (positions(ops, own, like) + 1.0) ** 0.5
    # The lower bound of a clip of width 1 is 0, whose logarithm would not be finite.
    falling = ops.exp(math.log(1.0 - low) * stretch) if low < 1.0 else 0.0 * stretch
    return falling, ops.exp(math.log(1.0 + high) * stretch), dual


def scales(ops: Ops, own: Any, like: Any, trajectories: bool, weight: Any = None) -> Any:
    """What a step's term counts for in the mean, `[trajectories, 1]`, or a number's worth of it `[1, 1]`."""
    marks = ops.floats(own, like)
    if not trajectories and weight is None:
        return 1.0 / ops.maximum(marks.sum(), 1.0)
    lengths = marks.sum(1)[:, None]
    each = 1.0 if weight is None else weight[:, None]
    if not trajectories:
        return each / ops.maximum((each * lengths).sum(), TINY)
    present = ops.where(lengths > 0, 1.0, 0.0 * lengths)
    return each / ops.maximum(lengths, 1.0) / ops.maximum((each * present).sum(), TINY)


def _packed(ops: Ops, values: Any, at: Any, own: Any) -> Any:
    """The values of own steps at their positions, `[trajectories, steps + 1]`."""
    return ops.place(values, ops.whole(ops.where(own, at, 0.0 * at + float(at.shape[1]))))


def _strength(ops: Ops, read: Any, own: Any, rule: Rule, weight: Any) -> Any:
    """The largest strength whose weights keep the ESS floor, by bisection."""
    mass = ops.floats(own, read) * (1.0 if weight is None else weight[:, None])

    def kept(strength: Any) -> Any:
        log = ops.where(own, strength * read, 0.0)
        scaled = ops.exp(log - ops.maximum(log.max(), 0.0))
        first, second = (mass * scaled).sum(), (mass * scaled * scaled).sum()
        return first * first >= rule.ess_floor * second * mass.sum()

    least = 0.0 * read.sum()
    most = least + rule.strength
    whole = kept(most)
    for _ in range(HALVINGS):
        middle = 0.5 * (least + most)
        holds = kept(middle)
        least, most = ops.where(holds, middle, least), ops.where(holds, most, middle)
    return ops.where(whole, 0.0 * least + rule.strength, least)


def _at_lengths(ops: Ops, read: Any, own: Any, limit: float) -> Any:
    """The strength at which a fresh gradient of a constant advantage is `limit` times PPO's, 1 at most."""
    lengths = ops.floats(own, read).sum(1)
    steps = ops.maximum(lengths.sum(), 1.0)
    first = (lengths * (lengths - 1.0)).sum() / steps / 2.0
    second = ((lengths - 1.0) * lengths * (2.0 * lengths - 1.0)).sum() / steps / 6.0
    room = limit * limit - 1.0
    solved = room / ops.maximum(first + (first * first + second * room) ** 0.5, TINY)
    return ops.where(second > 0, -ops.maximum(-solved, -1.0), 1.0 + 0.0 * second)


def _log_mean_by_position(ops: Ops, factor: Any, own: Any, weight: Any) -> Any:
    """The log of the weighted mean of the factors at each step's position, over trajectories that have it."""
    marks = ops.floats(own, factor)
    each = marks if weight is None else marks * weight[:, None]
    at = ops.constant(positions(ops, own, factor))
    there = _packed(ops, marks, at, own)
    # Scaled by the largest factor of the position, so that nothing overflows early.
    highest = ops.where(there > 0, _packed(ops, ops.where(own, factor, 0.0), at, own), ABSENT)
    highest = ops.column_maximum(ops.constant(highest))
    highest = ops.where(highest > ABSENT, highest, 0.0)
    level = ops.take(highest + 0.0 * there, ops.whole(at))
    sums = _packed(ops, each * ops.exp(ops.where(own, factor - level, 0.0)), at, own).sum(0)[None, :]
    masses = _packed(ops, each, at, own).sum(0)[None, :]
    means = ops.log(ops.maximum(sums, TINY) / ops.maximum(masses, TINY)) + highest
    return ops.take(means + 0.0 * there, ops.whole(at))
