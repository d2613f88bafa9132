//! What is known only once all trajectories were seen.

use super::record::Record;
use crate::error::Fault;
use std::collections::BTreeMap;

/// Mean rewards, the baseline where a dump has rewards and no advantages.
#[derive(Clone, Debug, Default)]
pub struct Baselines {
    /// By iteration and group: weighted sum of rewards, and weight.
    sums: BTreeMap<(i64, Option<u64>), (f64, f64)>,
}

impl Baselines {
    /// Adds a trajectory's reward.
    ///
    /// # Errors
    /// Where there is none, or it is not finite.
    pub fn add(&mut self, record: &Record) -> Result<(), Fault> {
        let reward = record.reward()?.ok_or(Fault::NoAdvantage)?;
        let weight = record.weight()?;
        let (sum, mass) = self.sums.entry((record.iteration.unwrap_or(0), record.group)).or_default();
        *sum += weight * reward;
        *mass += weight;
        Ok(())
    }

    /// Reward minus the mean reward of the trajectory's group, or of its iteration where it has no group.
    pub(super) fn advantage(&self, record: &Record, reward: f64) -> f64 {
        let key = (record.iteration.unwrap_or(0), record.group);
        self.sums.get(&key).map_or(0.0, |(sum, mass)| if *mass > 0.0 { reward - sum / mass } else { 0.0 })
    }
}

/// The last use of each batch, where a dump holds several of the same trajectories.
#[derive(Clone, Debug, Default)]
pub struct LastUses {
    ages: BTreeMap<i64, i64>,
}

impl LastUses {
    /// Looks at a trajectory.
    pub fn add(&mut self, record: &Record) {
        let age = self.ages.entry(record.iteration.unwrap_or(0)).or_insert(i64::MIN);
        *age = (*age).max(record.age.unwrap_or(0));
    }

    /// Whether its batch was used again after this.
    #[must_use]
    pub fn is_earlier(&self, record: &Record) -> bool {
        let last = self.ages.get(&record.iteration.unwrap_or(0));
        last.is_some_and(|&last| record.age.unwrap_or(0) < last)
    }
}
