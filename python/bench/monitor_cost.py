"""What the monitor and its gathering cost: measured on two processes (gloo), reckoned for eight.

    python python/bench/monitor_cost.py [--lanes 32] [--steps 1024] [--passes 4] [--rate 792]

Each process measures its completions once for each generation, as `niwaki.trl.AdviseCallback` does at a generation's last pass, and gathers
tallies at its end. Times are of the thread, which on a busy machine differ from the clock's. The share is of the training of that generation by a model with 0.5 · 10⁹ parameters: 6 operations per parameter, token and
pass, at the rate of this machine's matrix products, and at one of an H200 (`--rate`, TFLOP/s, as `torch_loss.py --device cuda` measured it).
"""

import argparse
import os
import socket
import statistics
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
from niwaki.advise import Advisor, Monitor
from niwaki.torch import gather_tallies

PARAMETERS = 0.5e9
GENERATIONS = 8


def batch(lanes, steps, seed):
    generator = torch.Generator().manual_seed(seed)
    old = -torch.empty(lanes, steps).exponential_(generator=generator)
    new = (old + 0.05 * torch.randn(lanes, steps, generator=generator)).clamp(max=0.0)
    lengths = torch.randint(steps // 2, steps + 1, (lanes,), generator=generator)
    return new, old, torch.randn(lanes, generator=generator), torch.arange(steps) < lengths[:, None]


def add(monitor, given, generation, rank):
    """What the callback does with a micro-batch."""
    new, old, advantages, own = given
    rows = lambda values: [row[kept].double().cpu().numpy() for row, kept in zip(values, own)]
    groups = [f"{generation}-{rank}-{lane // 8}" for lane in range(len(new))]
    monitor.update(rows(new), rows(old), advantages.double().cpu().numpy(), group=groups, iteration=generation)


def process(rank, port, asked, told):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    monitor = Monitor(share=(rank, 2), gather=gather_tallies, batch=2 * asked.lanes)
    found = []
    for generation in range(GENERATIONS):
        given = batch(asked.lanes, asked.steps, 100 * generation + rank)
        begun = time.thread_time()
        add(monitor, given, generation, rank)
        measured = time.thread_time()
        torch.distributed.barrier()
        waited, before = time.perf_counter(), time.thread_time()
        monitor.close()
        gathered, closed = time.perf_counter(), time.thread_time()
        monitor.to_log()
        monitor.changed()
        found.append([measured - begun, gathered - waited, closed - before, time.thread_time() - closed])
    if rank == 0:
        told.put([statistics.median(times) for times in zip(*found)])
    torch.distributed.destroy_process_group()


def eight(asked):
    """Bytes of a rank's tally, and the time to merge those of seven others."""
    tallies = []
    for rank in range(8):
        advisor = Advisor(share=(rank, 8))
        add(advisor, batch(asked.lanes, asked.steps, rank), 0, rank)
        tallies.append(advisor.tally())
    times = []
    for _ in range(5):
        begun = time.thread_time()
        whole = Advisor.from_tally(tallies[0])
        for tally in tallies[1:]:
            whole.merge(tally)
        times.append(time.thread_time() - begun)
    return statistics.median(map(len, tallies)), statistics.median(times)


def own_rate():
    square = torch.rand(1024, 1024)
    square @ square
    begun = time.thread_time()
    for _ in range(4):
        square @ square
    return 4 * 2 * 1024**3 / (time.thread_time() - begun)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", type=int, default=32)
    parser.add_argument("--steps", type=int, default=1024)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--rate", type=float, default=792.0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = torch.multiprocessing.get_context("spawn")
    told = context.SimpleQueue()
    torch.multiprocessing.start_processes(process, (port, asked, told), nprocs=2, start_method="spawn")
    measure, waited, gather, say = told.get()
    tokens = int(np.mean([batch(asked.lanes, asked.steps, seed)[3].sum().item() for seed in range(8)]))
    size, merge = eight(asked)
    print(f"torch {torch.__version__}, one thread; a rank has {asked.lanes} completions with {tokens} tokens a generation")
    print(f"measured by each of two ranks: {1e3 * measure:.2f} ms ({1e9 * measure / tokens:.0f} ns a token)")
    print(f"gathered and merged, two ranks: {1e3 * gather:.2f} ms (by the clock {1e3 * waited:.2f}); numbers and verdict, on one of them: {1e3 * say:.2f} ms")
    print(f"a tally of a rank: {size / 1e3:.1f} kB; seven merged into one: {1e3 * merge:.2f} ms")
    whole = measure + max(gather, merge) + say
    for name, rate in (("this machine's thread", own_rate()), ("an H200", 1e12 * asked.rate)):
        step = 6 * PARAMETERS * tokens * asked.passes / rate
        print(f"eight ranks of {name} ({rate / 1e9:.0f} GFLOP/s): {100 * whole / step:.4f}% of {asked.passes} passes, {100 * whole / step * asked.passes:.4f}% of one")


if __name__ == "__main__":
    sys.exit(main())
