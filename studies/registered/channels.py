"""Reads the runs of CHANNELS.md and prints its decisions: channels.py RUNS; channels.py confirm RUNS chooses clip and strength and writes the studies of their confirmation; channels.py confirmed RUNS reads those."""
import csv
import gzip
import math
import sys
from collections import defaultdict
from pathlib import Path

# Setting: folder, endpoint, base, doubling strength; by batch, a function of the cell.
SETTINGS = {
    "testbed, returns": ("registered-channels-testbed", "auc", "ppo", "0.361", lambda cell: "0.251" if "N = 32" in cell else "0.643"),
    "testbed, exact": ("registered-channels-testbed", "auc", "ppo", "0.361", lambda cell: "0.251" if "N = 32" in cell else "0.643"),
    "flow shop, N = 64": ("registered-channels-shop-64", "greedy-auc", "control", "0.097", lambda cell: "0.097"),
    "flow shop, N = 256": ("registered-channels-shop-256", "greedy-auc", "control", "0.097", lambda cell: "0.173"),
    "long flow shop": ("registered-channels-horizon", "greedy-auc", "control", None, lambda cell: "0.063" if "30" in cell else "0.047"),
    "transformer": ("registered-channels-transformer", "auc", "ppo", "0.26", lambda cell: "0.463"),
}
# Where `outside` ran beside a base: folder, endpoint, base, strength.
OUTSIDE = [
    ("testbed", "registered-channels-outside", "auc", "ppo", "0.361"),
    ("flow shop, N = 64", "registered-channels-shop-64", "greedy-auc", "control", "0.097"),
    ("flow shop, N = 256", "registered-channels-shop-256", "greedy-auc", "control", "0.097"),
    ("transformer", "registered-channels-transformer", "auc", "ppo", "0.26"),
]
CONSTANTS = ["0.05", "0.1", "0.3", "0.72", "1"]
# Two-sided 97.5% points of Student's t.
T975 = {11: 2.201, 15: 2.131, 23: 2.069, 47: 2.012}


def endpoints(folder):
    """The lines of a study's table, packed or not."""
    path = Path(folder) / "endpoints.csv"
    with open(path) if path.exists() else gzip.open(f"{path}.gz", "rt") as lines:
        yield from csv.DictReader(lines)


def sign_test(wins, losses):
    """Exact, two-sided; ties are left out."""
    n, k = wins + losses, min(wins, losses)
    if n == 0:
        return 1.0
    return min(1.0, 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n)


class Difference:
    """Paired by seed."""

    def __init__(self, values):
        self.n = len(values)
        self.mean = sum(values) / self.n
        self.error = math.sqrt(sum((v - self.mean) ** 2 for v in values) / (self.n - 1) / self.n)
        self.half = T975[self.n - 1] * self.error
        self.wins, self.losses = sum(v > 0 for v in values), sum(v < 0 for v in values)
        self.p = sign_test(self.wins, self.losses)

    def __str__(self):
        return f"{self.mean:+.4f} [{self.mean - self.half:+.4f}, {self.mean + self.half:+.4f}] {self.wins}/{self.n} p {self.p:.2g}"


def holm(tests):
    """Adjusted p-values, in the given order."""
    order, worst, adjusted = sorted(range(len(tests)), key=lambda i: tests[i]), 0.0, [0.0] * len(tests)
    for place, i in enumerate(order):
        worst = max(worst, min(1.0, (len(tests) - place) * tests[i]))
        adjusted[i] = worst
    return adjusted


def outside(runs):
    """The addendum's decision."""
    rows = []
    for setting, folder, endpoint, base, strength in OUTSIDE:
        values = defaultdict(dict)
        for row in endpoints(Path(runs) / folder):
            values[row["cell"], row["arm"]][row["seed"]] = float(row[endpoint])
        for cell in dict.fromkeys(cell for cell, _ in values):
            arms = [arm for at, arm in values if at == cell]

            def difference(arm, against):
                one, other = values[cell, arm], values[cell, against]
                return Difference([one[seed] - other[seed] for seed in sorted(one)])

            others = {arm: difference(arm, base) for arm in arms if arm != base}
            rows.append((setting, cell, sum(values[cell, base].values()) / len(values[cell, base]), others, [
                difference(f"outside {strength}", base), difference(f"outside weights {strength}", base),
                difference(f"{base}, no clip", base), difference(f"outside {strength}", f"{base}, no clip"),
            ]))
    print("== 4: the factor outside of the clip")
    tests = [holm([row[4][place].p for row in rows]) for place in range(4)]
    print("setting\tcell\tbase\toutside over base\tHolm\tits weights over base\tHolm\tbase without clip over base\tHolm\toutside over base without clip\tHolm\tall means over base")
    for i, (setting, cell, level, others, four) in enumerate(rows):
        print(f"{setting}\t{cell}\t{level:.3f}\t" + "\t".join(f"{four[c]}\t{tests[c][i]:.2g}" for c in range(4)) + "\t" + "; ".join(f"{arm} {gain.mean:+.4f}" for arm, gain in others.items()))
    for place, name in enumerate(["outside", "its weights alone", "no clip", "outside over no clip"]):
        ahead = sum(tests[place][i] < 0.05 and row[4][place].mean > 0 for i, row in enumerate(rows))
        behind = sum(tests[place][i] < 0.05 and row[4][place].mean < 0 for i, row in enumerate(rows))
        print(f"{name}: ahead in {ahead}, behind in {behind} of {len(rows)}")


def main(runs):
    data = {}
    for setting, (folder, endpoint, *_) in SETTINGS.items():
        values = defaultdict(dict)
        for row in endpoints(Path(runs) / folder):
            if "testbed" not in setting or row["cell"].endswith(setting.split(", ")[1]):
                values[row["cell"], row["arm"]][row["seed"]] = float(row[endpoint])
        data[setting] = values

    def difference(setting, cell, arm, base):
        one, other = data[setting][cell, arm], data[setting][cell, base]
        assert one.keys() == other.keys(), (setting, cell, arm, base)
        return Difference([one[seed] - other[seed] for seed in sorted(one)])

    def cells(setting):
        return list(dict.fromkeys(cell for cell, _ in data[setting]))

    print("== 1, 2: weights, and the clip")
    rows = []
    for setting, (_, _, base, double, _) in SETTINGS.items():
        if double is None:
            continue
        for cell in cells(setting):
            of = lambda arm, against: difference(setting, cell, arm, against)
            whole, weights = of(f"tempered {double}", base), of(f"weights {double}", base)
            free = of(f"tempered {double}, no clip", f"{base}, no clip")
            unclipped = of(f"{base}, no clip", base)
            against = of(f"{base}, no clip", f"tempered {double}")
            values = data[setting]
            seeds = sorted(values[cell, base])
            change = Difference([
                (values[cell, f"tempered {double}, no clip"][s] - values[cell, f"{base}, no clip"][s])
                - (values[cell, f"tempered {double}"][s] - values[cell, base][s]) for s in seeds
            ])
            level = sum(values[cell, base].values()) / len(seeds)
            rows.append((setting, cell, level, whole, weights, free, change, unclipped, against))
    columns = ["whole over base", "weights over base", "whole without clip over base without", "change", "base without clip over base", "base without clip over whole with it"]
    tests = [holm([row[3 + place].p for row in rows]) for place in range(6)]
    print("setting\tcell\tbase\t" + "\t".join(f"{name}\tHolm" for name in columns))
    for i, row in enumerate(rows):
        print(f"{row[0]}\t{row[1]}\t{row[2]:.3f}\t" + "\t".join(f"{row[3 + c]}\t{tests[c][i]:.2g}" for c in range(6)))
    significant = [i for i in range(len(rows)) if tests[0][i] < 0.05 and rows[i][3].mean > 0]
    ahead = sum(tests[1][i] < 0.05 and rows[i][4].mean > 0 for i in range(len(rows)))
    behind = sum(tests[1][i] < 0.05 and rows[i][4].mean < 0 for i in range(len(rows)))
    share = sum(rows[i][4].mean / rows[i][3].mean for i in significant) / max(1, len(significant))
    print(f"cells {len(rows)}; whole correction ahead in {len(significant)}; weights ahead in {ahead}, behind in {behind}; mean share of weights {share:+.2f}")
    smaller = sum(tests[3][i] < 0.05 and rows[i][6].mean < 0 for i in significant)
    print(f"gain significantly smaller without the clip in {smaller} of {len(significant)}; "
          f"base without clip ahead of the correction with one in {sum(tests[5][i] < 0.05 and rows[i][8].mean > 0 for i in range(len(rows)))}, "
          f"behind in {sum(tests[5][i] < 0.05 and rows[i][8].mean < 0 for i in range(len(rows)))}")

    print("== 3: strength, in units of the best constant's gain")
    total, below, counted = defaultdict(list), defaultdict(list), []
    for setting, (_, _, base, double, batch) in SETTINGS.items():
        kept = defaultdict(list)
        for cell in cells(setting):
            constants = [c for c in CONSTANTS if (cell, f"tempered {c}") in data[setting]]
            gains = {c: difference(setting, cell, f"tempered {c}", base) for c in constants}
            best = max(gains.values(), key=lambda gain: gain.mean)
            plain = double or batch(cell)
            gains |= {"doubling": difference(setting, cell, f"tempered {plain}", base), "with the batch": difference(setting, cell, f"tempered {batch(cell)}", base)}
            for name, gain in gains.items():
                if gain.mean < -gain.error:
                    below[name].append(f"{setting}: {cell} ({gain.mean:+.4f})")
            if best.p < 0.05 and best.mean > 0:
                counted.append(cell)
                for name, gain in gains.items():
                    kept[name].append(gain.mean / best.mean)
            print(f"{setting}\t{cell}\t" + "\t".join(f"{name} {gain.mean:+.4f}±{gain.error:.4f}" for name, gain in gains.items()))
        for name, shares in kept.items():
            total[name].append((setting, sum(shares) / len(shares), len(shares)))
    for name, shares in total.items():
        print(f"{name}: mean over settings {sum(s for _, s, _ in shares) / len(shares):+.3f}; " + "; ".join(f"{setting} {s:+.2f} ({n} cells)" for setting, s, n in shares)
              + f"; below the base by more than a standard error in {len(below[name])}: " + ", ".join(below[name]))


def table(folder, endpoint="greedy-auc"):
    values = defaultdict(dict)
    for row in endpoints(folder):
        values[row["cell"], row["arm"]][row["seed"]] = float(row[endpoint])
    return values


def confirm(runs):
    """Chooses by the mean over deadlines, and writes what confirms it."""
    for batch in (64, 256):
        values = table(Path(runs) / f"registered-channels-clip-{batch}")
        arms = defaultdict(list)
        for (_, arm), seeds in values.items():
            arms[arm].append(sum(seeds.values()) / len(seeds))
        means = {arm: sum(each) / len(each) for arm, each in arms.items()}
        for arm, mean in sorted(means.items(), key=lambda item: -item[1]):
            print(batch, arm, f"{mean:.4f}")
        chosen = [max((arm for arm in means if arm.startswith(kind)), key=means.get) for kind in ("control", "tempered")]
        here = Path(__file__).parent
        study = (here / f"2026-11-19-channels-clip-{batch}.toml").read_text()
        head, rest = study.split("[[arm]]", 1)
        arms, cells = rest.split("[[cell]]", 1)
        kept = {arm.split('"')[1]: arm for arm in arms.split("[[arm]]")}
        wanted = dict.fromkeys(["control, clip 0.2", "tempered 0.097, clip 0.2", *chosen])
        head = head.replace("channels-clip-", "channels-confirm-").replace("seeds = 24", "seeds = 48").replace("95000", "96000")
        text = head + "".join("[[arm]]" + kept[arm] for arm in wanted) + "[[cell]]" + cells
        Path(runs, f"channels-confirm-{batch}.toml").write_text(text)
        Path(runs, f"channels-confirm-{batch}.txt").write_text("\n".join(chosen))
        print("chosen:", *chosen, sep=" | ")


def confirmed(runs):
    """Whether corrected reuse at its chosen clip is ahead of the best without a correction."""
    rows = []
    for batch in (64, 256):
        plain, corrected = Path(runs, f"channels-confirm-{batch}.txt").read_text().split("\n")
        values = table(Path(runs) / f"registered-channels-confirm-{batch}")
        for cell in dict.fromkeys(cell for cell, _ in values):
            means = {arm: sum(seeds.values()) / len(seeds) for (at, arm), seeds in values.items() if at == cell}
            one, other = values[cell, corrected], values[cell, plain]
            rows.append((batch, cell, plain, corrected, Difference([one[s] - other[s] for s in sorted(one)]), means))
    adjusted = holm([row[4].p for row in rows])
    for (batch, cell, plain, corrected, gain, means), p in zip(rows, adjusted):
        print(f"N = {batch}\t{cell}\t{corrected} over {plain}\t{gain}\tHolm {p:.2g}\t" + "; ".join(f"{arm} {mean:.4f}" for arm, mean in means.items()))


if __name__ == "__main__":
    if sys.argv[1] in ("confirm", "confirmed"):
        {"confirm": confirm, "confirmed": confirmed}[sys.argv[1]](sys.argv[2])
    else:
        main(sys.argv[1])
        outside(sys.argv[1])
