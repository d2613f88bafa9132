"""One update step of the testbed transformer in JAX (compiled; members are vmapped): see engine_torch.py.

Install: pip install jax        (CPU)
         pip install jax[cuda13] (CUDA)
"""

import argparse
import os
import resource
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--lanes", type=int, default=256)
parser.add_argument("--horizon", type=int, default=8)
parser.add_argument("--vocab", type=int, default=4)
parser.add_argument("--members", type=int, default=1)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--device", default="cpu")
options = parser.parse_args()
if options.device == "cpu":
    # JAX has no count of threads: it takes as many as the process may use cores.
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[-options.threads :]))

import jax
import jax.numpy as jnp

WIDTH, HEADS, BLOCKS, HIDDEN = 128, 4, 4, 512


def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))


imported = resident()


def start(key):
    keys = iter(jax.random.split(key, 64))

    def linear(inside, outside):
        bound = inside**-0.5
        return jax.random.uniform(next(keys), (inside, outside), minval=-bound, maxval=bound)

    def norm():
        return jnp.ones(WIDTH), jnp.zeros(WIDTH)

    blocks = [
        {
            "norm1": norm(),
            "mix": linear(WIDTH, 3 * WIDTH),
            "out": linear(WIDTH, WIDTH),
            "norm2": norm(),
            "up": (linear(WIDTH, HIDDEN), jnp.zeros(HIDDEN)),
            "down": (linear(HIDDEN, WIDTH), jnp.zeros(WIDTH)),
        }
        for _ in range(BLOCKS)
    ]
    tokens = jax.random.normal(next(keys), (options.vocab + 1, WIDTH))
    positions = jax.random.normal(next(keys), (options.horizon, WIDTH))
    head = (linear(WIDTH, options.vocab), jnp.zeros(options.vocab))
    return {"tokens": tokens, "positions": positions, "blocks": blocks, "norm": norm(), "head": head}


def layer_norm(x, gain, bias):
    mean = x.mean(-1, keepdims=True)
    centred = x - mean
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * gain + bias


def logits(p, tokens):
    x = p["tokens"][tokens] + p["positions"]
    lanes, steps, _ = x.shape
    causal = jnp.tril(jnp.ones((steps, steps), bool))
    for block in p["blocks"]:
        mixed = layer_norm(x, *block["norm1"]) @ block["mix"]
        query, key, value = mixed.reshape(lanes, steps, 3, HEADS, WIDTH // HEADS).transpose(2, 0, 3, 1, 4)
        score = query @ key.swapaxes(-1, -2) * (WIDTH // HEADS) ** -0.5
        weight = jax.nn.softmax(jnp.where(causal, score, -jnp.inf), -1)
        x = x + (weight @ value).transpose(0, 2, 1, 3).reshape(lanes, steps, WIDTH) @ block["out"]
        raised = jax.nn.gelu(layer_norm(x, *block["norm2"]) @ block["up"][0] + block["up"][1], approximate=False)
        x = x + raised @ block["down"][0] + block["down"][1]
    return layer_norm(x, *p["norm"]) @ p["head"][0] + p["head"][1]


def objective(p, tokens, actions, advantage):
    log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits(p, tokens)), actions[..., None], -1)[..., 0]
    return (log_prob * advantage[:, None]).mean()


def update(p, tokens, actions, advantage):
    gradient = jax.grad(objective)(p, tokens, actions, advantage)
    norm = jnp.sqrt(sum((g * g).sum() for g in jax.tree.leaves(gradient)))
    factor = jnp.where(norm < 1e-12, 0.0, 0.01 / norm)
    return jax.tree.map(lambda p, g: p + factor * g, p, gradient)


def main():
    keys = jax.random.split(jax.random.key(1), options.members)
    shape = (options.members, options.lanes, options.horizon)
    actions = jax.random.randint(jax.random.key(2), shape, 0, options.vocab)
    begin = jnp.full(shape[:2] + (1,), options.vocab)
    tokens = jnp.concatenate([begin, actions[..., :-1]], -1)
    advantage = jax.random.normal(jax.random.key(3), shape[:2])
    state = jax.vmap(start)(keys)
    step = jax.jit(jax.vmap(update), donate_argnums=0)
    for _ in range(2):
        state = jax.block_until_ready(step(state, tokens, actions, advantage))
    print("ready", jax.__version__, flush=True)
    for line in sys.stdin:
        if line.strip() == "step":
            wall, processor = time.perf_counter(), time.process_time()
            state = jax.block_until_ready(step(state, tokens, actions, advantage))
            print(time.perf_counter() - wall, time.process_time() - processor, flush=True)
        else:
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, imported, flush=True)


main()
