//! Three policies on a process that is listed whole: the engine that sampled, the old policy, the one now.

use crate::support::{assert_near, listed, noise};
use niwaki_correction::{Batch, Clip, Correction, Rows, Surrogate, Workspace};
use niwaki_exact::{Pair, Process, Reward, Table};

const VOCAB: usize = 3;
const STEPS: usize = 4;

/// All sequences with their probabilities under the sampler, and what three policies say of each step.
struct Listed {
    process: Process,
    chance: Vec<f64>,
    edges: Vec<usize>,
    policies: [Table; 3],
    advantage: Vec<f64>,
    eta: Vec<f64>,
}

impl Listed {
    fn new(seed: u64) -> Self {
        let process = Process::new(VOCAB, STEPS).unwrap();
        let payoff = Reward::TwoBranch.payoff(process).unwrap();
        let old = noise(process.edges(), seed, 0.7);
        let moved = |by: u64, size: f64| -> Vec<f64> {
            old.iter().zip(noise(process.edges(), seed + by, size)).map(|(old, by)| old + by).collect()
        };
        let table = |logits: &[f64]| Table::new(process, logits).unwrap();
        let policies = [table(&moved(100, 0.4)), table(&old), table(&moved(200, 0.5))];
        let pair = Pair::new(&policies[1], &policies[2], &payoff).unwrap();
        let (advantage, eta) = (pair.old_values().advantage().to_vec(), pair.eta_gradient().to_vec());
        let sequences = listed(&policies[0]);
        Self {
            process,
            chance: sequences.iter().map(|(chance, _)| *chance).collect(),
            edges: sequences.into_iter().flat_map(|(_, edges)| edges).collect(),
            policies,
            advantage,
            eta,
        }
    }

    fn at_edges(&self, of: &[f64]) -> Vec<f64> {
        self.edges.iter().map(|&edge| of[edge]).collect()
    }

    /// Value and gradient with respect to the logits now, both of the sum over steps.
    fn evaluate(&self, loss: &Surrogate, weight: Option<&str>) -> (f64, Vec<f64>) {
        let [behaviour, old, new] = [0, 1, 2].map(|at| self.at_edges(self.policies[at].log_prob()));
        let advantage = self.at_edges(&self.advantage);
        let batch = Batch::new(Rows::uniform(STEPS), &new, &old, &advantage)
            .sampled_by(&behaviour)
            .weighted(&self.chance);
        let batch = match weight {
            Some(weight) => batch.decoupled_by(weight.parse::<Correction>().unwrap()),
            None => batch,
        };
        let mut work = Workspace::default();
        let found = loss.evaluate(&batch, &mut work).unwrap();
        let mut gradient = vec![0.0; self.process.edges()];
        for (&edge, cotangent) in self.edges.iter().zip(found.cotangent) {
            gradient[edge] += STEPS as f64 * cotangent;
        }
        self.policies[2].pull_back(&mut gradient);
        (STEPS as f64 * found.objective, gradient)
    }

    /// The decoupled loss as asynchronous trainers write it: each clipped term of PPO times what `cap` makes of the ratio of the old
    /// policy to the sampler's.
    fn by_hand(&self, clip: Clip, cap: impl Fn(f64) -> f64) -> f64 {
        let mut sum = 0.0;
        for (sequence, chance) in self.edges.chunks(STEPS).zip(&self.chance) {
            for &edge in sequence {
                let [engine, old, new] = [0, 1, 2].map(|at| self.policies[at].log_prob()[edge]);
                let (ratio, advantage) = ((new - old).exp(), self.advantage[edge]);
                let clipped = ratio.clamp(1.0 - clip.low, 1.0 + clip.high);
                sum += chance * cap((old - engine).exp()) * (ratio * advantage).min(clipped * advantage);
            }
        }
        sum
    }
}

/// Weights by name and by hand.
type Capped = (&'static str, fn(f64) -> f64);

/// Truncated, and dropped above a cap.
const CAPS: [Capped; 2] =
    [("token-tis:1.1", |w| w.min(1.1)), ("token-mis:0,1.2", |w| if w <= 1.2 { w } else { 0.0 })];

#[test]
fn without_a_correction_it_is_the_decoupled_loss() {
    for seed in 0..6 {
        let listed = Listed::new(seed);
        for (weight, cap) in CAPS {
            let expected = listed.by_hand(Clip::PPO, cap);
            for nothing in ["ppo", "tempered:0"] {
                let (value, _) = listed.evaluate(&nothing.parse().unwrap(), Some(weight));
                assert!((value - expected).abs() < 1e-12, "{seed} {weight}: {value} {expected}");
            }
            // The family's weights around PPO, by the way that main has had: the same value and gradient.
            let around: Surrogate = weight.parse().unwrap();
            let (beside, along) = listed.evaluate(&"ppo".parse().unwrap(), Some(weight));
            let (value, gradient) = listed.evaluate(&around, None);
            assert!((value - beside).abs() < 1e-12);
            assert_near(weight, &along, &gradient, 1e-12);
        }
    }
}

#[test]
fn with_the_whole_correction_the_gradient_is_exact() {
    for seed in 0..6 {
        let listed = Listed::new(seed);
        let whole = Some("sequence-tis:1000000000");
        let full: Surrogate = "tempered:1".parse().unwrap();
        let (_, gradient) = listed.evaluate(&full.without_clip(), whole);
        assert_near("three policies", &gradient, &listed.eta, 1e-12);
        // Neither without the weight, nor without the correction.
        let ppo: Surrogate = "ppo".parse().unwrap();
        let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
        for (loss, weight) in [(ppo, whole), (full, None)] {
            let (_, other) = listed.evaluate(&loss.without_clip(), weight);
            let off: Vec<f64> = other.iter().zip(&listed.eta).map(|(other, eta)| other - eta).collect();
            assert!(norm(&off) > 0.02 * norm(&listed.eta), "{}", norm(&off) / norm(&listed.eta));
        }
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let (new, old, advantage) = ([-1.0, -2.0], [-1.5, -1.0], [1.0, -1.0]);
    let batch = Batch::new(Rows::uniform(2), &new, &old, &advantage);
    let refuse = |batch: Batch<'_, f64>, loss: &str, weight: &str| {
        let loss: Surrogate = loss.parse().unwrap();
        loss.evaluate(&batch.decoupled_by(weight.parse().unwrap()), &mut Workspace::default())
            .unwrap_err()
            .to_string()
    };
    assert!(refuse(batch, "ppo", "token-tis:2").contains("no behaviour_log_prob"));
    let sampled = batch.sampled_by(&old);
    assert!(refuse(sampled, "ppo", "tempered:0.5").contains("must be a constant one"));
    assert!(
        refuse(sampled, "token-tis:2", "token-tis:2")
            .contains("reads the sampling engine's log-probs itself")
    );
    let broken = [f64::NAN, -1.0];
    assert!(refuse(batch.sampled_by(&broken), "ppo", "token-tis:2").contains("behaviour_log_prob[0]"));
}
