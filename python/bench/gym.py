"""Decisions per second through Gymnasium's vector API on flow shops of 20 jobs and 7 machines.

    python python/bench/gym.py

Actions are permutations drawn beforehand, so that the environment alone is timed. Per second of one core's time, and by the clock.
"""

import time

import gymnasium
import numpy as np
from niwaki.gym import ShopVectorEnv

JOBS, MACHINES, DECISIONS = 20, 7, 2_000_000

print(f"gymnasium {gymnasium.__version__}, {JOBS} jobs, {MACHINES} machines")
for copy in (True, False):
    for lanes in (64, 256, 1024, 4096):
        env = ShopVectorEnv(lanes, jobs=JOBS, machines=MACHINES, copy=copy)
        env.reset(seed=0)
        orders = np.argsort(np.random.default_rng(0).random((lanes, JOBS)), axis=1)
        rounds = max(1, DECISIONS // (lanes * JOBS))
        core, clock = time.process_time(), time.perf_counter()
        for _ in range(rounds):
            for step in range(JOBS):
                env.step(orders[:, step])
            # Lanes that have ended begin again.
            env.step(orders[:, 0])
        core, clock = time.process_time() - core, time.perf_counter() - clock
        count = rounds * lanes * JOBS / 1e6
        print(f"copy={copy!s:5} {lanes:5} lanes: {count / core:6.2f} M decisions/s of a core, {count / clock:6.2f} by the clock")
