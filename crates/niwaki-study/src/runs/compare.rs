//! Runs side by side: arms matched by setting and paired by seed.

use super::arms::{Arms, Group, Part};
use super::{Row, Settings};
use crate::Error;
use crate::ahead::Difference;
use niwaki_train::reading::{Damaged, Endpoint, Found, Judged};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Several groups of runs.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What all are judged by.
    pub judged: Judged,
    /// In the order in which they were given.
    pub groups: Vec<Group>,
    /// What groups differ in by themselves: usually their loss.
    pub arms: Vec<Part>,
    /// Everything else in which they differ: arms are compared at the same one.
    pub settings: Vec<Part>,
    /// Keys that make an arm.
    pub keys: Vec<String>,
    /// The arm that others are compared with.
    pub baseline: usize,
    /// Folders that have a run which cannot be read.
    pub damaged: Vec<Damaged>,
    /// Runs that are judged by something else, and so in no group.
    pub odd: Vec<Arc<Row>>,
    /// Runs that are over and that another folder has as well, and so in no group.
    pub twice: Vec<Arc<Row>>,
    places: HashMap<(usize, usize), usize>,
}

impl Comparison {
    /// Groups runs by everything but their seed. A run that is given twice counts once.
    ///
    /// Arms are matched by setting: a group is compared with the one that has the same settings and the baseline's arm.
    /// The baseline is `against`, a loss (`ppo`) or a key with its value (`optimiser.rate=0.1`). Without it, where losses or
    /// warmups differ, that is PPO's arm, or the first run's; else every group is an arm, and the first is the baseline.
    ///
    /// # Errors
    /// Where no run has what is `against`.
    pub fn of(found: Found<Row>, against: Option<&str>) -> Result<Self, Error> {
        let Found { runs, damaged, .. } = found;
        let judged = most(&runs);
        let (rows, odd) = runs.into_iter().partition(|row| row.judged.is_none_or(|kind| kind == judged));
        let Arms { groups, arms, settings, keys, baseline, twice } = Arms::of(rows, against)?;
        let places = groups.iter().enumerate().map(|(at, group)| ((group.arm, group.setting), at)).collect();
        Ok(Self { judged, groups, arms, settings, keys, baseline, damaged, odd, twice, places })
    }

    /// What is compared.
    #[must_use]
    pub fn endpoints(&self) -> [Endpoint; 2] {
        self.judged.endpoints()
    }

    /// The baseline in words.
    #[must_use]
    pub fn against(&self) -> String {
        let arm = self.arms.get(self.baseline).map_or("", |arm| arm.name.as_str());
        if self.settings.len() > 1 { format!("{arm} with the same other settings") } else { arm.to_owned() }
    }

    /// The group of an arm at a setting.
    #[must_use]
    pub fn at(&self, arm: usize, setting: usize) -> Option<usize> {
        self.places.get(&(arm, setting)).copied()
    }

    /// The group that another is compared with; nothing for that of the baseline itself, and where no group matches.
    #[must_use]
    pub fn twin(&self, group: usize, baseline: usize) -> Option<usize> {
        let Group { arm, setting, .. } = self.groups[group];
        if arm == baseline { None } else { self.at(baseline, setting) }
    }

    /// An endpoint of every run of a group that is over, by seed.
    #[must_use]
    pub fn values(&self, group: usize, endpoint: Endpoint) -> BTreeMap<u64, f64> {
        let value = |row: &Arc<Row>| Some((row.spec.seed, row.value(self.judged, endpoint)?));
        self.groups[group].runs.iter().filter_map(value).collect()
    }

    /// A group against its match among the baseline's, over the seeds that both have; nothing where there is none.
    ///
    /// # Errors
    /// Where a value is not finite.
    pub fn difference(
        &self,
        group: usize,
        endpoint: Endpoint,
        baseline: usize,
    ) -> Result<Option<Difference>, Error> {
        let Some(twin) = self.twin(group, baseline) else { return Ok(None) };
        let pairs = paired(&self.values(group, endpoint), &self.values(twin, endpoint));
        Difference::of(&pairs, endpoint)
    }

    /// Groups that are compared with the baseline.
    pub fn compared(&self) -> impl Iterator<Item = usize> {
        (0..self.groups.len()).filter(|group| self.twin(*group, self.baseline).is_some())
    }

    /// Runs that are not over.
    pub fn unfinished(&self) -> impl Iterator<Item = &Arc<Row>> {
        self.groups.iter().flat_map(|group| &group.unfinished)
    }

    /// Runs that are.
    pub fn over(&self) -> impl Iterator<Item = &Arc<Row>> {
        self.groups.iter().flat_map(|group| &group.runs)
    }

    /// All seeds of runs that are over.
    #[must_use]
    pub fn seeds(&self) -> BTreeSet<u64> {
        self.over().map(|row| row.spec.seed).collect()
    }

    /// Keys that differ between two settings or arms.
    #[must_use]
    pub fn keys_of(parts: &[Part]) -> Vec<&String> {
        parts.first().map_or_else(Vec::new, |part| Settings::keys(&part.settings).collect())
    }
}

/// The values of two on the seeds that both have.
pub(crate) fn paired(ours: &BTreeMap<u64, f64>, theirs: &BTreeMap<u64, f64>) -> Vec<(f64, f64)> {
    ours.iter().filter_map(|(seed, ours)| theirs.get(seed).map(|theirs| (*ours, *theirs))).collect()
}

/// What most runs are judged by.
fn most(rows: &[Arc<Row>]) -> Judged {
    let mut counts: BTreeMap<Judged, usize> = BTreeMap::new();
    for row in rows {
        if let Some(judged) = row.judged {
            *counts.entry(judged).or_default() += 1;
        }
    }
    let first = |counts: BTreeMap<Judged, usize>| {
        counts.into_iter().max_by_key(|(judged, count)| (*count, std::cmp::Reverse(*judged)))
    };
    first(counts).map_or(Judged::Eta, |(judged, _)| judged)
}
