//! On an enumerated batch every number is the exact oracle's.

use crate::support::{enumerated, measure, number, tables};
use niwaki_advise::measure::Settings;
use niwaki_correction::{Correction, Surrogate};
use niwaki_exact::{AdvantageSource, Pair, Process, Reward, Values, Workspace};

fn close(what: &str, came: f64, exact: f64) {
    assert!((came - exact).abs() <= 1e-10 * exact.abs().max(1.0), "{what}: {came} for {exact}");
}

#[test]
fn numbers_are_the_oracles() {
    for (reward, drift) in [(Reward::TwoBranch, 0.7), (Reward::LateOnly, 0.2), (Reward::EarlyGate, 1.0)] {
        let process = Process::new(4, 5).unwrap();
        let (old, new) = tables(process, drift, 3);
        let payoff = reward.payoff(process).unwrap();
        let pair = Pair::new(&old, &new, &payoff).unwrap();
        let (exact, conditions) = (pair.drift(), pair.conditions());
        let chunk = enumerated(&old, &new, pair.old_values());
        let came = measure(&chunk, Settings::default());

        close("k1", number(&came, "kl_k1"), exact.mean_kl);
        close("k3", number(&came, "kl_k3"), exact.mean_kl);
        close("chi2 of steps", number(&came, "chi2_step"), exact.chi2_step);
        close("chi2 of sequences", number(&came, "chi2_sequence"), exact.chi2_sequence);
        close("sequence ESS", number(&came, "ess_sequence"), 1.0 / (1.0 + exact.chi2_sequence));
        close("dose", number(&came, "dose"), conditions.dose);
        for (t, row) in came.positions.iter().enumerate() {
            close("prefix ESS", row.prefix_ess, exact.prefix_ess_at[t]);
            close("prefix rms", row.prefix_rms, exact.prefix_rms_at[t]);
            close("witness", row.bias_witness, conditions.bias_witness[t]);
            close("covariance", row.witness_covariance, conditions.bias_witness_covariance[t]);
        }
        // The spread across a position bounds the spread within its states.
        assert!(number(&came, "step_variance") >= exact.step_variance);

        let mut work = Workspace::default();
        for row in &came.alphas {
            let loss = Surrogate::new(Correction::tempered(row.alpha).unwrap());
            let measured = pair.measure(&loss.without_clip(), &mut work).unwrap();
            close("bias", row.bias, measured.bias);
            close("variance", row.variance, measured.variance);
            close("ESS", row.ess, measured.ess);
        }
        // PPO's bias is what the correction would add, with the other sign. Paper: eq:bias-witness
        close("total", number(&came, "bias_total"), -came.alphas[0].bias);
        // Exact advantages are centred in every state: nothing is carried from step to step.
        close("carry", number(&came, "advantage_carry"), 0.0);
        close("mean advantage", number(&came, "mean_advantage"), 0.0);
    }
}

#[test]
fn the_floor_is_the_adaptive_members() {
    let process = Process::new(4, 5).unwrap();
    let payoff = Reward::TwoBranch.payoff(process).unwrap();
    for (drift, floor) in [(0.7, 0.9), (0.7, 0.5), (1.2, 0.8), (0.05, 0.9)] {
        let (old, new) = tables(process, drift, 5);
        let pair = Pair::new(&old, &new, &payoff).unwrap();
        let chunk = enumerated(&old, &new, pair.old_values());
        let came = measure(&chunk, Settings { ess_floor: floor, ..Settings::default() });
        let adaptive: Surrogate = format!("adaptive:{floor}").parse().unwrap();
        let exact = pair.measure(&adaptive.without_clip(), &mut Workspace::default()).unwrap();
        // Between the kept powers the weights are interpolated: four digits, far more than the data has.
        let (came, exact) = (number(&came, "alpha_floor"), exact.rule.strength);
        assert!((came - exact).abs() < 1e-4, "drift {drift}, floor {floor}: {came} for {exact}");
    }
}

#[test]
fn returns_are_carried_whole() {
    let process = Process::new(3, 4).unwrap();
    let (old, new) = tables(process, 0.4, 9);
    let payoff = Reward::TwoBranch.payoff(process).unwrap();
    let values = Values::new(&old, &payoff).unwrap();
    let mut chunk = enumerated(&old, &new, &values);
    for (lane, row) in chunk.offsets.clone().windows(2).enumerate() {
        chunk.advantage[row[0]..row[1]].fill(payoff.terminal()[lane] - values.eta());
    }
    let came = measure(&chunk, Settings::default());
    close("carry", number(&came, "advantage_carry"), 1.0);
    close("constant", number(&came, "constant_advantage"), 1.0);
    let pair = Pair::with_advantages(&old, &new, &payoff, AdvantageSource::Returns).unwrap();
    close("dose", number(&came, "dose"), pair.conditions().dose);
}
