//! Sums over chunks are the diagnostics of one batch, in whatever order they are added.

use crate::support::{measure, number, part, ragged};
use niwaki_advise::measure::{Measure, Settings};
use niwaki_correction::{Batch, Rows, Surrogate, Workspace};

/// Relative to the larger of one and the value.
fn agree(what: &str, came: f64, expected: f64, slack: f64) {
    let same = came.is_nan() && expected.is_nan();
    assert!(
        same || (came - expected).abs() <= slack * expected.abs().max(1.0),
        "{what}: {came} for {expected}"
    );
}

#[test]
fn one_batch_is_what_the_correction_crate_says() {
    for (spread, seed) in [(0.05, 1), (0.3, 2), (1.0, 3)] {
        let mut chunk = ragged(60, 30, spread, seed);
        chunk.lanes.iter_mut().for_each(|lane| lane.iteration = 0);
        let weights: Vec<f64> = chunk.lanes.iter().map(|lane| lane.weight).collect();
        let batch = Batch::new(Rows::ragged(&chunk.offsets), &chunk.new, &chunk.old, &chunk.advantage);
        let full: Surrogate = "full".parse().unwrap();
        let ppo: Surrogate = "ppo".parse().unwrap();
        let (mut one, mut other) = (Workspace::default(), Workspace::default());
        let full = full.evaluate(&batch.weighted(&weights), &mut one).unwrap().diagnostics;
        let ppo = ppo.evaluate(&batch.weighted(&weights), &mut other).unwrap().diagnostics;
        let came = measure(&chunk, Settings::default());
        let norm = |name: &str| {
            let (surrogate, mut work) = (name.parse::<Surrogate>().unwrap(), Workspace::default());
            let values = surrogate.cotangent(&batch.weighted(&weights), &mut work).unwrap();
            values.iter().map(|value| value * value).sum::<f64>().sqrt()
        };
        for row in &came.amplifications {
            let expected = norm(&format!("tempered:{}", row.alpha)) / norm("ppo");
            agree(&format!("amplification at {}", row.alpha), row.amplification, expected, 1e-9);
        }
        agree("amplification", number(&came, "amplification"), norm("tempered:0.1") / norm("ppo"), 1e-9);
        for (name, expected) in [
            ("drift", full.drift),
            ("step_variance", full.step_variance),
            ("kl_k1", full.kl_k1),
            ("kl_k3", full.kl_k3),
            ("chi2_step", full.chi2_step),
            ("chi2_sequence", full.chi2_sequence),
            ("ess", full.ess),
            ("ess_step", full.ess_step),
            ("ess_sequence", full.ess_sequence),
            ("dose", full.dose),
            ("rollout_dose", full.rollout_dose),
            ("zero_signal", full.zero_signal),
            ("clip_fraction", ppo.clip_fraction),
        ] {
            agree(name, number(&came, name), expected, 1e-10);
        }
        assert_eq!((came.facts.steps, came.facts.lanes), (full.steps, full.lanes));
        for (t, row) in came.positions.iter().enumerate() {
            agree("prefix ESS", row.prefix_ess, full.prefix_ess[t], 1e-10);
            agree("clamped ESS", row.prefix_ess_clamped, full.prefix_ess_clamped[t], 1e-10);
            agree("witness", row.bias_witness, full.bias_witness[t], 1e-10);
        }
        // However ragged, the total is what PPO's estimate lacks.
        agree("total", number(&came, "bias_total"), -came.alphas[0].bias, 1e-10);
        let reached = came.positions.iter().filter(|row| row.mass >= 0.1 * came.positions[0].mass);
        let worst = reached.map(|row| row.prefix_ess).fold(f64::NAN, f64::min);
        agree("worst prefix ESS", number(&came, "prefix_ess"), worst, 1e-12);
        // Thirty positions at most, so that the iteration's own row is exact too.
        agree("iteration's drift", came.iterations[0].drift, full.drift, 1e-10);
        agree("iteration's dose", came.iterations[0].dose, full.dose, 1e-10);
    }
}

#[test]
fn chunks_of_any_size_add_up_to_the_batch_to_the_last_bit() {
    let chunk = ragged(200, 150, 0.2, 4);
    let mut whole = Measure::new(Settings::default());
    whole.add(&chunk);
    for size in [1, 33, 199] {
        let mut pieces = Measure::new(Settings::default());
        for start in (0..200).step_by(size) {
            pieces.add(&part(&chunk, start..(start + size).min(200)));
        }
        assert_eq!(pieces.tally(), whole.tally(), "{size}");
    }
}

#[test]
fn huge_drift_is_measured_and_not_a_panic() {
    let chunk = ragged(50, 40, 150.0, 6);
    let came = measure(&chunk, Settings::default());
    let ess = number(&came, "ess");
    assert!(ess.is_finite() && ess > 0.0 && ess < 0.05, "{ess}");
    assert!(came.positions.iter().all(|row| row.prefix_ess > 0.0 && row.prefix_ess <= 1.0 + 1e-12));
    assert!(number(&came, "alpha_floor") < 0.01);
}
