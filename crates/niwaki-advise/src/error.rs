//! What can be wrong with a dump, always with its place.

use crate::measure::{Differ, Unreadable};
use crate::schema::Field;
use crate::trajectory::Clock;
use std::fmt;
use thiserror::Error;

/// A refused dump.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that cannot be opened or read.
    #[error("{file} cannot be read")]
    File {
        /// The file as it was given.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file name whose ending names no layout.
    #[error("{file}: the ending '{ending}' names no layout; use .jsonl, .npz, .parquet or .tally")]
    Layout {
        /// The file as it was given.
        file: String,
        /// Its ending.
        ending: String,
    },
    /// A folder without a dump.
    #[error("{folder} holds no dump; it would end in .jsonl, .npz, .parquet or .tally")]
    NoDump {
        /// The folder as it was given.
        folder: String,
    },
    /// A pattern that no file fits.
    #[error("{pattern}: no file fits this pattern")]
    NothingFits {
        /// The pattern as it was given.
        pattern: String,
    },
    /// A file that a run has twice: each of its trajectories would count twice.
    #[error("{file} is named twice, and its trajectories would count twice; name it once")]
    Twice {
        /// The file as it was given.
        file: String,
    },
    /// A file that is not what its ending says, or is cut short.
    #[error("{file}: not a whole {layout} file: {why}")]
    Broken {
        /// The file as it was given.
        file: String,
        /// The layout that its ending names.
        layout: &'static str,
        /// What the decoder says.
        why: String,
    },
    /// A file that ends in .tally and is not one.
    #[error("{file}: {why}")]
    Tally {
        /// The file as it was given.
        file: String,
        /// What is wrong with it.
        why: Unreadable,
    },
    /// Tallies that are not of one run.
    #[error("{file} does not go with {first}: {why}")]
    Differ {
        /// The file as it was given.
        file: String,
        /// The first of the run.
        first: String,
        /// Why not.
        why: Differ,
    },
    /// A run of tallies and dumps.
    #[error(
        "{tally} is a tally and {dump} is a dump; make a tally of that first: niwaki advise {dump} --out NAME.tally"
    )]
    Mixed {
        /// The first tally.
        tally: String,
        /// The first dump.
        dump: String,
    },
    /// A trajectory that cannot be used.
    #[error("{place}: {fault}")]
    Row {
        /// File and row.
        place: Place,
        /// What is wrong with it.
        fault: Fault,
    },
    /// A setting out of its range.
    #[error("{name} {value} {why}")]
    Setting {
        /// The setting's name in [`crate::measure::Settings`].
        name: &'static str,
        /// What was given.
        value: f64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A clip range that is none.
    #[error(transparent)]
    Clip(#[from] niwaki_correction::Error),
    /// Files without a single step of the policy.
    #[error("{files}: no trajectory with a step of the policy")]
    Empty {
        /// The files.
        files: String,
    },
}

/// Where a trajectory stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as it was given.
    pub file: String,
    /// What rows are called there.
    pub unit: &'static str,
    /// The row, counted from 1 in text and from 0 in arrays and columns, as their tools do; none for the file
    /// as a whole.
    pub row: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row {
            Some(row) => write!(f, "{}, {} {row}", self.file, self.unit),
            None => f.write_str(&self.file),
        }
    }
}

/// What is wrong with one trajectory.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// A field that must be there.
    #[error("no {field}{}", hint(.near, *.field))]
    Missing {
        /// The field.
        field: Field,
        /// A name in the record that looks like it.
        near: Option<String>,
    },
    /// A field that was probably meant for another.
    #[error("{name} is not read; it looks like {field}")]
    Misnamed {
        /// The field.
        field: Field,
        /// Its name in the record.
        name: String,
    },
    /// A field that is there under two names.
    #[error("{name} is a second {field}; keep one of the two")]
    Second {
        /// The field.
        field: Field,
        /// The name that was not read.
        name: String,
    },
    /// Neither of the two fields that can give an advantage.
    #[error("neither advantage nor reward; one of them must be there")]
    NoAdvantage,
    /// Two lists of different lengths.
    #[error("{field} has {came} values where {against} has {expected}")]
    Length {
        /// The field that does not fit.
        field: Field,
        /// Its length.
        came: usize,
        /// The field that it is held against.
        against: Field,
        /// The length of that one.
        expected: usize,
    },
    /// A value that is not a finite number.
    #[error("{field}[{index}] is {value}; every value at a step of the policy must be finite")]
    NotFinite {
        /// The field.
        field: Field,
        /// Index of the first such value.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A value that is too large in size to be summed.
    #[error("{field}[{index}] is {value:e}; no value may be larger than {most:e} in size")]
    TooLarge {
        /// The field.
        field: Field,
        /// Index of the first such value.
        index: usize,
        /// The value.
        value: f64,
        /// The largest size.
        most: f64,
    },
    /// A log-prob above zero.
    #[error("{field}[{index}] is {value}; the logarithm of a probability is at most 0")]
    Positive {
        /// The field.
        field: Field,
        /// Index of the first such value.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A mask value that is neither 0 nor 1.
    #[error("{field}[{index}] is {value}; a mask holds 0 and 1")]
    MaskValue {
        /// The field.
        field: Field,
        /// Index of the first such value.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A trajectory that is longer than is read.
    #[error("a trajectory of {steps} steps; at most {most} are read")]
    TooLong {
        /// Its steps.
        steps: u64,
        /// Steps of the longest one that is read.
        most: u64,
    },
    /// A field of the wrong kind.
    #[error("{field} must be {expected}; {came} came")]
    Kind {
        /// The field.
        field: Field,
        /// What it must be.
        expected: &'static str,
        /// What it was.
        came: String,
    },
    /// An age that only some trajectories have.
    #[error("{} where the first trajectory has {}; give one to every trajectory, or to none",
        if *.here { "an age" } else { "no age" }, if *.here { "none" } else { "one" })]
    SomeAges {
        /// Whether this trajectory has one, and the first has not.
        here: bool,
    },
    /// Versions that fall within a trajectory, or ages that rise.
    #[error("{field}[{index}] is {value} after {before}; a later step is never sampled by an older policy")]
    Older {
        /// The field.
        field: Field,
        /// Index of the first such step.
        index: usize,
        /// The value.
        value: f64,
        /// The one at the step before.
        before: f64,
    },
    /// A version or age that is not one.
    #[error("{field}[{index}] is {}; it must be a whole number from 0 on, below 2^53", plain(*.value))]
    Count {
        /// The field.
        field: Field,
        /// Index of the first such value.
        index: usize,
        /// The value.
        value: f64,
    },
    /// Versions or ages that only some trajectories have.
    #[error("{} where the first trajectory has {}; give the same to every trajectory", told(*.came), told(*.first))]
    Clocks {
        /// What this trajectory has.
        came: Option<Clock>,
        /// What the first one has.
        first: Option<Clock>,
    },
    /// Versions and ages of the same steps.
    #[error("version and a list of ages are both there; keep one of them")]
    TwoClocks,
    /// A trainer that is older than what it trains on.
    #[error(
        "trainer_version is {trainer}, below the version {newest} of a step; no step is newer than the policy it trains"
    )]
    Newer {
        /// The trainer's version.
        trainer: f64,
        /// The newest of the trajectory.
        newest: f64,
    },
    /// A record that cannot be parsed; names the field where that is known.
    #[error("{}{why}", within(*.field))]
    Syntax {
        /// The field at which parsing stopped.
        field: Option<Field>,
        /// What the parser says.
        why: String,
    },
}

fn hint(near: &Option<String>, field: Field) -> String {
    let others = &field.names()[1..];
    match near {
        Some(near) => format!("; '{near}' looks like it"),
        None if others.is_empty() => String::new(),
        None => format!(" (nor {})", others.join(", ")),
    }
}

/// A number, however large, in a few digits.
fn plain(value: f64) -> String {
    if value.abs() < 1e15 || !value.is_finite() { value.to_string() } else { format!("{value:e}") }
}

fn told(clock: Option<Clock>) -> &'static str {
    match clock {
        None => "neither versions nor ages of steps",
        Some(Clock::Versions) => "versions",
        Some(Clock::Ages) => "ages of steps",
    }
}

fn within(field: Option<Field>) -> String {
    field.map_or_else(String::new, |field| format!("{field}: "))
}
