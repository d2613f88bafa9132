//! A study file of this kind: what to train, and what the paper printed of it.

use super::Endpoint;
use super::claims::{
    CorrelationClaim, LeadClaim, OrderClaim, RatioClaim, TrendClaim, TriedClaim, ValueClaim,
};
use crate::Error;
use crate::shipped::{self, Kind};
use niwaki_train::Spec;
use niwaki_train::spec::{PolicyKind, strictly};
use serde::{Deserialize, Serialize};

/// A training study as its file has it.
///
/// Paper: `app:training`, `sec:experiments`, `app:scheduling`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// The label of the paper.
    pub label: String,
    /// What kind of study the file is.
    #[serde(default)]
    pub kind: Kind,
    /// Its place in the paper's order; the build reads it, and a study without one comes last.
    pub place: Option<u32>,
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
    /// Paired seeds.
    pub seeds: u64,
    /// The first of them.
    #[serde(default)]
    pub first_seed: u64,
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
    /// Cells whose seeds are also counted together.
    #[serde(default)]
    pub pool: Vec<Pool>,
    /// Runs of one arm that choose a setting of each cell before the others run.
    pub pilot: Option<Pilot>,
    /// What the pilot chose; never in the file.
    #[serde(skip)]
    pub chosen: Option<Calibration>,
    /// What is read off each curve.
    pub endpoints: Vec<Endpoint>,
    /// The arms that the others are compared with.
    pub compare: Option<Compare>,
    /// Endpoints or leads drawn over a numeric axis.
    #[serde(default)]
    pub chart: Vec<Against>,
    /// First iterations of some cells, side by side.
    #[serde(default)]
    pub early: Vec<Early>,
    /// Whose leads are held against whose dose, seed by seed.
    pub dose: Option<DoseStudy>,
    /// Shares of the ways to run two orders that are on time.
    pub feasible: Option<Feasible>,
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
    /// Endpoints or leads that rise from cell to cell.
    #[serde(default)]
    pub trend: Vec<TrendClaim>,
    /// How many times an endpoint is another.
    #[serde(default)]
    pub ratio: Vec<RatioClaim>,
    /// What the pilot's arm came to at a value, as printed.
    #[serde(default)]
    pub tried: Vec<TriedClaim>,
    /// Correlations of lead and dose.
    #[serde(default)]
    pub correlation: Vec<CorrelationClaim>,
}

impl Training {
    /// A training study that ships with the program.
    ///
    /// # Errors
    /// Where none has this label, or its file does not read.
    pub(super) fn shipped(label: &str) -> Result<Self, Error> {
        let study = shipped::find(label).ok_or_else(|| shipped::unknown(label))?;
        Ok(strictly(&study.name(), study.text)?)
    }

    /// Whether it fine-tunes a pretrained model and leaves open which.
    #[must_use]
    pub fn lacks_model(&self) -> bool {
        self.base.policy.kind == PolicyKind::Decoder && self.base.policy.model.is_none()
    }
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
    /// Its place on the axis of a chart along arms.
    pub x: Option<f64>,
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
    /// Its own number of seeds, before that of an arm.
    pub seeds: Option<u64>,
    /// What the rule came to here before: the strength of every arm that leaves it to the rule.
    pub strength: Option<f64>,
    /// Its place on the axis of a chart along cells.
    pub x: Option<f64>,
    /// The line of such a chart that it lies on, where there are several.
    pub line: Option<String>,
    /// What the pilot's endpoint should be here, where it differs from the pilot's own aim.
    pub aim: Option<f64>,
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
    /// How cells call it; the key's last part if absent.
    pub name: Option<String>,
    /// Its values.
    pub values: Vec<toml::Value>,
}

/// What the arms are compared with, paired by seed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// The arms, one after the other: each is held against all arms that are not named before it.
    pub against: Vec<String>,
    /// Over which endpoints.
    pub endpoints: Vec<Endpoint>,
}

/// Cells counted together, paired by cell and seed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Its name, which claims may use like a cell's.
    pub name: String,
    /// Its cells.
    pub cells: Vec<String>,
}

/// A chart of an endpoint, or of one arm's lead over another, over a numeric axis.
///
/// Paper: `fig:warm`, `fig:hardwin`, `fig:jssp`, `fig:ktol`, `fig:horizon-cal`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Against {
    /// What it shows.
    pub title: String,
    /// Whether the axis runs along arms, with a line per cell, or along cells.
    pub along: Along,
    /// The axis' name.
    pub x: String,
    /// Arms that are drawn; every one but `over` if absent.
    pub arms: Option<Vec<String>>,
    /// The arm whose endpoint is taken off, seed by seed.
    pub over: Option<String>,
    /// What is drawn.
    pub endpoint: Endpoint,
    /// Whether the axis is logarithmic.
    #[serde(default)]
    pub log_x: bool,
    /// Whether the values are.
    #[serde(default)]
    pub log_y: bool,
}

/// The first iterations of some cells, side by side.
///
/// Paper: `fig:easy-early`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Early {
    /// What it shows.
    pub title: String,
    /// The cells.
    pub cells: Vec<String>,
    /// Up to which iteration.
    pub last: usize,
    /// A level to compare with.
    pub level: Option<f64>,
    /// What that level is.
    #[serde(default)]
    pub level_name: String,
}

/// Which way the axis of a chart runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Along {
    /// From arm to arm.
    Arms,
    /// From cell to cell.
    Cells,
}

/// Whose leads are held against whose dose.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoseStudy {
    /// The arm that leads.
    pub arm: String,
    /// The arm it leads over.
    pub over: String,
    /// The arm whose dose is measured.
    pub of: String,
    /// Over how many first iterations.
    pub iterations: usize,
}

/// `[feasible]`: the shares to be measured, as a study's file has it.
///
/// Paper: `fig:2order`, `app:sched-boundary`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feasible {
    /// Units of time between the earliest possible end of an order and its due date.
    pub slacks: Vec<u32>,
    /// Pairs of orders to draw.
    pub pairs: usize,
    /// The depth of the trap that no slack is said to give.
    pub avoids: f64,
    /// The share that the first slack beyond that depth is said to give.
    pub lands: Option<f64>,
}

/// A pilot as a study's file has it.
///
/// Paper: `app:sched-win`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pilot {
    /// The arm that runs.
    pub arm: String,
    /// The key that is chosen, with dots.
    pub key: String,
    /// What it may be.
    pub values: Vec<f64>,
    /// What is measured.
    pub endpoint: Endpoint,
    /// What it should be nearest to; a cell may have an aim of its own, and one without any is left as it is.
    pub aim: Option<f64>,
    /// The band in which it is accepted; a cell with nothing in it is left out.
    pub within: Option<[f64; 2]>,
    /// Seeds of the pilot.
    pub seeds: u64,
    /// The first of them.
    #[serde(default)]
    pub first_seed: u64,
    /// Keys of the run that only the pilot sets.
    #[serde(default)]
    pub set: toml::Table,
}

/// What a pilot chose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The key that was chosen.
    pub key: String,
    /// The arm that ran.
    pub arm: String,
    /// What was measured.
    pub endpoint: String,
    /// The band in which it was accepted.
    pub within: Option<[f64; 2]>,
    /// One per cell that had an aim.
    pub cells: Vec<Choice>,
}

/// What a pilot chose for a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The cell.
    pub cell: String,
    /// What the endpoint should be nearest to.
    pub aim: f64,
    /// Every value with the mean endpoint over seeds and how many there were.
    pub tried: Vec<Tried>,
    /// The value, where one was accepted.
    pub chosen: Option<f64>,
}

/// A value that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tried {
    /// The value.
    pub value: f64,
    /// The mean endpoint.
    pub came: f64,
    /// Its standard error; nothing of one seed.
    #[serde(default)]
    pub sem: Option<f64>,
    /// Over so many seeds.
    pub seeds: usize,
}
