"""Holds what advise reads off the batches of PPO's runs against the exact values for the same pairs of policies.

    python witness.py NIWAKI STUDY [TABLES]      STUDY: where the cells' files were unpacked; TABLES: where league.csv is, here where absent; needs numpy

Writes witness.csv beside it (a row per run: drift and Σ b over the first three batches) and prints the table of the README. Σ b is exact for the advantage that the runs learn
from, return minus mean; drift is that of league.csv, the mean over the batches.
"""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
VOCAB, HORIZON, BATCHES = 4, 6, 3
RECORDS = np.indices([VOCAB] * HORIZON).reshape(HORIZON, -1)
STATUS, CODE = RECORDS[0], RECORDS[-1]
# The record's rewards: 'up' with code 2 or 'down' with code 5; code 2 whatever the status.
REWARDS = {"two-branch": ((STATUS == 0) & (CODE == 0)) | ((STATUS == 1) & (CODE == 3)), "late-only": CODE == 0}


def log_probs(logits):
    """[step, record] out of the logits at all prefixes, breadth first."""
    table = np.array(logits).reshape(-1, VOCAB)
    table = table - np.logaddexp.reduce(table, axis=1, keepdims=True)
    prefix, first, steps = np.zeros(RECORDS.shape[1], int), 0, []
    for step, choice in enumerate(RECORDS):
        steps.append(table[first + prefix, choice])
        prefix, first = VOCAB * prefix + choice, first + VOCAB**step
    return np.stack(steps)


def exact(run, reward):
    """Σ b, the mean over the first batches."""
    lines = (run / "policies.jsonl").read_text().splitlines()
    policies = [log_probs(json.loads(line)["logits"]) for line in lines[: BATCHES + 1]]
    etas = [np.exp(policy.sum(axis=0)) @ reward for policy in policies]
    curve = [json.loads(line)["eta"] for line in (run / "curve.jsonl").read_text().splitlines()]
    if not np.allclose(etas[1:], curve[:BATCHES], rtol=0, atol=1e-6):
        sys.exit(f"{run}: the policies pay {etas[1:]}, the curve says {curve[:BATCHES]}")
    totals = []
    for old, new, eta in zip(policies, policies[1:], etas):
        ratio = new - old
        prefix = np.cumsum(ratio, axis=0) - ratio
        totals.append((np.expm1(prefix) * np.exp(ratio)).sum(axis=0) @ (np.exp(old.sum(axis=0)) * (reward - eta)))
    return np.mean(totals)


def read_off(niwaki, run):
    kept = [line for line in (run / "dump.jsonl").read_text().splitlines() if json.loads(line)["iteration"] <= BATCHES]
    found = subprocess.run([niwaki, "advise", "-", "--json"], input="\n".join(kept) + "\n", text=True, capture_output=True, check=False)
    if found.returncode not in (0, 1):
        sys.exit(f"{run}: {found.stderr.strip()}")
    found = json.loads(found.stdout)
    drift = np.mean([row["drift"] for row in found["measured"]["iterations"]])
    return found["verdict"]["says"].split(" at ")[0].split(":")[0], drift, {entry["name"]: entry for entry in found["measured"]["numbers"]}


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    niwaki, study = sys.argv[1], Path(sys.argv[2])
    tables = Path(sys.argv[3]) if sys.argv[3:] else HERE
    with open(tables / "league.csv") as file:
        league = [row for row in csv.DictReader(file) if row["arm"] == row["loss"] == "ppo" and int(row["iteration"]) <= BATCHES]
    rows = []
    for run in sorted((study / "ppo").glob("*/*")):
        cell, seed = run.parts[-2:]
        reward = REWARDS["late-only" if cell.endswith("late-only") else "two-branch"].astype(float)
        drift = np.mean([float(row["sigma2_horizon"]) for row in league if (row["cell"], row["seed"]) == (cell, seed)])
        says, own, number = read_off(niwaki, run)
        total = number["bias_total"]
        noise = abs(total["value"] / number["bias_to_noise"]["value"])
        bias = exact(run, reward)
        values = [drift, own, *(number["drift"][key] for key in ("value", "low", "high")), bias, *(total[key] for key in ("value", "low", "high")), abs(bias) / noise]
        rows.append([cell, seed, says, *(f"{value:.3g}" for value in values)])
    head = ["cell", "seed", "verdict", "drift", "drift_read", "drift_pooled", "drift_low", "drift_high", "bias", "bias_read", "bias_low", "bias_high", "bias_to_noise"]
    with open(tables / "witness.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])
    print("| cell | seed | drift: exact | mean of the batches' own | `drift` [95%] | Σ b: exact | `bias_total` [95%] | exact Σ b over a batch's noise | verdict |")
    print("|---|---|---|---|---|---|---|---|---|")
    for cell, seed, says, *numbers in rows:
        print("| {} | {} | {} | {} | {} [{}, {}] | {} | {} [{}, {}] | {} | {} |".format(cell, seed, *numbers, says))
    column = lambda name: [float(row[head.index(name)]) for row in rows]
    within = lambda *names: sum(low <= truth <= high for truth, low, high in zip(*map(column, names)))
    print(f"\ncovered: drift {within('drift', 'drift_low', 'drift_high')} of {len(rows)}, Σ b {within('bias', 'bias_low', 'bias_high')} of {len(rows)}")


if __name__ == "__main__":
    main()
