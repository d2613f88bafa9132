"""Asks whether the league's directions hold for the loss that the runs really have: return minus mean as the advantage, and the clip.

    python direction.py STUDY [TABLES]      STUDY: where the cells' files were unpacked; TABLES: where league.csv is, here where absent; needs numpy

Cosines between the exact gradient of each loss's mean and that of the return, for PPO and tempered 0.1 on the first three iterations of PPO's runs. With exact advantages and no clip they must be
those of league.csv, which is checked. Prints the table of the README.
"""

import csv
import json
import sys
from pathlib import Path

import numpy as np
from witness import BATCHES, HERE, HORIZON, RECORDS, REWARDS, VOCAB, log_probs

CLIP = 0.2
LOSSES = {"ppo": 0.0, "tempered:0.1": 0.1}
# [step, record]: the row of the prefix among all prefixes, breadth first.
ROWS = np.stack([(VOCAB**step - 1) // (VOCAB - 1) + VOCAB ** np.arange(step)[::-1] @ RECORDS[:step] for step in range(HORIZON)])


def logit_gradient(weights, policy):
    """From weights on the log-probs of each record's choices to the gradient at the logits of all prefixes."""
    table, prob = np.zeros((ROWS.max() + 1, VOCAB)), np.zeros((ROWS.max() + 1, VOCAB))
    np.add.at(table, (ROWS, RECORDS), weights)
    prob[ROWS, RECORDS] = np.exp(policy)
    return (table - prob * table.sum(axis=1, keepdims=True)).ravel()


def exact_advantages(old, reward):
    """[step, record]: value after the choice less the value before it."""
    chance = np.exp(old.sum(axis=0))
    before = []
    for step in range(HORIZON + 1):
        shape = (VOCAB**step, -1)
        mass = chance.reshape(shape)
        # Where the policy never comes the value does not matter: it is weighed by nothing.
        value = (mass * reward.reshape(shape)).sum(axis=1) / np.maximum(mass.sum(axis=1), 1e-300)
        before.append(np.repeat(value, mass.shape[1]))
    return np.diff(np.stack(before), axis=0)


def cosine(old, new, reward, advantage, alpha, clip):
    ratio = new - old
    corrected = np.exp(alpha * (np.cumsum(ratio, axis=0) - ratio) + ratio)
    # The clip is on the corrected ratio; a step on its flat side has no gradient, neither its own nor one routed back.
    counts = np.where(advantage > 0, corrected <= 1 + clip, corrected >= 1 - clip)
    own = np.exp(old.sum(axis=0)) * corrected * advantage * counts
    # Every earlier choice gets alpha times what the later steps get.
    later = own[::-1].cumsum(axis=0)[::-1] - own
    loss = logit_gradient(own + alpha * later, new)
    eta = logit_gradient(np.broadcast_to(np.exp(new.sum(axis=0)) * reward, new.shape), new)
    return loss @ eta / np.linalg.norm(loss) / np.linalg.norm(eta)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    tables = Path(sys.argv[2]) if sys.argv[2:] else HERE
    with open(tables / "league.csv") as file:
        known = {(row["cell"], row["seed"], row["iteration"], row["loss"]): float(row["cosine"]) for row in csv.DictReader(file) if row["arm"] == "ppo"}
    kinds = {"exact, no clip": (True, np.inf), "return − mean, no clip": (False, np.inf), f"return − mean, clip {CLIP}": (False, CLIP)}
    found, worst = {}, 0.0
    for run in sorted((Path(sys.argv[1]) / "ppo").glob("*/*")):
        cell, seed = run.parts[-2:]
        reward = REWARDS["late-only" if cell.endswith("late-only") else "two-branch"].astype(float)
        policies = [log_probs(json.loads(line)["logits"]) for line in (run / "policies.jsonl").read_text().splitlines()[: BATCHES + 1]]
        for iteration, (old, new) in enumerate(zip(policies, policies[1:]), start=1):
            returns = np.broadcast_to(reward - np.exp(old.sum(axis=0)) @ reward, old.shape)
            for kind, (exact, clip) in kinds.items():
                advantage = exact_advantages(old, reward) if exact else returns
                cosines = [cosine(old, new, reward, advantage, alpha, clip) for alpha in LOSSES.values()]
                found.setdefault((cell, kind), []).append(cosines)
                if kind == "exact, no clip":
                    worst = max(worst, *(abs(value - known[cell, seed, str(iteration), loss]) for loss, value in zip(LOSSES, cosines)))
    if worst > 1e-4:
        sys.exit(f"with exact advantages and no clip a cosine differs from league.csv by {worst:.2g}")
    print("| cell | advantage, clip | PPO | tempered 0.1 | tempered nearer in |")
    print("|---|---|---|---|---|")
    for (cell, kind), cosines in found.items():
        plain, tempered = np.transpose(cosines)
        print(f"| {cell} | {kind} | {plain.mean():.3f} | {tempered.mean():.3f} | {(tempered > plain).sum()} of {len(plain)} |")
    print(f"\nlargest difference from league.csv: {worst:.1g}")


main()
