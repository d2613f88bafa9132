//! A unit of work: runs that one process trains.

use serde::{Deserialize, Serialize};

/// Which part of its study a unit belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Runs of one arm that choose a setting of each cell.
    Pilot,
    /// Probes that measure the strengths that the study leaves to the rule.
    Strengths,
    /// The runs of the arms.
    Arms,
}

/// A unit of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// What it is, in 16 digits: the same runs on the same device have the same name on every machine.
    pub id: String,
    /// The study's place in the plan.
    pub study: usize,
    /// The part of the study.
    pub stage: Stage,
    /// The units that must be done before: from the first up to the second, which is not among them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<[usize; 2]>,
    /// Where its runs train.
    pub device: String,
    /// Folders of its runs, below the folder of all studies; for strengths those that are probed.
    pub runs: Vec<String>,
    /// Iterations of all its runs together; none are counted for probes.
    pub run_iterations: u64,
    /// What its runs take of memory at least, in bytes, if all are trained at once.
    pub memory: u64,
    /// How many seconds it is expected to take, where that was measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub seconds: Option<f64>,
}

impl Unit {
    /// The units that must be done before.
    pub fn before(&self) -> std::ops::Range<usize> {
        self.after.map_or(0..0, |[first, end]| first..end)
    }

    /// Steps that tell how far it is.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.run_iterations
    }
}
