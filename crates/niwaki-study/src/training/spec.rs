//! A study file of this kind: what to train, and what the paper printed of it.

use super::Endpoint;
use niwaki_train::Spec;
use serde::Deserialize;

/// A training study as its file has it.
///
/// Paper: `app:training`, `sec:experiments`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// The label of the paper.
    pub label: String,
    /// Further labels that this study answers for.
    #[serde(default)]
    pub also: Vec<String>,
    /// A title for the page.
    pub title: String,
    /// What the study asks, in a sentence or two.
    pub question: String,
    /// Places where the paper contradicts itself or is silent, and how they are read here.
    #[serde(default)]
    pub readings: Vec<String>,
    /// Paired seeds, from 0.
    pub seeds: u64,
    /// How many the paper had.
    pub paper_seeds: Option<u64>,
    /// Which curve is shown.
    #[serde(default)]
    pub curve: Curve,
    /// What every run has in common.
    #[serde(default)]
    pub base: Spec,
    /// The methods under test.
    pub arm: Vec<Arm>,
    /// Settings under which every arm runs, by name.
    #[serde(default)]
    pub cell: Vec<Cell>,
    /// Axes whose product gives further settings.
    #[serde(default)]
    pub grid: Vec<Axis>,
    /// What is read off each curve.
    pub endpoints: Vec<Endpoint>,
    /// The arm that the others are compared with.
    pub compare: Option<Compare>,
    /// Whether failed runs are looked into: for the two-branch reward.
    #[serde(default)]
    pub anatomy: bool,
    /// Whether the first comparison is regressed on the axes of the grid, both in logarithms.
    #[serde(default)]
    pub scaling: bool,
    /// Numbers that the paper printed.
    #[serde(default)]
    pub value: Vec<ValueClaim>,
    /// Orders of arms, best first.
    #[serde(default)]
    pub order: Vec<OrderClaim>,
    /// Leads of one arm over another.
    #[serde(default)]
    pub lead: Vec<LeadClaim>,
}

/// Which return a study follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Curve {
    /// Of the policy as it samples.
    #[default]
    Eta,
    /// Of its likeliest trajectory.
    Greedy,
}

/// A method under test.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Its name; the correction it runs where `set` is absent.
    pub name: String,
    /// Keys of the run, with dots, and their values.
    pub set: Option<toml::Table>,
    /// Its own number of seeds.
    pub seeds: Option<u64>,
}

/// Settings shared by all arms.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Its name.
    pub name: String,
    /// Keys of the run, with dots, and their values.
    #[serde(default)]
    pub set: toml::Table,
    /// A cell of another study in whose place this one stands: its settings, and its results on disk.
    pub borrow: Option<Borrowed>,
}

/// A cell of another study.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Borrowed {
    /// The study's label.
    pub study: String,
    /// The cell's name there.
    pub cell: String,
}

/// An axis of the grid.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The key of the run, with dots.
    pub key: String,
    /// How cells call it; the key's last part where absent.
    pub name: Option<String>,
    /// Its values.
    pub values: Vec<toml::Value>,
}

/// What the arms are compared with, paired by seed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// The arm.
    pub against: String,
    /// Over which endpoints.
    pub endpoints: Vec<Endpoint>,
}

/// A printed number: `0.961`, a share `7/10`, or a range over seeds `30-45`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueClaim {
    /// The arm.
    pub arm: String,
    /// The cell; may be left out where there is one.
    pub cell: Option<String>,
    /// What was measured.
    pub endpoint: Endpoint,
    /// As printed.
    pub paper: String,
    /// The printed standard error.
    pub sem: Option<String>,
    /// What to know about it.
    #[serde(default)]
    pub remark: String,
}

/// Groups of arms: each of an earlier group does better than each of a later one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderClaim {
    /// The statement in words.
    pub statement: String,
    /// The cell; may be left out where there is one.
    pub cell: Option<String>,
    /// What was measured.
    pub endpoint: Endpoint,
    /// The groups, best first.
    pub groups: Vec<Vec<String>>,
    /// What to know about it.
    #[serde(default)]
    pub remark: String,
}

/// A lead of one arm over another, paired by seed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeadClaim {
    /// The arm.
    pub arm: String,
    /// The arm it is held against.
    pub over: String,
    /// The cell; may be left out where there is one.
    pub cell: Option<String>,
    /// What was measured.
    pub endpoint: Endpoint,
    /// What the paper says of it.
    pub expect: Expected,
    /// The printed mean difference.
    pub paper: Option<String>,
    /// What to know about it.
    #[serde(default)]
    pub remark: String,
}

/// What a lead should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// The arm does better: its mean lead is positive and the one-sided sign test gives p ≤ 0.05.
    Ahead,
    /// It does not: no positive mean lead with a one-sided p ≤ 0.05.
    NotAhead,
}
