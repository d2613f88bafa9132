//! What the paper printed of a training study, as a study file says it.

use super::Endpoint;
use super::extreme::Extreme;
use serde::Deserialize;

/// A printed number: `0.961`, a share `7/10`, a range of means `0.50 to 0.85`, or one over seeds `30-45`.
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
    /// Whether it is the largest or the smallest of the printed seeds, `max` or `min`; else their mean.
    pub of: Option<Extreme>,
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
    /// Seeds won over seeds that do not tie, as printed.
    pub seeds: Option<String>,
    /// The printed one-sided p-value.
    pub p: Option<String>,
    /// What to know about it.
    #[serde(default)]
    pub remark: String,
}

/// What a lead should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// The arm is ahead.
    Ahead,
    /// It is not: decided by an arm that is behind, and against by one that is ahead.
    NotAhead,
    /// It is ahead; the paper prints no test of it.
    Positive,
    /// It is behind.
    Negative,
    /// Its lead is as large as the printed range.
    Within,
}

/// An endpoint, or the lead of one arm over another, that rises from each cell to the next.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrendClaim {
    /// The statement in words.
    pub statement: String,
    /// The arm.
    pub arm: String,
    /// The arm it is held against, where a lead is meant.
    pub over: Option<String>,
    /// What was measured.
    pub endpoint: Endpoint,
    /// The cells, lowest first.
    pub cells: Vec<String>,
    /// What to know about it.
    #[serde(default)]
    pub remark: String,
}

/// An endpoint of one arm and cell over that of another: "roughly doubles", "about 3%", "five orders of magnitude".
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatioClaim {
    /// The statement in words.
    pub statement: String,
    /// What was measured.
    pub endpoint: Endpoint,
    /// The arm.
    pub arm: String,
    /// The cell; may be left out where there is one.
    pub cell: Option<String>,
    /// The arm it is divided by; the same if absent.
    pub over: Option<String>,
    /// The cell it is divided by; the same if absent.
    pub over_cell: Option<String>,
    /// What the words allow.
    pub within: [f64; 2],
    /// What to know about it.
    #[serde(default)]
    pub remark: String,
}

/// What the pilot's arm came to at one of its values, whether it was chosen or not.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TriedClaim {
    /// The cell that the pilot was for.
    pub cell: String,
    /// The value.
    pub value: f64,
    /// As printed.
    pub paper: String,
    /// What to know about it.
    #[serde(default)]
    pub remark: String,
}

/// A printed correlation over seeds between the dose and the lead in one half of training.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorrelationClaim {
    /// The cell; all of them, z-scored within each, if absent.
    pub cell: Option<String>,
    /// Whether all cells are taken as they are instead, so that the correlation is also that across tasks.
    #[serde(default)]
    pub across: bool,
    /// Which half.
    pub half: Half,
    /// As printed; `5/7` for the share of cells in which it is positive.
    pub paper: String,
    /// What to know about it.
    #[serde(default)]
    pub remark: String,
}

/// A half of training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Half {
    /// The first.
    First,
    /// The second.
    Second,
}
