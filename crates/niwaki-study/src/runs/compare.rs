//! Runs side by side: groups that differ in their settings, matched by setting and paired by seed.

use super::{Found, Judged, Run};
use crate::Error;
use crate::ahead::LEVEL;
use niwaki_stats::{Decision, Paired, SignTest};
use niwaki_train::Spec;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Runs that differ in their seed alone.
#[derive(Clone, Debug)]
pub struct Group {
    /// What sets it apart from the other groups.
    pub name: String,
    /// Keys in which groups differ, each with its value here.
    pub settings: BTreeMap<String, String>,
    /// The group that it is compared with; none for a baseline, and where no group has the same other settings.
    pub baseline: Option<usize>,
    /// One run per seed, by seed.
    pub runs: Vec<Run>,
}

/// One endpoint of a group against its baseline's, seed by seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The verdict on this group's value less the baseline's, over the seeds that both have.
    pub decision: Decision,
    /// Seeds on which either is ahead, with the exact sign test.
    pub signs: SignTest,
}

/// Several groups of runs.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What all are judged by.
    pub judged: Judged,
    /// In the order in which they were given.
    pub groups: Vec<Group>,
    /// What they are compared with, in words; empty for a single group.
    pub against: String,
    /// Folders of runs that are not finished, and so in no group.
    pub unfinished: Vec<PathBuf>,
}

impl Comparison {
    /// Groups runs by everything but their seed. A run that is given twice counts once.
    ///
    /// A group's baseline has the same settings but for what is `against`: a loss (`ppo`) or a key with its value
    /// (`optimiser.rate=0.1`). Without it, where losses or warmups differ, that is PPO's arm, or the first run's; else all
    /// are compared with the first group.
    ///
    /// # Errors
    /// Where there is no run, they are judged by different things, or no run has what is `against`.
    pub fn of(found: Found, against: Option<&str>) -> Result<Self, Error> {
        let Found { runs, unfinished } = found;
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
            .map(|runs| Group {
                name: String::new(),
                settings: BTreeMap::new(),
                baseline: None,
                runs: runs.into_values().collect(),
            })
            .collect();
        describe(&mut groups)?;
        let against = match_settings(&mut groups, against)?;
        Ok(Self { judged, groups, against, unfinished })
    }

    /// A group against its baseline: the mean over the curve, or the value at its end.
    ///
    /// # Errors
    /// Where a value is not finite.
    pub fn difference(&self, group: usize, endpoint: Endpoint) -> Result<Option<Difference>, Error> {
        let values = |runs: &[Run]| -> BTreeMap<u64, f64> {
            runs.iter().map(|run| (run.spec.seed, endpoint.of(run, self.judged))).collect()
        };
        let Some(baseline) = self.groups[group].baseline else { return Ok(None) };
        let (ours, theirs) = (values(&self.groups[group].runs), values(&self.groups[baseline].runs));
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

/// The loss of a run.
const LOSS: &str = "update.correction";

/// Whether a key is part of what an arm of a sweep usually is: its loss, and its warmup.
fn is_arm(key: &str) -> bool {
    key == LOSS || key.starts_with("warmup.")
}

/// Finds the keys in which groups differ, and names the groups by them; the loss stands for itself.
fn describe(groups: &mut [Group]) -> Result<(), Error> {
    let mut all: Vec<BTreeMap<String, String>> = Vec::with_capacity(groups.len());
    for group in &*groups {
        let mut found = Vec::new();
        if let Some(run) = group.runs.first() {
            flatten("", &run.spec.to_table()?, &mut found);
        }
        found.retain(|(key, _)| key != "seed");
        all.push(found.into_iter().collect());
    }
    let keys: BTreeSet<String> = all.iter().flat_map(BTreeMap::keys).cloned().collect();
    let differing: Vec<&String> =
        keys.iter().filter(|key| all.iter().any(|other| other.get(*key) != all[0].get(*key))).collect();
    for (group, said) in groups.iter_mut().zip(&all) {
        let mut words: Vec<String> = Vec::new();
        for &key in &differing {
            let value = said.get(key).map_or("none", String::as_str);
            group.settings.insert(key.clone(), value.to_owned());
            if key == LOSS {
                words.insert(0, value.to_owned());
            } else {
                words.push(format!("{key} = {value}"));
            }
        }
        group.name =
            if words.is_empty() { said.get(LOSS).cloned().unwrap_or_default() } else { words.join(", ") };
    }
    Ok(())
}

/// Gives every group its baseline; returns what that is, in words.
fn match_settings(groups: &mut [Group], against: Option<&str>) -> Result<String, Error> {
    if groups.len() < 2 {
        return Ok(String::new());
    }
    let keys: Vec<String> = groups[0].settings.keys().cloned().collect();
    let plain = |group: &Group| {
        group
            .runs
            .first()
            .is_some_and(|run| run.spec.update.correction == "ppo" && run.spec.warmup.iterations == 0)
    };
    let (swapped, words): (BTreeMap<String, String>, String) = match against {
        Some(asked) => {
            let (key, value) = asked.split_once('=').unwrap_or((LOSS, asked));
            let (key, value) = (key.trim(), value.trim());
            let refuse =
                |reason: String| Error::Incomparable { reason: format!("--against {asked}: {reason}") };
            if !keys.iter().any(|known| known == key) {
                return Err(refuse(format!(
                    "the runs do not differ in {key}; they differ in {}",
                    keys.join(", ")
                )));
            }
            let there: BTreeSet<&str> = groups.iter().map(|group| group.settings[key].as_str()).collect();
            if !there.contains(value) {
                let there = there.into_iter().collect::<Vec<_>>().join(", ");
                return Err(refuse(format!("no run has {key} = {value}; there are {there}")));
            }
            let words = if key == LOSS { value.to_owned() } else { format!("{key} = {value}") };
            (BTreeMap::from([(key.to_owned(), value.to_owned())]), words)
        }
        None if keys.iter().any(|key| is_arm(key)) => {
            let base = groups.iter().position(plain).unwrap_or(0);
            let arm = groups[base].settings.iter().filter(|(key, _)| is_arm(key));
            let arm: BTreeMap<String, String> =
                arm.map(|(key, value)| (key.clone(), value.clone())).collect();
            let said = |(key, value): (&String, &String)| match key.as_str() {
                LOSS => value.clone(),
                _ => format!("{key} = {value}"),
            };
            let words = arm.iter().map(said).collect::<Vec<_>>().join(", ");
            (arm, words)
        }
        None => {
            groups.iter_mut().skip(1).for_each(|group| group.baseline = Some(0));
            return Ok(groups[0].name.clone());
        }
    };
    let all: Vec<BTreeMap<String, String>> = groups.iter().map(|group| group.settings.clone()).collect();
    for group in groups {
        let mut wanted = group.settings.clone();
        wanted.extend(swapped.clone());
        if wanted != group.settings {
            group.baseline = all.iter().position(|other| *other == wanted);
        }
    }
    let alone = keys.iter().all(|key| swapped.contains_key(key));
    Ok(if alone { words } else { format!("{words} with the same other settings") })
}
