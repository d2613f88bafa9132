"""Regresses lead on dose over the registered studies: python3 dose.py FOLDER... [--arm ARM]

A FOLDER holds an endpoints.csv with the arms ppo, control and ARM (`corrected` where absent). A point is a cell and a seed: the dose
of the control, and the lead of ARM over ppo in either half. Difficulty is set aside by z-scores of both within each cell."""

import csv
import math
import sys
from collections import defaultdict


def z_scores(values):
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1))
    return [(value - mean) / spread for value in values] if spread > 0 else None


def correlation(first, second):
    a, b = z_scores(first), z_scores(second)
    return None if a is None or b is None else sum(x * y for x, y in zip(a, b)) / (len(a) - 1)


def main(arguments):
    arm = "corrected"
    if "--arm" in arguments:
        place = arguments.index("--arm")
        arm = arguments[place + 1]
        del arguments[place : place + 2]
    cells = defaultdict(dict)
    for folder in arguments:
        with open(f"{folder}/endpoints.csv", newline="") as file:
            for row in csv.DictReader(file):
                cells[folder, row["cell"]][row["arm"], row["seed"]] = row
    for half in ("greedy-first-half", "greedy-second-half"):
        pooled, positive, counted = ([], []), 0, 0
        for (folder, cell), rows in cells.items():
            seeds = [seed for name, seed in rows if name == arm and ("ppo", seed) in rows and ("control", seed) in rows]
            dosed = [seed for seed in seeds if rows["control", seed]["dose:50"]]
            doses = [float(rows["control", seed]["dose:50"]) for seed in dosed]
            leads = [float(rows[arm, seed][half]) - float(rows["ppo", seed][half]) for seed in dosed]
            if len(doses) < 3 or z_scores(doses) is None or z_scores(leads) is None:
                continue
            r = correlation(doses, leads)
            counted, positive = counted + 1, positive + (r > 0)
            pooled[0].extend(z_scores(doses))
            pooled[1].extend(z_scores(leads))
            print(f"{half}\t{folder}\t{cell}\t{len(doses)} seeds\tr = {r:+.2f}")
        if len(pooled[0]) > 3:
            r, count = correlation(*pooled), len(pooled[0])
            reach = 1.96 / math.sqrt(count - 3)
            low, high = math.tanh(math.atanh(r) - reach), math.tanh(math.atanh(r) + reach)
            print(f"{half}\tall, z-scored within cells\t{count} points\tr = {r:+.2f} [{low:+.2f}, {high:+.2f}], positive in {positive} of {counted}")


main(sys.argv[1:])
