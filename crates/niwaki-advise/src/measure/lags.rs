//! How old the policy was that sampled: log-ratios by the age of the step, and by that of a trajectory's oldest one.
//!
//! Ages follow from versions only once the newest version of an iteration is known, which may lie on another rank. So sums are kept
//! by version and become ages when they are read. Versions far behind the newest share their sums: what is kept then follows
//! from the data alone, in whatever order it came.

use super::exact::Exact;
use niwaki_correction::Real;
use serde::Serialize;
use std::collections::BTreeMap;

/// Ages from this one on are not told apart.
pub(crate) const OLDEST: i64 = 255;

/// What is summed over some steps, each by its trajectory's weight. `m` is log old − log engine, `ℓ` log now − log old, and their
/// sum leads from the engine that sampled to the policy now.
#[derive(Clone, Copy, Debug)]
enum Sum {
    /// Trajectories, where they are counted.
    Lanes,
    Mass,
    /// Steps that the engine has scored.
    Scored,
    Apart,
    ApartSquared,
    Ell,
    EllSquared,
    Whole,
    WholeSquared,
    /// e^(m + ℓ)
    Weight,
    WeightSquared,
}

pub(crate) const SUMS: usize = 11;

/// The sums of an iteration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lags {
    /// The newest version, of steps and of the trainer.
    pub(super) newest: i64,
    /// By the version of the step, and by that of the oldest step of its trajectory.
    pub(super) steps: BTreeMap<i64, Exact<SUMS>>,
    pub(super) oldest: BTreeMap<i64, Exact<SUMS>>,
    /// Versions that are older than are told apart.
    pub(super) beyond: [Exact<SUMS>; 2],
}

impl Default for Lags {
    fn default() -> Self {
        Self {
            newest: i64::MIN,
            steps: BTreeMap::new(),
            oldest: BTreeMap::new(),
            beyond: [Exact::default(); 2],
        }
    }
}

/// A trajectory as lags need it.
pub(crate) struct Lane<'a> {
    pub(crate) versions: &'a [i64],
    /// Log-probs of the engine; empty where the dump has none.
    pub(crate) engine: &'a [f64],
    pub(crate) old: &'a [f64],
    pub(crate) ell: &'a [f64],
    pub(crate) weight: f64,
    pub(crate) trainer: Option<i64>,
}

impl Lags {
    /// Adds a trajectory with steps.
    pub(crate) fn add(&mut self, lane: &Lane<'_>) {
        let (Some(&newest), Some(&oldest)) = (lane.versions.iter().max(), lane.versions.iter().min()) else {
            return;
        };
        self.reach(newest.max(lane.trainer.unwrap_or(newest)));
        let mut whole = Exact::<SUMS>::default();
        for (step, &version) in lane.versions.iter().enumerate() {
            let terms = terms(lane, step);
            Self::at(&mut self.steps, &mut self.beyond[0], self.newest, version).add(&terms);
            whole.add(&terms);
        }
        let mut one = [0.0; SUMS];
        one[Sum::Lanes as usize] = lane.weight;
        whole.add(&one);
        Self::at(&mut self.oldest, &mut self.beyond[1], self.newest, oldest).merge(&whole);
    }

    fn at<'s>(
        by: &'s mut BTreeMap<i64, Exact<SUMS>>,
        beyond: &'s mut Exact<SUMS>,
        newest: i64,
        version: i64,
    ) -> &'s mut Exact<SUMS> {
        if newest - version >= OLDEST { beyond } else { by.entry(version).or_default() }
    }

    /// Knows of a version; those that it leaves far behind share their sums from then on.
    pub(super) fn reach(&mut self, newest: i64) {
        if newest <= self.newest {
            return;
        }
        self.newest = newest;
        for (by, beyond) in [&mut self.steps, &mut self.oldest].into_iter().zip(&mut self.beyond) {
            let near = by.split_off(&(newest - OLDEST + 1));
            by.values().for_each(|sums| beyond.merge(sums));
            *by = near;
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.reach(other.newest);
        let newest = self.newest;
        for (&version, sums) in &other.steps {
            Self::at(&mut self.steps, &mut self.beyond[0], newest, version).merge(sums);
        }
        for (&version, sums) in &other.oldest {
            Self::at(&mut self.oldest, &mut self.beyond[1], newest, version).merge(sums);
        }
        self.beyond.iter_mut().zip(&other.beyond).for_each(|(own, other)| own.merge(other));
    }
}

/// What a step adds.
fn terms(lane: &Lane<'_>, step: usize) -> [f64; SUMS] {
    let (weight, ell) = (lane.weight, lane.ell[step]);
    let apart = lane.engine.get(step).map_or(0.0, |engine| lane.old[step] - engine);
    let scored = !lane.engine.is_empty() && !apart.is_nan();
    let (scored, apart) = if scored { (weight, apart) } else { (0.0, 0.0) };
    let whole = apart + ell;
    // A step that the engine has not scored counts from the old policy on.
    let ratio = Real::exp(whole);
    [
        0.0,
        weight,
        scored,
        weight * apart,
        weight * apart * apart,
        weight * ell,
        weight * ell * ell,
        weight * whole,
        weight * whole * whole,
        weight * ratio,
        weight * ratio * ratio,
    ]
}

/// Steps of one age.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AgeRow {
    /// Versions between the policy that sampled and the newest; the last row holds all that are older, too.
    pub age: i64,
    /// Their share of all steps.
    pub steps: f64,
    /// Variance of a step's log-ratio of the old policy to the engine that sampled: what engines differ by, and beyond age 0
    /// what staleness adds. None where the engine gave no log-probs.
    pub sampler: Option<f64>,
    /// Variance of a step's log-ratio of the policy now to the old one: what reuse adds.
    pub reuse: f64,
    /// What these steps add to σ²T between the engine and the policy now.
    pub drift: f64,
}

/// What is left with no trajectory that has an older step than this.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LimitRow {
    /// The oldest age that is let in.
    pub limit: i64,
    /// Share of the trajectories that is left.
    pub trajectories: f64,
    /// Share of the steps that is left.
    pub steps: f64,
    /// σ²T between the engine and the policy now, of what is left.
    pub drift: f64,
    /// ESS of the steps' own ratios between those two.
    pub ess: f64,
}

/// Both tables, over all iterations.
pub(crate) fn rows<'a>(all: impl Iterator<Item = &'a Lags>) -> (Vec<AgeRow>, Vec<LimitRow>) {
    let (mut steps, mut oldest): (BTreeMap<i64, Exact<SUMS>>, BTreeMap<i64, Exact<SUMS>>) =
        Default::default();
    for lags in all {
        for (by, from, beyond) in
            [(&mut steps, &lags.steps, &lags.beyond[0]), (&mut oldest, &lags.oldest, &lags.beyond[1])]
        {
            for (version, sums) in from {
                by.entry(lags.newest - version).or_default().merge(sums);
            }
            if *beyond != Exact::default() {
                by.entry(OLDEST).or_default().merge(beyond);
            }
        }
    }
    let total = |by: &BTreeMap<i64, Exact<SUMS>>| {
        by.values().fold(Exact::<SUMS>::default(), |mut sum, own| {
            sum.merge(own);
            sum
        })
    };
    let all = total(&oldest);
    let lanes = get(&all, Sum::Lanes);
    let ages = steps.iter().map(|(&age, sums)| AgeRow {
        age,
        steps: get(sums, Sum::Mass) / get(&all, Sum::Mass),
        sampler: (get(sums, Sum::Scored) > 0.0)
            .then(|| variance(sums, Sum::Scored, Sum::Apart, Sum::ApartSquared)),
        reuse: variance(sums, Sum::Mass, Sum::Ell, Sum::EllSquared),
        drift: drift(sums, lanes),
    });
    let mut left = Exact::<SUMS>::default();
    let limits = oldest.iter().map(|(&limit, sums)| {
        left.merge(sums);
        let (mass, kept) = (get(&left, Sum::Mass), get(&left, Sum::Lanes));
        LimitRow {
            limit,
            trajectories: kept / lanes,
            steps: mass / get(&all, Sum::Mass),
            drift: drift(&left, kept),
            ess: get(&left, Sum::Weight).powi(2) / (mass * get(&left, Sum::WeightSquared)),
        }
    });
    (ages.collect(), limits.collect())
}

fn get(sums: &Exact<SUMS>, sum: Sum) -> f64 {
    sums.value(sum as usize)
}

fn variance(sums: &Exact<SUMS>, mass: Sum, first: Sum, second: Sum) -> f64 {
    let (mass, first) = (get(sums, mass), get(sums, first));
    (get(sums, second) / mass - (first / mass).powi(2)).max(0.0)
}

fn drift(sums: &Exact<SUMS>, lanes: f64) -> f64 {
    variance(sums, Sum::Mass, Sum::Whole, Sum::WholeSquared) * get(sums, Sum::Mass) / lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane<'a>(versions: &'a [i64], ell: &'a [f64], engine: &'a [f64], old: &'a [f64]) -> Lane<'a> {
        Lane { versions, engine, old, ell, weight: 1.0, trainer: None }
    }

    #[test]
    fn two_trajectories_by_hand() {
        // Steps of versions 3, 5 and 5, 5; m = 0.1, −0.1 and 0.2, 0.2; ℓ = 0, 0 and 0.3, −0.3.
        let mut lags = Lags::default();
        let old = [-1.0, -1.0];
        lags.add(&lane(&[3, 5], &[0.0, 0.0], &[-1.1, -0.9], &old));
        lags.add(&lane(&[5, 5], &[0.3, -0.3], &[-1.2, -1.2], &old));
        let (ages, limits) = rows([&lags].into_iter());
        let close = |came: f64, expected: f64| assert!((came - expected).abs() < 1e-12, "{came} {expected}");
        assert_eq!(ages.iter().map(|row| row.age).collect::<Vec<_>>(), [0, 2]);
        close(ages[0].steps, 0.75);
        // −0.1, 0.2, 0.2: mean 0.1, variance (0.04 + 0.01 + 0.01) / 3.
        close(ages[0].sampler.unwrap(), 0.02);
        // 0, 0.3, −0.3: 0.06. Wholes −0.1, 0.5, −0.1: mean 0.1, variance 0.08, times three steps over two trajectories.
        close(ages[0].reuse, 0.06);
        close(ages[0].drift, 0.12);
        close(ages[1].drift, 0.0);
        // With no step older than 0 the second trajectory is left: wholes 0.5, −0.1, variance 0.09, two steps.
        assert_eq!(limits.iter().map(|row| row.limit).collect::<Vec<_>>(), [0, 2]);
        close(limits[0].trajectories, 0.5);
        close(limits[0].drift, 0.18);
        // All: 0.1, −0.1, 0.5, −0.1: mean 0.1, variance 0.06, two steps a trajectory.
        close(limits[1].drift, 0.12);
        close(limits[1].trajectories, 1.0);
    }

    #[test]
    fn versions_far_behind_share_sums_in_any_order() {
        let old = [-1.0];
        let each: Vec<Lags> = [7, 900, 400, 901, 640, 100_000, 99_800, -3]
            .iter()
            .map(|&version| {
                let mut own = Lags::default();
                own.add(&lane(&[version], &[version as f64 * 1e-4], &[], &old));
                own
            })
            .collect();
        let (mut forth, mut back) = (Lags::default(), Lags::default());
        each.iter().for_each(|own| forth.merge(own));
        each.iter().rev().for_each(|own| back.merge(own));
        assert_eq!(forth, back);
        assert_eq!(forth.steps.len(), 2);
        let (ages, _) = rows([&forth].into_iter());
        assert_eq!(ages.iter().map(|row| row.age).collect::<Vec<_>>(), [0, 200, OLDEST]);
        assert!((ages[2].steps - 0.75).abs() < 1e-12);
        // A step without a score of the engine has no mismatch.
        assert!(ages.iter().all(|row| row.sampler.is_none()));
    }
}
