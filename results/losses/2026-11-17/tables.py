"""The tables of this folder's README from league.csv: python tables.py > tables.md"""

import csv
import math
from pathlib import Path

rows = list(csv.DictReader(open(Path(__file__).with_name("league.csv"))))
drifts = ["0.05", "0.1", "0.3", "0.6", "1", "1.5"]
losses = list(dict.fromkeys(row["loss"] for row in rows))
rewards = list(dict.fromkeys(row["reward"] for row in rows))
by = {(row["loss"], row["reward"], row["drift"]): row for row in rows}
ppo = lambda row, key: float(by["ppo", row["reward"], row["drift"]][key])
for row in rows:
    row["variance_ratio"] = float(row["variance"]) / ppo(row, "variance")
    row["bias_ratio"] = float(row["absolute_bias"]) / ppo(row, "absolute_bias")
spread = {drift: float(by["ppo", rewards[0], drift]["sigma2_horizon"]) for drift in drifts}
mean = lambda values: sum(values) / len(values)
# Where a loss drops every step there is no direction.
least = lambda values: min((value for value in values if not math.isnan(value)), default=math.nan)
none = lambda show: lambda value: "–" if math.isnan(value) else show(value)
short = none(lambda value: f"{value:.2f}" if value < 100 else f"{value:.0f}")
third = none("{:.3f}".format)


def table(title, key, show, fold):
    print(f"{title}:\n")
    print("| loss | " + " | ".join(f"{drift} (σ²T {spread[drift]:.2g})" for drift in drifts) + " |")
    print("|" + "---|" * (len(drifts) + 1))
    for loss in losses:
        cells = (show(fold([float(by[loss, reward, drift][key]) for reward in rewards])) for drift in drifts)
        print(f"| `{loss}` | " + " | ".join(cells) + " |")
    print()


table("Cosine of the expected gradient with that of the return, mean of the four rewards", "cosine", third, mean)
table("The same on the reward where it is lowest", "cosine", third, least)
table("Variance of a trajectory's estimate over PPO's, mean of the four rewards", "variance_ratio", short, mean)
table("Size of the bias over PPO's, mean of the four rewards", "bias_ratio", short, mean)
