//! Whether batches carry a signal at all (C3): rewards by iteration, and groups without variance.

use super::exact::{Exact, Range};
use crate::trajectory::Lane;
use std::collections::BTreeMap;

/// Rewards and signal of one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rewards {
    /// Trajectories, and those of them with a reward on record.
    pub(crate) lanes: usize,
    pub(crate) known: usize,
    pub(crate) sum: Exact<1>,
    pub(crate) range: Range,
    /// Trajectories whose reward is not zero.
    pub(crate) rewarded: usize,
    /// Trajectories without a group whose advantage was made from the mean of the rewards that were there.
    pub(crate) own_baseline: usize,
}

impl Rewards {
    pub(crate) fn add(&mut self, lane: &Lane) {
        self.lanes += 1;
        self.own_baseline += usize::from(lane.own_baseline && lane.group.is_none());
        let Some(reward) = lane.reward else { return };
        self.known += 1;
        self.sum.add(&[reward]);
        self.range.add(reward);
        self.rewarded += usize::from(reward != 0.0);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.lanes += other.lanes;
        self.known += other.known;
        self.sum.merge(&other.sum);
        self.range.merge(&other.range);
        self.rewarded += other.rewarded;
        self.own_baseline += other.own_baseline;
    }

    /// Whether every reward on record is zero.
    pub(crate) fn all_zero(&self) -> bool {
        self.known > 0 && self.rewarded == 0
    }

    /// Whether every reward on record is the same, so that a baseline leaves nothing.
    pub(crate) fn all_alike(&self) -> bool {
        self.known > 0 && self.range.low == self.range.high
    }

    /// Mean of the rewards on record.
    pub(crate) fn mean(&self) -> f64 {
        self.sum.value(0) / self.known as f64
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

/// What is known of the groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Groups {
    /// By iteration, whose batches are drawn apart, and key.
    known: BTreeMap<(i64, u64), Group>,
}

/// A group in one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Group {
    /// Whether any of its advantages is not zero.
    pub(crate) signal: bool,
    /// Whether its advantages were made of rewards, from the mean of those that were there.
    pub(crate) own_baseline: bool,
}

impl Groups {
    pub(crate) fn add(&mut self, lane: &Lane, silent: bool) {
        if let Some(group) = lane.group {
            self.insert((lane.iteration, group), Group { signal: !silent, own_baseline: lane.own_baseline });
        }
    }

    /// Adds what is known of a group.
    pub(crate) fn insert(&mut self, key: (i64, u64), more: Group) {
        let own = self.known.entry(key).or_default();
        own.signal |= more.signal;
        own.own_baseline |= more.own_baseline;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        other.known.iter().for_each(|(key, more)| self.insert(*key, *more));
    }

    pub(crate) fn each(&self) -> impl ExactSizeIterator<Item = ((i64, u64), Group)> {
        self.known.iter().map(|(key, group)| (*key, *group))
    }

    /// An iteration in which both have a group whose advantages were made of one's own rewards alone.
    pub(crate) fn made_apart(&self, other: &Self) -> Option<i64> {
        let (few, many) = if self.count() < other.count() { (self, other) } else { (other, self) };
        let made = |(key, own): (&(i64, u64), &Group)| {
            many.known.get(key).filter(|there| own.own_baseline || there.own_baseline).map(|_| key.0)
        };
        few.known.iter().find_map(made)
    }

    /// Number of groups, each counted in every iteration that it is drawn in.
    pub(crate) fn count(&self) -> usize {
        self.known.len()
    }

    /// Share of the groups whose advantages are all zero; not a number without groups.
    pub(crate) fn without_signal(&self) -> f64 {
        let silent = self.known.values().filter(|group| !group.signal).count();
        silent as f64 / self.known.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(iteration: i64, group: Option<u64>, reward: f64) -> Lane {
        Lane {
            iteration,
            group,
            weight: 1.0,
            kept: 1.0,
            trainer_version: None,
            reward: Some(reward),
            own_baseline: false,
        }
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
    fn groups_by_hand() {
        let mut groups = Groups::default();
        [7, 8, 7, 9, 7, 8].iter().for_each(|&group| groups.add(&lane(0, Some(group), 0.0), group != 8));
        // The same name in another iteration is drawn anew.
        groups.add(&lane(1, Some(7), 0.0), true);
        groups.add(&lane(1, None, 0.0), true);
        assert_eq!((groups.count(), groups.without_signal()), (4, 0.75));
    }
}
