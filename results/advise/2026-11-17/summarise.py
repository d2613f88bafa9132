"""Turns what the calibration left in this folder into the tables of its README.

    python summarise.py
"""

import csv
import json
from collections import Counter, defaultdict
from pathlib import Path

HERE = Path(__file__).parent
KINDS = ["correction-wasted", "short-warmup", "reduce-reuse", "not-enough-data", "no-signal"]
DRIFTED = 0.05


def lines(name):
    return [json.loads(line) for line in (HERE / name).read_text().splitlines()]


def table(head, rows):
    print("|", " | ".join(head), "|")
    print("|" + "---|" * len(head))
    for row in rows:
        print("|", " | ".join(str(cell) for cell in row), "|")
    print()


def kind(says):
    heads = {"correction wasted": KINDS[0], "short warmup": KINDS[1], "reduce reuse": KINDS[2], "not enough data": KINDS[3], "no signal": KINDS[4]}
    return next(found for head, found in heads.items() if says.startswith(head))


def against_bias(rows, truths):
    """Verdicts by what is true of the bias; hits and misses among those that decide."""
    body = []
    for name, of in truths:
        own = [row for row in rows if of(row)]
        counts = Counter(row["verdict"]["kind"] for row in own)
        body.append([f"{name} ({len(own)})", *(counts[key] for key in KINDS[:4])])
    table(["exact bias", "wasted", "short warmup", "reduce reuse", "not enough data"], body)


def strengths():
    print("## The strength\n")
    body = []
    for alpha in ("0.05", "0.1", "0.25", "0.5"):
        first, both = lines(f"training-8-{alpha}.jsonl"), lines(f"training-16-{alpha}.jsonl")
        pairs = [(one, two) for one, two in zip(first, both) if one["drift"] > DRIFTED]
        chosen = [one["gain"] for one, _ in pairs]
        tested = [2 * two["gain"] - one["gain"] for one, two in pairs]
        won, lost = (sum(two[key] - one[key] for one, two in pairs) for key in ("wins", "losses"))
        cells = [f"{sum(gains) / len(gains):+.4f}, {sum(gain > 0 for gain in gains)} of {len(gains)}" for gains in (chosen, tested)]
        body.append([alpha, *cells, f"{won} to {lost}"])
    table(["α", "seeds 0–7: mean gain, settings that gain", "seeds 8–15: the same", "seeds 8–15 won and lost"], body)


def exact_pairs():
    print("## Exact pairs\n")
    rows = lines("pairs.jsonl")
    against_bias(rows, [("below a quarter of the noise", lambda row: not row["material"]), ("above", lambda row: row["material"])])
    body = []
    for name in KINDS[:4]:
        own = [row for row in rows if row["verdict"]["kind"] == name]
        best = [max(row["directions"]) - row["directions"][0] for row in own]
        advised = [row["advised"] - row["directions"][0] for row in own]
        mean = lambda values: f"{sum(values) / len(values):+.4f}"
        body.append([name, len(own), sum(gain > 0.02 for gain in best), mean(best), mean(advised)])
    table(["verdict", "pairs", "best α gains over 0.02", "mean gain of the best α", "of the advised α"], body)


def sampled_regimes():
    print("## Sampled regimes\n")
    rows = lines("regimes.jsonl")
    border = lambda row: abs(row["to_noise"] - 0.25) <= 2 * row["error"]
    against_bias(rows, [
        ("below a quarter of the noise", lambda row: row["to_noise"] < 0.25 and not border(row)),
        ("above", lambda row: row["to_noise"] >= 0.25 and not border(row)),
        ("within two errors of it", border),
    ])
    body = []
    for drift in sorted({row["drift"] for row in rows}):
        counts = Counter(row["verdict"]["kind"] for row in rows if row["drift"] == drift)
        body.append([drift, *(counts[key] for key in KINDS[:4])])
    table(["drift σ²T", "wasted", "short warmup", "reduce reuse", "not enough data"], body)


def trainings():
    print("## Tabular trainings, every seed's dump judged\n")
    for name, seeds in (("seeds 0–7", range(8)), ("seeds 8–15", range(8, 16))):
        groups = defaultdict(list)
        for run in lines("training-16-0.1.jsonl"):
            for seed in seeds:
                judged = run["judged"][seed]
                said = judged["says"].split(" at α")[0].split(": need")[0]
                groups["drift up to 0.05" if run["drift"] <= DRIFTED else "drift above 0.05", said].append(judged["gain"])
        body = []
        for (drift, said), gains in sorted(groups.items()):
            ordered = sorted(gains)
            middle = (ordered[(len(gains) - 1) // 2] + ordered[len(gains) // 2]) / 2
            body.append([drift, said, len(gains), f"{sum(gains) / len(gains):+.4f}", f"{middle:+.4f}", sum(gain > 0 for gain in gains)])
        print(f"{name}:\n")
        table(["drift", "verdict", "dumps", "mean gain", "median gain", "dumps that gain"], body)


def shops():
    print("## Shops\n")
    with open(HERE / "shops.csv") as file:
        rows = list(csv.DictReader(file))
    groups = defaultdict(list)
    for row in rows:
        groups[row["shop"], row["deadline"]].append(row)
    body = []
    for (shop, deadline), own in groups.items():
        said = Counter(row["verdict"] for row in own)
        heads = [float(row["headroom"]) for row in own]
        body.append([shop, deadline, ", ".join(row["seed"] for row in own), f"{min(heads):.2f} to {max(heads):.2f}",
                     "; ".join(f"{verdict} {count}" for verdict, count in said.items())])
    table(["shop", "deadline", "seeds", "headroom", "verdicts"], body)


def models():
    print("## A language model\n")
    with open(HERE / "models.csv") as file:
        rows = list(csv.DictReader(file))
    body = []
    for cell, batches in dict.fromkeys((row["cell"], row["batches"]) for row in rows):
        own = [row for row in rows if (row["cell"], row["batches"]) == (cell, batches)]
        said = Counter(row["verdict"] for row in own)
        leads = [float(row["tempered"]) - float(row["ppo"]) for row in own]
        spread = lambda name: f"{min(float(row[name]) for row in own):.3f} to {max(float(row[name]) for row in own):.3f}"
        last = "–".join(sorted({str(min(int(row["iterations"]), 8)) for row in own}))
        body.append([cell, f"first {batches}", spread("headroom"), spread("drift"), "; ".join(f"{verdict} {count}" for verdict, count in said.items()),
                     f"{sum(leads) / len(leads):+.3f}, {sum(lead > 0 for lead in leads)} of {len(leads)} (iterations 2–{last})"])
    table(["cell", "batches", "headroom", "drift σ²T", "verdicts", "lead of tempered 0.1 on the same seeds"], body)


for part in (strengths, exact_pairs, sampled_regimes, trainings, shops, models):
    part()
