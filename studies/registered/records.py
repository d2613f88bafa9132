#!/usr/bin/env python3
"""The stages of RECORDS.md: what each runs, and which rate PPO's curve chose.

records.py plan STAGE RUNS   writes the studies of STAGE (pilot, readings, pair, grid, slow, falsifier, rest) into RUNS/filled and names them in order
records.py choose RUNS       writes the distance of every rate, nearest first, into RUNS/records-pilot.tsv
records.py readings RUNS     shows drift and curve of every rate and reading

A study of a cell and a rate keeps its label from stage to stage, so that arms join what is there. With RECORDS_TOY in the environment all of it
is small enough for a processor: it tries the way, and measures nothing."""

import csv
import json
import os
import re
import sys
import tomllib
from pathlib import Path
from statistics import mean

HERE = Path(__file__).resolve().parent
TOY = bool(os.environ.get("RECORDS_TOY"))
RATES = ["1e-6", "2e-6", "3e-6", "5e-6", "1e-5", "3e-5", "1e-4", "2e-4", "5e-4"]
PRINTED = {2: 0.534, 3: 0.756, 4: 0.884, 5: 0.957}
READINGS = {
    "temperature 0.5": {"policy.temperature": 0.5},
    "temperature 2": {"policy.temperature": 2.0},
    "epsilon 1e-12": {"optimiser.epsilon": 1e-12},
    "epsilon 1e-5": {"optimiser.epsilon": 1e-5},
    "bf16, 3e-6": {"optimiser.storage": "bf16"},
    "bf16, 1e-5": {"optimiser.storage": "bf16", "optimiser.rate": 1e-5},
    "bf16, 1e-4": {"optimiser.storage": "bf16", "optimiser.rate": 1e-4},
}
CELLS = {
    "1": ("cell 1, two-branch", {"task.priming": "neutral", "task.reward": "two-branch"}),
    "3": ("cell 3, primed", {"task.priming": "fatal", "task.reward": "two-branch"}),
    "4": ("cell 4, late-only", {"task.priming": "neutral", "task.reward": "late-only"}),
}
PAIR = ["ppo", "tempered:0.1"]
ALL = [*PAIR, "tempered:0.05", "tempered:0.25", "clipped:0.1,1", "full"]
SLOTS = 9
SHIPPED = {"1": "tab-pretrained-summary.toml", "4": "tab-pretrained-summary.toml", "3": "tab-v2-cell3-fatal-drift.toml"}


def stages(rate):
    """Cells, rates and arms of every stage, in order; nothing twice."""
    planned = {
        "pair": [("1", rate, PAIR), ("1", "3e-6", PAIR), ("3", rate, PAIR), ("4", rate, PAIR)],
        "grid": [("1", rate, ALL)],
        "slow": [("1", "1e-6", PAIR)],
        "falsifier": [("4", rate, ALL)],
        "rest": [(cell, slow, PAIR) for slow in ("3e-6", "1e-6") for cell in ("3", "4")],
    }
    seen = set()
    for stage, entries in planned.items():
        fresh = []
        for entry in entries:
            cell, at, arms = entry
            # A grid has its pair in it already.
            if not seen & {(cell, at, len(arms)), (cell, at, len(ALL))}:
                seen.add((cell, at, len(arms)))
                fresh.append(entry)
        yield stage, fresh


def written(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{key}" = {written(of)}' for key, of in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False) if not isinstance(value, float) else repr(value)


def study(label, title, question, seeds, first, iterations, arms, cells, endpoints, rate, statements=()):
    lanes, parts = (16, 2) if TOY else (256, 32)
    lines = [
        f"label = {written(label)}",
        f"title = {written(title)}",
        f"question = {written(question)}",
        'readings = ["Rules, seeds and order are in RECORDS.md."]',
        f"seeds = {2 if TOY else seeds}",
        f"first_seed = {first}",
        f"endpoints = {written(endpoints)}",
        f"[base]\niterations = {iterations}",
        '[base.task]\nkind = "record"\npriming = "neutral"\nreward = "two-branch"',
        '[base.policy]\nkind = "decoder"',
        f"[base.rollout]\nlanes = {lanes}",
        f"[base.update]\nreuse = 4\nminibatches = {parts}\nclip = 0.2",
        f'[base.optimiser]\nkind = "adam"\nrate = {rate}\nbetas = [0.9, 0.95]\nclip_norm = 1.0',
        f"[base.evaluate]\nevery = 1\nlanes = 0\ndrift = {written(arms == ['ppo'])}",
        "[base.checkpoint]\nevery = 0\nkeep = false",
        *(f"[[arm]]\nname = {written(arm)}" for arm in arms),
        *(f"[[cell]]\nname = {written(name)}\nset = {written(settings)}" for name, settings in cells.items()),
    ]
    if len(arms) > 1:
        compared = [of for of in endpoints if of.startswith(("batch", "mean"))]
        lines.append(f'[compare]\nagainst = ["ppo"]\nendpoints = {written(compared)}')
    for kind, entry in statements:
        lines.append(f"[[{kind}]]\n" + "\n".join(f"{key} = {written(value)}" for key, value in entry.items()))
    return "\n\n".join(lines) + "\n"


def held(cell, arms):
    """What the shipped study of a cell states that these arms and iterations can speak to."""
    shipped = tomllib.loads((HERE.parent / SHIPPED[cell]).read_text())
    for kind in ("value", "lead", "order"):
        for entry in shipped.get(kind, []):
            if entry.get("cell", CELLS[cell][0]) != CELLS[cell][0] or entry["endpoint"] == "strength":
                continue
            named = [entry.get("arm", "ppo"), entry.get("over", "ppo"), *sum(entry.get("groups", []), [])]
            numbers = re.findall(r"(?<=[:@-])\d+", entry["endpoint"])
            reached = int(numbers[-1]) if numbers else 0
            if set(named) <= set(arms) and reached < SLOTS:
                yield kind, entry


def curve(endpoints, updates):
    return {done: float(endpoints[f"batch:{done}"]) for done in updates}


def rows(folder):
    with open(folder / "endpoints.csv", newline="") as lines:
        return list(csv.DictReader(lines))


def chosen(runs):
    with open(runs / "records-pilot.tsv", newline="") as lines:
        return next(csv.DictReader(lines, delimiter="\t"))["rate"]


SHOWN = ["batch:0", "batch:1", *(f"batch:{done}" for done in PRINTED), "first-drift", "first-conditional-drift", "first-prefix-variance", "final"]


def plan(stage, runs):
    place = runs / "filled"
    place.mkdir(parents=True, exist_ok=True)

    def put(name, text):
        (place / f"{name}.toml").write_text(text)
        print(place / f"{name}.toml")

    if stage == "pilot":
        cells = {f"rate {rate}": {"optimiser.rate": float(rate)} for rate in (RATES[:2] if TOY else RATES)}
        put("records-pilot", study("registered:records-pilot", "Records: the pilot of the rate", "At which rate is PPO's curve nearest to the printed one?", 4, 91000, 6, ["ppo"], cells, SHOWN, 3e-6))  # fmt: skip
    elif stage == "readings":
        put("records-readings", study("registered:records-readings", "Records: readings that might make a drift of 12", "What do temperature, epsilon and storage do to the first drift and the curve?", 2, 91100, 6, ["ppo"], READINGS, SHOWN, 3e-6))  # fmt: skip
    else:
        for cell, rate, arms in dict(stages(chosen(runs)))[stage]:
            name, settings = CELLS[cell]
            endpoints = ["batch:2-8", "mean:2-8", *(f"batch:{done}" for done in range(2, 6)), "success", "final", "first-drift", "zero-signal", *(f"first:2+3@{done}" for done in range(1, 9))]  # fmt: skip
            put(f"records-{cell}-{rate}", study(f"registered:records-{cell}-{rate}", f"Records, {name}, at a rate of {rate}", "Does a tempered correction climb faster than PPO?", 16, 92000, SLOTS, arms, {name: settings}, endpoints, float(rate), held(cell, arms)))  # fmt: skip


def choose(runs):
    found = {}
    for row in rows(runs / "registered-records-pilot"):
        found.setdefault(row["cell"].removeprefix("rate "), []).append(row)
    scored = []
    for rate, seeds in found.items():
        at = {done: mean(curve(row, PRINTED)[done] for row in seeds) for done in PRINTED}
        scored.append((sum((at[done] - PRINTED[done]) ** 2 for done in PRINTED), float(rate), rate, at, len(seeds)))
    scored.sort(key=lambda entry: entry[:2])
    with open(runs / "records-pilot.tsv", "w", newline="") as out:
        table = csv.writer(out, delimiter="\t", lineterminator="\n")
        table.writerow(["rate", "distance", *(f"after {done}" for done in PRINTED), "seeds"])
        for distance, _, rate, at, seeds in scored:
            table.writerow([rate, f"{distance:.5f}", *(f"{at[done]:.4f}" for done in PRINTED), seeds])
    print((runs / "records-pilot.tsv").read_text(), end="")


def readings(runs):
    for folder in ("registered-records-pilot", "registered-records-readings"):
        found = {}
        for row in rows(runs / folder):
            found.setdefault(row["cell"], []).append(row)
        for name, seeds in found.items():
            at = {of: mean(float(row[of] or "nan") for row in seeds) for of in SHOWN}
            distance = sum((at[f"batch:{done}"] - PRINTED[done]) ** 2 for done in PRINTED)
            print(name, f"{distance:.4f}", *(f"{of}={at[of]:.4g}" for of in SHOWN), sep="\t")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["plan", stage, folder]:
            plan(stage, Path(folder))
        case ["choose", folder]:
            choose(Path(folder))
        case ["readings", folder]:
            readings(Path(folder))
        case _:
            sys.exit(__doc__)
