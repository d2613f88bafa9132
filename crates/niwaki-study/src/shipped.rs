//! The study files as they were when the program was built: a TOML under `studies/` is listed by the build script.
//!
//! Knows labels and texts; what a file says is read above.

use crate::Error;
use niwaki_words::nearest;
use serde::Deserialize;

/// A study file.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// The label of the paper.
    pub label: &'static str,
    /// The file's text.
    pub text: &'static str,
}

impl Study {
    /// How refusals call it.
    pub(crate) fn name(&self) -> String {
        format!("study {}", self.label)
    }
}

/// The kinds of studies; a file that says none trains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Fixed policy pairs, measured exactly.
    Diagnostics,
    /// Runs to train.
    #[default]
    Training,
}

/// Every study, in the paper's order.
#[must_use]
pub const fn studies() -> &'static [Study] {
    include!(concat!(env!("OUT_DIR"), "/studies.rs"))
}

/// The study of this label.
pub(crate) fn find(label: &str) -> Option<&'static Study> {
    studies().iter().find(|study| study.label == label)
}

/// That no study has a label.
pub(crate) fn unknown(label: &str) -> Error {
    let known: Vec<&str> = studies().iter().map(|study| study.label).collect();
    let mend = match nearest(label, known.iter().copied()) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("the labels that exist so far are {}", known.join(", ")),
    };
    Error::UnknownLabel { came: label.to_owned(), mend }
}
