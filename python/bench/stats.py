"""niwaki.stats beside SciPy and rliable on the same inputs: values, and the time of each.

    python python/bench/stats.py
"""

import time

import numpy as np
import scipy
import scipy.stats
from niwaki import stats
from rliable import metrics

rng = np.random.default_rng(0)
FIRST = 0.6 + 0.05 * rng.standard_normal(30)
SECOND = FIRST - 0.02 + 0.03 * rng.standard_normal(30)
SCORES = rng.random((10, 6))
OTHER = rng.random((10, 6)) - 0.1
WINS = int((FIRST > SECOND).sum())


def timed(call):
    began = time.perf_counter()
    found = call()
    return found, 1e3 * (time.perf_counter() - began)


def bootstrap():
    found = scipy.stats.bootstrap(((FIRST - SECOND),), np.mean, n_resamples=10_000, method="BCa", rng=1)
    return found.confidence_interval.low, found.confidence_interval.high


def ours():
    found = stats.bca(FIRST - SECOND, resamples=10_000)
    return found.low, found.high


ROWS = [
    ("sign test, two-sided p", lambda: stats.sign_test(FIRST, SECOND).two_sided, "SciPy", lambda: scipy.stats.binomtest(WINS, 30).pvalue),
    ("BCa of a mean, 10,000 resamples", ours, "SciPy", bootstrap),
    ("Pearson's r", lambda: stats.correlation(FIRST, SECOND).value, "SciPy", lambda: scipy.stats.pearsonr(FIRST, SECOND).statistic),
    ("Spearman's ρ", lambda: stats.correlation(FIRST, SECOND, ranks=True).value, "SciPy", lambda: scipy.stats.spearmanr(FIRST, SECOND).statistic),
    ("IQM", lambda: stats.aggregate(SCORES, "iqm", resamples=1).value, "rliable", lambda: metrics.aggregate_iqm(SCORES)),
    ("median of task means", lambda: stats.aggregate(SCORES, "median", resamples=1).value, "rliable", lambda: metrics.aggregate_median(SCORES)),
    ("optimality gap", lambda: stats.aggregate(SCORES, "optimality_gap", resamples=1).value, "rliable", lambda: metrics.aggregate_optimality_gap(SCORES)),
    ("probability of improvement", lambda: stats.probability_of_improvement(SCORES, OTHER, resamples=1).value, "rliable", lambda: metrics.probability_of_improvement(SCORES, OTHER)),
]

shown = lambda value: ", ".join(f"{part:.6f}" for part in np.atleast_1d(value))
print(f"SciPy {scipy.__version__}\n\n| quantity | niwaki | ms | peer | its value | ms |\n|---|---|---|---|---|---|")
for name, mine, peer, theirs in ROWS:
    timed(mine), timed(theirs)
    (value, spent), (other, its) = timed(mine), timed(theirs)
    print(f"| {name} | {shown(value)} | {spent:.2f} | {peer} | {shown(other)} | {its:.2f} |")
