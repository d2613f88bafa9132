//! Which fold of the run a trajectory falls into. It follows from the trajectory alone and not from when or where it was added, so
//! that ranks which share a batch fold it as one dump would.

use super::jackknife::FOLDS;
use crate::keys::spread;
use crate::trajectory::Lane;
use std::collections::HashMap;

/// Different trajectories without a group that are remembered, to tell copies apart.
const REMEMBERED: usize = 1 << 20;

/// Trajectories of a group fall into one fold, in whichever iteration, so that what they share is not taken for agreement
/// between independent ones. One without a group falls where its log-probs say, and the copies of it in the same iteration,
/// which are independent draws, where that and their number say: by chance, since copies dealt out evenly would make folds more alike
/// than draws are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folds {
    /// Of the iteration at hand: how many of each trajectory there were.
    copies: HashMap<u64, u64>,
    iteration: i64,
}

impl Folds {
    /// The fold of a trajectory with these log-probs.
    pub(crate) fn of(&mut self, lane: &Lane, old: &[f64], new: &[f64]) -> usize {
        if let Some(group) = lane.group {
            return fold(spread(group));
        }
        let mut key = mixed(lane.iteration as u64);
        for value in old.iter().chain(new) {
            key = (key ^ value.to_bits()).wrapping_mul(ODD).rotate_left(23);
        }
        if lane.iteration != self.iteration {
            self.copies.clear();
            self.iteration = lane.iteration;
        }
        let room = self.copies.len() < REMEMBERED;
        let before = match self.copies.get_mut(&key) {
            Some(count) => std::mem::replace(count, *count + 1),
            None => {
                if room {
                    self.copies.insert(key, 1);
                }
                0
            }
        };
        fold(key.wrapping_add(ODD.wrapping_mul(before)))
    }
}

/// Keys spread evenly over the folds.
fn fold(key: u64) -> usize {
    ((u128::from(mixed(key)) * FOLDS as u128) >> 64) as usize
}

/// An odd number whose bits look random: that of the golden ratio.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64: neighbouring keys far apart.
pub(crate) fn mixed(key: u64) -> u64 {
    let mixed = key.wrapping_add(ODD);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(iteration: i64, group: Option<u64>) -> Lane {
        Lane {
            iteration,
            group,
            weight: 1.0,
            kept: 1.0,
            trainer_version: None,
            reward: None,
            own_baseline: false,
        }
    }

    #[test]
    fn a_group_stays_in_its_fold() {
        let (mut one, mut other) = (Folds::default(), Folds::default());
        for group in 0..50 {
            let first = one.of(&lane(0, Some(group)), &[-1.0], &[-2.0]);
            assert_eq!(other.of(&lane(7, Some(group)), &[-3.0], &[-3.0]), first);
        }
    }

    #[test]
    fn copies_are_told_apart_and_order_does_not_matter() {
        let mut folds = Folds::default();
        let mut add = |value: f64| folds.of(&lane(0, None), &[value], &[value]);
        let first = add(-1.0);
        let other = add(-2.0);
        let mut counts = [0_usize; FOLDS];
        (0..20_000).for_each(|_| counts[add(-1.0)] += 1);
        // As independent draws fall: a thousand each, give or take five standard deviations of 31, and not all the same.
        assert!(counts.iter().all(|count| (845..1155).contains(count)), "{counts:?}");
        assert!(counts.iter().any(|count| count.abs_diff(1000) > 10), "{counts:?}");
        assert!(first < FOLDS);
        let mut late = Folds::default();
        late.of(&lane(0, None), &[-1.0], &[-1.0]);
        assert_eq!(late.of(&lane(0, None), &[-2.0], &[-2.0]), other);
    }

    #[test]
    fn keys_spread_evenly() {
        let mut counts = [0_usize; FOLDS];
        (0..20_000).for_each(|key| counts[fold(key)] += 1);
        // A thousand each, give or take five standard deviations of 31.
        assert!(counts.iter().all(|count| (845..1155).contains(count)), "{counts:?}");
    }
}
