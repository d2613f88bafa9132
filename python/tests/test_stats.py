"""niwaki.stats: values by hand, and beside SciPy and rliable where they are installed."""

import itertools
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from niwaki import stats

A = np.array([0.61, 0.66, 0.58, 0.70, 0.64, 0.59, 0.73, 0.62])
B = np.array([0.55, 0.60, 0.59, 0.62, 0.64, 0.51, 0.70, 0.60])


def test_paired_by_hand():
    found = stats.paired(A, B)
    assert found.mean == pytest.approx((A - B).mean(), abs=1e-15)
    assert found.sem == pytest.approx((A - B).std(ddof=1) / np.sqrt(8), abs=1e-15)
    assert (found.sign_test.wins, found.sign_test.losses, found.sign_test.ties) == (6, 1, 1)
    # 7 untied pairs, 6 wins: P(X ≥ 6) = (7 + 1) / 128.
    assert found.sign_test.greater == 8 / 128 and found.sign_test.two_sided == 16 / 128
    # Differences 6, 6, −1, 8, 0, 8, 3, 2 (hundredths): −1 and −1 + 0 are the subsets below zero, {0} is zero and {−1, 2} above.
    flips = sum(
        abs(np.dot(signs, A - B)) >= abs((A - B).sum()) - 1e-12 for signs in itertools.product([-1, 1], repeat=8)
    )
    assert found.p >= flips / 256 and found.verdict == "ahead"
    assert 0 < found.interval.low < found.mean < found.interval.high and found.interval.level == 0.95
    few = stats.paired(A[:5], B[:5])
    assert (few.verdict, few.interval) == ("too few pairs to decide", None)
    assert stats.sign_test(A, B) == found.sign_test


def test_aggregates_by_hand():
    scores = np.arange(16.0).reshape(8, 2)
    # The middle half of 0 … 15 is 4 … 11, mean 7.5.
    assert stats.aggregate(scores, "iqm").value == 7.5
    assert stats.aggregate(scores, "mean").value == 7.5
    assert stats.aggregate(scores / 15, "optimality_gap").value == pytest.approx(0.5)
    both = stats.probability_of_improvement(scores + 1, scores, pairs=True)
    assert both.value == 1.0 and both.interval.low == 1.0
    shape = stats.profile(scores, [-1.0, 7.0, 20.0])
    assert shape.shares.tolist() == [1.0, 0.5, 0.0] and (shape.low <= shape.shares).all()
    assert stats.auc([0.0, 1.0, 2.0]) == stats.auc([0.0, 1.0, 2.0], [0.0, 1.0, 2.0]) == 1.0


def test_correlations_by_hand():
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    y = np.array([1.0, 4.0, 9.0, 16.0, 30.0])
    assert stats.correlation(x, y, ranks=True).value == pytest.approx(1.0)
    assert stats.correlation(x, y).value == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-14)


def test_beside_scipy():
    scipy = pytest.importorskip("scipy.stats", reason="scipy is not installed; python/test-extras.sh runs this")
    found = stats.paired(A, B)
    assert found.sign_test.two_sided == pytest.approx(scipy.binomtest(6, 7).pvalue, abs=1e-15)
    theirs = scipy.bootstrap(((A - B),), np.mean, n_resamples=20_000, method="BCa", rng=1).confidence_interval
    ours = stats.bca(A - B)
    assert ours.low == pytest.approx(theirs.low, abs=2e-3) and ours.high == pytest.approx(theirs.high, abs=2e-3)
    flips = scipy.permutation_test((A[:6] - B[:6],), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert stats.paired(A[:6], B[:6]).p >= flips.pvalue - 1e-15
    assert stats.correlation(A, B).value == pytest.approx(scipy.pearsonr(A, B).statistic, abs=1e-14)
    assert stats.correlation(A, B, ranks=True).value == pytest.approx(scipy.spearmanr(A, B).statistic, abs=1e-14)
    ends = scipy.pearsonr(A, B).confidence_interval(0.95)
    assert stats.correlation(A, B).interval.low == pytest.approx(ends.low, abs=1e-12)


def test_beside_rliable():
    metrics = pytest.importorskip("rliable.metrics", reason="rliable is not installed; python/test-extras.sh runs this")
    scores = np.random.default_rng(0).random((10, 6))
    assert stats.aggregate(scores, "iqm").value == pytest.approx(metrics.aggregate_iqm(scores), abs=1e-14)
    assert stats.aggregate(scores, "median").value == pytest.approx(metrics.aggregate_median(scores), abs=1e-14)
    assert stats.aggregate(scores, "optimality_gap").value == pytest.approx(
        metrics.aggregate_optimality_gap(scores), abs=1e-14
    )
    other = np.random.default_rng(1).random((10, 6))
    assert stats.probability_of_improvement(scores, other).value == pytest.approx(
        metrics.probability_of_improvement(scores, other), abs=1e-14
    )


def test_refusals_name_the_argument():
    refused = [
        (lambda: stats.paired(A, B[:3]), "second"),
        (lambda: stats.paired([], []), "first"),
        (lambda: stats.paired([np.nan, 1.0], [1.0, 2.0]), "first"),
        (lambda: stats.paired(A.astype(np.float16), B), "first is float16"),
        (lambda: stats.paired(A[::2], B[::2]), "first is not contiguous"),
        (lambda: stats.aggregate(A), "scores has shape"),
        (lambda: stats.aggregate(A[:, None], "best"), "aggregate is 'best'"),
        (lambda: stats.bca(A, "mode"), "statistic is 'mode'"),
        (lambda: stats.bca(A, level=2.0), "level"),
        (lambda: stats.correlation(A, B, ranks=True, groups=[0] * 8), "groups and ranks"),
    ]
    for call, word in refused:
        with pytest.raises((TypeError, ValueError), match=word):
            call()


def test_more_resamples_than_memory_holds_are_refused():
    with pytest.raises(ValueError, match="`resamples` must be at most 10 million"):
        stats.bca([1.0, 2.0, 3.0], resamples=2**63)


LONG = "import niwaki.stats as s; x = list(range(1000)); print('on', flush=True); s.bca(x, resamples=1_000_000)"


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as on Unix")
def test_ctrl_c_ends_a_bootstrap():
    child = subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "on\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=30)
    assert child.returncode != 0 and "KeyboardInterrupt" in said


def test_silence_by_hand():
    # A group of two is silent with p² + (1 − p)²: .82 at .1 and .52 at .4, .67 on average; two groups an iteration, three iterations.
    assert stats.silence([0.1, 0.4], group=2, batch=4, batches=3) == pytest.approx(0.67**6, abs=1e-15)
    # The paper's own figure for its primed cell: 5.7e-3 an iteration at η = .02 and 256 records with one baseline.
    assert stats.silence([0.02], group=256) == pytest.approx(5.7e-3, abs=5e-5)
    for wrong in ({"group": 3, "batch": 4}, {"group": 0}, {"group": 2, "batches": -1}):
        with pytest.raises(ValueError):
            stats.silence([0.1], **wrong)
