"""Turns league.csv and curves.csv into the tables of the README.

    python summarise.py [TABLES]      TABLES: where they are, here where absent
"""

import csv
import sys
from pathlib import Path
from statistics import mean, median

TABLES = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent
SPANS = [(1, 3), (1, 9)]
# The losses shown by iteration.
SHOWN = ["ppo", "tempered:0.1", "tempered:0.25", "full"]


def read(name):
    with open(TABLES / name) as file:
        return list(csv.DictReader(file))


def short(number):
    return f"{number:.3f}" if number < 1000 else f"{number:.1e}"


def spans(rows, cell, losses):
    """The drift of PPO's runs: means over seeds and iterations."""
    for first, last in SPANS:
        own = [row for row in rows if row["arm"] == "ppo" and row["cell"] == cell and first <= int(row["iteration"]) <= last]
        last = max(int(row["iteration"]) for row in own)
        of = lambda name: mean(float(row[name]) for row in own)
        print(f"{cell}, PPO's runs, iterations {first}-{last}, {len({row['seed'] for row in own})} runs: σ²T {of('sigma2_horizon'):.2f}, mean KL {of('mean_kl'):.3f}, dose Σ|b| {of('dose'):.3f}\n")
        print("| loss | mean abs. bias | MSE | MSE over PPO's: mean, median | cosine | lowest cosine | ESS | best MSE in |")
        print("|---|---|---|---|---|---|---|---|")
        pairs = {}
        for row in own:
            pairs.setdefault((row["seed"], row["iteration"]), {})[row["loss"]] = float(row["mse"])
        best = [min(found, key=found.get) for found in pairs.values()]
        for loss in losses:
            its = [{name: float(row[name]) for name in ("bias", "mse", "cosine", "ess")} for row in own if row["loss"] == loss]
            ratios = [found[loss] / found["ppo"] for found in pairs.values()]
            cells = [loss, f"{mean(abs(row['bias']) for row in its):.4f}", short(mean(row["mse"] for row in its)), f"{short(mean(ratios))}, {short(median(ratios))}",
                     f"{mean(row['cosine'] for row in its):.3f}", f"{min(row['cosine'] for row in its):.3f}", f"{mean(row['ess'] for row in its):.3f}",
                     f"{best.count(loss)} of {len(pairs)}"]
            print("|", " | ".join(cells), "|")
        print()


def along(rows, curves, cell, arm):
    """Iteration by iteration, medians over seeds."""
    own = [row for row in rows if row["arm"] == arm and row["cell"] == cell]
    print(f"{cell}, the drift of {arm}'s runs: medians over seeds, the bias without its sign\n")
    # Full has no bias, and its cosine is 1.
    biased = [loss for loss in SHOWN if loss != "full"]
    heads = [f"{what}: {loss}" for what, losses in (("bias", biased), ("variance", SHOWN), ("cosine", biased)) for loss in losses]
    print("| iteration | η | σ²T |", " | ".join(heads), "|")
    print("|---|---|---|" + "---|" * len(heads))
    for iteration in sorted({int(row["iteration"]) for row in own}):
        here = [row for row in own if int(row["iteration"]) == iteration]
        middle = lambda name, loss: median(abs(float(row[name])) if name == "bias" else float(row[name]) for row in here if row["loss"] == loss)
        eta = median(float(row["eta"]) for row in curves if row["arm"] == arm and row["cell"] == cell and int(row["iteration"]) == iteration)
        cells = [f"{iteration}", f"{eta:.3f}", f"{middle('sigma2_horizon', 'ppo'):.2f}"]
        cells += [f"{middle('bias', loss):.4f}" for loss in biased]
        cells += [short(middle("variance", loss)) for loss in SHOWN]
        cells += [f"{middle('cosine', loss):.2f}" for loss in biased]
        print("|", " | ".join(cells), "|")
    print()


def directions(rows):
    """In how many pairs of policies the tempered loss points nearer to the exact gradient than PPO's does."""
    print("| cell | runs | iterations | PPO's loss: cosine | tempered 0.1: cosine | nearer in | nearer in iteration 1, 2, 3 |")
    print("|---|---|---|---|---|---|---|")
    for cell in dict.fromkeys(row["cell"] for row in rows):
        for arm in dict.fromkeys(row["arm"] for row in rows):
            cosines = {}
            for row in rows:
                if (row["arm"], row["cell"]) == (arm, cell) and row["loss"] in ("ppo", "tempered:0.1"):
                    cosines.setdefault((int(row["iteration"]), row["seed"]), {})[row["loss"]] = float(row["cosine"])
            nearer = lambda of: f"{sum(found['tempered:0.1'] > found['ppo'] for found in of)} of {len(of)}"
            early = [found for (iteration, _), found in cosines.items() if iteration <= 3]
            singly = ", ".join(nearer([found for (at, _), found in cosines.items() if at == iteration]) for iteration in (1, 2, 3))
            print("|", " | ".join([cell, arm, "1-3", *(f"{mean(found[loss] for found in early):.3f}" for loss in ("ppo", "tempered:0.1")), nearer(early), singly]), "|")
    print()


def main():
    rows, curves = read("league.csv"), read("curves.csv")
    directions(rows)
    for cell in dict.fromkeys(row["cell"] for row in rows):
        spans(rows, cell, list(dict.fromkeys(row["loss"] for row in rows)))
        for arm in dict.fromkeys(row["arm"] for row in rows):
            along(rows, curves, cell, arm)


main()
