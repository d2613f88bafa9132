"""Trajectories that lie on several ranks: context parallelism, ring attention, Ulysses."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as distributed
from torch import Tensor


class _Summed(torch.autograd.Function):
    """A sum over ranks; the pull-back is one, too, since every rank's loss reads it."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, group: Any) -> Tensor:
        ctx.group = group
        found = values.clone()
        distributed.all_reduce(found, group=group)
        return found

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        found = gradient.contiguous().clone()
        distributed.all_reduce(found, group=ctx.group)
        return found, None


class Shard:
    """The columns of a batch that this rank holds, for `corrected_logprobs(…, shard=Shard(…))`.

    Args:
        steps: columns of the whole batch, all ranks together.
        places: `[columns of this rank]`, which ones it holds; where None, its turn of equal parts in the order of the ranks.
            Every column lies on one rank; one that lies on none is padding.
        group: the ranks that share the batch (the context-parallel group); all where None.

    Every rank calls it at the same place, one that holds nothing, too.
    """

    def __init__(self, steps: int, places: Tensor | None = None, group: Any = None) -> None:
        if steps < 1:
            raise ValueError(f"steps is {steps}; give the columns of the whole batch")
        self.steps, self.group = steps, group
        if places is None:
            ranks = distributed.get_world_size(group)
            if steps % ranks:
                raise ValueError(f"steps is {steps}, which {ranks} ranks do not share evenly; pass places")
            own = steps // ranks
            places = torch.arange(own) + own * distributed.get_rank(group)
        if places.dim() != 1 or places.is_floating_point():
            raise ValueError(f"places has shape {tuple(places.shape)} of {places.dtype}; pass whole numbers [columns of this rank]")
        if len(places) and not 0 <= int(places.min()) <= int(places.max()) < steps:
            raise ValueError(f"places reach from {int(places.min())} to {int(places.max())}; columns are 0 to {steps - 1}")
        self.places = places.long()

    def whole(self, values: Tensor) -> Tensor:
        """All ranks' columns, with their gradient; the last dimension is that of columns."""
        if values.shape[-1] != len(self.places):
            raise ValueError(f"logprobs has {values.shape[-1]} columns, and the shard {len(self.places)}")
        apart = values.new_zeros((*values.shape[:-1], self.steps)).index_copy(-1, self.places.to(values.device), values)
        return _Summed.apply(apart, self.group)

    def own(self, values: Tensor) -> Tensor:
        """This rank's columns of all."""
        return values.index_select(-1, self.places.to(values.device))
