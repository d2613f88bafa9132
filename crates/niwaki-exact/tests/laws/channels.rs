//! The two channels and the conditions, against their definitions.

use crate::golden::VARIANTS;
use crate::support::{assert_near, fixture_tables, listed, noise, unclipped};
use niwaki_correction::family::Reads;
use niwaki_exact::{Pair, Payoff, Process, Reward, Table, Workspace};
use serde_json::Value;

/// Δ_t of the paper's equation, both channels, every sequence listed. Shapes: `[horizon][prefixes, vocab]`
fn listed_channels(loss: &str, old: &Table, new: &Table, pair: &Pair<'_>) -> Vec<[Vec<f64>; 2]> {
    let process = old.process();
    let rule = unclipped(loss).correction.rule();
    let ell = |edge: usize| new.log_prob()[edge] - old.log_prob()[edge];
    (0..process.horizon())
        .map(|t| {
            let (mut reweighting, mut routing) = (vec![0.0; process.edges()], vec![0.0; process.edges()]);
            for (chance, edges) in listed(old) {
                // The prefix steps that the factor reads: S_t is windowed where the member is.
                let read: &[usize] = match rule.reads {
                    Reads::Window(window) => &edges[t.saturating_sub(window)..t],
                    Reads::Minimum if t > 0 => {
                        let lowest = (0..t).min_by(|&a, &b| ell(edges[a]).total_cmp(&ell(edges[b]))).unwrap();
                        &edges[lowest..=lowest]
                    }
                    _ => &edges[..t],
                };
                let factor = rule.factor(read.iter().map(|&edge| ell(edge)).sum::<f64>());
                let g = factor.log_factor.exp();
                let signal = chance * ell(edges[t]).exp() * pair.old_values().advantage()[edges[t]];
                reweighting[edges[t]] += signal * (g - 1.0);
                read.iter().for_each(|&edge| routing[edge] += signal * g * factor.slope);
            }
            new.pull_back(&mut reweighting);
            new.pull_back(&mut routing);
            [reweighting, routing]
        })
        .collect()
}

#[test]
fn channels_are_those_of_the_equation_at_every_position() {
    let process = Process::new(3, 4).unwrap();
    let (old, new) = fixture_tables(process);
    let pair = Pair::new(&old, &new, &Reward::TwoBranch.payoff(process).unwrap()).unwrap();
    let mut workspace = Workspace::default();
    let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let along = |x: &[f64]| {
        x.iter().zip(pair.eta_gradient()).map(|(x, eta)| x * eta).sum::<f64>() / pair.eta_gradient_norm()
    };
    for loss in ["ppo", "full", "tempered:0.25", "truncated:1", "truncated:2", "clipped:0.9,0.2", "minpro"] {
        let came = pair.channels(&unclipped(loss), &mut workspace).unwrap();
        let expected = listed_channels(loss, &old, &new, &pair);
        for (t, [reweighting, routing]) in expected.iter().enumerate() {
            let what = format!("{loss} at {t}");
            let (reweighted, routed) = came.at[t];
            assert_near(
                &what,
                &[reweighted.norm, reweighted.along_eta],
                &[norm(reweighting), along(reweighting)],
                1e-12,
            );
            assert_near(&what, &[routed.norm, routed.along_eta], &[norm(routing), along(routing)], 1e-12);
        }
        let total = |channel: usize| -> Vec<f64> {
            (0..process.edges()).map(|edge| expected.iter().map(|at| at[channel][edge]).sum()).collect()
        };
        assert_near(loss, &came.reweighting, &total(0), 1e-12);
        assert_near(loss, &came.routing, &total(1), 1e-12);
        assert_near(loss, &[came.routing_total.norm], &[norm(&came.routing)], 1e-15);
    }
}

#[test]
fn the_gradient_difference_is_reweighting_plus_routing() {
    let process = Process::new(4, 6).unwrap();
    let (old, new) = fixture_tables(process);
    let mut workspace = Workspace::default();
    for reward in Reward::LADDER {
        let pair = Pair::new(&old, &new, &reward.payoff(process).unwrap()).unwrap();
        let ppo = pair.gradient(&unclipped("ppo"), &mut workspace).unwrap();
        for loss in crate::support::losses() {
            let channels = pair.channels(&unclipped(loss), &mut workspace).unwrap();
            let sum: Vec<f64> =
                channels.reweighting.iter().zip(&channels.routing).map(|(one, two)| one + two).collect();
            let gradient = pair.gradient(&unclipped(loss), &mut workspace).unwrap();
            let difference: Vec<f64> = gradient.iter().zip(&ppo).map(|(one, two)| one - two).collect();
            let off = difference.iter().zip(&sum).map(|(one, two)| (one - two).abs()).fold(0.0, f64::max);
            assert!(off < 1e-16, "{reward}, {loss}: {off:e}");
        }
    }
}

#[test]
fn golden_channels_and_witnesses() {
    let golden: Value = serde_json::from_str(include_str!("../fixtures/testbed.json")).unwrap();
    let rewards = ["early", "late", "sparse", "twobranch"];
    for (name, process) in [("V3T4", Process::new(3, 4).unwrap()), ("V4T6", Process::new(4, 6).unwrap())] {
        let (old, new) = fixture_tables(process);
        let mut workspace = Workspace::default();
        for (key, reward) in rewards.into_iter().zip(Reward::LADDER) {
            let golden = &golden[name]["rewards"][key];
            let pair = Pair::new(&old, &new, &reward.payoff(process).unwrap()).unwrap();
            // PPO has no channels.
            for (variant, loss) in &VARIANTS[1..] {
                let golden = &golden["variants"][variant];
                let came = pair.channels(&unclipped(loss), &mut workspace).unwrap();
                let expected = ["reweight_norm", "credit_norm"].map(|key| golden[key].as_f64().unwrap());
                let norms = [came.reweighting_total.norm, came.routing_total.norm];
                for (came, expected) in norms.into_iter().zip(expected) {
                    assert_near(&format!("{name} {key} {loss}"), &[came], &[expected], 1e-12);
                }
            }
            let witnesses = golden["b_t"].as_array().unwrap();
            for (t, (came, expected)) in pair.conditions().bias_witness.iter().zip(witnesses).enumerate() {
                let expected = expected.as_f64().unwrap();
                assert_near(&format!("{name} {key} b at {t}"), &[*came], &[expected], 1e-12);
            }
        }
    }
}

#[test]
fn conditional_means_by_listing() {
    let process = Process::new(3, 3).unwrap();
    let (old, new) = fixture_tables(process);
    let pair = Pair::new(&old, &new, &Reward::EarlyGate.payoff(process).unwrap()).unwrap();
    let means = pair.conditional_means();
    // h(s) = Σ_a π_old r A z and Ā(s) = Σ_a π_old r A, written out.
    let mut content: Vec<f64> = (0..process.edges())
        .map(|edge| {
            let ratio = (new.log_prob()[edge] - old.log_prob()[edge]).exp();
            old.prob()[edge] * ratio * pair.old_values().advantage()[edge]
        })
        .collect();
    let mean: Vec<f64> = content.chunks_exact(3).map(|row| row.iter().sum()).collect();
    new.pull_back(&mut content);
    assert_near("content", &means.content, &content, 1e-13);
    assert_near("mean advantage", &means.mean_advantage, &mean, 1e-13);
}

#[test]
fn conditions_tell_the_rungs_apart() {
    let process = Process::new(4, 6).unwrap();
    let old = Table::new(process, &noise(process.edges(), 1, 0.1)).unwrap();
    let new: Vec<f64> =
        old.log_prob().iter().zip(noise(process.edges(), 2, 0.6)).map(|(x, by)| x + by).collect();
    let new = Table::new(process, &new).unwrap();
    let conditions = |payoff: &Payoff| Pair::new(&old, &new, payoff).unwrap().conditions();
    let sealed = conditions(&Payoff::from_fn(process, |tokens| f64::from(tokens[0] == 0)).unwrap());
    let [early, late, sparse, branch] =
        Reward::LADDER.map(|reward| conditions(&reward.payoff(process).unwrap()));
    // C1: a reward sealed by the first token has no content later, and no drift to meet.
    assert!(sealed.lateness < 1e-12 && sealed.contested_drift < 1e-12 && sealed.dose < 1e-15);
    assert!(late.lateness > 0.9 && branch.lateness > 0.6 && early.lateness < late.lateness);
    assert!(late.contested_drift > early.contested_drift);
    assert!(sparse.dose > 0.0);
}

#[test]
fn the_witness_is_silent_where_every_prefix_is_as_good() {
    // Uniform rollouts and one shift of the logits for all prefixes: after any prefix late-only offers the same,
    // so C2 fails exactly. The two-branch reward tells prefixes apart.
    let process = Process::new(4, 6).unwrap();
    let shift = [0.5, -0.3, 0.8, 0.1];
    let new: Vec<f64> = (0..process.edges()).map(|edge| shift[edge % 4]).collect();
    let (old, new) = (Table::uniform(process), Table::new(process, &new).unwrap());
    let conditions =
        |reward: Reward| Pair::new(&old, &new, &reward.payoff(process).unwrap()).unwrap().conditions();
    let (late, branch) = (conditions(Reward::LateOnly), conditions(Reward::TwoBranch));
    let shared = |at: &[f64]| at.iter().copied().fold(0.0, f64::max);
    assert!(late.contested_drift > 0.5 && late.dose < 1e-15, "{late:?}");
    assert!(shared(&late.shared_covariance_at) < 1e-15 && shared(&late.content_covariance_at) > 1e-4);
    assert!(branch.dose > 1e-3 && shared(&branch.shared_covariance_at) > 1e-3, "{branch:?}");
}
