//! Sums by position along the trajectory, exact or over runs of neighbouring positions.
//!
//! Owns what is summed at a position; knows nothing of what is made of it.

use super::exact::Exact;
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
    /// R
    Weight,
    /// R²
    WeightSquared,
}

pub(crate) const SUMS: usize = 18;

/// Prefix log-ratios up to this are exponentiated as they are; their squares still fit.
const ROOM: f64 = 300.0;

/// Running sums by position.
///
/// A run of `2^shift` neighbouring positions shares its sums, and the shift grows until no more than `limit` places are
/// needed: memory stays bounded however long trajectories are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Places {
    pub(super) limit: usize,
    /// log₂ of the positions that share sums.
    pub(super) shift: u32,
    pub(super) sums: Vec<Exact<SUMS>>,
    /// Steps of the longest trajectory.
    pub(super) longest: usize,
}

impl Places {
    /// No sums yet, and at most `limit` places.
    pub(crate) fn limited(limit: usize) -> Self {
        Self { limit: limit.max(1), shift: 0, sums: Vec::new(), longest: 0 }
    }

    /// Lets positions share places until there are no more than `limit`, now and later.
    pub(crate) fn limit_to(&mut self, limit: usize) {
        self.limit = limit.max(1);
        while self.sums.len() > self.limit {
            self.coarsen();
        }
        self.sums.shrink_to_fit();
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
            let near = prefix[t].abs() <= ROOM;
            let whole = if near { prefix_ratio[t] } else { 0.0 };
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
                whole,
                whole * whole,
            ];
            let sums = &mut self.sums[t >> shift];
            sums.add(&terms.map(|term| weight * term));
            if !near {
                sums.add_far_one(Sum::Weight as usize, weight, prefix[t]);
                sums.add_far_one(Sum::WeightSquared as usize, weight, 2.0 * prefix[t]);
            }
        }
    }

    /// Makes room for trajectories of `length` steps.
    fn reach(&mut self, length: usize) {
        if length <= self.longest {
            return;
        }
        self.longest = length;
        let needed = |shift: u32| length.div_ceil(1 << shift);
        while needed(self.shift) > self.limit {
            self.coarsen();
        }
        self.sums.resize(needed(self.shift), Exact::default());
    }

    /// Joins neighbours two by two.
    fn coarsen(&mut self) {
        let half = self.sums.len().div_ceil(2);
        for at in 0..half {
            let mut sums = self.sums[2 * at];
            if let Some(next) = self.sums.get(2 * at + 1) {
                sums.merge(next);
            }
            self.sums[at] = sums;
        }
        self.sums.truncate(half);
        self.shift += 1;
    }

    /// Adds the sums of others of the same limit.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.reach(other.longest);
        self.share(other.shift);
        for (at, sums) in other.sums.iter().enumerate() {
            self.sums[at >> (self.shift - other.shift)].merge(sums);
        }
    }

    /// The sums as floats.
    pub(crate) fn read(&self) -> Positions {
        let row = |sums: &Exact<SUMS>| std::array::from_fn(|at| sums.value(at));
        let ratios = |sums: &Exact<SUMS>| Moments {
            first: sums.far(Sum::Weight as usize),
            second: sums.far(Sum::WeightSquared as usize),
        };
        Positions {
            shift: self.shift,
            longest: self.longest,
            sums: self.sums.iter().map(row).collect(),
            ratios: self.sums.iter().map(ratios).collect(),
        }
    }
}

/// Sums by position, as they are read.
#[derive(Clone, Debug)]
pub(crate) struct Positions {
    shift: u32,
    longest: usize,
    sums: Vec<[f64; SUMS]>,
    ratios: Vec<Moments>,
}

impl Positions {
    /// Number of places, each a position or a run of them.
    pub(crate) fn len(&self) -> usize {
        self.sums.len()
    }

    /// Steps of the longest trajectory.
    pub(crate) fn longest(&self) -> usize {
        self.longest
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
        let (mut fine, mut coarse) = (Places::limited(64), Places::limited(4));
        for (length, salt) in [(3, 0.3), (9, 0.7), (6, 1.1)] {
            fine.add(&steps(length, salt), 0.5 + salt);
            coarse.add(&steps(length, salt), 0.5 + salt);
        }
        let (fine, coarse) = (fine.read(), coarse.read());
        // Nine positions in at most four runs: runs of four, three of them, the last of one position.
        assert_eq!((coarse.len(), coarse.shift, coarse.width(0), coarse.width(2)), (3, 2, 4, 1));
        for at in 0..3 {
            let own: f64 = (4 * at..(4 * at + 4).min(9)).map(|t| fine.get(t, Sum::Witness)).sum();
            assert!((coarse.get(at, Sum::Witness) - own).abs() < 1e-14);
        }
    }

    #[test]
    fn a_tighter_limit_is_as_if_it_had_always_been() {
        let (mut from_the_start, mut later) = (Places::limited(2), Places::limited(64));
        for (length, salt) in [(3, 0.3), (9, 0.7)] {
            from_the_start.add(&steps(length, salt), 1.0);
            later.add(&steps(length, salt), 1.0);
        }
        later.limit_to(2);
        assert_eq!(from_the_start, later);
        later.add(&steps(70, 0.1), 1.0);
        assert!(later.sums.len() <= 2);
    }

    #[test]
    fn merging_is_adding_to_the_last_bit() {
        let parts = [(3, 0.3), (9, 0.7), (6, 1.1), (17, 0.9), (17, 300.0)];
        for limit in [64, 4] {
            let empty = || Places::limited(limit);
            let (mut all, mut left, mut right) = (empty(), empty(), empty());
            for (n, (length, salt)) in parts.into_iter().enumerate() {
                all.add(&steps(length, salt), 0.7);
                if n < 2 { left.add(&steps(length, salt), 0.7) } else { right.add(&steps(length, salt), 0.7) }
            }
            for (a, b) in [(&left, &right), (&right, &left)] {
                let mut both = a.clone();
                both.merge(b);
                assert_eq!(both, all);
            }
        }
    }
}
