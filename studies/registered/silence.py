#!/usr/bin/env python3
"""The runs of SILENCE.md and what they say.

silence.py pilot RUNS           writes the studies that show the untrained success rate of either shop at every deadline
silence.py plan SETTING RUNS   writes the study of SETTING (sparse, primed, flow, job, record) into RUNS/filled and names it
silence.py read RUNS           one line per setting, N and W: runs, the share that stayed silent, and the predictions"""

import csv
import json
import math
import sys
from pathlib import Path
from statistics import mean

LANES = [16, 32, 64, 128, 256, 512, 1024]
GROUP = 8  # of shops; elsewhere the batch has one baseline
# Setting → (first seed, seeds, Ws, lanes, what a run sets, group, kept batches of the arm that stands still).
TABLE = """[base.task]\nkind = "{kind}"\nhorizon = 6\n{more}\n[base.update]\nreuse = 4\n"""
SHOP = """[base.task]\nkind = "{kind}"\nmachines = {machines}\njobs = {jobs}\ndeadline = {deadline}\n{more}\n[base.policy]\nkind = "pointer"\nblocks = 2\nglimpse = "plain"\n
[base.advantage]\nkind = "group"\nstandardise = true\n\n[base.update]\nreuse = 1\n\n[base.optimiser]\nrate = 0.05\n"""
RECORD = """[base.task]\nkind = "record"\npriming = "fatal"\nreward = "two-branch"\n\n[base.policy]\nkind = "decoder"\n\n[base.update]\nreuse = 1\nclip = 0.2\nminibatches = {parts}\n
[base.optimiser]\nkind = "adam"\nrate = 3e-6\nbetas = [0.9, 0.95]\nclip_norm = 1.0\n"""
SETTINGS = {
    "sparse": (93000, 400, (1, 5, 50), LANES, TABLE.format(kind="sparse-match", more=""), None),
    "primed": (93500, 400, (1, 5, 50), LANES, TABLE.format(kind="two-branch", more="\n[base.policy.prime]\ntoken = 2\nmass = 0.9995\n"), None),
    "flow": (94000, 128, (1, 5, 50), LANES, SHOP.format(kind="flow-shop", machines=7, jobs=20, deadline="@FLOW@", more=""), GROUP),
    "job": (94200, 128, (1, 5, 50), LANES, SHOP.format(kind="job-shop", machines=5, jobs=8, deadline="@JOB@", more='order = "list"'), GROUP),
    "record": (94400, 128, (1, 2, 4), LANES[:4], RECORD, None),
}
# The deadline of a shop: the one whose untrained policies succeed at a mean rate nearest to this, in logarithms.
DEADLINES, AIM = ["1.0", "1.005", "1.01", "1.015", "1.02", "1.03", "1.04", "1.05", "1.1", "1.15"], 1e-3
# Batches of the untrained policy beyond those that are counted, from which its rates are read.
STILL = {"lanes": 1024, "from": 50, "to": 350}
TAIL = "\n[base.evaluate]\nevery = 1000000\nlanes = 0\ninitial = true\n\n[base.checkpoint]\nevery = 0\nkeep = false\n"


def pilot(runs):
    place = runs / "filled"
    place.mkdir(parents=True, exist_ok=True)
    for shop in ("flow", "job"):
        base = SETTINGS[shop][4].replace("rate = 0.05", "rate = 0.0").replace("@FLOW@", "1.0").replace("@JOB@", "1.0")
        text = f"""label = "registered:silence-pilot-{shop}"
title = "Silence: untrained success rates, {shop}"
question = "How often does an untrained policy meet each deadline?"
seeds = 8
first_seed = 94900
endpoints = ["batch:0"]

[base]
iterations = 1

{base}{TAIL}
[base.rollout]
lanes = 4096
group = {GROUP}

[[arm]]
name = "ppo"
"""
        text += "".join(f'\n[[cell]]\nname = "{deadline}"\nset = {{ "task.deadline" = {deadline} }}\n' for deadline in DEADLINES)
        (place / f"silence-pilot-{shop}.toml").write_text(text)
        print(place / f"silence-pilot-{shop}.toml")


def deadline(shop, runs):
    rates = {}
    with open(runs / f"registered-silence-pilot-{shop}" / "endpoints.csv", newline="") as lines:
        for row in csv.DictReader(lines):
            rates.setdefault(row["cell"], []).append(float(row["batch:0"]))
    known = {cell: mean(values) for cell, values in rates.items() if mean(values) > 0}
    chosen = min(known, key=lambda cell: (abs(math.log(known[cell] / AIM)), cell))
    print(f"{shop}: {chosen} of {known}", file=sys.stderr)
    return chosen


def plan(setting, runs):
    first, seeds, waits, lanes, base, group = SETTINGS[setting]
    if group:
        base = base.replace(f"@{setting.upper()}@", deadline(setting, runs))
    place = runs / "filled"
    place.mkdir(parents=True, exist_ok=True)
    head = f"""label = "registered:silence-{setting}"
title = "Silence: {setting}"
question = "How often does no batch of the first iterations carry a signal?"
readings = ["Rules and seeds are in SILENCE.md."]
seeds = {seeds}
first_seed = {first}
endpoints = [{", ".join(f'"silent:{wait}"' for wait in waits)}]
"""
    tail = TAIL
    cells = []
    for lane in lanes:
        settings = {"rollout.lanes": lane}
        if group:
            settings["rollout.group"] = group
        if setting == "record":
            settings["update.minibatches"] = lane // 8
        cells.append((f"N = {lane}", settings))
    base = base.replace("{parts}", "2")
    text = head + f"\n[base]\niterations = {max(waits)}\n\n" + base + tail
    text += '\n[[arm]]\nname = "ppo"\n'
    for name, settings in cells:
        inside = ", ".join(f'"{key}" = {value}' for key, value in settings.items())
        text += f'\n[[cell]]\nname = "{name}"\nset = {{ {inside} }}\n'
    (place / f"silence-{setting}.toml").write_text(text)
    print(place / f"silence-{setting}.toml")
    if group:
        still = head.replace(f"silence-{setting}\"", f"silence-{setting}-still\"").replace(f"silent:{waits[-1]}", f"silent:{waits[-1]}")
        text = still + f"\n[base]\niterations = {STILL['to']}\n\n" + base.replace("rate = 0.05", "rate = 0.0") + tail
        text += f'\n[base.rollout]\nlanes = {STILL["lanes"]}\ngroup = {group}\n\n[[arm]]\nname = "ppo"\n\n[[cell]]\nname = "still"\n'
        (place / f"silence-{setting}-still.toml").write_text(text)
        print(place / f"silence-{setting}-still.toml")


def curve(folder):
    with open(folder / "curve.jsonl") as lines:
        return [json.loads(line) for line in lines]


def alike(rate, size):
    return rate**size + (1 - rate) ** size


def read(runs):
    out = csv.writer(sys.stdout, delimiter="\t", lineterminator="\n")
    out.writerow(["setting", "N", "G", "W", "runs", "silent", "se", "by mean rate", "by rates of runs", "by silent groups of runs", "mean rate"])
    for setting, (_, _, waits, _, _, group) in SETTINGS.items():
        home = runs / f"registered-silence-{setting}" / "ppo"
        if not home.is_dir():
            continue
        still = {}
        for folder in (runs / f"registered-silence-{setting}-still" / "ppo").glob("*/*"):
            kept = curve(folder)[STILL["from"]:]
            still[folder.name] = (mean(line["batch_reward"] for line in kept), mean(line["zero_signal"] for line in kept))
        for cell in sorted(home.iterdir(), key=lambda folder: int("".join(c for c in folder.name if c.isdigit()))):
            lanes = int("".join(c for c in cell.name if c.isdigit()))
            found = {folder.name: curve(folder) for folder in cell.iterdir() if (folder / "summary.json").is_file()}
            size = group or lanes
            rates = {seed: still[seed][0] if still else lines[0]["initial"]["eta"] for seed, lines in found.items() if not still or seed in still}
            for wait in waits:
                silent = [all(line["zero_signal"] == 1 for line in lines[:wait]) for lines in found.values()]
                share, count = mean(silent), lanes // size * wait
                by_mean = alike(mean(rates.values()), size) ** count
                by_runs = mean(alike(rate, size) ** count for rate in rates.values())
                by_groups = mean(of[1] ** count for of in still.values()) if still else float("nan")
                error = (max(share * (1 - share), by_runs * (1 - by_runs)) / len(silent)) ** 0.5
                out.writerow([setting, lanes, size, wait, len(silent), *(f"{value:.4f}" for value in (share, error, by_mean, by_runs, by_groups)), f"{mean(rates.values()):.5f}"])


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["pilot", folder]:
            pilot(Path(folder))
        case ["plan", setting, folder]:
            plan(setting, Path(folder))
        case ["read", folder]:
            read(Path(folder))
        case _:
            sys.exit(__doc__)
