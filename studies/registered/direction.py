#!/usr/bin/env python3
"""The rule of DIRECTION.md: in how many seeds tempered 0.1 points nearer to the exact gradient than PPO's loss.

direction.py RESULT [MEASURED]     RESULT: a folder with directions.csv and endpoints.csv. With MEASURED they are made first, out of league.csv,
                                   curves.csv and endpoints.csv in that folder
"""

import csv
import shutil
import sys
from math import comb
from pathlib import Path
from statistics import mean

EARLY = 3


def read(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def gather(folder, measured):
    for name in ("curves.csv", "endpoints.csv"):
        shutil.copy(measured / name, folder / name)
    cosines = {}
    for row in read(measured / "league.csv"):
        if row["arm"] == "ppo" and row["loss"] in ("ppo", "tempered:0.1"):
            cosines.setdefault((row["cell"], row["seed"], row["iteration"]), {})[row["loss"]] = row["cosine"]
    with open(folder / "directions.csv", "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["cell", "seed", "iteration", "ppo", "tempered:0.1"])
        out.writerows([*key, found["ppo"], found["tempered:0.1"]] for key, found in cosines.items())


def ranks(values):
    """Of equal values the mean of their places."""
    order = sorted(values)
    return [mean(place for place, other in enumerate(order) if other == value) for value in values]


def correlation(one, other):
    one, other = ranks(one), ranks(other)
    a, b = mean(one), mean(other)
    cross = sum((x - a) * (y - b) for x, y in zip(one, other))
    return cross / (sum((x - a) ** 2 for x in one) * sum((y - b) ** 2 for y in other)) ** 0.5


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    if sys.argv[2:]:
        gather(folder, Path(sys.argv[2]))
    ends = {(row["arm"], row["cell"], row["seed"]): float(row["mean:2-8"]) for row in read(folder / "endpoints.csv")}
    pairs = {}
    for row in read(folder / "directions.csv"):
        if int(row["iteration"]) <= EARLY:
            pairs.setdefault(row["cell"], {}).setdefault(row["seed"], []).append(float(row["tempered:0.1"]) - float(row["ppo"]))
    print("| cell | seeds nearer | p | by the rule | pairs nearer | mean difference of cosines, by seed | gain of tempered 0.1, by seed | seeds that gain |")
    print("|---|---|---|---|---|---|---|---|")
    differences, gains = [], []
    for cell, seeds in pairs.items():
        own = [mean(found) for found in seeds.values()]
        gain = [ends["tempered:0.1", cell, seed] - ends["ppo", cell, seed] for seed in seeds]
        count = sum(value > 0 for value in own)
        chance = sum(comb(len(own), k) for k in range(count, len(own) + 1)) / 2 ** len(own)
        rule = "nearer" if count >= 7 else "farther" if count <= 1 else "undecided"
        flat = [value for found in seeds.values() for value in found]
        spread = lambda values: ", ".join(f"{value:+.3f}" for value in values)
        print(f"| {cell} | {count} of {len(own)} | {chance:.3f} | **{rule}** | {sum(value > 0 for value in flat)} of {len(flat)} | {spread(own)} | {spread(gain)} | {sum(value > 0 for value in gain)} of {len(gain)} |")
        differences += own
        gains += gain
    print(f"\nrank correlation of difference and gain over {len(gains)} runs: {correlation(differences, gains):.2f}")
    for cell in pairs:
        at = [place for place, name in enumerate(name for name, seeds in pairs.items() for _ in seeds) if name == cell]
        print(f"within {cell}: {correlation([differences[i] for i in at], [gains[i] for i in at]):.2f}")


main()
