"""Bytes of every rank on every rank."""

from __future__ import annotations

from typing import Any

import torch.distributed as distributed


def gather_tallies(tally: bytes, group: Any = None) -> list[bytes]:
    """The tallies of all ranks, in the order of the ranks, on each of them; every rank calls it at the same place. Over
    `torch.distributed`, gloo or NCCL; without it, or with one process, the rank's own.

    For `niwaki.advise.Monitor(gather=gather_tallies, share=(rank, ranks))`, or for an `Advisor`:

        for tally in gather_tallies(advisor.tally()):
            whole.merge(tally)
    """
    if not isinstance(tally, bytes):
        raise TypeError(f"tally is {type(tally).__name__}; pass the bytes of Advisor.tally")
    if not (distributed.is_available() and distributed.is_initialized()):
        return [tally]
    found: list[Any] = [None] * distributed.get_world_size(group)
    distributed.all_gather_object(found, tally, group=group)
    return found
