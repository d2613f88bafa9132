//! Trajectories of an iteration, one per line, as `niwaki advise` reads them.

use crate::spec::{AdvantageKind, Recipe};
use crate::trainer::LastBatch;
use serde::{Deserialize, Serialize};

/// One trajectory of a dump.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trajectory {
    /// The iteration it was drawn in, from 1.
    pub iteration: usize,
    /// Which trajectories share its baseline, where they are judged in groups.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub group: Option<usize>,
    /// Log-probabilities of its steps under the policy that drew it.
    pub old_log_prob: Vec<f64>,
    /// The same under the policy after the update.
    pub new_log_prob: Vec<f64>,
    /// Advantages of its steps.
    pub advantage: Vec<f64>,
    /// What it earned.
    pub reward: f64,
}

/// Whether the trajectories of an iteration (from 1) are kept.
pub(super) fn wanted(recipe: &Recipe, iteration: usize) -> bool {
    let every = recipe.spec.dump.every;
    every > 0 && iteration.is_multiple_of(every)
}

/// Trajectories kept up to and with an iteration.
pub(super) fn kept_until(recipe: &Recipe, iteration: usize) -> usize {
    iteration.checked_div(recipe.spec.dump.every).unwrap_or(0) * recipe.spec.rollout.lanes
}

/// The trajectories of a batch.
pub(super) fn trajectories(recipe: &Recipe, batch: &LastBatch) -> Vec<Trajectory> {
    let grouped = recipe.spec.advantage.kind == AdvantageKind::Group;
    let steps = |of: &[f64], lane: usize| of[batch.shape.steps(0, lane..lane + 1)].to_vec();
    let trajectory = |(lane, &reward): (usize, &f64)| Trajectory {
        iteration: batch.iteration,
        group: grouped.then_some(lane / recipe.spec.rollout.group),
        old_log_prob: steps(&batch.rollout, lane),
        new_log_prob: steps(&batch.log_prob, lane),
        advantage: steps(&batch.advantage, lane),
        reward,
    };
    batch.reward.iter().enumerate().map(trajectory).collect()
}
