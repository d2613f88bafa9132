//! The slow, obvious twin: every sequence listed, weighted by its probability, and given to the surrogate. It shares nothing with
//! `estimate/by_listing.rs`, which lists sequences as well: a check must not depend on what it checks.

use crate::support::{CLIPS, assert_near, fixture_tables, listed, losses};
use niwaki_correction::clip::Bounds;
use niwaki_correction::family::{Form, Reads};
use niwaki_correction::log_ratio::{exclusive_prefix, running_minimum, windowed_prefix};
use niwaki_correction::{Batch, Rows, Rule, Surrogate};
use niwaki_exact::{AdvantageSource, Pair, Payoff, Process, Reward, Table, Workspace};

/// What the twin finds.
struct Twin {
    mean: f64,
    variance: f64,
    ess: f64,
    gradient: Vec<f64>,
    gradient_square: f64,
    mean_at: Vec<f64>,
}

/// Every step of every sequence as flat arrays.
struct Steps {
    horizon: usize,
    chance: Vec<f64>,
    edges: Vec<usize>,
    new: Vec<f64>,
    old: Vec<f64>,
    advantage: Vec<f64>,
    entropy: Vec<f64>,
}

fn steps(old: &Table, new: &Table, payoff: &Payoff, pair: &Pair<'_>, source: AdvantageSource) -> Steps {
    let vocab = new.process().vocab();
    let (mut chance, mut edges, mut advantage) = (vec![], vec![], vec![]);
    for (sequence, (probability, path)) in listed(old).into_iter().enumerate() {
        chance.push(probability);
        advantage.extend(path.iter().map(|&edge| match source {
            AdvantageSource::Exact => pair.old_values().advantage()[edge],
            AdvantageSource::Returns => payoff.terminal()[sequence] - pair.old_values().eta(),
        }));
        edges.extend(path);
    }
    let spread = |edge: &usize| {
        let row = &new.prob()[vocab * (edge / vocab)..][..vocab];
        row.iter().map(|chance| -chance * chance.ln()).sum()
    };
    let entropy = edges.iter().map(spread).collect();
    let pick = |values: &[f64]| edges.iter().map(|&edge| values[edge]).collect();
    let (new, old_log_prob) = (pick(new.log_prob()), pick(old.log_prob()));
    Steps { horizon: old.process().horizon(), chance, new, old: old_log_prob, advantage, entropy, edges }
}

fn twin(surrogate: &Surrogate, steps: &Steps, new: &Table) -> Twin {
    let (horizon, process) = (steps.horizon, new.process());
    let batch = Batch::new(Rows::uniform(horizon), &steps.new, &steps.old, &steps.advantage)
        .weighted(&steps.chance)
        .with_entropy(&steps.entropy);
    let mut workspace = niwaki_correction::Workspace::default();
    let evaluation = surrogate.evaluate(&batch, &mut workspace).unwrap();
    // The objective is a mean over steps, the estimate a sum: T times as much.
    let mut gradient = vec![0.0; process.edges()];
    for (&edge, &cotangent) in steps.edges.iter().zip(evaluation.cotangent) {
        gradient[edge] += horizon as f64 * cotangent;
    }
    new.pull_back(&mut gradient);
    let gradient_square = steps
        .chance
        .iter()
        .enumerate()
        .map(|(n, chance)| {
            let of = n * horizon..(n + 1) * horizon;
            let mut alone = vec![0.0; process.edges()];
            for (&edge, &cotangent) in steps.edges[of.clone()].iter().zip(&evaluation.cotangent[of]) {
                alone[edge] += horizon as f64 * cotangent / chance;
            }
            new.pull_back(&mut alone);
            chance * alone.iter().map(|value| value * value).sum::<f64>()
        })
        .sum();
    // What written-out losses say of a step has a twin of its own, beside the surrogate.
    let terms = match surrogate.terms(&batch).unwrap() {
        Some(written) => written.value,
        None => terms(&evaluation.rule, surrogate, steps),
    };
    let estimates: Vec<f64> = terms.chunks_exact(horizon).map(|terms| terms.iter().sum()).collect();
    let expect = |values: &dyn Fn(usize) -> f64| -> f64 {
        steps.chance.iter().enumerate().map(|(n, chance)| chance * values(n)).sum()
    };
    let mean = horizon as f64 * evaluation.objective;
    Twin {
        mean,
        variance: expect(&|n| (estimates[n] - mean).powi(2)),
        ess: evaluation.diagnostics.ess,
        gradient,
        gradient_square,
        mean_at: (0..horizon).map(|t| expect(&|n| terms[n * horizon + t])).collect(),
    }
}

/// The value of every step's term, written out.
fn terms(rule: &Rule, surrogate: &Surrogate, steps: &Steps) -> Vec<f64> {
    let horizon = steps.horizon;
    let ell: Vec<f64> = steps.new.iter().zip(&steps.old).map(|(new, old)| new - old).collect();
    let mut log_factor = vec![0.0; ell.len()];
    for (ell, reading) in ell.chunks_exact(horizon).zip(log_factor.chunks_exact_mut(horizon)) {
        let sum: f64 = ell.iter().sum();
        match rule.reads {
            Reads::Prefix => _ = exclusive_prefix(ell, reading),
            Reads::Window(window) => windowed_prefix(ell, window, reading),
            Reads::Minimum => running_minimum(ell, reading, &mut vec![0; horizon]),
            Reads::Step => reading.copy_from_slice(ell),
            Reads::SequenceMean => reading.fill(sum / horizon as f64),
            Reads::SequenceSum => reading.fill(sum),
        }
        reading.iter_mut().for_each(|reading| *reading = rule.factor(*reading).log_factor);
    }
    if rule.self_normalised {
        for t in 0..horizon {
            let at = |n: usize| n * horizon + t;
            let mean: f64 =
                steps.chance.iter().enumerate().map(|(n, chance)| chance * log_factor[at(n)].exp()).sum();
            (0..steps.chance.len()).for_each(|n| log_factor[at(n)] -= mean.ln());
        }
    }
    (0..ell.len())
        .map(|step| {
            let bounds = match rule.clip(surrogate.clip) {
                Some(clip) if rule.form != Form::Weigh => clip.bounds(step % horizon, rule.growing_clip),
                _ => Bounds::open(),
            };
            let own = if rule.form == Form::Multiply { ell[step] } else { 0.0 };
            bounds.term((log_factor[step] + own).exp(), steps.advantage[step]).0
        })
        .collect()
}

#[test]
fn recursions_agree_with_the_listing_of_every_sequence() {
    let settings = [
        (3, 4, Reward::EarlyGate),
        (4, 5, Reward::TwoBranch),
        (5, 3, Reward::TwoBranch),
        (2, 1, Reward::LateOnly),
        (3, 2, Reward::SparseMatch),
    ];
    for (vocab, horizon, reward) in settings {
        let process = Process::new(vocab, horizon).unwrap();
        let (old, new) = fixture_tables(process);
        let payoff = reward.payoff(process).unwrap();
        let mut workspace = Workspace::default();
        for source in [AdvantageSource::Exact, AdvantageSource::Returns] {
            let pair = Pair::with_advantages(&old, &new, &payoff, source).unwrap();
            let steps = steps(&old, &new, &payoff, &pair, source);
            for (loss, clip, routing) in losses()
                .flat_map(|loss| CLIPS.map(|clip| (loss, clip)))
                .flat_map(|(loss, clip)| [true, false].map(|routing| (loss, clip, routing)))
            {
                let surrogate = Surrogate { clip, routing, ..loss.parse().unwrap() };
                let what = format!("{process}, {source:?}, {loss}, {clip:?}, routing {routing}");
                let twin = twin(&surrogate, &steps, &new);
                let came = pair.measure(&surrogate, &mut workspace).unwrap();
                // A strength that was bisected to 1e-12 may leave ten times as much.
                let loose = if surrogate.correction.rule().ess_floor.is_some() { 10.0 } else { 1.0 };
                let near = |field: &str, came: f64, expected: f64| {
                    assert_near(&format!("{what}: {field}"), &[came], &[expected], loose * 1e-12);
                };
                // Means that cancel to nothing beside their terms, as those of exact advantages alone do, have no digits to compare.
                let nothing = 1e-15 * twin.variance.sqrt();
                let is_nothing = |means: &[f64]| means.iter().all(|mean| mean.abs() <= nothing);
                if is_nothing(&[twin.mean]) && is_nothing(&twin.mean_at) {
                    assert!(is_nothing(&[came.mean]) && is_nothing(&came.mean_at), "{what}: {came:?}");
                } else {
                    near("mean", came.mean, twin.mean);
                    assert_near(&format!("{what}: mean at"), &came.mean_at, &twin.mean_at, loose * 1e-12);
                }
                near("variance", came.variance, twin.variance);
                near("ess", came.ess, twin.ess);
                let gradient = pair.gradient(&surrogate, &mut workspace).unwrap();
                assert_near(&format!("{what}: gradient"), &gradient, &twin.gradient, loose * 1e-11);
                let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
                let norm = dot(&twin.gradient, &twin.gradient).sqrt();
                near("norm", came.gradient_norm, norm);
                near("square", came.gradient_norm.powi(2) + came.gradient_variance, twin.gradient_square);
                let along = dot(&twin.gradient, pair.eta_gradient()) / (norm * pair.eta_gradient_norm());
                if norm > 0.0 {
                    near("cosine", came.cosine, along);
                } else {
                    assert!(came.cosine.is_nan(), "{what}: a gradient of zero has no direction");
                }
            }
        }
    }
}
