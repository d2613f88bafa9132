//! Losses that are written out step by step, where the normal form cannot say them.
//!
//! A member whose factor depends on the sign of the advantage, on a divergence of the two policies, on entropies or on
//! statistics of the whole batch brings a function over [`Steps`] instead: weights from outside, or terms with their exact
//! derivatives. They are worked out in `f64`, one trajectory after the other; what they say is held to finite differences.

use super::{Reads, Rule};
use crate::Clip;
use crate::clip::Bounds;
use crate::family::MOST;
use crate::log_ratio::{exclusive_prefix, running_minimum, windowed_prefix};
use std::ops::Range;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// What a member's own function makes of a batch.
#[derive(Clone, Copy, Debug)]
pub enum Acts {
    /// One weight per step, not negative, from outside and without a gradient; [`super::Form::Weigh`] says of what.
    Weigh(fn(&Steps<'_>, &[f64; MOST]) -> Vec<f64>),
    /// One term per step, with its derivatives.
    Term(fn(&Steps<'_>, &[f64; MOST]) -> Terms),
    /// The same by a function of the user's own.
    Call(Called),
}

/// A function of the user's own, which lives as long as the program.
#[derive(Clone, Copy)]
pub struct Called(pub(super) &'static (dyn Fn(&Steps<'_>) -> Terms + Send + Sync));

// It is called with what it reads and returns what it makes of it: a panic in it leaves nothing of ours half changed.
impl UnwindSafe for Called {}
impl RefUnwindSafe for Called {}

impl std::fmt::Debug for Called {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a function")
    }
}

/// A loss that is written out.
#[derive(Debug)]
pub struct Shape {
    /// The member's name.
    pub name: &'static str,
    /// Its function.
    pub acts: Acts,
    /// Whether it looks at the whole batch before it weighs one step.
    pub coupled: bool,
    /// Whether it pulls at steps without an advantage.
    pub pulls_always: bool,
    /// Whether the batch must know the entropy of the policy at each step.
    pub needs_entropy: bool,
}

impl Shape {
    /// A loss that looks at one trajectory at a time and needs nothing but log-probs and advantages.
    #[must_use]
    pub const fn new(name: &'static str, acts: Acts) -> Self {
        Self { name, acts, coupled: false, pulls_always: false, needs_entropy: false }
    }
}

/// A written-out loss with its parameters filled in.
#[derive(Clone, Copy, Debug)]
pub enum Written {
    /// A shape at its parameters.
    Own(&'static Shape, [f64; MOST]),
    /// The product of several weights from outside.
    Product(&'static [Rule]),
}

impl PartialEq for Written {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Own(one, values), Self::Own(other, others)) => one.name == other.name && values == others,
            (Self::Product(one), Self::Product(other)) => one == other,
            _ => false,
        }
    }
}

impl Written {
    fn any(&self, has: fn(&Shape) -> bool) -> bool {
        match self {
            Self::Own(shape, _) => has(shape),
            Self::Product(parts) => {
                parts.iter().any(|rule| rule.written.is_some_and(|written| written.any(has)))
            }
        }
    }

    /// Whether it looks at the whole batch before it weighs one step.
    #[must_use]
    pub fn coupled(&self) -> bool {
        self.any(|shape| shape.coupled)
    }

    /// Whether it pulls at steps without an advantage.
    #[must_use]
    pub fn pulls_always(&self) -> bool {
        self.any(|shape| shape.pulls_always)
    }

    /// Whether the batch must know the entropy of the policy at each step.
    #[must_use]
    pub fn needs_entropy(&self) -> bool {
        self.any(|shape| shape.needs_entropy)
    }

    /// The terms of every step.
    #[must_use]
    pub fn terms(&self, steps: &Steps<'_>) -> Terms {
        match self {
            Self::Own(Shape { acts: Acts::Term(terms), .. }, values) => terms(steps, values),
            Self::Own(Shape { acts: Acts::Call(called), .. }, _) => (called.0)(steps),
            Self::Own(Shape { acts: Acts::Weigh(weights), .. }, values) => {
                steps.weighed(weights(steps, values))
            }
            Self::Product(parts) => {
                let mut product = vec![1.0; steps.len()];
                for rule in *parts {
                    product.iter_mut().zip(weights_of(rule, steps)).for_each(|(all, one)| *all *= one);
                }
                steps.weighed(product)
            }
        }
    }
}

/// The weights of a rule that weighs from outside.
fn weights_of(rule: &Rule, steps: &Steps<'_>) -> Vec<f64> {
    if let Some(Written::Own(Shape { acts: Acts::Weigh(weights), .. }, values)) = &rule.written {
        return weights(steps, values);
    }
    let mut all = Vec::with_capacity(steps.len());
    for row in steps.rows() {
        let ell: Vec<f64> = row.map(|step| steps.outer(step)).collect();
        let mut reading = vec![0.0; ell.len()];
        let sum: f64 = ell.iter().sum();
        match rule.reads {
            Reads::Prefix => _ = exclusive_prefix(&ell, &mut reading),
            Reads::Window(window) => windowed_prefix(&ell, window, &mut reading),
            Reads::Minimum => running_minimum(&ell, &mut reading, &mut vec![0; ell.len()]),
            Reads::Step => reading.copy_from_slice(&ell),
            Reads::SequenceMean => reading.fill(sum / ell.len() as f64),
            Reads::SequenceSum => reading.fill(sum),
        }
        all.extend(reading.into_iter().map(|reading| rule.factor(reading).log_factor.exp()));
    }
    all
}

/// The policy's own steps of a batch, as written-out losses see them.
///
/// Shapes: `[steps]` each, `offsets [lanes + 1]`.
#[derive(Clone, Copy, Debug)]
pub struct Steps<'a> {
    /// Where trajectories begin and end.
    pub offsets: &'a [usize],
    /// Log-probs under the trainable policy.
    pub log_prob: &'a [f64],
    /// Log-probs under the rollout policy.
    pub rollout_log_prob: &'a [f64],
    /// Log-probs of the engine that sampled, where it is another.
    pub behaviour_log_prob: Option<&'a [f64]>,
    /// Log-probs under the policy that a penalty holds on to; the rollout policy where there is none.
    pub reference_log_prob: Option<&'a [f64]>,
    /// Entropy of the trainable policy, where the batch knows it.
    pub entropy: Option<&'a [f64]>,
    /// Advantages.
    pub advantage: &'a [f64],
    /// How much each step's trajectory counts.
    pub mass: &'a [f64],
    /// Whether trajectories count differently.
    pub weighted: bool,
    /// The clip of the objective.
    pub clip: Option<Clip>,
    /// Whether gradients flow from a step's term to other steps.
    pub routing: bool,
}

impl Steps<'_> {
    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.log_prob.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.log_prob.is_empty()
    }

    /// The steps of each trajectory that has any.
    pub fn rows(&self) -> impl Iterator<Item = Range<usize>> {
        self.offsets.windows(2).map(|row| row[0]..row[1]).filter(|row| !row.is_empty())
    }

    /// `ℓ`, the log-ratio of the trainable to the rollout policy.
    #[must_use]
    pub fn ell(&self, step: usize) -> f64 {
        self.log_prob[step] - self.rollout_log_prob[step]
    }

    /// What a weight from outside reads: rollout over behaviour where the batch knows both, `ℓ` where it does not.
    #[must_use]
    pub fn outer(&self, step: usize) -> f64 {
        self.behaviour_log_prob
            .map_or_else(|| self.ell(step), |behaviour| self.rollout_log_prob[step] - behaviour[step])
    }

    /// The log-ratio of the trainable policy to the one that sampled.
    #[must_use]
    pub fn since_sampled(&self, step: usize) -> f64 {
        self.log_prob[step] - self.behaviour_log_prob.unwrap_or(self.rollout_log_prob)[step]
    }

    /// PPO's term under the clip of the objective, and its derivative.
    #[must_use]
    pub fn ppo(&self, step: usize) -> (f64, f64) {
        let bounds = self.clip.map_or_else(Bounds::open, |clip| clip.bounds(0, false));
        let (value, live) = bounds.term(self.ell(step).exp(), self.advantage[step]);
        (value, if live { value } else { 0.0 })
    }

    /// The mean over all steps, each counted by its mass.
    pub fn mean(&self, value: impl Fn(usize) -> f64) -> f64 {
        let sum: f64 = (0..self.len()).map(|step| self.mass[step] * value(step)).sum();
        sum / self.mass.iter().sum::<f64>()
    }

    /// Terms that are made one by one, without credit for other steps: value and derivative of each.
    pub fn each(&self, term: impl FnMut(usize) -> (f64, f64)) -> Terms {
        let (value, own): (Vec<f64>, Vec<f64>) = (0..self.len()).map(term).unzip();
        Terms { routed: vec![0.0; value.len()], factor: vec![1.0; value.len()], value, own }
    }

    /// PPO's terms, each times a weight.
    #[must_use]
    pub fn ppo_times(&self, factor: Vec<f64>) -> Terms {
        let terms = self.each(|step| {
            let (value, own) = self.ppo(step);
            (factor[step] * value, factor[step] * own)
        });
        Terms { factor, ..terms }
    }

    /// What a weight from outside weighs: PPO's terms where the batch knows the engine that sampled, the score step
    /// `w A ∇ log π` where it does not.
    #[must_use]
    pub fn weighed(&self, factor: Vec<f64>) -> Terms {
        if self.behaviour_log_prob.is_some() { self.ppo_times(factor) } else { self.score_step(factor) }
    }

    /// `w A ∇ log π`, without a clip.
    #[must_use]
    pub fn score_step(&self, factor: Vec<f64>) -> Terms {
        let terms =
            self.each(|step| (factor[step] * self.advantage[step], factor[step] * self.advantage[step]));
        Terms { factor, ..terms }
    }

    /// The steps with the highest scores, as many as make up a share of the mass, and one at least.
    #[must_use]
    pub fn top(&self, score: &[f64], share: f64) -> Vec<bool> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by(|&one, &other| score[other].total_cmp(&score[one]));
        let budget = share * self.mass.iter().sum::<f64>();
        let (mut taken, mut chosen) = (0.0, vec![false; self.len()]);
        for (rank, step) in order.into_iter().enumerate() {
            taken += self.mass[step];
            if rank > 0 && taken > budget {
                break;
            }
            chosen[step] = true;
        }
        chosen
    }
}

/// What a written-out loss says of each step, before any mean.
///
/// Shapes: `[steps]` each.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The step's term.
    pub value: Vec<f64>,
    /// Its derivative with respect to the step's own log-prob.
    pub own: Vec<f64>,
    /// What other steps' terms say of this log-prob, less what `own` counts twice.
    pub routed: Vec<f64>,
    /// The weight of the step, for the effective sample size; 1 where the loss has none.
    pub factor: Vec<f64>,
}
