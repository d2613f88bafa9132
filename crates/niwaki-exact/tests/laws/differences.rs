//! Gradients against central differences.

use crate::support::{CLIPS, assert_near, losses, noise, unclipped};
use niwaki_correction::Surrogate;
use niwaki_exact::{AdvantageSource, Pair, Payoff, Process, Reward, Table, Workspace};

const STEP: f64 = 1e-5;

/// Written-out losses that are score steps: what they say has the gradient, not the value, of an objective.
const STOPPED: [&str; 4] = ["vespo", "dppo-tv", "dppo-kl", "dro"];

/// `(f(x + h) − f(x − h)) / 2h` for every logit.
fn differences(logits: &[f64], mut value: impl FnMut(&[f64]) -> f64) -> Vec<f64> {
    let mut logits = logits.to_vec();
    (0..logits.len())
        .map(|index| {
            let at = logits[index];
            logits[index] = at + STEP;
            let above = value(&logits);
            logits[index] = at - STEP;
            let below = value(&logits);
            logits[index] = at;
            (above - below) / (2.0 * STEP)
        })
        .collect()
}

fn setting() -> (Process, Table, Vec<f64>, Payoff) {
    let process = Process::new(3, 3).unwrap();
    let old = noise(process.edges(), 1, 0.3);
    let new: Vec<f64> = old.iter().zip(noise(process.edges(), 2, 0.6)).map(|(old, by)| old + by).collect();
    let payoff = Payoff::from_fn(process, |tokens| (tokens[0] * 5 + tokens[1] * 3 + tokens[2]) as f64 % 7.0);
    (process, Table::new(process, &old).unwrap(), new, payoff.unwrap())
}

#[test]
fn eta() {
    for reward in Reward::LADDER {
        let process = Process::new(4, 3).unwrap();
        let (logits, payoff) = (noise(process.edges(), 3, 0.5), reward.payoff(process).unwrap());
        let old = Table::uniform(process);
        let expected = differences(&logits, |logits| {
            let new = Table::new(process, logits).unwrap();
            Pair::new(&old, &new, &payoff).unwrap().new_values().eta()
        });
        let new = Table::new(process, &logits).unwrap();
        let pair = Pair::new(&old, &new, &payoff).unwrap();
        assert_near(reward.name(), pair.eta_gradient(), &expected, 1e-8);
    }
}

#[test]
fn the_expected_estimate_of_every_member() {
    let (process, old, logits, payoff) = setting();
    let mut workspace = Workspace::default();
    let mut checked = 0;
    for source in [AdvantageSource::Exact, AdvantageSource::Returns] {
        for (loss, clip) in losses().flat_map(|loss| CLIPS.map(|clip| (loss, clip))) {
            let surrogate = Surrogate { clip, ..loss.parse().unwrap() };
            let rule = surrogate.correction.rule();
            // A constant weight and a strength chosen from the batch carry no gradient by definition.
            if rule.weighs() || rule.ess_floor.is_some() || STOPPED.contains(&surrogate.correction.name()) {
                continue;
            }
            let expected = differences(&logits, |logits| {
                let new = Table::new(process, logits).unwrap();
                let pair = Pair::with_advantages(&old, &new, &payoff, source).unwrap();
                pair.measure(&surrogate, &mut workspace).unwrap().mean
            });
            let new = Table::new(process, &logits).unwrap();
            let pair = Pair::with_advantages(&old, &new, &payoff, source).unwrap();
            let gradient = pair.gradient(&surrogate, &mut workspace).unwrap();
            assert_near(&format!("{loss}, {clip:?}, {source:?}"), &gradient, &expected, 1e-7);
            checked += 1;
        }
    }
    // 27 losses less 11 weights and 1 floor, and 10 that are written out, three clips, two sources.
    assert_eq!(checked, 150);
}

#[test]
fn an_adaptive_member_is_the_tempered_one_it_resolves_to() {
    let (process, old, logits, payoff) = setting();
    let new = Table::new(process, &logits).unwrap();
    let pair = Pair::new(&old, &new, &payoff).unwrap();
    let mut workspace = Workspace::default();
    let adaptive = pair.measure(&unclipped("adaptive:0.8"), &mut workspace).unwrap();
    assert!((adaptive.ess - 0.8).abs() < 1e-10, "the floor binds: {}", adaptive.ess);
    let strength = adaptive.rule.strength;
    let tempered = pair.measure(&unclipped(&format!("tempered:{strength}")), &mut workspace).unwrap();
    assert_eq!((adaptive.mean, adaptive.gradient_norm), (tempered.mean, tempered.gradient_norm));
}
