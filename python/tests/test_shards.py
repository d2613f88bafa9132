"""Trajectories that lie on two ranks: values and gradients of the unsharded batch, over gloo."""

import socket

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")

from members import batch  # noqa: E402
from niwaki.torch import Shard, corrected_logprobs, log_factor  # noqa: E402

MEMBERS = ["tempered:0.3", "full", "clipped:0.5,0.2", "self-normalised:0.5", "adaptive:0.9", "minpro", "by-length"]
BOUNDS = [0, 5, 5, 11, 20]


def rows(layout):
    """New and old log-probs, a weight for each step's term, and the policy's own steps."""
    new, old, _, advantages, mask, _ = batch(lanes=6, steps=20)
    if layout == "packed":
        new, old, advantages, mask = (part[0] for part in (new, old, advantages, mask))
        mask = np.arange(20) % 4 != 1
    return [torch.tensor(part) for part in (new, old, advantages, mask)]


PLACES = {
    "padded": None,
    # Each rank has a first and a last quarter, as balanced causal attention lays them out.
    "zigzag": [[*range(0, 5), *range(15, 20)], [*range(5, 15)]],
    "packed": [[*range(0, 5), *range(15, 20)], [*range(5, 15)]],
    "empty": [[*range(20)], []],
}


def loss(layout, member, routing, rank=None):
    """The clipped loss of a rank's columns, or of all, and the gradient of the log-probs."""
    new, old, weight, mask = rows(layout)
    cu_seqlens = BOUNDS if layout == "packed" else None
    shard = None
    if rank is not None:
        places = None if PLACES[layout] is None else torch.tensor(PLACES[layout][rank], dtype=torch.long)
        shard = Shard(20, places)
        new, old, weight, mask = (shard.own(part) for part in (new, old, weight, mask))
    leaf = new.clone().requires_grad_()
    shifted = corrected_logprobs(leaf, old, mask, correction=member, routing=routing, cu_seqlens=cu_seqlens, shard=shard)
    # What lies under the mask is not a number, and nobody reads it.
    ratio = torch.where(mask, (shifted - old).exp(), 0.0)
    found = torch.minimum(ratio * weight, ratio.clamp(0.8, 1.2) * weight).sum()
    found.backward()
    return found.detach(), leaf.grad, shard


def process(rank, port, folder):
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    torch.set_num_threads(1)
    found = {}
    for layout in PLACES:
        for member in MEMBERS:
            for routing in (True, False):
                value, gradient, shard = loss(layout, member, routing, rank)
                torch.distributed.all_reduce(value)
                found[layout, member, routing] = value.item(), shard.places, gradient
    torch.save(found, folder / f"rank-{rank}.pt")
    torch.distributed.destroy_process_group()


def test_two_ranks_have_the_gradient_of_one(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.start_processes(process, (port, tmp_path), nprocs=2, start_method="spawn")
    ranks = [torch.load(tmp_path / f"rank-{rank}.pt", weights_only=False) for rank in (0, 1)]
    for case in ranks[0]:
        value, gradient, _ = loss(*case)
        whole = torch.full_like(gradient, torch.nan)
        for rank in ranks:
            told, places, part = rank[case]
            assert told == pytest.approx(value.item(), abs=1e-12), case
            whole[..., places] = part
        torch.testing.assert_close(whole, gradient, rtol=0, atol=1e-12, msg=str(case))


@pytest.mark.parametrize(
    "places, said",
    [([0.0], "pass whole numbers"), ([[0]], "pass whole numbers"), ([0, 20], "places reach from 0 to 20"), ([-1], "places reach from -1")],
)
def test_places_that_are_none_are_refused(places, said):
    with pytest.raises(ValueError, match=said):
        Shard(20, torch.tensor(places))


def test_a_shard_of_another_width_is_refused():
    here = -torch.ones(2, 4)
    with pytest.raises(ValueError, match="logprobs has 4 columns, and the shard 3"):
        log_factor(here, here, shard=Shard(8, torch.arange(3)))
    with pytest.raises(TypeError, match="a shard is a tensor"):
        log_factor([here[0]], [here[0]], shard=Shard(8, torch.arange(4)))
    with pytest.raises(ValueError, match="steps is 0"):
        Shard(0)
