"""Time of the loss alone: TRL's GRPO as it stands, with the correction's log factor, and `niwaki.torch.surrogate`.

    python python/bench/torch_loss.py [--device cuda] [--lanes 256] [--steps 1024]

Forward and backward on the same tensors; the median of the rounds, which take turns so that a busy machine disturbs all alike.
The allocator keeps what it has, as the GPU's does: else the pages of a few large tensors are given back and taken anew all the time,
which costs as much as the loss. The share of a training step is that of a model with 0.5 · 10⁹ parameters: 6 operations per parameter and token, at the rate at
which this device multiplies matrices.
"""

import argparse
import os
import statistics
import sys
import time

KEEPING = {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}
if not KEEPING.keys() <= os.environ.keys():
    # glibc reads these when a program starts.
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | KEEPING)

import torch  # noqa: E402
from niwaki.torch import corrected_logprobs, surrogate  # noqa: E402

PARAMETERS = 0.5e9


def trl_loss(logprobs, old, advantages, mask, epsilon=0.2):
    """The lines of TRL's GRPO loss between log-probs and loss (`loss_type="grpo"`, token level)."""
    log_ratio = logprobs - old
    ratio = torch.exp(log_ratio)
    clipped = torch.clamp(ratio, 1 - epsilon, 1 + epsilon)
    advantages = advantages.unsqueeze(1)
    per_token = -torch.min(ratio * advantages, clipped * advantages)
    loss = ((per_token * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)).mean()
    # What TRL logs of the clip.
    low = (ratio < 1 - epsilon) & (advantages < 0)
    high = (ratio > 1 + epsilon) & (advantages > 0)
    metrics = [(flags.float() * mask).sum() / mask.sum() for flags in (low, high, low | high)]
    return loss, metrics


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--lanes", type=int, default=256)
    parser.add_argument("--steps", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    shape = (given.lanes, given.steps)
    old = -torch.rand(shape, device=given.device) - 0.2
    new = (old + 0.05 * torch.randn(shape, device=given.device)).clamp(max=0.0).requires_grad_()
    advantages = torch.randn(given.lanes, device=given.device)
    lengths = torch.randint(given.steps // 4, given.steps + 1, (given.lanes, 1), device=given.device)
    mask = (torch.arange(given.steps, device=given.device) < lengths).float()

    def with_factor():
        return trl_loss(corrected_logprobs(new, old, mask, correction="tempered:0.1"), old, advantages, mask)

    runs = {
        "TRL's own GRPO loss": lambda: trl_loss(new, old, advantages, mask),
        "TRL's with the log factor (niwaki.trl)": with_factor,
        "niwaki.torch.surrogate": lambda: surrogate(new, old, advantages, mask, correction="tempered:0.1"),
    }
    wait = torch.cuda.synchronize if given.device.startswith("cuda") else lambda: None
    times = {name: [] for name in runs}
    for round in range(given.rounds + 2):
        for name, run in runs.items():
            new.grad = None
            wait()
            # The processor's own time on a CPU, which a busy machine does not lengthen.
            clock = time.perf_counter if given.device.startswith("cuda") else time.process_time
            began = clock()
            run()[0].backward()
            wait()
            if round >= 2:
                times[name].append(clock() - began)
    base = statistics.median(times["TRL's own GRPO loss"])
    size = 1024
    square = torch.randn(size, size, device=given.device)
    for _ in range(2):
        square @ square
    wait()
    began = time.perf_counter() if given.device.startswith("cuda") else time.process_time()
    for _ in range(10):
        square @ square
    wait()
    spent = (time.perf_counter() if given.device.startswith("cuda") else time.process_time()) - began
    rate = 10 * 2 * size**3 / spent
    step = 6 * PARAMETERS * given.lanes * given.steps / rate
    print(f"torch {torch.__version__}, {given.device}, {given.lanes} × {given.steps} tokens, {given.threads} thread(s)")
    print(f"matrix products at {rate / 1e9:.0f} GFLOP/s: a step of a model with 0.5e9 parameters takes about {step:.3g} s")
    for name, seconds in times.items():
        middle = statistics.median(seconds)
        print(f"{name:42} {1e3 * middle:8.2f} ms  {middle / base:5.2f} × TRL's  {100 * middle / step:.4f}% of a step")


main()
