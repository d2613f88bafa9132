//! Trajectories of an iteration, one per line, as `niwaki advise` reads them; and policies, one per line, for the exact
//! oracle.

use super::folder::{Identity, POLICIES, damaged, disk};
use super::lines::{self, Chain};
use crate::Error;
use crate::record::LastBatch;
use crate::spec::{AdvantageKind, Recipe};
use niwaki_files::read_own;
use serde::{Deserialize, Serialize};
use std::path::Path;

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

/// What a policy says at all prefixes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyTable {
    /// After which iteration; 0 is the policy that the run began with.
    pub iteration: usize,
    /// Logits `[prefixes, vocab]`, prefixes breadth first.
    pub logits: Vec<f64>,
}

/// Policies kept up to and with an iteration: the first one, which is written with the run's beginning, and one for each.
pub(super) fn policies_until(iteration: usize) -> usize {
    if iteration == 0 { 0 } else { iteration + 1 }
}

/// The policies that a run has kept so far, the one that it began with first.
///
/// # Errors
/// Where a line is not as it was written, or the disk refuses.
pub fn read_policies(folder: &Path, identity: &Identity) -> Result<Vec<PolicyTable>, Error> {
    let path = folder.join(POLICIES);
    let bytes = read_own(&path).map_err(|source| disk(&path, source))?;
    let kept: Vec<PolicyTable> =
        lines::read_ended(&path, &bytes, Chain::new(identity, POLICIES, &policies_until))?;
    check_policies(&path, &kept)?;
    Ok(kept)
}

/// Policies are numbered from 0, and all are tables of one size.
pub(super) fn check_policies(path: &Path, kept: &[PolicyTable]) -> Result<(), Error> {
    let size = kept.first().map_or(0, |first| first.logits.len());
    let odd =
        |(place, table): &(usize, &PolicyTable)| table.iteration != *place || table.logits.len() != size;
    match kept.iter().enumerate().find(odd) {
        None => Ok(()),
        Some((place, _)) => Err(damaged(path, format!("line {} is not of iteration {place}", place + 1))),
    }
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
