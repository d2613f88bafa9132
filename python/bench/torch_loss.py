"""Time of the loss alone: TRL's own GRPO, `niwaki.trl`'s drop-in for it, and `niwaki.torch.surrogate`.

    python python/bench/torch_loss.py [--device cuda] [--lanes 256] [--steps 1024]

The first two are the trainers' own `_compute_loss`, given the log-probs that a model would have given them: all that TRL
computes and logs between log-probs and loss. Forward and backward on the same tensors; the median of the rounds, which take
turns so that a busy machine disturbs all alike. On a CPU everything is measured twice: with glibc's allocator as it comes,
which gives the pages of large tensors back and takes them anew, and told to keep them, as the allocator of a GPU does.

The share of a training step is that of a model with 0.5 · 10⁹ parameters: 6 operations per parameter and token, at the rate at
which this device multiplies matrices.
"""

import argparse
import collections
import os
import statistics
import subprocess
import sys
import time
import types

import torch

KEEPING = {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}
PARAMETERS = 0.5e9


def trainer(kind, **more):
    """A trainer without model and data: it has what its loss reads, and no more."""
    from accelerate import Accelerator

    made = object.__new__(kind)
    made.__dict__.update(
        model=types.SimpleNamespace(training=True),
        args=types.SimpleNamespace(delta=None, use_bias_correction_kl=False),
        accelerator=Accelerator(),
        callback_handler=types.SimpleNamespace(callbacks=[]),
        _metrics={"train": collections.defaultdict(list)},
        current_gradient_accumulation_steps=1,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level="token",
        loss_type="grpo",
        epsilon_low=0.2,
        epsilon_high=0.2,
        num_iterations=2,
        beta=0.0,
        use_vllm=False,
        aux_loss_enabled=False,
        _entropy_bonus_enabled=False,
        **more,
    )
    return made


def losses(given):
    """Each loss as a function without arguments, and the leaf that its gradient goes to."""
    import niwaki.trl
    import trl
    from niwaki._amplification import Watch
    from niwaki.correction import Correction
    from niwaki.torch import surrogate

    device = given.device
    shape = (given.lanes, given.steps)
    torch.manual_seed(0)
    old = -torch.rand(shape, device=device) - 0.2
    new = (old + 0.05 * torch.randn(shape, device=device)).clamp(max=0.0).requires_grad_()
    advantages = torch.randn(given.lanes, device=device)
    lengths = torch.randint(given.steps // 4, given.steps + 1, (given.lanes, 1), device=device)
    mask = (torch.arange(given.steps, device=device) < lengths).long()
    ids = torch.zeros(shape, dtype=torch.long, device=device)
    inputs = {
        "prompt_ids": ids[:, :1],
        "prompt_mask": mask[:, :1],
        "completion_ids": ids,
        "completion_mask": mask,
        "old_per_token_logps": old,
        "advantages": advantages,
    }
    entropies = torch.rand(shape, device=device)
    # What a forward pass of the model would have given.
    trl.GRPOTrainer._get_per_token_logps_and_entropies = lambda *_, **__: (new, entropies, None)
    plain = trainer(trl.GRPOTrainer)
    corrected = trainer(
        niwaki.trl.GRPOTrainer,
        correction=Correction.parse("tempered:0.1"),
        _routing=True,
        _warmup=None,
        _warmup_reuse=None,
        _reuse=2,
        _read=None,
        _watch=Watch(),
        _generation=0,
        _pass=0,
    )
    return new, {
        "TRL's own GRPO loss": lambda: plain._compute_loss(None, inputs),
        "niwaki.trl, tempered:0.1": lambda: corrected._compute_loss(None, inputs),
        "niwaki.torch.surrogate, tempered:0.1": lambda: surrogate(new, old, advantages, mask, correction="tempered:0.1")[0],
    }


def measure(given):
    torch.set_num_threads(given.threads)
    on_gpu = given.device.startswith("cuda")
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    # The processor's own time on a CPU, which a busy machine does not lengthen.
    clock = time.perf_counter if on_gpu else time.process_time

    def timed(work):
        wait()
        began = clock()
        work()
        wait()
        return clock() - began

    leaf, runs = losses(given)
    times = {name: [] for name in runs}
    for turn in range(given.rounds + 2):
        for name, run in runs.items():
            leaf.grad = None
            spent = timed(lambda: run().backward())
            if turn >= 2:
                times[name].append(spent)
    # As models are trained: in bf16 on a GPU.
    size, dtype = (8192, torch.bfloat16) if on_gpu else (1024, torch.float32)
    square = torch.randn(size, size, device=given.device, dtype=dtype)
    timed(lambda: square @ square)
    rate = 10 * 2 * size**3 / timed(lambda: [square @ square for _ in range(10)])
    step = 6 * PARAMETERS * given.lanes * given.steps / rate
    print(f"matrix products at {rate / 1e9:.0f} GFLOP/s: a step of a model with 0.5e9 parameters takes about {step:.3g} s")
    base = statistics.median(times["TRL's own GRPO loss"])
    for name, seconds in times.items():
        middle = statistics.median(seconds)
        print(f"{name:40} {1e3 * middle:8.2f} ms  {middle / base:5.2f} × TRL's  {100 * middle / step:.4f}% of a step")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--lanes", type=int, default=256)
    parser.add_argument("--steps", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--here", action="store_true", help="measure in this process, with the allocator that it has")
    given = parser.parse_args()
    if given.here:
        return measure(given)
    print(f"torch {torch.__version__}, {given.device}, {given.lanes} × {given.steps} tokens, {given.threads} thread(s)")
    bare = {name: value for name, value in os.environ.items() if name not in KEEPING}
    kinds = {"the device's allocator": bare}
    if not given.device.startswith("cuda"):
        # glibc reads these when a program starts.
        kinds = {"glibc's allocator as it comes": bare, "glibc's allocator told to keep its pages": bare | KEEPING}
    for kind, environment in kinds.items():
        print(f"\n{kind}", flush=True)
        subprocess.run([sys.executable, *sys.argv, "--here"], env=environment, check=True)


if __name__ == "__main__":
    main()
