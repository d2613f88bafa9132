"""PPO by `niwaki.train` beside CleanRL's published ppo.py, on the same tasks and seeds: returns, and steps per second of processor time.

    python python/bench/cleanrl.py PPO.py --python PYTHON [--tasks CartPole-v1 Acrobot-v1] [--seeds 5] [--steps 100000]

PPO.py is the file of https://github.com/vwxyzjn/cleanrl as it is; PYTHON is an interpreter with what that file pins (gymnasium 0.29.1,
tyro, tensorboard). Both get its network, its optimizer and its settings; ours deals whole trajectories into minibatches, where its
file deals single steps, has no clip on the value's loss, and goes on in the critic's estimate where an episode is cut. A run's return is
the mean over episodes that ended in its last tenth. Each run is a process; its seconds are those of the processor, less what starting it
and importing takes. Prints one JSON object per run, and last what the monitor and the run's folder take of ours.
"""

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time

NET = 64


def ours(task, seed, steps, folder):
    """One run in this process."""
    import gymnasium
    import numpy as np
    import torch
    from niwaki import train as loop
    from torch import nn

    def layer(inner, outer, scale=2**0.5):
        made = nn.Linear(inner, outer)
        nn.init.orthogonal_(made.weight, scale)
        nn.init.zeros_(made.bias)
        return made

    env = gymnasium.make_vec(task, 4, vectorization_mode="sync")

    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            seen, actions = env.single_observation_space.shape[0], env.single_action_space.n
            body = lambda last, scale: nn.Sequential(
                layer(seen, NET), nn.Tanh(), layer(NET, NET), nn.Tanh(), layer(NET, last, scale)
            )
            self.critic, self.actor = body(1, 1.0), body(actions, 0.01)

        def forward(self, seen):
            return self.actor(seen), self.critic(seen)

    spent = {}

    def timed(home, name):
        inner = getattr(home, name)

        def outer(*given, **more):
            began = time.process_time()
            try:
                return inner(*given, **more)
            finally:
                spent[name] = spent.get(name, 0.0) + time.process_time() - began

        setattr(home, name, outer)

    for home, name in ((loop, "_monitor"), (loop.Run, "log"), (loop.Run, "save"), (loop.Run, "finish")):
        timed(home, name)
    began = time.process_time()
    run = loop(
        env, Agent, out=folder, iterations=steps // 512, steps=128, loss="ppo", gamma=0.99, entropy=0.01, minibatches=4,
        optimizer=lambda these: torch.optim.Adam(these, lr=2.5e-4, eps=1e-5), anneal=True, seed=seed, save=100, quiet=True,
    )
    seconds = time.process_time() - began
    lines = run.curve()[-(steps // 512) // 10 :]
    episodes = [line["own"]["batch/episodes"] for line in lines]
    rewards = np.average([line["batch_reward"] for line in lines], weights=episodes) if sum(episodes) else lines[-1]["batch_reward"]
    return {"return": float(rewards), "steps_per_second": steps // 512 * 512 / seconds, "monitor_share": sum(spent.values()) / seconds} | spent


def theirs(python, script, task, seed, steps, folder):
    """One run of their file in a process of its own."""

    def seconds(arguments):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run([python, *arguments], cwd=folder, capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ended.stdout

    imports = "import gymnasium, numpy, torch, tyro; from torch.utils.tensorboard import SummaryWriter; gymnasium.make('CartPole-v1')"
    idle = seconds(["-c", imports])[0]
    asked = [script, "--env-id", task, "--seed", str(seed), "--total-timesteps", str(steps), "--no-cuda"]
    took, said = seconds(asked)
    found = [(int(at), float(value)) for at, value in re.findall(r"global_step=(\d+), episodic_return=\[?(-?[\d.]+)", said)]
    done = steps // 512 * 512
    last = [value for at, value in found if at > 0.9 * done]
    return {"return": sum(last) / len(last), "steps_per_second": done / (took - idle)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("script")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--tasks", nargs="+", default=["CartPole-v1", "Acrobot-v1"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--one", nargs=3, metavar=("TASK", "SEED", "FOLDER"), help="one run of ours, in this process")
    asked = parser.parse_args()
    if asked.one:
        task, seed, folder = asked.one
        print(json.dumps(ours(task, int(seed), asked.steps, folder)))
        return
    from pathlib import Path

    script = str(Path(asked.script).resolve())
    for task in asked.tasks:
        for seed in range(1, asked.seeds + 1):
            # In turns, so that a machine that others use slows both alike.
            with tempfile.TemporaryDirectory() as folder:
                call = [sys.executable, __file__, script, "--steps", str(asked.steps), "--one", task, str(seed), f"{folder}/ours"]
                told = json.loads(subprocess.run(call, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
                print(json.dumps({"task": task, "seed": seed, "who": "niwaki.train"} | told), flush=True)
                told = theirs(asked.python, script, task, seed, asked.steps, folder)
                print(json.dumps({"task": task, "seed": seed, "who": "cleanrl"} | told), flush=True)


if __name__ == "__main__":
    main()
