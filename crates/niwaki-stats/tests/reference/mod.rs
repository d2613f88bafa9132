//! Every statistic against the fixture. Deterministic ones agree to rounding; resampled ones within a stated
//! number of Monte-Carlo standard deviations, since the two sides draw different resamples.

use niwaki_stats::*;

use crate::fixtures::{Case, cases};

/// Resamples on this side; the fixture's intervals come from 10 000 or 100 000.
const RESAMPLES: usize = 40_000;

fn bootstrap(level: f64) -> Bootstrap {
    Bootstrap { seed: 11, resamples: RESAMPLES, level }
}

#[track_caller]
fn close(found: f64, expected: f64, relative: f64) {
    assert!((found - expected).abs() <= relative * expected.abs().max(1e-300), "{found} is not {expected}");
}

#[track_caller]
fn within(interval: Interval, low: f64, high: f64, margin: f64) {
    let (below, above) = (interval.low - low, interval.high - high);
    assert!(below.abs() <= margin && above.abs() <= margin, "{interval:?} is not [{low}, {high}] ± {margin}");
}

fn scores<'a>(case: &'a Case, values: &str, runs: &str) -> Scores<'a> {
    Scores::new(case.all(values), case.count(runs), case.count("tasks")).expect("a matrix")
}

#[test]
fn describe() {
    for case in cases("describe") {
        let x = case.all("x");
        // The fixture's moments are exact rationals, rounded once.
        close(mean(x).unwrap(), case.one("mean"), 3e-16);
        close(median(x).unwrap(), case.one("median"), 1e-15);
        for (found, &expected) in quantiles(x, case.all("p")).unwrap().iter().zip(case.all("q")) {
            close(*found, expected, 1e-14);
        }
        if case.has("variance") {
            close(variance(x).unwrap(), case.one("variance"), 1e-14);
            close(sem(x).unwrap(), case.one("sem"), 1e-14);
        }
    }
}

#[test]
fn sign_test_to_full_precision() {
    for case in cases("sign") {
        let test = SignTest { wins: case.count("wins") as u64, losses: case.count("losses") as u64, ties: 3 };
        // Two units in the last place.
        close(test.greater(), case.one("greater"), 4.5e-16);
        close(test.less(), case.one("less"), 4.5e-16);
        close(test.two_sided(), case.one("two_sided"), 4.5e-16);
    }
}

#[test]
fn normal_distribution() {
    for case in cases("normal_cdf") {
        for (&x, &p) in case.all("x").iter().zip(case.all("p")) {
            close(normal_cdf(x), p, 1e-14);
        }
    }
    for case in cases("normal_quantile") {
        for (&p, &x) in case.all("p").iter().zip(case.all("x")) {
            close(normal_quantile(p).unwrap(), x, 1e-14);
        }
    }
}

#[test]
fn paired_differences() {
    for case in cases("paired") {
        let paired = Paired::new(case.all("first"), case.all("second")).unwrap();
        close(paired.mean(), case.one("mean"), 1e-13);
        close(paired.sem().unwrap(), case.one("sem"), 1e-13);
        within(paired.normal_interval(case.one("level")).unwrap(), case.one("low"), case.one("high"), 1e-14);
        // The first pair of each case is a tie.
        assert_eq!(paired.sign_test().ties, 1);
    }
}

/// The end of a 90% percentile interval has a Monte-Carlo deviation of √(0.05·0.95/B)/φ(1.645) = 2.1/√B standard
/// errors: 0.011 here and 0.007 there, 0.013 together. The margin is 0.07, over five deviations; BCa looks further
/// into one tail and adds the noise of its shift, and has 0.1.
#[test]
fn bootstrap_intervals() {
    let (percentile_margin, bca_margin) = (0.07, 0.1);
    for case in cases("bootstrap") {
        let statistic: fn(&[f64]) -> f64 = match case.count("statistic") {
            0 => |x| mean(x).unwrap(),
            1 => |x| median(x).unwrap(),
            _ => |x| standard_deviation(x).unwrap(),
        };
        let (x, settings) = (case.all("x"), bootstrap(case.one("level")));
        let (found, margin) = if case.count("bca") == 1 {
            (settings.bca(x, statistic).unwrap(), bca_margin)
        } else {
            (settings.percentile(x, statistic).unwrap(), percentile_margin)
        };
        within(found, case.one("low"), case.one("high"), margin * case.one("spread"));
    }
    // The margins tell the two methods apart where they differ: on the standard deviation of a skewed sample.
    let all = cases("bootstrap");
    let [plain, corrected] = [&all[all.len() - 2], &all[all.len() - 1]];
    assert!((plain.one("high") - corrected.one("high")).abs() > 3.0 * bca_margin * plain.one("spread"));
}

/// The end of a 95% interval has a deviation of √(0.025·0.975/B)/φ(1.96) = 2.7/√B standard errors: 0.013 here and
/// 0.008 there, 0.016 together, which is 0.004 of the interval's width. The margin is 0.025 of the width.
#[test]
fn aggregates_and_their_stratified_intervals() {
    for case in cases("scores") {
        let (scores, target) = (scores(&case, "values", "runs"), case.one("gamma"));
        let aggregates: [&dyn Fn(Scores<'_>) -> f64; 4] =
            [&|s| s.mean(), &|s| s.median(), &|s| s.iqm(), &|s| s.optimality_gap(target)];
        for (i, aggregate) in aggregates.iter().enumerate() {
            close(aggregate(scores), case.all("point")[i], 1e-13);
            let (low, high) = (case.all("low")[i], case.all("high")[i]);
            let found = scores.interval(&bootstrap(0.95), aggregate).unwrap();
            within(found, low, high, 0.025 * (high - low));
        }
    }
}

/// As above with 10 000 resamples in the fixture: 0.03 standard errors together, 0.008 of the width. The margin is
/// 0.05 of the width.
#[test]
fn probability_of_improvement_unpaired_and_paired() {
    for case in cases("improvement") {
        let (x, y) = (scores(&case, "first", "first_runs"), scores(&case, "second", "second_runs"));
        close(probability_of_improvement(x, y).unwrap(), case.one("point"), 1e-14);
        let found = probability_of_improvement_interval(x, y, &bootstrap(0.95)).unwrap();
        let (low, high) = (case.one("low"), case.one("high"));
        within(found, low, high, 0.05 * (high - low));
    }
    for case in cases("paired_improvement") {
        let (x, y) = (scores(&case, "first", "runs"), scores(&case, "second", "runs"));
        close(paired_probability_of_improvement(x, y).unwrap(), case.one("point"), 1e-14);
        let found = paired_probability_of_improvement_interval(x, y, &bootstrap(0.95)).unwrap();
        let (low, high) = (case.one("low"), case.one("high"));
        // Shares of 45 pairs in steps of a half: the end may fall on the neighbouring step.
        within(found, low, high, 0.5 / 45.0 + 1e-12);
    }
}

/// The ends of a band are shares, in steps of one score (or one task): they may differ by one step where the tail
/// falls between two steps, and must agree in nine places of ten.
#[test]
fn profiles_and_their_bands() {
    for case in cases("profile") {
        let scores = scores(&case, "values", "runs");
        let (profile, step) = if case.count("run_scores") == 1 {
            (Profile::RunScores, 1.0 / scores.values().len() as f64)
        } else {
            (Profile::TaskMeans, 1.0 / scores.tasks() as f64)
        };
        let thresholds = case.all("tau");
        let found = profile.of(scores, thresholds).unwrap();
        let band = profile.band(scores, thresholds, &bootstrap(0.95)).unwrap();
        let mut moved = 0;
        for i in 0..thresholds.len() {
            assert!((found[i] - case.all("shares")[i]).abs() < 1e-14);
            let (low, high) = (case.all("low")[i], case.all("high")[i]);
            within(band[i], low, high, step + 1e-12);
            moved += usize::from((band[i].low - low).abs() > 1e-12);
            moved += usize::from((band[i].high - high).abs() > 1e-12);
        }
        assert!(moved * 10 <= 2 * thresholds.len(), "{moved} ends moved");
    }
}

#[test]
fn curves() {
    for case in cases("curve") {
        let (x, y, other) = (case.all("x"), case.all("y"), case.all("other"));
        close(auc(y).unwrap(), case.one("auc"), 1e-14);
        close(trapezoid(x, y).unwrap(), case.one("area"), 1e-14);
        close(auc_over(x, y).unwrap(), case.one("area") / (x[x.len() - 1] - x[0]), 1e-14);
        let lead = half_leads(y, other).unwrap();
        assert!((lead.first - case.all("lead")[0]).abs() < 1e-15);
        assert!((lead.second - case.all("lead")[1]).abs() < 1e-15);
    }
}

#[test]
fn correlations() {
    for case in cases("correlation") {
        let (x, y) = (case.all("x"), case.all("y"));
        let groups: Vec<usize> = case.all("groups").iter().map(|&g| g as usize).collect();
        let r = pearson(x, y).unwrap();
        close(r, case.one("pearson"), 1e-13);
        close(spearman(x, y).unwrap(), case.one("spearman"), 1e-13);
        close(pearson_within(x, y, &groups).unwrap(), case.one("within"), 1e-13);
        let interval = fisher_interval(r, x.len(), 0, case.one("level")).unwrap();
        within(interval, case.one("low"), case.one("high"), 1e-13);
        let line = Line::fit(x, y).unwrap();
        close(line.slope, case.one("slope"), 1e-12);
        close(line.intercept, case.one("intercept"), 1e-12);
    }
}
