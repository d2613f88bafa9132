"""Every statement of the paper that BATCH.md's confirmation tests, decided by its rule: python3 batch_verdicts.py RUNS

RUNS holds the folders registered-batch-confirm-*-RANK with endpoints.csv, and filled/ with the studies as they were run. One line per
statement and strength: what is printed with the standard error that its wins imply, our mean with its 95% interval, the seeds with a
positive difference, and the two-sided p of an exact sign test. The headline's twelve tests are Holm's.

The rule (BATCH.md, "What is claimed"), for a statement with a sign: `for` where p < .05 with the paper's sign at .72; `against` where
p < .05 with the other sign at .72, or where at every strength the interval excludes the print by more than two of its standard errors;
`open` otherwise. A statement that arms do not differ ("null") is `against` where p < .05 at .72, and `open` otherwise: a
test that does not reject decides nothing. The runners-up have lines of their own: where two points decide with opposite signs at .72,
the summary says open."""

import csv
import math
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from statistics import NormalDist, mean, median, stdev

RULE = "0.72"
# Student's t at 97.5% by Cornish and Fisher's expansion: within .003 from 5 degrees of freedom on.
Z = NormalDist().inv_cdf(0.975)


def t_value(freedom):
    z = Z
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def sign_p(wins, losses):
    """Two-sided exact sign test; ties count for neither."""
    number, extreme = wins + losses, max(wins, losses)
    tail = sum(math.comb(number, k) for k in range(extreme, number + 1))
    return min(1.0, 2 * tail / 2**number) if number else 1.0


def implied(printed, seeds):
    """The standard error of a printed mean that its own wins imply; nothing where they imply none."""
    if not seeds:
        return None
    wins, count = map(int, seeds.split("/"))
    place = NormalDist().inv_cdf((wins + 0.5) / (count + 1))
    if place * printed <= 0:
        return None
    return abs(printed / place) / math.sqrt(count)


def differences(rows, arm, over, cell, endpoint):
    """By seed; a cell called pooled takes the mean of a seed over all cells."""
    cells = sorted({of for of, _, _ in rows}) if cell == "pooled" else [cell]
    found = defaultdict(list)
    for of in cells:
        for seed in {seed for place, name, seed in rows if place == of and name == arm}:
            if (of, over, seed) in rows:
                found[of, seed].append(float(rows[of, arm, seed][endpoint]) - float(rows[of, over, seed][endpoint]))
    return [value for values in found.values() for value in values]


def measured(values):
    error = stdev(values) / math.sqrt(len(values))
    wide = t_value(len(values) - 1) * error
    wins, losses = sum(value > 0 for value in values), sum(value < 0 for value in values)
    return {"mean": mean(values), "low": mean(values) - wide, "high": mean(values) + wide, "median": median(values), "wins": wins, "losses": losses, "p": sign_p(wins, losses)}  # fmt: skip


def decide(expect, printed, error, by_strength):
    ruled = by_strength.get(RULE) or next(iter(by_strength.values()))
    sign = (ruled["mean"] > 0) - (ruled["mean"] < 0) if ruled["wins"] == ruled["losses"] else (1 if ruled["wins"] > ruled["losses"] else -1)
    if expect == "not-ahead":
        return "against" if ruled["p"] < 0.05 and sign > 0 else "open"
    if ruled["p"] < 0.05:
        return "for" if sign == (1 if printed > 0 else -1) else "against"
    if error is not None and all(max(of["low"] - printed, printed - of["high"]) > 2 * error for of in by_strength.values()):
        return "against"
    return "open"


def statements(runs):
    """(study, rank, lead of the file, {strength: measured})."""
    for file in sorted((runs / "filled").glob("batch-confirm-*.toml")):
        name, rank = file.stem.removeprefix("batch-confirm-").rsplit("-", 1)
        folder = runs / f"registered-batch-confirm-{name}-{rank}"
        if not (folder / "endpoints.csv").is_file():
            continue
        with open(folder / "endpoints.csv", newline="") as lines:
            rows = {(row["cell"], row["arm"], row["seed"]): row for row in csv.DictReader(lines)}
        study = tomllib.loads(file.read_text())
        arms = [arm["name"] for arm in study["arm"]]
        for lead in study.get("lead", []):
            stem = lead["arm"].removesuffix(RULE)
            strengths = {arm.removeprefix(stem): arm for arm in arms if arm.startswith(stem)} if stem != lead["arm"] else {"": lead["arm"]}
            found = {}
            for strength, arm in strengths.items():
                values = differences(rows, arm, lead["over"], lead["cell"], lead["endpoint"])
                if len(values) > 1:
                    found[strength] = measured(values)
            if found:
                yield name, int(rank), lead, found


def holm(tests):
    """Adjusted p, in the order given."""
    order, adjusted, largest = sorted(range(len(tests)), key=tests.__getitem__), [0.0] * len(tests), 0.0
    for place, index in enumerate(order):
        largest = max(largest, min(1.0, (len(tests) - place) * tests[index]))
        adjusted[index] = largest
    return adjusted


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    every = list(statements(Path(sys.argv[1])))
    twelve = [(index, strength) for index, (name, rank, lead, found) in enumerate(every) if (name, rank, lead["over"]) == ("headline", 1, "control") for strength in found]  # fmt: skip
    adjusted = dict(zip(twelve, holm([every[index][3][strength]["p"] for index, strength in twelve])))
    print("study\tpoint\tcell\tstatement\tprinted\tits error\tits seeds\tstrength\tmean\tlow\thigh\tmedian\tahead\tbehind\tp\tHolm\tdecided")
    summary = {}
    for index, (name, rank, lead, found) in enumerate(every):
        printed = float(lead["paper"].replace("−", "-"))
        error = implied(printed, lead.get("seeds"))
        decided = decide(lead.get("expect"), printed, error, found)
        stem = lead["arm"].removesuffix(f", {RULE}")
        summary.setdefault((name.removesuffix("s") if name == "jobs" else name, lead["cell"], f"{stem} over {lead['over']}"), []).append((rank, decided, found))
        for strength, of in found.items():
            fields = [name, rank, lead["cell"], f"{stem} over {lead['over']}", f"{printed:+.3f}", "" if error is None else f"{error:.3f}", lead.get("seeds", ""), strength]
            fields += [f"{of[key]:+.4f}" for key in ("mean", "low", "high", "median")] + [of["wins"], of["losses"], f"{of['p']:.2g}"]
            fields += [f"{adjusted[index, strength]:.2g}" if (index, strength) in adjusted else "", decided]
            print("\t".join(map(str, fields)))
    print("\nstudy\tcell\tstatement\tby point\ttogether")
    for (name, cell, statement), points in summary.items():
        by = [decided for _, decided, _ in sorted(points, key=lambda point: point[0])]
        # The first point's, unless the points decide with opposite signs.
        together = by[0] if not {"for", "against"} <= set(by) else "open"
        print("\t".join([name, cell, statement, " ".join(by), together]))


if __name__ == "__main__":
    main()
