"""Runs the units of a plan as Ray tasks.

`niwaki cluster split` makes the plan, `niwaki cluster launch ray` prints or runs this file with the plan's units at its end. A task is one
call of `niwaki cluster work --unit N`; Ray repeats those whose worker dies, and this program those that fail. Either is harmless: a
unit that is run twice gives the same results. The machines must share the folder of the results.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, Dict, Optional, Sequence, Tuple

Unit = Tuple[int, int, int]
"""The first unit before it, the one behind the last of them, and how many GPUs it takes."""


def work(
    number: int, plan: str, out: str, program: str, attempts: int, cpus: Optional[int] = None
) -> Tuple[int, str]:
    """Works on one unit, up to so many times; its exit status and what it said last."""
    said = ""
    threads = {} if cpus is None else {"RAYON_NUM_THREADS": str(cpus)}
    status = 1
    for _ in range(max(attempts, 1)):
        command = [program, "cluster", "work", "--plan", plan, "--out", out, "--unit", str(number), "--quiet"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **threads})
        status, said = ended.returncode, ended.stderr.strip()
        if status == 0:
            break
    return status, said


def run(
    units: Sequence[Unit],
    plan: str,
    out: str,
    *,
    program: str = "niwaki",
    attempts: int = 3,
    at_once: Optional[int] = None,
    cpus: Optional[int] = None,
    memory: Optional[int] = None,
    gpu: Optional[str] = None,
) -> int:
    """Runs every unit after those that come before it; 1 where one of them failed for good, which is then named.

    A unit takes `cpus` cores (and as many threads), `memory` bytes and, where it needs a GPU, one of the kind `gpu`, as
    Ray names kinds; Ray's own defaults where they are absent.
    """
    import ray

    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    task = ray.remote(max_retries=attempts)(work)
    asked: Dict[str, Any] = {}
    if cpus is not None:
        asked["num_cpus"] = cpus
    if memory is not None:
        asked["memory"] = memory
    left = dict(enumerate(units))
    running: dict = {}
    done: set = set()
    failed: dict = {}
    while left or running:
        for number, (first, end, gpus) in list(left.items()):
            before = range(first, end)
            if any(other in failed for other in before):
                failed[number] = "a unit before it failed"
                del left[number]
            elif all(other in done for other in before) and (at_once is None or len(running) < at_once):
                kind = {"accelerator_type": gpu} if gpus and gpu is not None else {}
                unit = task.options(num_gpus=gpus, **kind, **asked)
                call = unit.remote(number, plan, out, program, attempts, cpus)
                running[call] = number
                del left[number]
        if not running:
            continue
        ended, _ = ray.wait(list(running), num_returns=1)
        for call in ended:
            number = running.pop(call)
            try:
                status, said = ray.get(call)
            except ray.exceptions.RayError as error:
                status, said = 1, str(error).splitlines()[0]
            if status == 0:
                done.add(number)
            else:
                failed[number] = said or f"exit status {status}"
    for number, said in sorted(failed.items()):
        print(f"niwaki: unit {number}: {said}", file=sys.stderr)
    print(f"{len(done)} of {len(units)} units are done")
    return 1 if failed else 0
