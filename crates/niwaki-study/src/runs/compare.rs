//! Runs side by side: groups that differ in their settings, paired by seed.

use super::{Judged, Run};
use crate::Error;
use crate::ahead::LEVEL;
use niwaki_stats::{Decision, Paired, SignTest};
use niwaki_train::Spec;
use std::collections::BTreeMap;

/// Runs that differ in their seed alone.
#[derive(Clone, Debug)]
pub struct Group {
    /// What sets it apart from the other groups.
    pub name: String,
    /// One run per seed, by seed.
    pub runs: Vec<Run>,
}

/// One endpoint of a group against the first group's, seed by seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The verdict on this group's value less the first's, over the seeds that both have.
    pub decision: Decision,
    /// Seeds on which either is ahead, with the exact sign test.
    pub signs: SignTest,
}

/// Several groups of runs.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What all are judged by.
    pub judged: Judged,
    /// In the order in which they were given; the others are compared with the first.
    pub groups: Vec<Group>,
}

impl Comparison {
    /// Groups runs by everything but their seed. A run that is given twice counts once.
    ///
    /// # Errors
    /// Where there is no run, or they are judged by different things.
    pub fn of(runs: Vec<Run>) -> Result<Self, Error> {
        let Some(first) = runs.first() else {
            return Err(Error::Incomparable { reason: "there is no run".to_owned() });
        };
        let judged = first.judged();
        if let Some(other) = runs.iter().find(|run| run.judged() != judged) {
            let reason = format!(
                "{} is judged by its {}, {} by its {}",
                first.folder.display(),
                judged.words(),
                other.folder.display(),
                other.judged().words()
            );
            return Err(Error::Incomparable { reason });
        }
        let mut order: Vec<String> = Vec::new();
        let mut groups: BTreeMap<String, BTreeMap<u64, Run>> = BTreeMap::new();
        for run in runs {
            let hash = run.spec.hash()?;
            if !order.contains(&hash) {
                order.push(hash.clone());
            }
            groups.entry(hash).or_default().entry(run.spec.seed).or_insert(run);
        }
        let mut groups: Vec<Group> = order
            .iter()
            .filter_map(|hash| groups.remove(hash))
            .map(|runs| Group { name: String::new(), runs: runs.into_values().collect() })
            .collect();
        let names = names(&groups);
        groups.iter_mut().zip(names).for_each(|(group, name)| group.name = name);
        Ok(Self { judged, groups })
    }

    /// A group against the first one: the mean over the curve, or the value at its end.
    ///
    /// # Errors
    /// Where a value is not finite.
    pub fn difference(&self, group: usize, endpoint: Endpoint) -> Result<Option<Difference>, Error> {
        let values = |runs: &[Run]| -> BTreeMap<u64, f64> {
            runs.iter().map(|run| (run.spec.seed, endpoint.of(run, self.judged))).collect()
        };
        let (ours, theirs) = (values(&self.groups[group].runs), values(&self.groups[0].runs));
        let pairs: (Vec<f64>, Vec<f64>) =
            ours.iter().filter_map(|(seed, ours)| theirs.get(seed).map(|theirs| (*ours, *theirs))).unzip();
        if pairs.0.is_empty() {
            return Ok(None);
        }
        let paired = Paired::new(&pairs.0, &pairs.1)?;
        Ok(Some(Difference { decision: paired.decide(LEVEL)?, signs: paired.sign_test() }))
    }
}

/// What is read off a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Mean over the curve.
    Auc,
    /// The last value.
    Final,
}

impl Endpoint {
    /// Both, in the order of tables.
    pub const ALL: [Self; 2] = [Self::Auc, Self::Final];

    /// What it is called.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Auc => "mean over the run (AUC)",
            Self::Final => "at the end",
        }
    }

    /// Its value for a run.
    #[must_use]
    pub fn of(self, run: &Run, judged: Judged) -> f64 {
        let curve = run.curve(judged);
        match self {
            Self::Auc => curve.iter().map(|point| point.1).sum::<f64>() / curve.len().max(1) as f64,
            Self::Final => curve.last().map_or(f64::NAN, |point| point.1),
        }
    }
}

/// What a spec says beyond the defaults, key by key, without its seed.
pub(super) fn settings(spec: &Spec) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if let Ok(table) = spec.beyond_defaults() {
        flatten("", &table, &mut found);
    }
    found.retain(|(key, _)| key != "seed");
    found
}

fn flatten(prefix: &str, table: &toml::Table, found: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(below) => flatten(&key, below, found),
            toml::Value::String(text) => found.push((key, text.clone())),
            other => found.push((key, other.to_string())),
        }
    }
}

/// Names groups by the settings in which they differ; the correction stands for itself.
fn names(groups: &[Group]) -> Vec<String> {
    let said = |group: &Group| {
        group.runs.first().map_or_else(BTreeMap::new, |run| {
            let mut all: BTreeMap<String, String> = settings(&run.spec).into_iter().collect();
            all.insert("update.correction".to_owned(), run.spec.update.correction.clone());
            all
        })
    };
    let all: Vec<BTreeMap<String, String>> = groups.iter().map(said).collect();
    let differs = |key: &str| all.iter().any(|other| other.get(key) != all[0].get(key));
    let name = |group: &BTreeMap<String, String>| {
        let mut words: Vec<String> = Vec::new();
        let keys: std::collections::BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
        for key in keys.into_iter().filter(|key| differs(key)) {
            let value = group.get(key).map_or("default", String::as_str);
            if key == "update.correction" {
                words.insert(0, value.to_owned());
            } else {
                words.push(format!("{key} = {value}"));
            }
        }
        if words.is_empty() { group["update.correction"].clone() } else { words.join(", ") }
    };
    all.iter().map(name).collect()
}
