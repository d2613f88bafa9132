//! Sums by position along the trajectory, exact or over runs of neighbouring positions.
//!
//! Owns what is summed at a position; knows nothing of what is made of it.

use super::scaled::Moments;
use super::steps::Steps;
use niwaki_correction::Real;
use niwaki_correction::diagnostics::CLAMP;

/// What is summed at a position, each weighted by trajectory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sum {
    Mass,
    Ell,
    EllSquared,
    Prefix,
    PrefixSquared,
    Clamped,
    ClampedSquared,
    Advantage,
    AdvantageSquared,
    /// r A
    Content,
    ContentSquared,
    /// (R − 1) r A
    Witness,
    /// (R − 1) A
    RolloutWitness,
    /// L r A
    Routed,
    /// A at this step times A at the next.
    Carry,
    /// Mass of the steps that have a next one.
    CarryMass,
}

pub(crate) const SUMS: usize = 16;

/// Sums by position.
///
/// Without a limit every position has sums of its own. With one, a run of `width` neighbouring positions shares
/// them, and `width` doubles until all fit: memory stays bounded however long trajectories are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Positions {
    limit: Option<usize>,
    /// log₂ of the positions that share sums.
    shift: u32,
    sums: Vec<[f64; SUMS]>,
    ratios: Vec<Moments>,
    /// Steps of the longest trajectory.
    longest: usize,
}

impl Positions {
    pub(crate) fn limited(limit: usize) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }

    /// Lets positions share places until there are no more than `limit`, now and later.
    pub(crate) fn limit_to(&mut self, limit: usize) {
        self.limit = Some(limit);
        while self.sums.len() > limit.max(1) {
            self.coarsen();
        }
        self.sums.shrink_to_fit();
        self.ratios.shrink_to_fit();
    }

    /// Number of places, each a position or a run of them.
    pub(crate) fn len(&self) -> usize {
        self.sums.len()
    }

    /// Steps of the longest trajectory.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// log₂ of the positions that share a place.
    pub(crate) fn shift(&self) -> u32 {
        self.shift
    }

    /// Lets at least `2^shift` positions share a place.
    pub(crate) fn share(&mut self, shift: u32) {
        while self.shift < shift {
            self.coarsen();
        }
    }

    pub(crate) fn get(&self, at: usize, sum: Sum) -> f64 {
        self.sums[at][sum as usize]
    }

    /// A weighted mean over the trajectories that reach the place.
    pub(crate) fn mean(&self, at: usize, sum: Sum) -> f64 {
        self.get(at, sum) / self.get(at, Sum::Mass)
    }

    pub(crate) fn ratios(&self, at: usize) -> &Moments {
        &self.ratios[at]
    }

    /// The first position that a place stands for.
    pub(crate) fn start(&self, at: usize) -> usize {
        at << self.shift
    }

    /// Positions that a place stands for.
    pub(crate) fn width(&self, at: usize) -> usize {
        (self.longest - self.start(at)).min(1 << self.shift)
    }

    pub(crate) fn add(&mut self, steps: &Steps, weight: f64) {
        let length = steps.ell.len();
        self.reach(length);
        let shift = self.shift;
        let (ell, ratio, prefix) = (&steps.ell[..length], &steps.ratio[..length], &steps.prefix[..length]);
        let (prefix_ratio, advantage) = (&steps.prefix_ratio[..length], &steps.advantage[..length]);
        for t in 0..length {
            let content = ratio[t] * advantage[t];
            let excess = prefix_ratio[t] - 1.0;
            let clamped = prefix_ratio[t].smaller(CLAMP);
            let next = if t + 1 < length { advantage[t + 1] } else { 0.0 };
            let last = if t + 1 < length { 1.0 } else { 0.0 };
            let terms: [f64; SUMS] = [
                1.0,
                ell[t],
                ell[t] * ell[t],
                prefix[t],
                prefix[t] * prefix[t],
                clamped,
                clamped * clamped,
                advantage[t],
                advantage[t] * advantage[t],
                content,
                content * content,
                excess * content,
                excess * advantage[t],
                prefix[t] * content,
                advantage[t] * next,
                last,
            ];
            let at = t >> shift;
            for (sum, term) in self.sums[at].iter_mut().zip(terms) {
                *sum += weight * term;
            }
            self.ratios[at].add(weight, prefix[t], prefix_ratio[t]);
        }
    }

    /// Makes room for trajectories of `length` steps.
    fn reach(&mut self, length: usize) {
        if length <= self.longest {
            return;
        }
        self.longest = length;
        let needed = |shift: u32| length.div_ceil(1 << shift);
        while self.limit.is_some_and(|limit| needed(self.shift) > limit) {
            self.coarsen();
        }
        self.sums.resize(needed(self.shift), [0.0; SUMS]);
        self.ratios.resize(needed(self.shift), Moments::default());
    }

    /// Joins neighbours two by two.
    fn coarsen(&mut self) {
        let half = self.sums.len().div_ceil(2);
        for at in 0..half {
            let (mut sums, mut ratios) = (self.sums[2 * at], self.ratios[2 * at]);
            if let Some(next) = self.sums.get(2 * at + 1) {
                sums.iter_mut().zip(next).for_each(|(sum, next)| *sum += next);
                ratios.merge(&self.ratios[2 * at + 1]);
            }
            (self.sums[at], self.ratios[at]) = (sums, ratios);
        }
        self.sums.truncate(half);
        self.ratios.truncate(half);
        self.shift += 1;
    }

    /// Adds the sums of others of the same limit.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.reach(other.longest);
        self.share(other.shift);
        for (at, (sums, ratios)) in other.sums.iter().zip(&other.ratios).enumerate() {
            let at = at >> (self.shift - other.shift);
            self.sums[at].iter_mut().zip(sums).for_each(|(sum, other)| *sum += other);
            self.ratios[at].merge(ratios);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use niwaki_correction::Clip;

    fn steps(length: usize, salt: f64) -> Steps {
        let old: Vec<f64> = (0..length).map(|t| -1.0 - (t as f64 * salt).sin().abs()).collect();
        let new: Vec<f64> = (0..length).map(|t| -1.0 - (t as f64 * salt).cos().abs()).collect();
        let mut steps = Steps::default();
        steps.fill(&old, &new, &vec![salt; length], Clip::PPO);
        steps
    }

    #[test]
    fn runs_of_positions_hold_the_sums_of_their_positions() {
        let (mut fine, mut coarse) = (Positions::default(), Positions::limited(4));
        for (length, salt) in [(3, 0.3), (9, 0.7), (6, 1.1)] {
            fine.add(&steps(length, salt), 0.5 + salt);
            coarse.add(&steps(length, salt), 0.5 + salt);
        }
        // Nine positions in at most four runs: runs of four, three of them, the last of one position.
        assert_eq!((coarse.len(), coarse.shift, coarse.width(0), coarse.width(2)), (3, 2, 4, 1));
        for at in 0..3 {
            let own: f64 = (4 * at..(4 * at + 4).min(9)).map(|t| fine.get(t, Sum::Witness)).sum();
            assert!((coarse.get(at, Sum::Witness) - own).abs() < 1e-14);
        }
    }

    #[test]
    fn a_tighter_limit_is_as_if_it_had_always_been() {
        let (mut from_the_start, mut later) = (Positions::limited(2), Positions::limited(64));
        for (length, salt) in [(3, 0.3), (9, 0.7)] {
            from_the_start.add(&steps(length, salt), 1.0);
            later.add(&steps(length, salt), 1.0);
        }
        later.limit_to(2);
        let (of, also) = (&from_the_start, &later);
        assert_eq!((of.len(), of.shift, of.longest), (also.len(), also.shift, also.longest));
        for at in 0..of.len() {
            assert!((of.get(at, Sum::Witness) - also.get(at, Sum::Witness)).abs() < 1e-12);
        }
        later.add(&steps(70, 0.1), 1.0);
        assert!(later.len() <= 2);
    }

    #[test]
    fn merging_is_adding() {
        let parts = [(3, 0.3), (9, 0.7), (6, 1.1), (17, 0.9)];
        for limit in [None, Some(4)] {
            let empty = || Positions { limit, ..Positions::default() };
            let (mut all, mut left, mut right) = (empty(), empty(), empty());
            for (n, (length, salt)) in parts.into_iter().enumerate() {
                all.add(&steps(length, salt), 1.0);
                if n < 2 { left.add(&steps(length, salt), 1.0) } else { right.add(&steps(length, salt), 1.0) }
            }
            for (a, b) in [(&left, &right), (&right, &left)] {
                let mut both = a.clone();
                both.merge(b);
                assert_eq!((both.len(), both.longest), (all.len(), 17));
                for at in 0..all.len() {
                    for sum in 0..SUMS {
                        assert!((both.sums[at][sum] - all.sums[at][sum]).abs() < 1e-12);
                    }
                }
            }
        }
    }
}
