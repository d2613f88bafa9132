"""league.csv and the tables of this folder's README from what run.sh wrote: python tables.py FOLDER > tables.md"""

import csv
import math
import sys
from pathlib import Path

REWARDS = ["early-gate", "late-only", "sparse-match", "two-branch"]
BATCHES = ["64", "256", "4096"]
KEPT = ["alignment", "alignment_sem", "batch_cosine", "cosine", "mse", "sigma2_horizon"]
folder = Path(sys.argv[1])
rows = []
for path in sorted(folder.glob("*.csv")):
    pairs = path.stem.split("-")[0]
    for row in csv.DictReader(path.open()):
        seed = path.stem.split("-")[-2] if pairs == "training" else ""
        # A run's own reward has no name beside the task's.
        reward = path.stem.removeprefix("training-").rsplit("-", 2)[0] if pairs == "training" else row["reward"]
        short = {name: f"{float(row[name]):.4g}" for name in KEPT}
        rows.append({"pairs": pairs, "drift": "" if pairs == "training" else row["drift"], "seed": seed, "reward": reward,
                     "batch": row["batch"], "loss": row["loss"], **short})
with Path(__file__).with_name("league.csv").open("w") as file:
    writer = csv.DictWriter(file, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def mean(values):
    values = [0.0 if math.isnan(value) else value for value in values]
    return sum(values) / len(values)


def of(loss, pairs, drift, batch, name="alignment", reward=None):
    return [float(row[name]) for row in rows if (row["loss"], row["pairs"], row["drift"], row["batch"]) == (loss, pairs, drift, batch)
            and reward in (None, row["reward"])]


losses = list(dict.fromkeys(row["loss"] for row in rows if row["pairs"] == "random"))
settings = [("random", drift, batch) for drift in ("0.1", "0.3", "1") for batch in BATCHES] + [("training", "", batch) for batch in BATCHES]
title = lambda pairs, drift, batch: f"{batch}" if pairs == "training" else f"δ {drift}, {batch}"
scores = {loss: [mean(of(loss, *setting)) for setting in settings] for loss in losses}
best = [max(scores[loss][at] for loss in losses) for at in range(len(settings))]
print("A(N), mean of the four rewards; random pairs by noise δ and batch, then training pairs by batch:\n")
print("| loss | " + " | ".join(title(*setting) for setting in settings) + " |")
print("|" + "---|" * (len(settings) + 1))
for loss in sorted(losses, key=lambda loss: -scores[loss][7]):
    cells = (f"**{value:.3f}**" if value > top - 5e-4 else f"{value:.3f}" for value, top in zip(scores[loss], best))
    print(f"| `{loss}` | " + " | ".join(cells) + " |")
print("\nBest aligned by reward:\n")
print("| reward | " + " | ".join(title(*setting) for setting in settings) + " |")
print("|" + "---|" * (len(settings) + 1))
for reward in REWARDS:
    cells = []
    for setting in settings:
        value, loss = max((mean(of(loss, *setting, reward=reward)), loss) for loss in losses)
        cells.append(f"`{loss}` {value:.2f}, PPO {mean(of('ppo', *setting, reward=reward)):.2f}")
    print(f"| {reward} | " + " | ".join(cells) + " |")


def ranks(values):
    order = sorted(range(len(values)), key=lambda at: values[at])
    found = [0.0] * len(values)
    for rank, at in enumerate(order):
        found[at] = rank
    return found


def spearman(one, other):
    one, other = ranks(one), ranks(other)
    middle = (len(one) - 1) / 2
    top = sum((a - middle) * (b - middle) for a, b in zip(one, other))
    return top / sum((a - middle) ** 2 for a in one)


print("\nRank correlation of A(N) with the other orders of the same losses:\n")
print("| setting | with the drawn mean cosine | with the cosine of the expected gradient | with the MSE, lowest first |")
print("|---|---|---|---|")
for setting, at in zip(settings, range(len(settings))):
    ours = [scores[loss][at] for loss in losses]
    cells = [spearman(ours, [sign * mean(of(loss, *setting, name=name)) for loss in losses])
             for name, sign in (("batch_cosine", 1), ("cosine", 1), ("mse", -1))]
    print(f"| {setting[0]} {title(*setting)} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
