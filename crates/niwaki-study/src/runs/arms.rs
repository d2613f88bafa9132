//! What runs differ in: arms, the settings at which they are matched, and the arm that others are compared with.

use super::Row;
use crate::Error;
use niwaki_train::Spec;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Keys with their values, as a spec writes them.
pub type Settings = BTreeMap<String, String>;

/// Runs that differ in their seed alone.
#[derive(Clone, Debug)]
pub struct Group {
    /// What sets it apart from the other groups.
    pub name: String,
    /// Keys in which groups differ, each with its value here.
    pub settings: Settings,
    /// The place of its arm.
    pub arm: usize,
    /// The place of its setting.
    pub setting: usize,
    /// Its runs that are over, by seed.
    pub runs: Vec<Arc<Row>>,
    /// Its runs that are not, by seed.
    pub unfinished: Vec<Arc<Row>>,
}

/// An arm, or a setting at which arms are matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is called.
    pub name: String,
    /// What it consists of.
    pub settings: Settings,
}

/// Groups, and the arms and settings that they are made of.
pub(super) struct Arms {
    pub(super) groups: Vec<Group>,
    pub(super) arms: Vec<Part>,
    pub(super) settings: Vec<Part>,
    /// Keys that make an arm.
    pub(super) keys: Vec<String>,
    /// The arm that others are compared with.
    pub(super) baseline: usize,
    /// Folders of runs that others are the same run of, further on or given before.
    pub(super) twice: Vec<Arc<Row>>,
}

/// The loss of a run.
const LOSS: &str = "update.correction";

/// Whether a key is part of what an arm of a sweep usually is: its loss, and its warmup.
fn is_arm(key: &str) -> bool {
    key == LOSS || key.starts_with("warmup.")
}

/// What a spec says beyond the defaults, key by key, without its seed.
pub(super) fn beyond_defaults(spec: &Spec) -> Vec<(String, String)> {
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

impl Arms {
    /// Groups runs by everything but their seed. `against` is a loss, or a key with its value.
    pub(super) fn of(rows: Vec<Arc<Row>>, against: Option<&str>) -> Result<Self, Error> {
        let (mut groups, twice) = grouped(rows);
        describe(&mut groups)?;
        let differing: Vec<String> =
            groups.first().map_or_else(Vec::new, |group| group.settings.keys().cloned().collect());
        let (keys, base) = chosen(&groups, &differing, against)?;
        let (mut arms, mut settings): (Vec<Part>, Vec<Part>) = (Vec::new(), Vec::new());
        for group in &mut groups {
            let (arm, setting): (Settings, Settings) =
                group.settings.clone().into_iter().partition(|(key, _)| keys.contains(key));
            group.arm = place(&mut arms, arm);
            group.setting = place(&mut settings, setting);
        }
        if let ([arm], [group, ..]) = (&mut arms[..], &groups[..])
            && arm.settings.is_empty()
        {
            arm.name = group.runs.iter().chain(&group.unfinished).next().map_or_else(String::new, loss);
        }
        let baseline = groups.get(base).map_or(0, |group| group.arm);
        Ok(Self { groups, arms, settings, keys, baseline, twice })
    }
}

fn loss(row: &Arc<Row>) -> String {
    row.spec.update.correction.clone()
}

/// The place of a part among those that are known, which it joins.
fn place(known: &mut Vec<Part>, settings: Settings) -> usize {
    known.iter().position(|part| part.settings == settings).unwrap_or_else(|| {
        known.push(Part { name: words(&settings), settings });
        known.len() - 1
    })
}

/// Settings in words; the loss stands for itself.
fn words(settings: &Settings) -> String {
    let said = |(key, value): (&String, &String)| match key.as_str() {
        LOSS => value.clone(),
        _ => format!("{key} = {value}"),
    };
    let (loss, others): (Vec<_>, Vec<_>) = settings.iter().partition(|(key, _)| *key == LOSS);
    loss.into_iter().chain(others).map(said).collect::<Vec<_>>().join(", ")
}

/// Runs by spec, in the order in which they came, and those that are another one's copies.
fn grouped(rows: Vec<Arc<Row>>) -> (Vec<Group>, Vec<Arc<Row>>) {
    let mut order: Vec<BTreeMap<u64, Arc<Row>>> = Vec::new();
    let (mut places, mut twice): (HashMap<String, usize>, _) = (HashMap::new(), Vec::new());
    for row in rows {
        let place = *places.entry(row.hash.clone()).or_insert_with(|| {
            order.push(BTreeMap::new());
            order.len() - 1
        });
        match order[place].entry(row.spec.seed) {
            std::collections::btree_map::Entry::Vacant(free) => _ = free.insert(row),
            std::collections::btree_map::Entry::Occupied(mut taken) => {
                let rank = |row: &Row| (row.is_over(), row.done);
                let other = if rank(&row) > rank(taken.get()) { taken.insert(row) } else { row };
                // What an attempt left behind that another one overtook is nobody's loss.
                if other.is_over() {
                    twice.push(other);
                }
            }
        }
    }
    let group = |runs: BTreeMap<u64, Arc<Row>>| {
        let (runs, unfinished) = runs.into_values().partition(|row| row.is_over());
        Group { name: String::new(), settings: Settings::new(), arm: 0, setting: 0, runs, unfinished }
    };
    (order.into_iter().map(group).collect(), twice)
}

/// Finds the keys in which groups differ, and names the groups by them.
fn describe(groups: &mut [Group]) -> Result<(), Error> {
    let mut all: Vec<Settings> = Vec::with_capacity(groups.len());
    for group in &*groups {
        let mut found = Vec::new();
        if let Some(row) = group.runs.iter().chain(&group.unfinished).next() {
            flatten("", &row.spec.to_table()?, &mut found);
        }
        found.retain(|(key, _)| key != "seed");
        all.push(found.into_iter().collect());
    }
    let keys: BTreeSet<String> = all.iter().flat_map(BTreeMap::keys).cloned().collect();
    let differing: Vec<String> =
        keys.into_iter().filter(|key| all.iter().any(|other| other.get(key) != all[0].get(key))).collect();
    for (group, said) in groups.iter_mut().zip(&all) {
        for key in &differing {
            let value = said.get(key).map_or("none", String::as_str);
            group.settings.insert(key.clone(), value.to_owned());
        }
        group.name = words(&group.settings);
        if group.name.is_empty() {
            group.name = said.get(LOSS).cloned().unwrap_or_default();
        }
    }
    Ok(())
}

/// The keys that make an arm, and the group whose arm is the baseline.
fn chosen(
    groups: &[Group],
    differing: &[String],
    against: Option<&str>,
) -> Result<(Vec<String>, usize), Error> {
    let Some(asked) = against else {
        let keys: Vec<String> = differing.iter().filter(|key| is_arm(key)).cloned().collect();
        if keys.is_empty() {
            // Whatever they differ in is what is compared.
            return Ok((differing.to_vec(), 0));
        }
        let plain = |row: &Arc<Row>| row.spec.update.correction == "ppo" && row.spec.warmup.iterations == 0;
        let first = |group: &Group| group.runs.iter().chain(&group.unfinished).next().is_some_and(plain);
        return Ok((keys, groups.iter().position(first).unwrap_or(0)));
    };
    let (key, value) = asked.split_once('=').unwrap_or((LOSS, asked));
    let (key, value) = (key.trim(), value.trim());
    let refuse = |reason: String| Error::Incomparable { reason: format!("--against {asked}: {reason}") };
    if !differing.iter().any(|known| known == key) {
        // Where all are alike so far, the baseline may be the only arm yet.
        let is_only = |group: &Group| group.settings.get(key).is_none_or(|there| there == value);
        if differing.is_empty() && groups.iter().all(is_only) {
            return Ok((Vec::new(), 0));
        }
        if differing.is_empty() {
            return Err(refuse("all runs have the same settings".to_owned()));
        }
        return Err(refuse(format!(
            "the runs do not differ in {key}; they differ in {}",
            differing.join(", ")
        )));
    }
    let base = groups.iter().position(|group| group.settings[key] == value).ok_or_else(|| {
        let there: BTreeSet<&str> = groups.iter().map(|group| group.settings[key].as_str()).collect();
        let there = there.into_iter().collect::<Vec<_>>().join(", ");
        refuse(format!("no run has {key} = {value}; there are {there}"))
    })?;
    Ok((vec![key.to_owned()], base))
}
