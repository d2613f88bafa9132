//! Values of an independent implementation that lists every sequence in extended precision.
//!
//! `fixtures/testbed.json` names its formulas: logits 0.1·sin(1 + j) and that plus 0.7·cos(2 + 3j) with
//! j = 4p + a, prefixes breadth first. Its logits were kept in extended precision too, so ours differ from them
//! by the rounding to f64 (about 1e-16).

use crate::support::{fixture_tables, unclipped};
use niwaki_exact::{Pair, Payoff, Process, Reward, Table, Workspace};
use serde_json::Value;

pub(crate) const REWARDS: [(&str, Reward); 4] = [
    ("early", Reward::EarlyGate),
    ("late", Reward::LateOnly),
    ("sparse", Reward::SparseMatch),
    ("twobranch", Reward::TwoBranch),
];

pub(crate) const VARIANTS: [(&str, &str); 12] = [
    ("ppo", "ppo"),
    ("temp_0.05", "tempered:0.05"),
    ("temp_0.1", "tempered:0.1"),
    ("temp_0.25", "tempered:0.25"),
    ("temp_0.5", "tempered:0.5"),
    ("temp_1.0", "full"),
    ("trunc_1", "truncated:1"),
    ("trunc_2", "truncated:2"),
    ("trunc_4", "truncated:4"),
    ("clip_0.1_1.0", "clipped:0.1,1"),
    ("clip_0.25_1.0", "clipped:0.25,1"),
    ("clip_0.25_2.0", "clipped:0.25,2"),
];

fn golden() -> Value {
    serde_json::from_str(include_str!("../fixtures/testbed.json")).unwrap()
}

/// Relative agreement; values that are zero in exact arithmetic (bias of the full correction) must be below
/// 1e-15.
fn check(what: &str, came: f64, expected: f64) {
    let off = (came - expected).abs();
    let close = if expected.abs() < 1e-18 { off < 1e-15 } else { off <= 1e-12 * expected.abs() };
    assert!(close, "{what}: {came:e} came, {expected:e} expected, off by {:e}", off / expected.abs());
}

fn check_all(what: &str, came: &[f64], expected: &Value) {
    let expected = expected.as_array().unwrap();
    assert_eq!(came.len(), expected.len(), "{what}");
    for (index, (&came, expected)) in came.iter().zip(expected).enumerate() {
        check(&format!("{what}[{index}]"), came, expected.as_f64().unwrap());
    }
}

#[test]
fn every_variant_on_every_reward() {
    let golden = golden();
    for (name, process) in [("V3T4", Process::new(3, 4).unwrap()), ("V4T6", Process::new(4, 6).unwrap())] {
        let golden = &golden[name];
        let (old, new) = fixture_tables(process);
        assert_eq!(golden["P"], process.prefixes());
        let mut workspace = Workspace::default();
        for (key, reward) in REWARDS {
            let golden = &golden["rewards"][key];
            let payoff = reward.payoff(process).unwrap();
            let pair = Pair::new(&old, &new, &payoff).unwrap();
            let what = format!("{name} {key}");
            check(&format!("{what} Σ R"), payoff.terminal().iter().sum(), golden["sumR"].as_f64().unwrap());
            let eta = |key: &str| golden[key].as_f64().unwrap();
            check(&format!("{what} η old"), pair.old_values().eta(), eta("eta_old"));
            check(&format!("{what} η new"), pair.new_values().eta(), eta("eta_new"));
            let root = &pair.old_values().advantage()[..process.vocab()];
            check_all(&format!("{what} A"), root, &golden["adv_root"]);
            for (variant, loss) in VARIANTS {
                let golden = &golden["variants"][variant];
                let came = pair.measure(&unclipped(loss), &mut workspace).unwrap();
                for (field, came) in [
                    ("mean", came.mean),
                    ("bias", came.bias),
                    ("var", came.variance),
                    ("mse", came.mse),
                    ("cos", came.cosine),
                    ("ess", came.ess),
                    ("grad_norm_est", came.gradient_norm),
                    ("grad_norm_eta", pair.eta_gradient_norm()),
                ] {
                    check(&format!("{what} {loss} {field}"), came, golden[field].as_f64().unwrap());
                }
            }
        }
    }
}

#[test]
fn kl_at_every_position() {
    let golden = golden();
    for (name, process) in [("V3T4", Process::new(3, 4).unwrap()), ("V4T6", Process::new(4, 6).unwrap())] {
        let (old, new) = fixture_tables(process);
        let payoff = Reward::LateOnly.payoff(process).unwrap();
        let drift = Pair::new(&old, &new, &payoff).unwrap().drift();
        check(&format!("{name} KL"), drift.mean_kl, golden[name]["klbar"].as_f64().unwrap());
        check_all(&format!("{name} KL"), &drift.kl_at, &golden[name]["kl_per_position"]);
    }
}

#[test]
fn uniform_policies() {
    let golden = golden();
    let process = Process::new(4, 6).unwrap();
    let table = Table::uniform(process);
    let mut workspace = Workspace::default();
    // 11/320, 3/16 and 7/64 by hand: late-only pays with chance ¼, so ¼·¾; two-branch with ⅛, so ⅛·⅞; the early
    // gate has E[R²] = ½·(5·¼ + 20·1/16)/25 = 1/20 less 1/64.
    let by_hand = [11.0 / 320.0, 3.0 / 16.0, 4095.0 / 4096.0 / 4096.0, 7.0 / 64.0];
    for ((key, reward), by_hand) in REWARDS.into_iter().zip(by_hand) {
        let payoff: Payoff = reward.payoff(process).unwrap();
        let pair = Pair::new(&table, &table, &payoff).unwrap();
        let golden = &golden["uniform"][key];
        check(key, pair.old_values().eta(), golden["eta_uniform"].as_f64().unwrap());
        for loss in ["ppo", "full", "clipped:0.25,1"] {
            let came = pair.measure(&unclipped(loss), &mut workspace).unwrap();
            check(key, came.variance, golden["var_uniform"].as_f64().unwrap());
            check(key, came.variance, by_hand);
        }
    }
}
