#!/usr/bin/env python3
"""Reads the dispatcher's pilots by the rules of DISPATCHER.md, and fills its templates with a point.

dispatcher.py choose STAGE RUNS   takes what STAGE (p0, p1-returns, p2, p1-dial, p1-fair, p1-rich, p3) chose into RUNS/dispatcher.env
dispatcher.py fill NAME RUNS      writes RUNS/filled/NAME.toml with the point so far
dispatcher.py freeze RUNS         copies RUNS/dispatcher.env here and writes the studies that ship
"""

import csv
import itertools
import math
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
SHIPPED = ["published", "dial", "rich", "acquisition"]


def read_env(path):
    lines = (line.strip() for line in path.read_text().splitlines())
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def point(runs):
    return read_env(HERE / "dispatcher.env") | (read_env(runs / "dispatcher.env") if (runs / "dispatcher.env").exists() else {})


def filled(name, values):
    template = HERE / f"2026-11-17-dispatcher-{name}.toml.in"
    text = (template if template.exists() else template.with_suffix("")).read_text()
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text


def results(runs, stage, endpoint):
    """{cell: [value of each seed]}"""
    found = {}
    with open(runs / f"registered-dispatcher-{stage}" / "endpoints.csv", newline="") as lines:
        for row in csv.DictReader(lines):
            found.setdefault(row["cell"], []).append(float(row[endpoint] or "inf"))
    return found


def number(value):
    return f"{value:.3g}"


def strength(drift):
    return number(min(1.0, 1.0 / drift))


def nearest(values, aim, distance=lambda value, aim: abs(value - aim)):
    """The first cell whose value is nearest to the aim."""
    return min(values, key=lambda cell: distance(values[cell], aim))


def far(value, aim):
    return abs(math.log(value / aim)) if value > 0.0 else math.inf


def setting(cell):
    parts = dict(part.split("=") for part in cell.split(","))
    return float(parts["rate"]), parts["rate"], parts["clip"]


def dials(medians, aims):
    """A cell for each aim, chosen together: the least sum of distances in log; rates never fall from one to the next, ties go to the smaller rates."""
    rising = (cells for cells in itertools.permutations(medians, len(aims)) if [setting(cell)[0] for cell in cells] == sorted(setting(cell)[0] for cell in cells))
    apart = lambda cells: sum(far(medians[cell], aim) for cell, aim in zip(cells, aims))
    chosen = min(rising, key=lambda cells: (apart(cells), [setting(cell)[0] for cell in cells]))
    for cell, aim in zip(chosen, aims):
        if far(medians[cell], aim) > math.log(3.0):
            print(f"  {cell} drifts by {medians[cell]:.3g}: more than three times from {aim}")
    return chosen


def choose(stage, runs):
    now = point(runs)
    if stage == "p0":
        means = {cell: statistics.mean(values) for cell, values in results(runs, stage, "final").items()}
        cell = nearest(means, 0.75)
        new = {"FAIR": cell.split("=")[1], "UNTRAINED": number(means[cell])}
    elif stage == "p1-returns":
        medians = {cell: statistics.median(values) for cell, values in results(runs, stage, "first-drift").items()}
        parts = dict(part.split("=") for part in nearest(medians, 3e-5, far).split(","))
        print("  " + ", ".join(f"{cell}: {value:.2g}" for cell, value in medians.items()))
        new = {"STANDARD": parts["standard_returns"], "FRESH": parts["fresh"]}
    elif stage == "p2":
        means = {cell: statistics.mean(values) for cell, values in results(runs, stage, "greedy-final").items()}
        gaps = {cell: statistics.mean(values) for cell, values in results(runs, stage, "gap-final").items()}
        print("  " + ", ".join(f"{cell}: {means[cell]:.3f}, gap {gaps[cell]:.3f}" for cell in means))
        hard = nearest(means, 0.96)
        tight = nearest({cell: value for cell, value in means.items() if cell != hard}, 0.80)
        if not 0.92 <= means[hard] <= 0.99:
            print(f"  {hard} ends at {means[hard]:.3f}, outside 0.92 to 0.99: add deadlines around it in steps of 0.01 and run P2 again")
        new = {"HARD": hard.split("=")[1], "TIGHT": tight.split("=")[1]}
    elif stage in ("p1-dial", "p1-rich"):
        medians = {cell: statistics.median(values) for cell, values in results(runs, stage, "first-drift").items()}
        rich = stage == "p1-rich"
        new = {}
        for place, cell in enumerate(dials(medians, [0.7, 38.8, 60.7] if rich else [1.3, 15.0, 34.0]), 1):
            _, rate, clip = setting(cell)
            prefix, at = ("RICH_", "") if rich else ("", "_HARD")
            new |= {f"{prefix}RATE{place}": rate, f"{prefix}CLIP{place}": clip}
            new |= {f"{prefix}DRIFT{at}{place}": number(medians[cell]), f"{prefix}ALPHA{at}{place}": strength(medians[cell])}
    elif stage == "p1-fair":
        medians = {cell: statistics.median(values) for cell, values in results(runs, stage, "first-drift").items()}
        new = {}
        for place in (1, 2, 3):
            drift = medians[f"dial {place}"]
            new |= {f"DRIFT_FAIR{place}": number(drift), f"ALPHA_FAIR{place}": strength(drift)}
    elif stage == "p3":
        means = {cell: statistics.mean(values) for cell, values in results(runs, stage, "greedy-final").items()}
        print("  " + ", ".join(f"{cell}: {value:.3f}" for cell, value in means.items()))
        fair = [means[f"fair {now['FAIR']}, dial {place}"] for place in (1, 2, 3)]
        hard = [means[f"hard {now['HARD']}, dial {place}"] for place in (1, 2, 3)]
        if not all(0.02 <= value <= 0.20 for value in hard):
            print("  at the hard deadline PPO leaves 0.02 to 0.20; nothing is moved, the page says so")
        moved = int(now.get("MOVED", "0"))
        inside = all(0.55 <= value <= 0.95 for value in fair)
        new = {"MOVED": str(moved)}
        if not inside and moved < 2:
            step = 0.02 if min(fair) < 0.55 else -0.02
            new = {"MOVED": str(moved + 1), "FAIR": f"{float(now['FAIR']) + step:.2f}"}
            print("  a dial leaves 0.55 to 0.95 at the fair deadline: it is moved; run p1-fair and p3 again")
    else:
        sys.exit(f"no stage is called {stage}")
    print(f"{stage}: " + ", ".join(f"{key}={value}" for key, value in new.items()))
    kept = read_env(runs / "dispatcher.env") if (runs / "dispatcher.env").exists() else {}
    lines = "".join(f"{key}={value}\n" for key, value in (kept | new).items())
    (runs / "dispatcher.env").write_text(lines)
    return 3 if "FAIR" in new and stage == "p3" else 0


def freeze(runs):
    values = point(runs)
    head = "# The point of the dispatcher's studies, as the pilots of DISPATCHER.md chose it.\n"
    (HERE / "dispatcher.env").write_text(head + "".join(f"{key}={value}\n" for key, value in values.items()))
    for name in SHIPPED:
        (HERE.parent / f"tab-sched-null-{name}.toml").write_text(filled(name, values))


def main():
    match sys.argv[1:]:
        case ["choose", stage, runs]:
            sys.exit(choose(stage, pathlib.Path(runs)))
        case ["fill", name, runs]:
            folder = pathlib.Path(runs) / "filled"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.toml").write_text(filled(name, point(pathlib.Path(runs))))
        case ["freeze", runs]:
            freeze(pathlib.Path(runs))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
