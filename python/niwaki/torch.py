"""The corrected surrogate as a differentiable PyTorch function, on the tensors' own device.

    >>> import torch
    >>> from niwaki.torch import surrogate
    >>> old = torch.tensor([[-1.2, -0.7, -0.3], [-0.9, -1.1, -0.4]])
    >>> new = (old + 0.1).requires_grad_()
    >>> loss, metrics = surrogate(new, old, torch.tensor([0.5, -0.5]), correction="tempered:0.1")
    >>> loss.backward()
    >>> new.grad.shape
    torch.Size([2, 3])

Plain operations without a look at a value: no host round trip, and `torch.compile` takes it whole. (Boundaries of packed rows
are read, and a few batches are measured for a warning.) bfloat16 and float16 log-probs are taken to float32 first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Union

import torch
from torch import Tensor

from ._amplification import WATCHES, AmplificationWarning, Watch
from ._gather import gather_tallies
from ._packed import SINGLE, PackedWarning, Rows
from ._shards import Shard
from ._surrogate import behaviour_rule, bounds, is_tempered, log_factors, ratios, scales
from ._torch_ops import OPS, Clipped, Corrected, Kept, bits_of, keep
from .correction import Clip, Correction, Rule, clip_range

__all__ = [
    "AmplificationWarning", "PackedWarning", "Shard", "amplification", "corrected_logprobs", "gather_tallies", "log_factor",
    "surrogate", "terms",
]


Values = Union[Tensor, Sequence[Tensor]]
"""A padded or packed tensor, or one tensor per trajectory."""


@torch.compiler.assume_constant_result
def _member(correction: str | Correction) -> Correction:
    """The member that was asked for; compiled code keeps it as it is."""
    return Correction.parse(correction).for_autodiff()


@torch.compiler.assume_constant_result
def _decoupled(correction: str | Correction, given: bool, weight: str | Correction | None) -> Rule | None:
    return behaviour_rule(_member(correction), given, weight)


def surrogate(
    logprobs: Values,
    old_logprobs: Values,
    advantages: Values,
    mask: Values | None = None,
    *,
    correction: str | Correction = "tempered:0.1",
    clip: Clip = 0.2,
    routing: bool = True,
    mean: Literal["steps", "trajectories"] = "steps",
    cu_seqlens: Tensor | Sequence[int] | None = None,
    behaviour_logprobs: Values | None = None,
    behaviour_weight: str | Correction | None = None,
    weights: Tensor | None = None,
    metrics: bool = True,
    check: bool = False,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss (−objective, to be minimised) and a dict of detached measurements.

    Shapes:
        logprobs, old_logprobs, behaviour_logprobs: `[trajectories, steps]` (padded, with `mask`); or packed in one row,
            `[steps of all]` or `[1, steps of all]` with `cu_seqlens`; or a list of one tensor `[steps]` per trajectory.
            Gradients flow to `logprobs` alone.
        advantages: as `logprobs`, `[trajectories, 1]` or `[trajectories]`.
        mask: as `logprobs`, nonzero at the policy's own steps; what lies elsewhere is never looked at.
        cu_seqlens: `[trajectories + 1]`, where the trajectories of a packed row begin and end. Without it a row is one trajectory.
        weights: `[trajectories]`.

    Args:
        correction, clip, routing, mean: as in `niwaki.correction.evaluate`.
        behaviour_weight: the constant weight from the policy of the engine that sampled to the old one, for corrections that
            are not such a weight themselves: `"token-tis:2"`, `"sequence-tis:2"` and the like (decoupled PPO).
        metrics: whether to measure; without, the dict is empty.
        check: also look at the values (finite, not positive, a step of the policy's own). This waits for the device.

    Raises:
        TypeError, ValueError: with a sentence that names the argument.

    Warns (`PackedWarning`), once, where one row without boundaries looks packed: its advantages stand still and jump.
    Warns (`AmplificationWarning`), once for each member, where the correction more than doubles the norm of the gradient on a
    batch. The first batch, the second, the fourth and so on are measured, outside `torch.compile`.
    """
    if mean not in ("steps", "trajectories"):
        raise ValueError(f"mean is {mean!r}; write 'steps' or 'trajectories'")
    member, edges = _member(correction), clip_range(clip)
    rows = Rows.of(logprobs, cu_seqlens)
    new, old, own = _inputs(logprobs, old_logprobs, mask, rows)
    advantage = _advantages(new, advantages, rows)
    if rows is None:
        SINGLE.look(advantage, own)
    behaviour = _behaviour(new, behaviour_logprobs, rows)
    decoupled = _decoupled(correction, behaviour is not None, behaviour_weight)
    weight = None if weights is None else _weights(new, weights)
    if check:
        _look(own, logprobs=new, old_logprobs=old, advantages=advantage, behaviour_logprobs=behaviour)
    term, live, ell, inside = _terms(new, old, advantage, own, member, edges, routing, weight, behaviour, decoupled)
    scale = scales(OPS, own, term, mean == "trajectories", weight)
    loss = -(term * scale).sum()
    _watch(member, new, old, advantage, own, clip, routing)
    return loss, (_measured(member, ell, inside, live, advantage, own) if metrics else {})


def terms(
    logprobs: Values,
    old_logprobs: Values,
    advantages: Values,
    mask: Values | None = None,
    *,
    correction: str | Correction = "tempered:0.1",
    clip: Clip = 0.2,
    routing: bool = True,
    cu_seqlens: Tensor | Sequence[int] | None = None,
    behaviour_logprobs: Values | None = None,
    behaviour_weight: str | Correction | None = None,
) -> Any:
    """The objective's term at each step, 0 under the mask: for trainers that average in a way of their own.

    Shapes: as `surrogate`; returns what `logprobs` is, a tensor or a list.
    """
    member, edges = _member(correction), clip_range(clip)
    rows = Rows.of(logprobs, cu_seqlens)
    new, old, own = _inputs(logprobs, old_logprobs, mask, rows)
    advantage = _advantages(new, advantages, rows)
    if rows is None:
        SINGLE.look(advantage, own)
    behaviour = _behaviour(new, behaviour_logprobs, rows)
    decoupled = _decoupled(correction, behaviour is not None, behaviour_weight)
    each = _terms(new, old, advantage, own, member, edges, routing, None, behaviour, decoupled)[0]
    return each if rows is None else rows.back(each)


def amplification(
    logprobs: Values,
    old_logprobs: Values,
    advantages: Values,
    mask: Values | None = None,
    *,
    correction: str | Correction = "tempered:0.1",
    clip: Clip = 0.2,
    routing: bool = True,
    cu_seqlens: Tensor | Sequence[int] | None = None,
) -> Tensor:
    """How many times as long the correction makes the per-token coefficients: the norm of ∂objective/∂logprobs over that of
    PPO's on the same batch, without a gradient. Not finite where PPO has none.

    Shapes: as `surrogate`; returns a number `[]`.
    """
    rows = Rows.of(logprobs, cu_seqlens)
    new, old, own = _inputs(logprobs, old_logprobs, mask, rows)
    advantage = _advantages(new, advantages, rows)
    norms = []
    for member in (_member(correction), Correction.ppo()):
        with torch.enable_grad():
            leaf = new.detach().requires_grad_()
            summed = terms(leaf, old, advantage, own, correction=member, clip=clip, routing=routing).sum()
        norms.append(torch.linalg.vector_norm(torch.autograd.grad(summed, leaf)[0]))
    return norms[0] / norms[1]


def watch_amplification(
    watch: Watch, member: Correction, logprobs: Tensor, *rest: Tensor, clip: Clip, routing: bool, stacklevel: int = 1
) -> None:
    """Measures a batch if its turn has come, and warns once; `rest` as `amplification` takes it."""
    if watch.due():
        figure = amplification(logprobs, *rest, correction=member, clip=clip, routing=routing).item()
        watch.tell(member, figure, logprobs.shape[1], stacklevel + 1)


def _watch(
    member: Correction, new: Tensor, old: Tensor, advantage: Tensor, own: Tensor, clip: Clip, routing: bool
) -> None:
    """`watch_amplification` where a batch is trained on and may be looked at."""
    if torch.compiler.is_compiling() or not (new.requires_grad and torch.is_grad_enabled() and member.rule.form == "multiply"):
        return
    if new.is_cuda and torch.cuda.is_current_stream_capturing():
        return
    watch = WATCHES.setdefault(member.name, Watch())
    watch_amplification(watch, member, new, old, advantage, own, clip=clip, routing=routing, stacklevel=3)


def log_factor(
    logprobs: Values,
    old_logprobs: Values,
    mask: Values | None = None,
    *,
    correction: str | Correction = "tempered:0.1",
    cu_seqlens: Tensor | Sequence[int] | None = None,
    shard: Shard | None = None,
) -> Any:
    """The log of the correction factor at each step, with its gradient; 0 under the mask.

    Shapes: as `surrogate`; returns what `logprobs` is, a tensor or a list. With a `shard` all are this rank's columns, and
    `cu_seqlens` bounds the whole row.
    """
    if shard is not None:
        return _on_shards(shard, logprobs, old_logprobs, mask, correction, cu_seqlens)
    rows = Rows.of(logprobs, cu_seqlens)
    new, old, own = _inputs(logprobs, old_logprobs, mask, rows)
    bits = bits_of(own, new)
    ell = Kept.apply(new - old, bits)
    found = Kept.apply(log_factors(OPS, ell, own, _member(correction).rule), bits)
    return found if rows is None else rows.back(found)


def corrected_logprobs(
    logprobs: Values,
    old_logprobs: Values,
    mask: Values | None = None,
    *,
    correction: str | Correction = "tempered:0.1",
    routing: bool = True,
    cu_seqlens: Tensor | Sequence[int] | None = None,
    shard: Shard | None = None,
) -> Any:
    """The log-probs plus the log of the correction factor, for trainers that keep a loss of their own: its ratio to
    `old_logprobs` is then the corrected one. Under the mask they are left as they are.

    Shapes: as `surrogate`; returns what `logprobs` is, a tensor or a list. With a `shard` all are this rank's columns, and
    `cu_seqlens` bounds the whole row.

    Args:
        routing: whether gradients flow through the factor to earlier steps.
        shard: which columns this rank holds of trajectories that lie on several. Their log-ratios are gathered, with their
            gradient: to the sum of all ranks' losses it is that of the whole batch.
    """
    if shard is not None:
        factor = _on_shards(shard, logprobs, old_logprobs, mask, correction, cu_seqlens)
        return logprobs + (factor if routing else factor.detach())
    rows = Rows.of(logprobs, cu_seqlens)
    if rows is not None:
        padded = [rows.pad("logprobs", logprobs), rows.pad("old_logprobs", old_logprobs), rows.mask(mask)]
        return rows.back(corrected_logprobs(*padded, correction=correction, routing=routing))
    rule = _member(correction).rule
    if not (routing and is_tempered(rule)):
        factor = log_factor(logprobs, old_logprobs, mask, correction=correction)
        return logprobs + (factor if routing else factor.detach())
    new, old, own = _inputs(logprobs, old_logprobs, mask)
    return Corrected.apply(new, old, bits_of(own, new), rule.strength)


def _on_shards(
    shard: Shard, logprobs: Any, old_logprobs: Any, mask: Any, correction: str | Correction, cu_seqlens: Any
) -> Tensor:
    """`log_factor` of the whole batch, at this rank's columns."""
    if not isinstance(logprobs, Tensor):
        raise TypeError(f"logprobs is {type(logprobs).__name__}; a shard is a tensor, [trajectories, columns] or [columns] with cu_seqlens")
    new = _wide(logprobs)
    old = _like(new, "old_logprobs", old_logprobs)
    own = torch.ones_like(new, dtype=torch.bool) if mask is None else mask.bool()
    if own.shape != new.shape:
        raise ValueError(f"mask has shape {tuple(own.shape)} where logprobs has {tuple(new.shape)}")
    ell = shard.whole(torch.where(own, new - old, 0.0))
    marks = shard.whole(own.to(new.dtype))
    return shard.own(log_factor(ell, torch.zeros_like(ell), marks, correction=correction, cu_seqlens=cu_seqlens))


def _terms(
    new: Tensor,
    old: Tensor,
    advantage: Tensor,
    own: Tensor,
    member: Correction,
    clip: tuple[float, float, float | None] | None,
    routing: bool,
    weight: Tensor | None,
    behaviour: Tensor | None,
    decoupled: Rule | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Terms, live terms, log-ratios, logs of the ratios inside the clip."""
    rule = member.rule
    bits = bits_of(own, new)
    ell = Kept.apply(new - old, bits)
    engines = None if behaviour is None else keep(old - behaviour, bits)
    inside, outside = ratios(OPS, ell, own, rule, routing, weight, engines, decoupled)
    low, high, dual = bounds(OPS, own, ell, rule, clip, rule.form == "weigh" and behaviour is None)
    weighed = advantage if outside is None else advantage * outside
    # Per trajectory where advantages are: the bounds depend on their sign alone.
    gain = weighed > 0
    floor, ceiling = torch.where(gain, 0.0, _as(low, ell)), torch.where(gain, _as(high, ell), dual)
    term, live = Clipped.apply(inside, keep(weighed, bits), floor, ceiling)
    return term, live, ell, inside


def _measured(
    member: Correction, ell: Tensor, inside: Tensor, live: Tensor, advantage: Tensor, own: Tensor
) -> dict[str, Tensor]:
    """Measurements of a batch under the names of `niwaki.correction.Diagnostics`."""
    with torch.no_grad():
        marks = own.to(ell.dtype)
        count = marks.sum().clamp(min=1.0)
        mean_ell = ell.sum() / count
        flat = (live == 0) & (advantage != 0) & own
        found = {
            "kl_k1": -mean_ell,
            "kl_k3": (ell.exp().sum() - (marks.numel() - count)) / count - 1.0 - mean_ell,
            "clip_fraction": flat.sum() / count,
        }
        if member.rule.form == "multiply":
            factor = (inside - ell).exp()
            # Steps under the mask hold a factor of 1.
            absent = marks.numel() - count
            first, second = factor.sum() - absent, factor.square().sum() - absent
            found["ess"] = first * first / (second.clamp(min=1e-37) * count)
        return found


def _inputs(logprobs: Any, old_logprobs: Any, mask: Any, rows: Rows | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Both log-probs and the policy's own steps, of one shape, kind and device, or a sentence that names the argument."""
    if rows is not None:
        logprobs, old_logprobs = rows.pad("logprobs", logprobs), rows.pad("old_logprobs", old_logprobs)
        mask = rows.mask(mask)
    if not isinstance(logprobs, Tensor):
        raise TypeError(f"logprobs is {type(logprobs).__name__}; pass a tensor, or use niwaki.correction for arrays")
    if not logprobs.is_floating_point():
        raise TypeError(f"logprobs is {logprobs.dtype}; pass floating-point log-probabilities")
    if logprobs.dim() != 2:
        raise ValueError(
            f"logprobs has shape {tuple(logprobs.shape)}; pass [trajectories, steps], a list of one tensor per trajectory, "
            "or one packed row with cu_seqlens"
        )
    if logprobs.numel() == 0:
        raise ValueError(f"logprobs is empty (shape {tuple(logprobs.shape)}): there is nothing to evaluate")
    new = _wide(logprobs)
    old = _like(new, "old_logprobs", old_logprobs)
    if mask is None:
        return new, old, torch.ones_like(new, dtype=torch.bool)
    if not isinstance(mask, Tensor):
        raise TypeError(f"mask is {type(mask).__name__}; pass a tensor")
    if mask.shape != new.shape:
        raise ValueError(f"mask has shape {tuple(mask.shape)} where logprobs has {tuple(new.shape)}")
    if mask.device != new.device:
        raise ValueError(f"mask is on {mask.device} where logprobs is on {new.device}")
    return new, old, mask.bool()


def _wide(values: Tensor) -> Tensor:
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values


def _advantages(new: Tensor, value: Any, rows: Rows | None = None) -> Tensor:
    """`[trajectories, steps]` or `[trajectories, 1]`."""
    value = value if rows is None else rows.pad("advantages", value)
    found = _tensor(new, "advantages", value)
    found = found[:, None] if found.dim() == 1 else found
    lanes, steps = new.shape
    if tuple(found.shape) not in ((lanes, steps), (lanes, 1)):
        raise ValueError(f"advantages has shape {tuple(value.shape)} where logprobs has {(lanes, steps)} or ({lanes},)")
    return found


def _tensor(new: Tensor, name: str, value: Any) -> Tensor:
    """A constant of the batch: a tensor of the log-probs' kind on their device."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} is {type(value).__name__}; pass a tensor")
    if value.device != new.device:
        raise ValueError(f"{name} is on {value.device} where logprobs is on {new.device}")
    return value.detach().to(new.dtype)


def _like(new: Tensor, name: str, value: Any) -> Tensor:
    found = _tensor(new, name, value)
    if found.shape != new.shape:
        raise ValueError(f"{name} has shape {tuple(found.shape)} where logprobs has {tuple(new.shape)}")
    return found


def _behaviour(new: Tensor, value: Any, rows: Rows | None) -> Tensor | None:
    value = value if rows is None else rows.pad("behaviour_logprobs", value)
    return None if value is None else _like(new, "behaviour_logprobs", value)


def _weights(new: Tensor, value: Any) -> Tensor:
    found = _tensor(new, "weights", value)
    if found.shape != new.shape[:1]:
        raise ValueError(f"weights has shape {tuple(found.shape)}; one per trajectory is ({new.shape[0]},)")
    return found


def _as(bound: Any, like: Tensor) -> Tensor:
    return bound if isinstance(bound, Tensor) else torch.full((1, 1), bound, dtype=like.dtype, device=like.device)


def _look(own: Tensor, **values: Tensor | None) -> None:
    """Refuses values that no batch may have."""
    if not own.any():
        raise ValueError("mask leaves no step of the policy in the batch")
    for name, value in values.items():
        if value is None:
            continue
        wrong = own & ~torch.isfinite(value)
        if wrong.any():
            raise ValueError(f"{name}{wrong.nonzero()[0].tolist()} is not a finite number")
        if name.endswith("logprobs") and (own & (value > 1e-4)).any():
            at = (own & (value > 1e-4)).nonzero()[0].tolist()
            raise ValueError(f"{name}{at} = {value[tuple(at)].item()} is positive, which no log-probability is")
