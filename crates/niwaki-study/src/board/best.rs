//! The best setting of an arm: chosen on half of the seeds, told on the other half, so that the luck of the choice is not told.

use crate::Error;
use crate::ahead::Difference;
use crate::runs::{Comparison, paired};
use niwaki_train::reading::Endpoint;
use std::collections::{BTreeMap, BTreeSet};

/// An arm at the setting that was chosen for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// The place of the setting.
    pub setting: usize,
    /// Seeds that it was chosen on; none where there was no choice.
    pub chosen_on: usize,
    /// What it came to on the others, by seed.
    pub told: BTreeMap<u64, f64>,
}

impl Best {
    /// The best setting of every arm; nothing where an arm has too few runs for a choice and a report.
    #[must_use]
    pub fn of(found: &Comparison, endpoint: Endpoint) -> Vec<Option<Self>> {
        let seeds = found.seeds();
        let choosing: BTreeSet<u64> = seeds.iter().copied().step_by(2).collect();
        (0..found.arms.len()).map(|arm| Self::one(found, endpoint, arm, &choosing)).collect()
    }

    fn one(found: &Comparison, endpoint: Endpoint, arm: usize, choosing: &BTreeSet<u64>) -> Option<Self> {
        let there = (0..found.settings.len()).filter_map(|setting| Some((setting, found.at(arm, setting)?)));
        let all: Vec<(usize, BTreeMap<u64, f64>)> = there
            .map(|(setting, group)| (setting, found.values(group, endpoint)))
            .filter(|(_, values)| !values.is_empty())
            .collect();
        if let [(setting, values)] = &all[..] {
            return Some(Self { setting: *setting, chosen_on: 0, told: values.clone() });
        }
        let half = |values: &BTreeMap<u64, f64>, chosen: bool| -> BTreeMap<u64, f64> {
            let of = |seed: &u64| choosing.contains(seed) == chosen;
            values.iter().filter(|(seed, _)| of(seed)).map(|(seed, value)| (*seed, *value)).collect()
        };
        let turn = if endpoint.falls() { -1.0 } else { 1.0 };
        // A setting whose runs are not all there would be chosen, or not, for its seeds.
        let most = all.iter().map(|(_, values)| half(values, true).len()).max()?;
        let mut best: Option<(f64, usize, &BTreeMap<u64, f64>)> = None;
        for (setting, values) in &all {
            let chosen: Vec<f64> = half(values, true).into_values().collect();
            let Some(mean) = niwaki_stats::mean(&chosen).ok().filter(|_| chosen.len() == most) else {
                continue;
            };
            if best.is_none_or(|(best, ..)| turn * mean > best) {
                best = Some((turn * mean, *setting, values));
            }
        }
        let (_, setting, values) = best?;
        let told = half(values, false);
        (!told.is_empty()).then_some(Self { setting, chosen_on: most, told })
    }

    /// One arm's best against another's, over the seeds that both are told on.
    ///
    /// # Errors
    /// Where a value is not finite.
    pub fn difference(&self, other: &Self, endpoint: Endpoint) -> Result<Option<Difference>, Error> {
        Difference::of(&paired(&self.told, &other.told), endpoint)
    }
}
