//! Laws of the crate: the paper's own p-values and correlations, coverage, and properties that hold for any data.
//! Comparisons with other implementations are in `reference`.

mod decisions;
mod fixtures;
mod reference;

use niwaki_stats::*;

use fixtures::cases;

/// Uniform and normal test data from a 64-bit linear congruential generator, unrelated to the crate's own.
struct Data(u64);

impl Data {
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub(crate) fn normals(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| normal_quantile(self.uniform()).expect("inside (0, 1)")).collect()
    }
}

/// Wins and untied seeds of the paper's directional comparisons, with the p-value as printed.
#[test]
fn the_papers_one_sided_sign_tests_come_out() {
    let printed = [
        ("tab:sched-win", 59, 95, "0.012"),
        ("tab:sched-win", 58, 94, "0.015"),
        ("tab:sched-win", 52, 96, "0.238"),
        ("tab:sched-win", 42, 96, "0.908"),
        ("tab:sched-win", 14, 16, "0.002"),
        ("tab:sched-win", 10, 16, "0.227"),
        ("tab:sched-win", 19, 23, "0.001"),
        ("tab:sched-win", 15, 21, "0.039"),
        ("tab:sched-win", 20, 24, "0.0008"),
        ("tab:sched-win", 3, 6, "0.656"),
        ("tab:sched-win", 2, 6, "0.891"),
        ("tab:sched-win", 4, 6, "0.344"),
        ("tab:sched-win", 6, 6, "0.016"),
        ("tab:sched-win", 0, 6, "1.000"),
        ("tab:envladder", 10, 10, "0.001"),
        ("tab:envladder", 8, 9, "0.02"),
        // 378/8192 = 0.0461.
        ("tab:envladder", 10, 13, "0.05"),
        ("tab:envladder", 8, 19, "0.82"),
        ("fig:2order", 5, 5, "0.03"),
    ];
    for (label, wins, untied, p) in printed {
        let test = SignTest { wins, losses: untied - wins, ties: 0 };
        let digits = p.len() - 2;
        assert_eq!(format!("{:.digits$}", test.greater()), p, "{label}: {wins}/{untied}");
    }
    for (wins, untied) in [(41, 48), (38, 48), (22, 24), (15, 15)] {
        // tab:sched-win and tab:envladder print these as below 10⁻⁴.
        assert!(SignTest { wins, losses: untied - wins, ties: 0 }.greater() < 1e-4, "{wins}/{untied}");
    }
}

/// app:pretrained prints p = 1.0 for 8/16 and says two-sided; its 3 × 10⁻⁵ for 16/16 is two-sided as well
/// (2 · 2⁻¹⁶ = 3.05e-5; the one-sided value is half of it).
#[test]
fn the_papers_two_sided_sign_tests_come_out() {
    assert_eq!(SignTest { wins: 8, losses: 8, ties: 0 }.two_sided(), 1.0);
    let all = SignTest { wins: 16, losses: 0, ties: 0 };
    assert_eq!(format!("{:.0e}", all.two_sided()), "3e-5");
    assert_eq!(format!("{:.1e}", all.greater()), "1.5e-5");
}

/// tab:sched-horizon gives r(dose, win) per configuration; the text (sec:sched-win) pools n = 66 points to +0.32 early
/// and −0.03 late. The seven configurations with 66 points are the horizon sweep and the job shop.
#[test]
fn the_papers_pooled_dose_correlations_come_out() {
    let sizes = [12, 12, 12, 12, 6, 6, 6];
    let early = [0.51, -0.39, 0.67, 0.74, 0.34, 0.79, -0.68];
    let late = [-0.19, 0.45, -0.12, -0.48, -0.62, 0.54, 0.48];
    for (own, printed) in [(early, "+0.32"), (late, "-0.03")] {
        let (mut dose, mut win, mut groups) = (vec![], vec![], vec![]);
        for (g, (&n, r)) in sizes.iter().zip(own).enumerate() {
            for i in 0..n {
                // Cosine and sine over a full turn are centred, orthogonal and equally long, so r is exact; each
                // configuration has its own level and scale, which must not matter.
                let (sin, cos) = (std::f64::consts::TAU * f64::from(i) / f64::from(n)).sin_cos();
                dose.push(3.0 * g as f64 + (1.0 + g as f64) * cos);
                win.push(0.5 - g as f64 + 0.1 * (r * cos + (1.0 - r * r).sqrt() * sin));
                groups.push(g);
            }
        }
        let pooled = pearson_within(&dose, &win, &groups).unwrap();
        // Σ n_g r_g / Σ n_g.
        let weighted: f64 = sizes.iter().zip(own).map(|(&n, r)| f64::from(n) * r).sum::<f64>() / 66.0;
        assert!((pooled - weighted).abs() < 1e-14);
        assert_eq!(format!("{pooled:+.2}"), printed);
        // Without the partialling the levels dominate, and the two disagree.
        assert!((pearson(&dose, &win).unwrap() - pooled).abs() > 0.3);
    }
}

/// tab:v2-cell1-grid states normal intervals: ±2.5 pp at n = 16 means a standard deviation of 5.1 pp.
#[test]
fn normal_intervals_shrink_with_the_root_of_n() {
    let differences: Vec<f64> = (0..16).map(|i| if i % 2 == 0 { 6.7 + 4.94 } else { 6.7 - 4.94 }).collect();
    let interval = Paired::new(&differences, &[0.0; 16]).unwrap().normal_interval(0.95).unwrap();
    // Standard deviation 4.94 · √(16/15) = 5.102; over √16: 1.2755; times 1.96: 2.50.
    assert_eq!(format!("{:.2}", interval.half_width()), "2.50");
}

/// 2000 samples of 20 normal values. Expected coverage comes from Student's distribution (see make.py); a share of
/// 2000 has a deviation of at most 0.006, and the margin is 0.02. BCa of a mean of symmetric data has the same limit.
#[test]
fn intervals_cover_what_theory_says() {
    let case = &cases("coverage")[0];
    let (n, trials) = (case.count("n"), 2000);
    let zeros = vec![0.0; n];
    let mut data = Data(1);
    let mut covered = [0_u32; 3];
    for trial in 0..trials {
        let paired = Paired::new(&data.normals(n), &zeros).unwrap();
        let bootstrap = Bootstrap { resamples: 999, ..Bootstrap::from_seed(trial) };
        let intervals = [
            paired.normal_interval(0.95).unwrap(),
            bootstrap.percentile(paired.differences(), |d| mean(d).unwrap()).unwrap(),
            bootstrap.bca(paired.differences(), |d| mean(d).unwrap()).unwrap(),
        ];
        for (count, interval) in covered.iter_mut().zip(intervals) {
            *count += u32::from(interval.contains(0.0));
        }
    }
    let expected = [case.one("normal"), case.one("percentile"), case.one("percentile")];
    for (count, expected) in covered.into_iter().zip(expected) {
        let share = f64::from(count) / trials as f64;
        assert!((share - expected).abs() < 0.02, "{covered:?}: {share} is not {expected}");
    }
}

/// As above for the mean of a runs × tasks matrix whose tasks differ in level: resampling across tasks would widen
/// the interval many times and cover always.
#[test]
fn stratified_intervals_cover_what_theory_says() {
    let case = &cases("stratified_coverage")[0];
    let (runs, tasks, trials) = (case.count("runs"), case.count("tasks"), 2000);
    let mut data = Data(2);
    let mut covered = 0_u32;
    for trial in 0..trials {
        let mut values = data.normals(runs * tasks);
        for (i, v) in values.iter_mut().enumerate() {
            *v += 10.0 * (i % tasks) as f64;
        }
        let bootstrap = Bootstrap { resamples: 999, ..Bootstrap::from_seed(trial) };
        let interval = Scores::new(&values, runs, tasks).unwrap().interval(&bootstrap, |s| s.mean()).unwrap();
        // Levels 0, 10, 20, 30 average to 15.
        covered += u32::from(interval.contains(15.0));
    }
    let share = f64::from(covered) / trials as f64;
    assert!((share - case.one("percentile")).abs() < 0.02, "{share}");
}

#[test]
fn sign_tests_are_symmetric_and_sum_to_one() {
    for n in [1_u64, 2, 7, 40, 333] {
        for wins in 0..=n {
            let test = SignTest { wins, losses: n - wins, ties: 0 };
            let mirror = SignTest { wins: n - wins, losses: wins, ties: 0 };
            assert_eq!(test.greater(), mirror.less());
            assert_eq!(test.two_sided(), mirror.two_sided());
            if wins > 0 {
                // P(X ≥ k) + P(X ≤ k − 1) = 1, and P(X ≤ k − 1) is `less` of one win fewer.
                let fewer = SignTest { wins: wins - 1, losses: n - wins + 1, ties: 0 };
                assert!((test.greater() + fewer.less() - 1.0).abs() < 3e-16);
                assert!(test.greater() < fewer.greater() || fewer.greater() == 1.0);
            }
        }
    }
}

#[test]
fn swapping_the_arms_mirrors_every_comparison() {
    let mut data = Data(3);
    let rounded =
        |data: &mut Data| data.normals(60).iter().map(|v| (4.0 * v).round() / 4.0).collect::<Vec<_>>();
    let (a, b) = (rounded(&mut data), rounded(&mut data));
    let (x, y) = (Scores::new(&a, 20, 3).unwrap(), Scores::new(&b, 20, 3).unwrap());
    let sum = probability_of_improvement(x, y).unwrap() + probability_of_improvement(y, x).unwrap();
    assert!((sum - 1.0).abs() < 1e-14);
    let sum =
        paired_probability_of_improvement(x, y).unwrap() + paired_probability_of_improvement(y, x).unwrap();
    assert!((sum - 1.0).abs() < 1e-14);
    let (forth, back) = (Paired::new(&a, &b).unwrap(), Paired::new(&b, &a).unwrap());
    assert!(forth.sign_test().ties > 0);
    assert_eq!(forth.sign_test().greater(), back.sign_test().less());
    assert_eq!(forth.mean(), -back.mean());
    assert_eq!(forth.sem(), back.sem());
}

/// The unpaired share by sorted search against all pairs, one by one.
#[test]
fn unpaired_improvement_equals_counting_all_pairs() {
    let mut data = Data(4);
    let mut draw = |n: usize| -> Vec<f64> { (0..n).map(|_| (8.0 * data.uniform()).floor()).collect() };
    let (a, b) = (draw(7 * 3), draw(5 * 3));
    let (x, y) = (Scores::new(&a, 7, 3).unwrap(), Scores::new(&b, 5, 3).unwrap());
    let mut counted = 0.0;
    for task in 0..3 {
        for i in x.task(task) {
            for j in y.task(task) {
                counted += if i > j {
                    1.0
                } else if i == j {
                    0.5
                } else {
                    0.0
                };
            }
        }
    }
    assert!((probability_of_improvement(x, y).unwrap() - counted / 105.0).abs() < 1e-14);
}

#[test]
fn affine_maps_move_statistics_as_they_should() {
    let mut data = Data(5);
    let x = data.normals(33);
    let moved: Vec<f64> = x.iter().map(|v| 4.0 * v - 3.0).collect();
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-13, "{a} and {b}");
    near(mean(&moved).unwrap(), 4.0 * mean(&x).unwrap() - 3.0);
    near(variance(&moved).unwrap(), 16.0 * variance(&x).unwrap());
    let (s, t) = (Scores::new(&x, 11, 3).unwrap(), Scores::new(&moved, 11, 3).unwrap());
    near(t.iqm(), 4.0 * s.iqm() - 3.0);
    near(t.median(), 4.0 * s.median() - 3.0);
    let bootstrap = Bootstrap { resamples: 500, ..Bootstrap::from_seed(9) };
    let of = |x: &[f64]| bootstrap.bca(x, |v| mean(v).unwrap()).unwrap();
    near(of(&moved).low, 4.0 * of(&x).low - 3.0);
    near(of(&moved).high, 4.0 * of(&x).high - 3.0);
    let y = data.normals(33);
    near(pearson(&moved, &y).unwrap(), pearson(&x, &y).unwrap());
    near(spearman(&moved, &y).unwrap(), spearman(&x, &y).unwrap());
}

#[test]
fn profiles_fall_and_integrate_to_the_mean() {
    let mut data = Data(6);
    let values: Vec<f64> = (0..40).map(|_| data.uniform()).collect();
    let scores = Scores::new(&values, 10, 4).unwrap();
    let grid: Vec<f64> = (0..=20_000).map(|i| f64::from(i) / 20_000.0).collect();
    let profile = Profile::RunScores.of(scores, &grid).unwrap();
    assert!(profile.windows(2).all(|w| w[1] <= w[0]));
    // ∫₀¹ P(score > τ) dτ is the mean of scores in [0, 1]; the grid leaves half a step.
    assert!((trapezoid(&grid, &profile).unwrap() - scores.mean()).abs() < 2.5e-5);
    let band = Profile::RunScores.band(scores, &[0.2, 0.8], &Bootstrap::from_seed(1)).unwrap();
    for (interval, share) in band.iter().zip(Profile::RunScores.of(scores, &[0.2, 0.8]).unwrap()) {
        assert!(interval.contains(share) && interval.half_width() > 0.0);
    }
}
