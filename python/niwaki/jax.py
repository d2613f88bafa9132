"""The corrected surrogate as a JAX function: differentiable, and free to be jitted and vmapped.

    >>> import jax, jax.numpy as jnp
    >>> from niwaki.jax import surrogate
    >>> old = jnp.array([[-1.2, -0.7, -0.3], [-0.9, -1.1, -0.4]])
    >>> loss = lambda new: surrogate(new, old, jnp.array([0.5, -0.5]), correction="tempered:0.1")[0]
    >>> jax.jit(jax.grad(loss))(old + 0.1).shape
    (2, 3)
"""

from __future__ import annotations

import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ._amplification import WATCHES, AmplificationWarning, Watch
from ._surrogate import Ops, behaviour_rule, bounds, ratios, scales
from .correction import Clip, Correction, clip_range

__all__ = ["AmplificationWarning", "amplification", "surrogate"]


def _tempered(ell: Array, strength: float) -> Array:
    return ell + strength * (jnp.cumsum(ell, 1) - ell)


def _minimum_before(ell: Array, own: Array) -> Array:
    held = jax.lax.stop_gradient(jnp.where(own, ell, math.inf))
    # The first of equal values attains the minimum, as in the kernel.
    lowest = jax.lax.cummin(held, 1)
    before = jnp.concatenate([jnp.full_like(lowest[:, :1], math.inf), lowest[:, :-1]], 1)
    at = jax.lax.cummax(jnp.where(held < before, jnp.arange(ell.shape[1])[None, :], 0), 1)
    at = jnp.concatenate([jnp.zeros_like(at[:, :1]), at[:, :-1]], 1)
    return jnp.where(before < math.inf, jnp.take_along_axis(ell, at, 1), 0.0)


def _clip(x: Array, low: Any, high: Any) -> Array:
    # A value on its bound is live, as in the kernel; `jnp.clip` would halve its gradient.
    return jnp.where(x < low, low, jnp.where(x > high, high, x))


_OPS = Ops(
    exp=jnp.exp,
    log=jnp.log,
    where=jnp.where,
    clip=_clip,
    constant=jax.lax.stop_gradient,
    tempered=_tempered,
    running_sum=lambda x: jnp.cumsum(x, 1),
    minimum_before=_minimum_before,
    take=lambda x, index: jnp.take_along_axis(x, index, 1),
    place=lambda x, index: jnp.zeros((x.shape[0], x.shape[1] + 1), x.dtype)
    .at[jnp.arange(x.shape[0])[:, None], index]
    .add(x),
    whole=lambda x: x.astype(jnp.int32),
    floats=lambda x, like: x.astype(like.dtype),
    maximum=jnp.maximum,
    column_maximum=lambda x: x.max(0, keepdims=True),
)


def surrogate(
    logprobs: Array,
    old_logprobs: Array,
    advantages: Array,
    mask: Array | None = None,
    *,
    correction: str | Correction = "tempered:0.1",
    clip: Clip = 0.2,
    routing: bool = True,
    mean: Literal["steps", "trajectories"] = "steps",
    behaviour_logprobs: Array | None = None,
    behaviour_weight: str | Correction | None = None,
    weights: Array | None = None,
    check: bool = False,
) -> tuple[Array, dict[str, Array]]:
    """The loss (−objective, to be minimised) and a dict of measurements without gradients.

    Shapes:
        logprobs, old_logprobs, behaviour_logprobs: `[trajectories, steps]`; gradients flow to `logprobs` alone.
        advantages: `[trajectories, steps]`, `[trajectories, 1]` or `[trajectories]`.
        mask: `[trajectories, steps]`, nonzero at the policy's own steps; what lies elsewhere is never looked at.
        weights: `[trajectories]`.

    Args:
        correction, clip, routing, mean: as in `niwaki.correction.evaluate`, and static under `jit`.
        behaviour_weight: the constant weight from the policy of the engine that sampled to the old one, for corrections that
            are not such a weight themselves: `"token-tis:2"`, `"sequence-tis:2"` and the like (decoupled PPO); static.
        check: also look at the values (finite, not positive, a step of the policy's own), outside `jit`. This waits for the
            device. Warns (`AmplificationWarning`), once for each member, where the correction more than doubles the norm of the
            gradient on a batch.

    Raises:
        TypeError, ValueError: with a sentence that names the argument.
    """
    if mean not in ("steps", "trajectories"):
        raise ValueError(f"mean is {mean!r}; write 'steps' or 'trajectories'")
    member, edges = Correction.parse(correction).for_autodiff(), clip_range(clip)
    rule = member.rule
    decoupled = behaviour_rule(member, behaviour_logprobs is not None, behaviour_weight)
    new = _logprobs(logprobs)
    old = _like(new, "old_logprobs", old_logprobs)
    advantage = _advantages(new, advantages)
    own = jnp.ones(new.shape, bool) if mask is None else _array("mask", mask) != 0
    if own.shape != new.shape:
        raise ValueError(f"mask has shape {own.shape} where logprobs has {new.shape}")
    weight = None if weights is None else _constant(new, "weights", weights)
    if weight is not None and weight.shape != new.shape[:1]:
        raise ValueError(f"weights has shape {weight.shape}; one per trajectory is ({new.shape[0]},)")
    if check:
        given = {"logprobs": new, "old_logprobs": old, "advantages": jnp.broadcast_to(advantage, new.shape)}
        if behaviour_logprobs is not None:
            given["behaviour_logprobs"] = _like(new, "behaviour_logprobs", behaviour_logprobs)
        _look(own, given)
        if rule.form == "multiply":
            _watch(member, new, old, advantage, own, clip, routing)
    # Both sides before the difference: a gradient through what is not finite under the mask would be none.
    ell = jnp.where(own, new, 0.0) - jnp.where(own, old, 0.0)
    engines = None
    if behaviour_logprobs is not None:
        engines = jnp.where(own, old - _like(new, "behaviour_logprobs", behaviour_logprobs), 0.0)
    inside, outside = ratios(_OPS, ell, own, rule, routing, weight, engines, decoupled)
    low, high, dual = bounds(_OPS, own, ell, rule, edges, rule.form == "weigh" and engines is None)
    weighed = jnp.where(own, advantage if outside is None else advantage * outside, 0.0)
    gain = weighed > 0
    ratio = jnp.exp(inside)
    clipped = _clip(ratio, jnp.where(gain, 0.0, low), jnp.where(gain, high, dual))
    term = clipped * weighed
    loss = -(term * scales(_OPS, own, term, mean == "trajectories", weight)).sum()
    flat = (clipped != ratio) & (weighed != 0) | (own & (advantage != 0) & (weighed == 0))
    return loss, _measured(rule.form == "multiply", ell, inside, flat, own)


def amplification(
    logprobs: Array,
    old_logprobs: Array,
    advantages: Array,
    mask: Array | None = None,
    *,
    correction: str | Correction = "tempered:0.1",
    clip: Clip = 0.2,
    routing: bool = True,
) -> Array:
    """How many times as long the correction makes the per-token coefficients: the norm of ∂objective/∂logprobs over that of
    PPO's on the same batch. Not finite where PPO has none. Free to be jitted.

    Shapes: as `surrogate`; returns a number `[]`.
    """

    def norm(member: str | Correction) -> Array:
        loss = lambda new: surrogate(new, old_logprobs, advantages, mask, correction=member, clip=clip, routing=routing)[0]
        return jnp.linalg.norm(jax.grad(loss)(_logprobs(logprobs)))

    return norm(correction) / norm("ppo")


def _watch(member: Correction, new: Array, old: Array, advantage: Array, own: Array, clip: Clip, routing: bool) -> None:
    watch = WATCHES.setdefault(member.name, Watch())
    if watch.due():
        figure = amplification(new, old, advantage, own, correction=member, clip=clip, routing=routing)
        watch.tell(member, float(figure), new.shape[1], 3)


def _measured(multiplies: bool, ell: Array, inside: Array, flat: Array, own: Array) -> dict[str, Array]:
    """Measurements of a batch under the names of `niwaki.correction.Diagnostics`."""
    ell, inside = jax.lax.stop_gradient((ell, inside))
    count = jnp.maximum(own.sum(), 1)
    mean = lambda values: jnp.where(own, values, 0.0).sum() / count
    found = {
        "kl_k1": -mean(ell),
        "kl_k3": mean(jnp.exp(ell)) - 1.0 - mean(ell),
        "clip_fraction": flat.sum() / count,
    }
    if multiplies:
        factor = jnp.exp(inside - ell)
        found["ess"] = mean(factor) ** 2 / jnp.maximum(mean(factor**2), 1e-37)
    return found


def _look(own: Array, given: dict[str, Array]) -> None:
    """Refuses values that no batch may have."""
    kept = np.asarray(own)
    if not kept.any():
        raise ValueError("mask leaves no step of the policy in the batch")
    for name, value in given.items():
        found = np.asarray(value)
        for wrong, reason in ((~np.isfinite(found), "is not a finite number"), (found > 1e-4, "is positive, which no log-probability is")):
            places = np.argwhere(kept & wrong)
            if places.size and (name.endswith("logprobs") or "finite" in reason):
                raise ValueError(f"{name}{places[0].tolist()} {reason}")


def _array(name: str, value: Any) -> Array:
    try:
        return jnp.asarray(value)
    except TypeError as error:
        raise TypeError(f"{name} is {type(value).__name__}, no array of numbers: {error}") from None


def _logprobs(value: Any) -> Array:
    new = _array("logprobs", value)
    if not jnp.issubdtype(new.dtype, jnp.floating):
        raise TypeError(f"logprobs is {new.dtype}; pass floating-point log-probabilities")
    if new.ndim != 2:
        raise ValueError(f"logprobs has shape {new.shape}; pass [trajectories, steps]")
    if new.size == 0:
        raise ValueError(f"logprobs is empty (shape {new.shape}): there is nothing to evaluate")
    return new.astype(jnp.float32) if new.dtype in (jnp.bfloat16, jnp.float16) else new


def _constant(new: Array, name: str, value: Any) -> Array:
    return jax.lax.stop_gradient(_array(name, value).astype(new.dtype))


def _like(new: Array, name: str, value: Any) -> Array:
    found = _constant(new, name, value)
    if found.shape != new.shape:
        raise ValueError(f"{name} has shape {found.shape} where logprobs has {new.shape}")
    return found


def _advantages(new: Array, value: Any) -> Array:
    found = _constant(new, "advantages", value)
    shape = found.shape
    found = found[:, None] if found.ndim == 1 else found
    if found.shape not in (new.shape, (new.shape[0], 1)):
        raise ValueError(f"advantages has shape {shape} where logprobs has {new.shape} or ({new.shape[0]},)")
    return found
