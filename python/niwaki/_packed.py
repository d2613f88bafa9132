"""Batches without padding: all trajectories in one row with their boundaries, or a list of one tensor per trajectory.

They are laid out as `[trajectories, steps]`, and results return as they came.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor


class PackedWarning(UserWarning):
    """One row looks like several trajectories."""


class Single:
    """Looks at batches of one row until it has warned once: the first, the second, the fourth and so on, since every look waits
    for the device."""

    SHORT = 4
    """Steps that trajectories have on average at least: rewards of turns change more often."""

    def __init__(self) -> None:
        self.rows, self.said = 0, False

    def look(self, advantage: Tensor, own: Tensor) -> None:
        """Warns where advantages stand still and jump, as those of packed trajectories do: prefixes then run on over the
        boundaries. Shapes: `[1, steps]`."""
        if self.said or advantage.shape[0] != 1 or advantage.shape[1] < 2 * self.SHORT or torch.compiler.is_compiling():
            return
        if advantage.is_cuda and torch.cuda.is_current_stream_capturing():
            return
        self.rows += 1
        if self.rows & (self.rows - 1):
            return
        values = advantage.expand_as(own)[own]
        stretches = 1 + int((values[1:] != values[:-1]).sum())
        if stretches < 2 or values.numel() < self.SHORT * stretches:
            return
        self.said = True
        warnings.warn(
            f"logprobs is one row whose advantages take {stretches} values one after the other, as packed trajectories do: it is "
            "corrected as one trajectory, across their boundaries; pass cu_seqlens if it is packed",
            PackedWarning,
            stacklevel=3,
        )


SINGLE = Single()


class Rows:
    """Where the trajectories of a packed batch lie."""

    def __init__(self, lengths: list[int], shape: tuple[int, ...] | None, device: torch.device) -> None:
        self.lengths, self.shape = lengths, shape
        self.own: Tensor
        total, longest = sum(lengths), max(lengths)
        count = torch.tensor(lengths, device=device)
        starts = (count.cumsum(0) - count)[:, None]
        steps = torch.arange(longest, device=device)
        self.own = steps < count[:, None]
        self._from = (starts + steps).clamp(max=total - 1)
        rows = torch.repeat_interleave(torch.arange(len(lengths), device=device), count, output_size=total)
        self._to = torch.arange(total, device=device) - starts[:, 0][rows] + rows * longest

    @staticmethod
    def of(logprobs: Any, cu_seqlens: Any) -> Rows | None:
        """None where the log-probs are padded. Boundaries on a device are waited for."""
        if isinstance(logprobs, (list, tuple)):
            if cu_seqlens is not None:
                raise ValueError("cu_seqlens goes with one packed row; logprobs is a list of trajectories")
            for index, part in enumerate(logprobs):
                if not isinstance(part, Tensor) or part.dim() != 1:
                    found = f"has shape {tuple(part.shape)}" if isinstance(part, Tensor) else f"is {type(part).__name__}"
                    raise TypeError(f"logprobs[{index}] {found}; pass one tensor [steps] per trajectory")
            lengths, shape = [len(part) for part in logprobs], None
            device = logprobs[0].device if logprobs else torch.device("cpu")
        elif cu_seqlens is None:
            return None
        else:
            if not isinstance(logprobs, Tensor):
                raise TypeError(f"logprobs is {type(logprobs).__name__}; pass a tensor, [steps of all] with cu_seqlens")
            shape, device = tuple(logprobs.shape), logprobs.device
            if logprobs.dim() not in (1, 2) or shape[:-1] not in ((), (1,)):
                raise ValueError(f"logprobs has shape {shape}; with cu_seqlens it is one packed row, [steps of all]")
            lengths = _lengths(cu_seqlens, shape[-1])
        if sum(lengths) == 0:
            raise ValueError("logprobs is empty: there is nothing to evaluate")
        return Rows(lengths, shape, device)

    def pad(self, name: str, value: Any) -> Any:
        """The values as `[trajectories, steps]`, with anything where no trajectory is; None, and one number per trajectory
        (`advantages`), as they are."""
        if value is None and name in ("mask", "behaviour_logprobs"):
            return None
        if name == "advantages" and isinstance(value, Tensor) and value.shape == (len(self.lengths),):
            return value
        if self.shape is None:
            if not isinstance(value, (list, tuple)):
                raise TypeError(f"{name} is {type(value).__name__}; pass a list of one tensor per trajectory, as logprobs is")
            lengths = [len(part) if isinstance(part, Tensor) and part.dim() == 1 else None for part in value]
            if lengths != self.lengths:
                raise ValueError(f"{name} does not have the lengths of logprobs, {self.lengths[:8]}")
            return torch.cat(list(value))[self._from]
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} is {type(value).__name__}; pass a tensor")
        if tuple(value.shape) != self.shape:
            raise ValueError(f"{name} has shape {tuple(value.shape)} where logprobs has {self.shape}")
        if value.device != self.own.device:
            raise ValueError(f"{name} is on {value.device} where logprobs is on {self.own.device}")
        return value.reshape(-1)[self._from]

    def mask(self, value: Any) -> Tensor:
        """The policy's own steps, `[trajectories, steps]`."""
        padded = self.pad("mask", value)
        return self.own if padded is None else padded.bool() & self.own

    def back(self, padded: Tensor) -> Any:
        """Values `[trajectories, steps]` as the log-probs came."""
        flat = padded.reshape(-1)[self._to]
        return flat.reshape(self.shape) if self.shape is not None else list(flat.split(self.lengths))


def _lengths(cu_seqlens: Tensor | Sequence[int], total: int) -> list[int]:
    bounds: Any = cu_seqlens.tolist() if hasattr(cu_seqlens, "tolist") else cu_seqlens
    bounds = list(bounds) if isinstance(bounds, tuple) else bounds
    whole = isinstance(bounds, list) and len(bounds) > 1 and all(isinstance(bound, int) for bound in bounds)
    if not whole or bounds[0] != 0 or bounds[-1] != total or list(accumulate(bounds, max)) != bounds:
        raise ValueError(
            f"cu_seqlens must be whole numbers [trajectories + 1] that rise from 0 to the {total} steps of logprobs, got {bounds}"
        )
    return [after - before for before, after in pairwise(bounds)]
