"""PyTorch's operations for the surrogate, and the passes whose gradients are written out because they are quicker so."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ._surrogate import Ops


class Tempered(torch.autograd.Function):
    """`ell[t] + strength · Σ_{i<t} ell[i]`; the pull-back is one sum, where that of `cumsum` turns the rows over twice."""

    @staticmethod
    def forward(ell: Tensor, strength: float) -> Tensor:
        return torch.lerp(ell, ell.cumsum(1), strength)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        ctx.strength = inputs[1]

    @staticmethod
    def backward(ctx: Any, own: Tensor) -> tuple[Tensor, None]:
        # own[i] + strength · Σ_{t>i} own[t]
        after = own.sum(1, keepdim=True) - own.cumsum(1)
        return torch.add(own, after, alpha=ctx.strength), None


def bits_of(own: Tensor, like: Tensor) -> Tensor:
    """All bits where the flags stand and none elsewhere, in whole numbers as wide as `like`'s."""
    return own.view(torch.int8).neg().to(torch.int64 if like.dtype == torch.float64 else torch.int32)


def keep(values: Tensor, bits: Tensor) -> Tensor:
    """Zero where there are no bits, whatever was there: on a CPU `where` takes five times as long."""
    return (values.view(bits.dtype) & bits).view(values.dtype)


def keep_(values: Tensor, bits: Tensor) -> Tensor:
    """`keep` in the values' own place."""
    values.view(bits.dtype).bitwise_and_(bits)
    return values


class Kept(torch.autograd.Function):
    """`keep` with its gradient."""

    @staticmethod
    def forward(values: Tensor, bits: Tensor) -> Tensor:
        return keep(values, bits)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (bits,) = ctx.saved_tensors
        return keep(gradient, bits), None


def _where(flags: Tensor, values: Any, other: Any) -> Tensor:
    """`torch.where`, the quick way where a tensor is kept or zero."""
    if isinstance(other, float) and other == 0.0 and isinstance(values, Tensor) and values.shape == flags.shape:
        return Kept.apply(values, bits_of(flags, values))
    return torch.where(flags, values, other)


class Corrected(torch.autograd.Function):
    """`new[t] + strength · Σ_{i<t} ell[i]` at own steps, `new` elsewhere. In place where it can: the loss around it is as cheap
    as a few passes over memory."""

    @staticmethod
    def forward(new: Tensor, old: Tensor, bits: Tensor, strength: float) -> Tensor:
        ell = keep_(new - old, bits)
        before = keep_(ell.cumsum(1).sub_(ell), bits)
        return before.mul_(strength).add_(new)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[2])
        ctx.strength = inputs[3]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        (bits,) = ctx.saved_tensors
        sums = keep(gradient, bits).cumsum_(1)
        # gradient[i] + strength · Σ_{t>i} gradient[t]
        after = keep_(sums.sub_(sums[:, -1:].clone()), bits)
        return after.mul_(-ctx.strength).add_(gradient), None, None, None


class Clipped(torch.autograd.Function):
    """`clip(e^inside) · advantage` per step; a live term is its own derivative with respect to the log of its ratio."""

    @staticmethod
    def forward(inside: Tensor, advantage: Tensor, floor: Tensor, ceiling: Tensor) -> tuple[Tensor, Tensor]:
        ratio = inside.exp()
        clipped = torch.clamp(ratio, floor, ceiling)
        term = clipped * advantage
        return term, keep(term, bits_of(clipped == ratio, term))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(output[1])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, None, None, None]:
        (live,) = ctx.saved_tensors
        return gradient * live, None, None, None


def _minimum_before(ell: Tensor, own: Tensor) -> Tensor:
    steps = ell.shape[1]
    held = torch.where(own, ell, math.inf)
    # The first of equal values attains the minimum, as in the kernel; `cummin` itself names the last.
    lowest = torch.cummin(held.detach(), 1).values
    before = torch.cat([torch.full_like(lowest[:, :1], math.inf), lowest[:, :-1]], 1)
    steps_at = torch.arange(steps, device=ell.device).expand_as(ell)
    at = torch.where(held.detach() < before, steps_at, 0).cummax(1).values
    at = torch.cat([torch.zeros_like(at[:, :1]), at[:, :-1]], 1)
    return torch.where(before < math.inf, torch.gather(ell, 1, at), 0.0)


OPS = Ops(
    exp=torch.exp,
    log=torch.log,
    where=_where,
    clip=torch.clamp,
    constant=torch.Tensor.detach,
    tempered=Tempered.apply,
    running_sum=lambda x: torch.cumsum(x, 1),
    minimum_before=_minimum_before,
    take=lambda x, index: torch.gather(x, 1, index),
    place=lambda x, index: torch.zeros(
        (x.shape[0], x.shape[1] + 1), dtype=x.dtype, device=x.device
    ).scatter_add(1, index, x),
    whole=torch.Tensor.long,
    floats=lambda x, like: x.to(like.dtype),
    maximum=lambda x, least: torch.clamp(x, min=least),
    column_maximum=lambda x: x.max(0, keepdim=True).values,
)
