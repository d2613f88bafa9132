#!/usr/bin/env python3
"""The rounds of BATCH.md: what each runs, how far every point is from the paper's uncorrected prints, and which points go on.

batch.py plan ROUND RUNS     writes the studies of ROUND (screen, second, job-1, job-2, job-3) into RUNS/filled and names them in order
batch.py choose ROUND RUNS   writes the distances of its points, nearest first, into RUNS/batch-ROUND.tsv
batch.py fill RUNS           fills the templates of the confirmation with the three nearest points of either shop and names them in order
batch.py trapped FOLDER...   shows what the correction adds to the control in AUC, with and without seeds whose control never had a signal in its warmup
batch.py prints              says what is compared with what, and with which standard error

With BATCH_TOY in the environment everything is small enough for a processor: it tries the way, and measures nothing.
"""

import csv
import math
import os
import sys
from pathlib import Path
from statistics import NormalDist, mean, median, stdev

HERE = Path(__file__).resolve().parent
TOY = bool(os.environ.get("BATCH_TOY"))
INSTANCES = 128  # of the validation set, ours; the paper's is not named
NOTHING = 1e-3  # a dose or drift of a point where no batch had a signal

# Open places, in the order in which equal distances are settled.
GLIMPSES, BOUNDS, REUSES, RATES = ("plain", "residual"), (10, 0), (12, 13), (0.05, 0.1, 0.2)
GROUPS, LANES = (16, 8), (256, 128, 96, 64, 48, 32)
ORDERS = ("machine", "active", "non-delay", "list")
if TOY:
    LANES, GROUPS, RATES, BOUNDS, ORDERS = (32, 16), (8,), (0.1,), (10,), ORDERS[:2]


def points(orders=(None,), glimpses=GLIMPSES, bounds=BOUNDS, reuses=REUSES, lanes=LANES, groups=GROUPS, rates=RATES):
    """Names of the points of a grid."""
    for order in orders:
        before = f"order={order}," if order else ""
        for glimpse in glimpses:
            for bound in bounds:
                for reuse in reuses:
                    for rate in rates:
                        for group in groups:
                            for lane in lanes:
                                yield f"{before}N={lane},G={group},K={reuse},glimpse={glimpse},rate={rate},bound={bound}"


def parts(name):
    return dict(part.split("=") for part in name.split(","))


def reading(point):
    """What is left of a point of the job shop without N, G and rate."""
    return tuple(parts(point)[key] for key in ("order", "K", "glimpse", "bound"))


# Shops: what a run of each sets. D1 to D3 set rate, clip and K as printed, one more where K is 13.
FLOW = {"hard": (7, 20), "easy": (3, 12), "J30": (7, 30), "J40": (7, 40), "J50": (7, 50)}
DIAL = {"D1": (0.25, 0.5, 24), "D2": (0.35, 0.6, 30), "D3": (0.45, 0.8, 40)}


def settings(shop, point):
    of, reuse = parts(point), int(parts(point)["K"])
    kind, _, deadline = shop.partition("-")
    machines, jobs = (5, 8) if kind == "job" else FLOW["easy" if kind in DIAL else kind]
    if TOY:
        machines, jobs = 2, 3 + (kind == "J30")
    found = {
        "task.kind": '"job-shop"' if kind == "job" else '"flow-shop"',
        "task.machines": machines,
        "task.jobs": jobs,
        "task.deadline": deadline or "1.02",
        "rollout.lanes": of["N"],
        "rollout.group": of["G"],
        "policy.glimpse": f'"{of["glimpse"]}"',
        "policy.bound": f'{of["bound"]}.0',
        "update.reuse": reuse,
        "optimiser.rate": of["rate"],
    }
    if "order" in of:
        found["task.order"] = f'"{of["order"]}"'
    if kind in DIAL:
        rate, clip, dialled = DIAL[kind]
        found |= {"optimiser.rate": rate, "update.clip": clip, "update.reuse": dialled + reuse - 12}
    return found


HARD, NEAR = ["hard-1.06", "hard-1.05", "hard-1.04"], ["hard-1.035", "hard-1.03"]
LONG = ["J30-1.03", "J40-1.03", "J40-1.025", "J50-1.03"]
JOBS = ["job-1.15", "job-1.10", "job-1.05"]
PPO, CONTROL = {"ppo": {}}, {"control": {"warmup.iterations": 50}}
# The control as far as its dose is counted, and PPO as far as its first drift: names of their own, so that no final or AUC is read off them.
DOSE = {"dose": {"iterations": 50, "warmup.iterations": 50}}
DRIFT = {"drift": {"iterations": 1}}
READ = {"final": [["ppo"]], "lead": [["ppo", "control"]], "dose": [["dose"], ["control"]], "drift": [["drift"], ["ppo"]]}
# Of each round: the first seed, how many points go on, and its studies (name, arms, {shop: seeds}).
ROUNDS = {
    "screen": (80000, 12, [
        ("hard", PPO, dict.fromkeys(HARD, 4)),
        ("dose", DOSE, dict.fromkeys(NEAR, 4)),
        ("drift", DRIFT, {"easy-1.02": 8}),
    ]),
    "second": (81000, 3, [
        ("both", PPO | CONTROL, dict.fromkeys([*HARD, "easy-1.02"], 12)),
        ("ppo", PPO, dict.fromkeys([*NEAR, "easy-1.0", "easy-1.04", "easy-1.07", *DIAL], 12) | dict.fromkeys(LONG, 6)),
        ("dose", DOSE, dict.fromkeys(NEAR, 12) | dict.fromkeys(LONG, 6)),
    ]),
    "job-1": (82000, 2, [("ppo", PPO, dict.fromkeys(JOBS, 2)), ("dose", DOSE, dict.fromkeys(JOBS, 2))]),
    "job-2": (83000, 5, [("both", PPO | CONTROL, dict.fromkeys(JOBS, 3))]),
    "job-3": (84000, 3, [("both", PPO | CONTROL, dict.fromkeys(JOBS, 16))]),
}  # fmt: skip


def entered(round_, runs):
    """The points that a round runs."""
    if round_ == "screen":
        return list(points())
    if round_ == "second":
        return nearest("screen", runs)
    if round_ == "job-1":
        coarse = {} if TOY else {"lanes": (256, 96, 32), "groups": (16,), "rates": (0.05, 0.2)}
        return list(points(ORDERS, **coarse))
    if round_ == "job-2":
        best = list(dict.fromkeys(reading(point) for point in ranked("job-1", runs)))[: ROUNDS["job-1"][1]]
        return [point for point in points(ORDERS) if reading(point) in best]
    return nearest("job-2", runs)


def ranked(round_, runs):
    with open(runs / f"batch-{round_}.tsv", newline="") as lines:
        return [row["point"] for row in csv.DictReader(lines, delimiter="\t")]


def nearest(round_, runs):
    return ranked(round_, runs)[: ROUNDS[round_][1]]


# What the paper prints without a corrected arm: (kind, shop or shops, printed, seeds).
PRINTS = [
    ("final", "hard-1.06", 0.99, 24), ("final", "hard-1.05", 0.89, 48), ("final", "hard-1.04", 0.79, 24),
    ("final", "hard-1.035", 0.71, 8), ("final", "hard-1.03", 0.67, 12),
    ("final", "J30-1.03", 0.57, 12), ("final", "J30-1.03", 0.75, 8),
    ("final", "J40-1.03", 0.87, 12), ("final", "J40-1.025", 0.71, 8), ("final", "J50-1.03", 0.98, 12),
    ("final", "easy-1.02", 0.98, 16), ("final", "easy-1.0 easy-1.02", 0.97, 96),
    ("final", "easy-1.02", 0.97, 16), ("final", "easy-1.04", 0.97, 16), ("final", "easy-1.07", 0.97, 15),
    ("final", "D1", 0.95, 16), ("final", "D2", 0.47, 16), ("final", "D3", 0.30, 16),
    ("lead", "easy-1.02", 0.064, 16),
    ("lead", "hard-1.06", -0.009, 24), ("lead", "hard-1.05", -0.005, 48), ("lead", "hard-1.04", 0.026, 24),
    ("dose", "hard-1.03", 3.75, 12), ("dose", "J30-1.03", 5.53, 12), ("dose", "J40-1.03", 5.41, 12), ("dose", "J50-1.03", 5.27, 12),
    ("dose", "hard-1.035", 3.08, 8), ("dose", "J30-1.03", 4.71, 8), ("dose", "J40-1.025", 5.96, 8),
    ("drift", "easy-1.02", 1.38, 16),
    ("final", "job-1.15", 0.53, 6), ("final", "job-1.10", 0.57, 6), ("final", "job-1.05", 0.41, 6),
    ("lead", "job-1.15", 0.033, 6), ("lead", "job-1.10", -0.264, 6), ("lead", "job-1.05", -0.060, 6),
    ("dose", "job-1.15", 3.95, 6), ("dose", "job-1.10", 6.11, 6), ("dose", "job-1.05", 7.76, 6),
]  # fmt: skip
# Differences of AUC with seeds that favour the first arm, of those that do not tie: how far seeds are apart in the paper.
WINS = {
    "hard-1.06": [(0.009, 19, 23), (0.018, 15, 21)],
    "hard-1.05": [(0.034, 41, 48), (0.039, 38, 48)],
    "hard-1.04": [(0.114, 22, 24), (0.087, 20, 24)],
    "easy-1.02": [(0.087, 14, 16), (0.023, 10, 16), (-0.062, 5, 16)],
    "easy-1.0": [(0.026, 59, 95), (0.028, 58, 94), (0.014, 52, 96), (-0.023, 42, 96)],
    "easy-1.04": [(-0.034, 6, 16)],
    "easy-1.07": [(-0.012, 5, 15)],
    "D1": [(-0.067, 7, 16)],
    "D2": [(-0.045, 8, 16)],
    "D3": [(0.122, 9, 16)],
    "job-1.15": [(0.040, 3, 6), (0.006, 2, 6)],
    "job-1.10": [(0.100, 4, 6), (0.364, 6, 6)],
    "job-1.05": [(-0.110, 0, 6), (-0.050, 3, 6)],
}


def block(shop):
    """Shops whose rows stand in for one that has none: of a horizon those of the hard shop."""
    kind = shop.partition("-")[0]
    return "hard" if kind.startswith("J") else "D" if kind in DIAL else kind


def implied(rows):
    """The spread of a difference over seeds that a mean and its wins imply: |mean| / |Φ⁻¹((wins + ½) / (seeds + 1))|, where both point the same way."""
    found = []
    for average, wins, seeds in rows:
        z = NormalDist().inv_cdf((wins + 0.5) / (seeds + 1))
        if z * average > 0:
            found.append(average / z)
    return math.sqrt(mean(x * x for x in found)) if found else None


def spread(shop):
    """The paper's spread of a difference of AUC at a shop; that of its block where none is implied."""
    own = implied(WINS.get(shop, []))
    return own or implied([row for other, rows in WINS.items() if block(other) == block(shop) for row in rows])


def printed_variance(kind, shops, printed, seeds):
    """Of a print that is a mean, its own variance; of a dose or drift nothing but seeds is printed."""
    if kind == "lead":
        return spread(shops[0]) ** 2 / seeds
    if kind == "final":
        # One of the two arms whose difference has the implied spread, two sets of instances, and two decimals.
        one = mean(spread(shop) ** 2 for shop in shops) / 2 / seeds
        return one + 2 * printed * (1 - printed) / INSTANCES + 0.01**2 / 12
    return None


def studies(round_, entries):
    """A round's studies, (name, arms, shops, points): one for each arm, and one for each K where the warmup's own goes with it."""
    for name, arms, shops in ROUNDS[round_][2]:
        for arm, keys in arms.items():
            if "warmup.iterations" not in keys:
                yield f"{name}-{arm}", {arm: keys}, shops, entries
                continue
            for reuse in REUSES:
                of = [point for point in entries if parts(point)["K"] == str(reuse)]
                if of:
                    yield f"{name}-{arm}-{reuse}", {arm: keys | {"warmup.reuse": reuse + 18}}, shops, of


def results(round_, runs):
    """{(arm, shop, point): {seed: row}}; a dial does not depend on the rate, so a point finds its own without it."""
    found = {}
    for name, _, _, _ in studies(round_, entered(round_, runs)):
        with open(runs / f"registered-batch-{round_}-{name}" / "endpoints.csv", newline="") as lines:
            for row in csv.DictReader(lines):
                shop, _, point = row["cell"].removeprefix("shop=").partition(",")
                found.setdefault((row["arm"], shop, point), {})[row["seed"]] = row
    return found


COLUMNS = {"final": "greedy-final", "lead": "greedy-auc", "dose": "dose:50", "drift": "first-drift"}


def cell(shop, point):
    """The name of a point's results at a shop."""
    return ",".join(part for part in point.split(",") if not part.startswith("rate=")) if shop in DIAL else point


def measured(kind, arms, shops, point, found, common):
    """What a print is compared with, and its values over seeds; doses and drifts as logarithms of their mean and median."""
    values = {}
    for shop in shops:
        for seed in common[shop]:
            each = [float(found[arm, shop, cell(shop, point)][seed][COLUMNS[kind]] or 0.0) for arm in arms]
            values.setdefault(seed, []).append(each[-1] - sum(each[:-1]))
    values = [mean(of) for of in values.values()]
    if kind in ("final", "lead"):
        return mean(values), stdev(values)
    if kind == "dose":
        middle = max(mean(values), NOTHING)
        return math.log(middle), stdev(values) / middle
    logs = [math.log(max(value, NOTHING)) for value in values]
    return median(logs), stdev(logs) * math.sqrt(math.pi / 2)


def read(kind, shops, round_):
    """The arms of a round that a print is read off; nothing where it does not run them."""
    there = {(arm, shop) for _, arms, of in ROUNDS[round_][2] for shop in of for arm in arms}
    return next((arms for arms in READ[kind] if all((arm, shop) in there for arm in arms for shop in shops)), None)


def distances(round_, runs):
    """[(distance, point, {print: (here, z)})], nearest first, in the order of the grid where equal."""
    found, entries = results(round_, runs), entered(round_, runs)
    table = {point: {} for point in entries}
    for entry in PRINTS:
        kind, shops, printed, seeds = entry[0], entry[1].split(), entry[2], entry[3]
        arms = read(kind, shops, round_)
        if arms is None:
            continue
        # Seeds that every point has: what was stopped on its way is not counted for anybody.
        common = {}
        for shop in shops:
            of = [found.get((arm, shop, cell(shop, point)), {}).keys() for arm in arms for point in entries]
            common[shop] = sorted(set(of[0]).intersection(*of[1:]))
            if len(common[shop]) < 2:
                sys.exit(f"{round_}: {kind} at {shop}: fewer than two seeds at some point; run the round again")
        here = {point: measured(kind, arms, shops, point, found, common) for point in entries}
        own, count = median(apart for _, apart in here.values()), min(len(common[shop]) for shop in shops)
        variance = printed_variance(kind, shops, printed, seeds)
        aim = printed if variance is not None else math.log(printed)
        # Without a printed spread the paper's seeds are taken to be as far apart as ours.
        error = math.sqrt((own**2 / seeds if variance is None else variance) + own**2 / count)
        for point, (value, _) in here.items():
            table[point][entry] = value, (value - aim) / max(error, 1e-9)
    far = {point: mean(math.log1p(z * z) for _, z in rows.values()) for point, rows in table.items()}
    return [(far[point], point, table[point]) for point in sorted(entries, key=far.get)]


def choose(round_, runs):
    rows = distances(round_, runs)
    names = [f"{kind} {shops} ({printed:g}, {seeds})" for kind, shops, printed, seeds in rows[0][2]]
    lines = ["\t".join(["point", "distance", "mean |z|", *names])]
    for far, point, table in rows:
        sizes = mean(abs(z) for _, z in table.values())
        shown = [f"{math.exp(here) if entry[0] in ('dose', 'drift') else here:.3f} ({z:+.1f})" for entry, (here, z) in table.items()]
        lines.append("\t".join([point, f"{far:.4f}", f"{sizes:.2f}", *shown]))
    written = runs / f"batch-{round_}.tsv.new"
    written.write_text("\n".join(lines) + "\n")
    written.rename(runs / f"batch-{round_}.tsv")
    for far, point, _ in rows[: ROUNDS[round_][1]]:
        print(f"{round_}: {far:.3f}  {point}")


def study(round_, name, arms, shops, entries, first):
    """A study's text: cells are points at shops."""
    text = (HERE / "2026-11-19-batch-round.toml.in").read_text()
    own = "\n".join(f'[[arm]]\nname = "{arm}"\nset = {{ {inline(keys)} }}\n' for arm, keys in arms.items())
    cells, seen = [], set()
    for shop, seeds in shops.items():
        for point in entries:
            named = f"shop={shop},{cell(shop, point)}"
            if named not in seen:
                seen.add(named)
                cells.append(f'[[cell]]\nname = "{named}"\nseeds = {2 if TOY else seeds}\nset = {{ {inline(settings(shop, point))} }}\n')
    for key, value in {"LABEL": f"{round_}-{name}", "FIRST": first, "ARMS": own, "CELLS": "\n".join(cells)}.items():
        text = text.replace(f"@{key}@", str(value))
    return small(text)


def inline(keys):
    return ", ".join(f'"{key}" = {value}' for key, value in keys.items())


def small(text):
    """The study as it is; for a trial with next to nothing in it."""
    if not TOY:
        return text
    text = text.replace("iterations = 200", "iterations = 10").replace('"iterations" = 50', '"iterations" = 10')
    return text.replace("blocks = 2", "blocks = 1\nwidth = 8\nheads = 2").replace("[base.task]", "[base.task]\ntraining = 8\nvalidation = 4")


def write(runs, name, text):
    (runs / "filled").mkdir(parents=True, exist_ok=True)
    (runs / "filled" / name).write_text(text)
    print(runs / "filled" / name)


def plan(round_, runs):
    for name, arms, shops, entries in studies(round_, entered(round_, runs)):
        write(runs, f"batch-{round_}-{name}.toml", study(round_, name, arms, shops, entries, ROUNDS[round_][0]))


# The confirmation, in the order in which it is run: (template, which of the nearest points).
CONFIRM = [("headline", 0), ("easy", 0), ("jobs", 0), ("horizon", 0), ("warmup", 0), ("headline", 1), ("headline", 2), ("easy", 1), ("easy", 2), ("job", 1), ("job", 2), ("dial", 0), ("horizon", 1), ("warmup", 1)]  # fmt: skip


def fill(runs):
    for name, rank in CONFIRM:
        point = parts(nearest("job-3" if name.startswith("job") else "second", runs)[rank])
        reuse = int(point["K"])
        values = {key.upper(): value for key, value in point.items()} | {"KW": reuse + 18, "RANK": rank + 1}
        values |= {f"D{place}": DIAL[f"D{place}"][2] + reuse - 12 for place in (1, 2, 3)}
        text = (HERE / f"2026-11-19-batch-{name}.toml.in").read_text()
        for key, value in values.items():
            text = text.replace(f"@{key}@", str(value))
        if TOY:
            text = "\n".join(line for line in text.splitlines() if not line.startswith("seeds = ") or "[" in line)
            text = "seeds = 2\n" + text.replace("machines = 7", "machines = 2").replace("jobs = 20", "jobs = 3")
        write(runs, f"batch-confirm-{name}-{rank + 1}.toml", small(text))


def trapped(folders):
    """Mean and median of each corrected arm's AUC over the control's: of all seeds, and of those whose control has a dose."""
    print("folder\tcell\tarm\tseeds\tmean\tmedian\ttrapped\tmean without\tmedian without")
    for folder in folders:
        cells = {}
        with open(Path(folder) / "endpoints.csv", newline="") as lines:
            for row in csv.DictReader(lines):
                cells.setdefault(row["cell"], {}).setdefault(row["arm"], {})[row["seed"]] = row
        for cell, arms in cells.items():
            control = arms.get("control", {})
            for arm, rows in arms.items():
                if not arm.startswith("corrected"):
                    continue
                pairs = [(control[seed], row) for seed, row in rows.items() if seed in control]
                leads = [float(row["greedy-auc"]) - float(of["greedy-auc"]) for of, row in pairs]
                free = [lead for lead, (of, _) in zip(leads, pairs) if float(of["dose:50"] or 0) > 0]
                shown = lambda values: f"{mean(values):+.4f}\t{median(values):+.4f}" if values else "\t"
                print(f"{folder}\t{cell}\t{arm}\t{len(leads)}\t{shown(leads)}\t{len(leads) - len(free)}\t{shown(free)}")


def main():
    match sys.argv[1:]:
        case ["plan", round_, runs] if round_ in ROUNDS:
            plan(round_, Path(runs))
        case ["choose", round_, runs] if round_ in ROUNDS:
            choose(round_, Path(runs))
        case ["fill", runs]:
            fill(Path(runs))
        case ["trapped", *folders] if folders:
            trapped(folders)
        case ["prints"]:
            for kind, shops, printed, seeds in PRINTS:
                variance = printed_variance(kind, shops.split(), printed, seeds)
                error = "the spread of ours over its seeds" if variance is None else f"{math.sqrt(variance):.3f}"
                print(f"{kind}\t{shops}\t{printed:g}\t{seeds} seeds\t{error}")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
