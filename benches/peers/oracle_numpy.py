"""The testbed's measurement as one would write it in NumPy: list every sequence, vectorise over them.

Peer of `niwaki-exact`: logits of the fixture formula, two-branch reward, the paper's twelve variants with
gradients. Prints one JSON object with the values and the best wall and the mean processor time in seconds, from
logits to cosines.

    python benches/peers/oracle_numpy.py --horizon 8 --repeat 3
"""

import argparse
import json
import time

import numpy as np

VARIANTS = (
    [("ppo", "tempered", (0.0,))]
    + [(f"tempered:{a}", "tempered", (float(a),)) for a in ("0.05", "0.1", "0.25", "0.5")]
    + [("full", "tempered", (1.0,))]
    + [(f"truncated:{k}", "truncated", (k,)) for k in (1, 2, 4)]
    + [("clipped:0.1,1", "clipped", (0.1, 1.0)), ("clipped:0.25,1", "clipped", (0.25, 1.0))]
    + [("clipped:0.25,2", "clipped", (0.25, 2.0))]
)


def logits(vocab, horizon):
    """theta_old = 0.1 sin(1 + j), theta_new = theta_old + 0.7 cos(2 + 3j), j = 4p + a."""
    prefixes = (vocab**horizon - 1) // (vocab - 1)
    j = 4.0 * np.arange(prefixes)[:, None] + np.arange(vocab)[None, :]
    old = 0.1 * np.sin(1.0 + j)
    return old, old + 0.7 * np.cos(2.0 + 3.0 * j)


def log_softmax(logits):
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def induct(prob, reward, vocab, horizon):
    """Backward induction: advantages [prefixes, vocab] and the expected return."""
    advantage = np.empty_like(prob)
    value = reward
    for level in reversed(range(horizon)):
        start, size = (vocab**level - 1) // (vocab - 1), vocab**level
        q = value.reshape(size, vocab)
        value = (prob[start : start + size] * q).sum(axis=1)
        advantage[start : start + size] = q - value[:, None]
    return advantage, value[0]


def measure(old_logits, new_logits, vocab, horizon):
    count = vocab**horizon
    index = np.arange(count)
    tokens = np.stack([index // vocab ** (horizon - 1 - t) % vocab for t in range(horizon)], axis=1)
    rows = np.zeros((count, horizon), dtype=np.int64)
    for t in range(1, horizon):
        rows[:, t] = vocab * rows[:, t - 1] + 1 + tokens[:, t - 1]
    first, last = tokens[:, 0], tokens[:, -1]
    reward = (((first == 0) & (last == 1)) | ((first == 2) & (last == 3))).astype(np.float64)

    old_log, new_log = log_softmax(old_logits), log_softmax(new_logits)
    old_prob, new_prob = np.exp(old_log), np.exp(new_log)
    advantage, eta_old = induct(old_prob, reward, vocab, horizon)
    new_advantage, eta_new = induct(new_prob, reward, vocab, horizon)
    ell = new_log[rows, tokens] - old_log[rows, tokens]
    probability = np.exp(old_log[rows, tokens].sum(axis=1))
    a = advantage[rows, tokens]
    prefix = np.cumsum(ell, axis=1) - ell
    ratio = np.exp(ell)
    edges = rows * vocab + tokens

    def pull_back(weight):
        table = np.bincount(edges.ravel(), weight.ravel(), minlength=new_prob.size).reshape(new_prob.shape)
        return table - new_prob * table.sum(axis=1, keepdims=True)

    reach = np.ones(len(new_prob))
    for level in range(1, horizon):
        start, size = (vocab**level - 1) // (vocab - 1), vocab**level
        above = (vocab ** (level - 1) - 1) // (vocab - 1)
        parents = slice(above, above + size // vocab)
        reach[start : start + size] = (reach[parents, None] * new_prob[parents]).ravel()
    eta_gradient = reach[:, None] * new_prob * new_advantage

    out = {}
    for name, kind, parameters in VARIANTS:
        window = horizon
        if kind == "tempered":
            log_g, slope = parameters[0] * prefix, np.full_like(prefix, parameters[0])
        elif kind == "truncated":
            window = parameters[0]
            whole = np.concatenate([np.zeros((count, 1)), np.cumsum(ell, axis=1)], axis=1)
            log_g = np.stack([whole[:, t] - whole[:, max(0, t - window)] for t in range(horizon)], axis=1)
            slope = np.ones_like(prefix)
        else:
            alpha, cap = parameters
            log_g = np.clip(alpha * prefix, -cap, cap)
            slope = np.where(np.abs(alpha * prefix) <= cap, alpha, 0.0)
        g = np.exp(log_g)
        u = g * ratio * a
        estimate = u.sum(axis=1)
        mean = (probability * estimate).sum()
        variance = (probability * (estimate - mean) ** 2).sum()
        bias = mean - (eta_new - eta_old)
        weights = probability[:, None] * g
        ess = weights.sum() ** 2 / (horizon * (weights * g).sum())
        credit = slope * u
        routed = np.zeros_like(u)
        for i in range(horizon):
            routed[:, i] = credit[:, i + 1 : i + 1 + window].sum(axis=1)
        gradient = pull_back(probability[:, None] * (u + routed))
        cosine = (gradient * eta_gradient).sum() / np.linalg.norm(gradient) / np.linalg.norm(eta_gradient)
        out[name] = {
            "bias": bias,
            "variance": variance,
            "mse": bias**2 + variance,
            "cosine": cosine,
            "ess": ess,
        }
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocab", type=int, default=4)
    parser.add_argument("--horizon", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    old, new = logits(args.vocab, args.horizon)
    wall, values, start_cpu = float("inf"), {}, time.process_time()
    for _ in range(args.repeat):
        start = time.perf_counter()
        values = measure(old, new, args.vocab, args.horizon)
        wall = min(wall, time.perf_counter() - start)
    cpu = (time.process_time() - start_cpu) / args.repeat
    print(json.dumps({"numpy": np.__version__, "wall": wall, "cpu": cpu, "values": values}))


if __name__ == "__main__":
    main()
