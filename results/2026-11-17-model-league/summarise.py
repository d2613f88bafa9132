"""Turns league.csv into the tables of the README: the drift of PPO's runs, means over seeds.

    python summarise.py
"""

import csv
from pathlib import Path

SPANS = [("iterations 1-3", range(1, 4)), ("iterations 1-9", range(1, 10))]


def mean(rows, name):
    return sum(float(row[name]) for row in rows) / len(rows)


def main():
    with open(Path(__file__).parent / "league.csv") as file:
        rows = [row for row in csv.DictReader(file) if row["arm"] == "ppo"]
    losses = list(dict.fromkeys(row["loss"] for row in rows))
    for cell in dict.fromkeys(row["cell"] for row in rows):
        for name, span in SPANS:
            own = [row for row in rows if row["cell"] == cell and int(row["iteration"]) in span]
            runs = {row["seed"] for row in own}
            print(f"{cell}, {name}, {len(runs)} runs: σ²T {mean(own, 'sigma2_horizon'):.2f}, mean KL {mean(own, 'mean_kl'):.3f}, dose Σ|b| {mean(own, 'dose'):.3f}\n")
            print("| loss | mean abs. bias | MSE | MSE over PPO's | cosine | lowest cosine | ESS | best MSE in |")
            print("|---|---|---|---|---|---|---|---|")
            pairs = {}
            for row in own:
                pairs.setdefault((row["seed"], row["iteration"]), {})[row["loss"]] = float(row["mse"])
            best = [min(found, key=found.get) for found in pairs.values()]
            for loss in losses:
                of = [row for row in own if row["loss"] == loss]
                bias = sum(abs(float(row["bias"])) for row in of) / len(of)
                ratio = sum(found[loss] / found["ppo"] for found in pairs.values()) / len(pairs)
                least = min(float(row["cosine"]) for row in of)
                print(f"| {loss} | {bias:.4f} | {mean(of, 'mse'):.4f} | {ratio:.3f} | {mean(of, 'cosine'):.4f} | {least:.3f} | {mean(of, 'ess'):.3f} | {best.count(loss)} of {len(pairs)} |")
            print()


main()
