#!/usr/bin/env python3
"""Endpoints of two runs of the same studies, arm by arm; the rule is in HALVES.md.

halves.py TF32 BF16     folders of endpoints, NAME.csv or NAME/endpoints.csv
"""
import csv, math, sys
from collections import defaultdict
from pathlib import Path

STUDIES = ["tab-i-detail", "tab-i-aggressive"]


def read(folder):
    arms = defaultdict(list)
    for study in STUDIES:
        path = Path(folder) / f"{study}.csv"
        for row in csv.DictReader(open(path if path.exists() else Path(folder) / study / "endpoints.csv")):
            arms[study, row["cell"], row["arm"]].append([float(row[name]) for name in ("success", "final", "auc")])
    return arms


def fisher(a, b, c, d):
    """Two-sided: the tables with these margins that are no likelier than this one."""
    n, row, col = a + b + c + d, a + b, a + c
    prob = lambda k: math.comb(row, k) * math.comb(n - row, col - k) / math.comb(n, col)
    return min(1.0, sum(prob(k) for k in range(max(0, col - (n - row)), min(row, col) + 1) if prob(k) <= prob(a) * (1 + 1e-9)))


def beta(a, b, x):
    """The regularised incomplete beta function, by its continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(1 - x)) / a
    f, c, d = 1.0, 1.0, 0.0
    for i in range(300):
        m = i // 2
        if i == 0:
            n = 1.0
        elif i % 2 == 0:
            n = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            n = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + n * d or 1e-30)
        c = 1 + n / c or 1e-30
        f *= c * d
        if abs(1 - c * d) < 1e-12:
            break
    return front * (f - 1)


def welch(x, y):
    """Difference of means, its standard error, p."""
    mean = lambda v: sum(v) / len(v)
    var = lambda v: sum((e - mean(v)) ** 2 for e in v) / (len(v) - 1) / len(v)
    vx, vy, gap = var(x), var(y), mean(y) - mean(x)
    if vx + vy == 0:
        return gap, 0.0, 1.0 if gap == 0 else 0.0
    t = gap / math.sqrt(vx + vy)
    df = (vx + vy) ** 2 / (vx**2 / (len(x) - 1) + vy**2 / (len(y) - 1))
    return gap, math.sqrt(vx + vy), beta(df / 2, 0.5, df / (df + t * t))


first, second = read(sys.argv[1]), read(sys.argv[2])
assert first.keys() == second.keys()
found = []
for key in first:
    x, y = first[key], second[key]
    won = [sum(run[0] for run in runs) for runs in (x, y)]
    p = fisher(int(won[0]), len(x) - int(won[0]), int(won[1]), len(y) - int(won[1]))
    found.append((p, key, "success", won[1] / len(y) - won[0] / len(x), None, won[0] / len(x), won[1] / len(y), len(x)))
    for place, name in ((1, "final"), (2, "auc")):
        a, b = [run[place] for run in x], [run[place] for run in y]
        gap, error, p = welch(a, b)
        found.append((p, key, name, gap, error, sum(a) / len(a), sum(b) / len(b), len(a)))
found.sort(key=lambda one: one[0])
moved = 0
table = csv.writer(sys.stdout, lineterminator="\n")
table.writerow("study,cell,arm,seeds,endpoint,first,second,difference,standard error,p,p by Holm".split(","))
worst = 0.0
for place, (p, key, name, gap, error, a, b, seeds) in enumerate(found):
    worst = max(worst, min(1.0, p * (len(found) - place)))
    moved += worst < 0.05
    numbers = [f"{a:.4f}", f"{b:.4f}", f"{gap:+.4f}", "" if error is None else f"{error:.4f}", f"{p:.4f}", f"{worst:.3f}"]
    table.writerow([*key, seeds, name, *numbers])
print(f"{moved} of {len(found)} endpoints have moved", file=sys.stderr)
