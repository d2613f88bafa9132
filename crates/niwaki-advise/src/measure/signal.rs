//! Whether batches carry a signal at all (C3): rewards by iteration, and groups without variance.

use crate::trajectory::Lane;
use std::collections::BTreeMap;

/// Rewards and signal of one iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rewards {
    /// Trajectories, and those of them with a reward on record.
    pub(crate) lanes: usize,
    pub(crate) known: usize,
    pub(crate) sum: f64,
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
    /// Trajectories whose reward is not zero.
    pub(crate) rewarded: usize,
}

impl Default for Rewards {
    fn default() -> Self {
        let (lowest, highest) = (f64::INFINITY, f64::NEG_INFINITY);
        Self { lanes: 0, known: 0, sum: 0.0, lowest, highest, rewarded: 0 }
    }
}

impl Rewards {
    pub(crate) fn add(&mut self, lane: &Lane) {
        self.lanes += 1;
        let Some(reward) = lane.reward else { return };
        self.known += 1;
        self.sum += reward;
        self.lowest = self.lowest.min(reward);
        self.highest = self.highest.max(reward);
        self.rewarded += usize::from(reward != 0.0);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.lanes += other.lanes;
        self.known += other.known;
        self.sum += other.sum;
        self.lowest = self.lowest.min(other.lowest);
        self.highest = self.highest.max(other.highest);
        self.rewarded += other.rewarded;
    }

    /// Whether every reward on record is zero.
    pub(crate) fn all_zero(&self) -> bool {
        self.known > 0 && self.rewarded == 0
    }

    /// Whether every reward on record is the same, so that a baseline leaves nothing.
    pub(crate) fn all_alike(&self) -> bool {
        self.known > 0 && self.lowest == self.highest
    }

    /// Mean of the rewards on record.
    pub(crate) fn mean(&self) -> f64 {
        self.sum / self.known as f64
    }

    /// Share of trajectories with a reward other than zero.
    pub(crate) fn rewarded_share(&self) -> f64 {
        self.rewarded as f64 / self.known as f64
    }

    /// Chance that a batch of `lanes` trajectories at this rate holds no rewarded one.
    pub(crate) fn chance_of_none(&self, lanes: f64) -> f64 {
        (1.0 - self.rewarded_share()).powf(lanes)
    }
}

/// Groups in order of arrival: the folds they fall into, and whether they carry a signal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    /// Whether any advantage of a group is not zero, by iteration: its batches are drawn apart.
    signal: BTreeMap<(i64, u64), bool>,
    /// The fold of a group, in whichever iteration: trajectories of one prompt resemble one another.
    folds: BTreeMap<u64, usize>,
    alone: usize,
}

impl Groups {
    /// The fold of a trajectory. All trajectories of a group fall into one, so that what they share is not taken
    /// for agreement between independent ones.
    pub(crate) fn fold(&mut self, lane: &Lane, silent: bool, folds: usize) -> usize {
        let Some(group) = lane.group else {
            self.alone += 1;
            return (self.alone - 1) % folds;
        };
        *self.signal.entry((lane.iteration, group)).or_default() |= !silent;
        let next = self.folds.len() % folds;
        *self.folds.entry(group).or_insert(next)
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.alone += other.alone;
        for (key, signal) in &other.signal {
            *self.signal.entry(*key).or_default() |= signal;
        }
        for (group, fold) in &other.folds {
            self.folds.entry(*group).or_insert(*fold);
        }
    }

    /// Number of groups, each counted in every iteration that it is drawn in.
    pub(crate) fn count(&self) -> usize {
        self.signal.len()
    }

    /// Share of the groups whose advantages are all zero; not a number without groups.
    pub(crate) fn without_signal(&self) -> f64 {
        let silent = self.signal.values().filter(|signal| !**signal).count();
        silent as f64 / self.signal.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(iteration: i64, group: Option<u64>, reward: f64) -> Lane {
        Lane { iteration, group, weight: 1.0, reward: Some(reward) }
    }

    #[test]
    fn rewards_by_hand() {
        let mut rewards = Rewards::default();
        [0.0, 0.0, 1.0, 0.0].iter().for_each(|&reward| rewards.add(&lane(0, None, reward)));
        assert!(!rewards.all_zero() && !rewards.all_alike());
        assert_eq!(rewards.rewarded_share(), 0.25);
        // (¾)² = 0.5625.
        assert_eq!(rewards.chance_of_none(2.0), 0.5625);
        let mut none = Rewards::default();
        none.add(&lane(1, None, 0.0));
        assert!(none.all_zero() && none.all_alike());
    }

    #[test]
    fn a_group_stays_in_its_fold() {
        let mut groups = Groups::default();
        let folds: Vec<usize> =
            [7, 8, 7, 9, 7, 8].map(|group| groups.fold(&lane(0, Some(group), 0.0), group != 8, 2)).to_vec();
        assert_eq!(folds, [0, 1, 0, 0, 0, 1]);
        // The same name in another iteration is drawn anew and stays in its fold.
        assert_eq!(groups.fold(&lane(1, Some(7), 0.0), true, 2), 0);
        assert_eq!((groups.count(), groups.without_signal()), (4, 0.75));
        assert_eq!([0, 1, 0].map(|_| groups.fold(&lane(0, None, 0.0), true, 2)), [0, 1, 0]);
    }
}
