//! What each part of the loss is for. Seeds are fixed; margins are stated.

use super::{curve, curves, recipe, with};
use niwaki_correction::Correction;
use niwaki_train::{Recipe, Record};

fn tail(curve: &[Record], of: fn(&Record) -> f64) -> f64 {
    let tail = &curve[curve.len() / 2..];
    tail.iter().map(of).sum::<f64>() / tail.len() as f64
}

fn long(policy: &str, more: &[&str]) -> Recipe {
    with(policy, &[&["iterations=40"], more].concat())
}

#[test]
fn every_policy_learns_late_only() {
    for (policy, rate) in [("tabular", "1.0"), ("bag", "0.3"), ("causal", "0.3")] {
        let rate = format!("optimiser.rate={rate}");
        let last = curve(&long(policy, &["task.kind=late-only", &rate])).last().unwrap().eta.unwrap();
        // A policy at random earns 0.25.
        assert!(last > 0.6, "{policy}: {last}");
    }
}

#[test]
fn the_pointer_learns_to_be_on_time() {
    let settings = ["task.deadline=1.0", "task.jobs=6", "optimiser.rate=0.1", "update.reuse=6"];
    let curve = curve(&long("pointer", &settings));
    let reward = |part: &[Record]| part.iter().map(|record| record.batch_reward).sum::<f64>() / 5.0;
    let (first, last) = (reward(&curve[..5]), reward(&curve[35..]));
    assert!(last > first + 0.2, "{first} {last}");
}

#[test]
fn a_critic_learns_what_states_are_worth() {
    // Advantages around a critic that knows the values have less spread than around one that says zero: with λ = 1
    // the spread is the value loss itself.
    for (policy, rate) in [("tabular", "optimiser.rate=0.05"), ("causal", "optimiser.rate=0.02")] {
        let settings =
            ["advantage.kind=critic", "advantage.lambda=1.0", "update.value=5.0", "update.clip=0.2", rate];
        let mut cohort = super::cohort(&[long(policy, &settings)]);
        let mut losses = Vec::new();
        for _ in 0..40 {
            cohort.advance().unwrap();
            let advantage = cohort.last_batch(0).advantage;
            losses.push(advantage.iter().map(|a| a * a).sum::<f64>() / advantage.len() as f64);
        }
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let (first, last) = (mean(&losses[..5]), mean(&losses[35..]));
        assert!(last < 0.9 * first, "{policy}: the value loss went from {first} to {last}");
    }
}

#[test]
fn a_reference_keeps_the_policy_nearer() {
    for (policy, rate) in [("tabular", "optimiser.rate=5"), ("bag", "optimiser.rate=1")] {
        // The entropy of a policy that stays near its start stays near the start's.
        let settings = ["task.kind=late-only", "optimiser.kind=sgd", rate];
        let far = curve(&long(policy, &settings));
        let near = curve(&long(policy, &[&settings[..], &["update.reference_kl=0.3"]].concat()));
        let gap = |curve: &[Record]| curve[0].entropy - tail(curve, |record| record.entropy);
        assert!(gap(&near) < 0.5 * gap(&far), "{policy}: {} {}", gap(&near), gap(&far));
    }
}

#[test]
fn an_entropy_bonus_raises_entropy() {
    for policy in super::POLICIES {
        let rate = if policy == "tabular" { "optimiser.rate=1.0" } else { "optimiser.rate=0.1" };
        let task = match policy {
            "decoder" => "task.reward=late-only",
            "writer" => "rollout.lanes=32",
            shop if shop.starts_with("pointer") || super::plays_graphs(shop) => "task.deadline=1.02",
            _ => "task.kind=late-only",
        };
        // Steps of fixed length go to a graph network's critic first, and leave it nearly all of its entropy.
        let graph = ["advantage.kind=returns", "optimiser.kind=adam", "optimiser.rate=0.03"];
        let more = if super::plays_graphs(policy) { &graph[..] } else { &[] };
        let plain = curve(&long(policy, &[&[task, rate], more].concat()));
        let bonus = curve(&long(policy, &[&[task, rate, "update.entropy=1.0"], more].concat()));
        let entropy = |curve: &[Record]| tail(curve, |record| record.entropy);
        assert!(
            entropy(&bonus) > entropy(&plain) + 0.02,
            "{policy}: {} {}",
            entropy(&bonus),
            entropy(&plain)
        );
    }
}

#[test]
fn every_member_of_the_family_trains() {
    let names = [
        "ppo",
        "tempered:0.25",
        "full",
        "truncated:2",
        "clipped:0.25,1",
        "self-normalised",
        "adaptive:0.8",
        "by-length:1.5",
        "outside:0.25",
    ];
    for policy in ["tabular", "bag"] {
        let rate = if policy == "tabular" { "optimiser.rate=1.0" } else { "optimiser.rate=0.3" };
        let members: Vec<Recipe> = names
            .iter()
            .map(|name| {
                let correction = format!("update.correction={name}");
                long(policy, &["task.kind=late-only", rate, &correction])
            })
            .collect();
        let trained = curves(&members);
        for (name, curve) in names.iter().zip(&trained) {
            let last = curve.last().unwrap();
            assert!(last.eta.unwrap() > 0.5, "{policy} {name}: {:?}", last.eta);
            let chooses = name.starts_with("adaptive") || name.starts_with("by-length");
            assert_eq!(last.alpha.is_some(), chooses, "{name}");
        }
        // A member that looks at the whole batch is the same alone as among those that do not.
        assert_eq!(curve(&members[6]), trained[6], "{policy}");
    }
}

#[test]
fn a_strength_by_length_is_that_constant_where_all_lengths_are_one() {
    let alpha = "by-length:1.5".parse::<Correction>().unwrap().rule().at_lengths([6].into_iter()).strength;
    assert!(0.1 < alpha && alpha < 0.3, "{alpha}");
    for policy in ["tabular", "bag"] {
        let run = |correction: &str| {
            let correction = format!("update.correction={correction}");
            curve(&long(policy, &["task.horizon=6", "update.minibatches=4", "iterations=5", &correction]))
        };
        let mut by_length = run("by-length:1.5");
        for record in &mut by_length {
            assert_eq!(record.alpha.take(), Some(alpha));
        }
        assert_eq!(by_length, run(&format!("tempered:{alpha}")), "{policy}");
    }
}

#[test]
fn the_default_run_is_the_papers() {
    // The tabular two-branch run: η begins at the uniform policy's 1/8 and reaches 1.
    let curve = curve(&recipe(&[]));
    assert_eq!(curve.len(), 200);
    assert!((curve[0].eta.unwrap() - 0.125).abs() < 0.05);
    assert!(curve.last().unwrap().eta.unwrap() > 0.95);
}

#[test]
fn measuring_the_spread_over_all_states_changes_nothing_else() {
    for (policy, more) in [("tabular", &["rollout.lanes=4096", "update.minibatches=1"][..]), ("decoder", &[])]
    {
        let short = [&["iterations=3", "evaluate.every=2"], more].concat();
        let plain = curve(&with(policy, &short));
        let mut measured = curve(&with(policy, &[&short[..], &["evaluate.drift=true"]].concat()));
        let found: Vec<Option<f64>> = measured.iter().map(|record| record.conditional_drift).collect();
        // Measured where η is: after the second iteration and after the last one.
        assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, true], "{policy}");
        for record in &mut measured {
            if policy == "tabular"
                && let Some(within) = record.conditional_drift.filter(|&within| within > 1e-6)
            {
                // Within states it is less than across trajectories, of which 4,096 show it to a tenth.
                assert!(within < 1.1 * record.drift, "{within} and {}", record.drift);
            }
            (record.conditional_drift, record.prefix_variance) = (None, None);
        }
        assert_eq!(measured, plain, "{policy}");
    }
}

#[test]
fn weights_kept_in_bf16_lose_small_steps() {
    let adam = ["iterations=3", "optimiser.kind=adam", "optimiser.rate=1e-4"];
    let drift = |storage: &str| -> f64 {
        let curve = curve(&with("causal", &[&adam[..], &[storage]].concat()));
        curve.iter().map(|record| record.drift).sum()
    };
    // A step of 1e-4 is below half a unit of weights above 0.05 or so, and most are; those near zero still move.
    let (whole, rounded) = (drift("optimiser.storage=f32"), drift("optimiser.storage=bf16"));
    assert!(rounded > 0.0 && rounded < 0.8 * whole, "{rounded} and {whole}");
}
