//! Formats that change on purpose, each with its reason and the last commit that has the old format.
//!
//! A declaration forgives a difference only in a comparison with that commit or an older one; against any later commit it
//! has expired and counts for nothing. In a whole comparison a declaration in force that nothing needs fails as well.

use std::fmt;

/// How two files may differ.
#[allow(dead_code, reason = "the kinds stay while the table needs none of them")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Change {
    /// Only today's command writes the file.
    Added,
    /// Only the older command writes the file.
    Removed,
    /// The file is another document, compared with nothing: the reason says what holds its content instead.
    Remade,
    /// The older text, with each of these stretches replaced, is today's.
    Reworded(&'static [(&'static str, &'static str)]),
    /// The lines are the same but for those that begin so.
    Lines(&'static str),
    /// A table as CSV that is the same but for these columns.
    Columns(&'static [&'static str]),
    /// JSON fields that one side has and the other has not, or that differ; all others are compared as values.
    Fields(&'static [&'static str]),
}

/// A file's declared difference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    /// A part of the path that the file has, from the item's folder on; `*` stands for anything.
    pub(super) path: &'static str,
    pub(super) change: Change,
    /// The last commit on `main` that has the old format.
    pub(super) last: &'static str,
    pub(super) reason: &'static str,
}

impl Declared {
    /// Whether it is about a file.
    pub(super) fn names(&self, file: &str) -> bool {
        let mut parts = self.path.split('*');
        parts.try_fold(file, |rest, part| rest.split_once(part).map(|(_, rest)| rest)).is_some()
    }
}

impl fmt::Display for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.change {
            Change::Added => write!(f, "{} is new: {}", self.path, self.reason),
            Change::Removed => write!(f, "{} is no longer written: {}", self.path, self.reason),
            Change::Remade | Change::Reworded(_) | Change::Lines(_) => {
                write!(f, "{}: {}", self.path, self.reason)
            }
            Change::Fields(names) | Change::Columns(names) => {
                write!(f, "{} in {}: {}", names.join(", "), self.path, self.reason)
            }
        }
    }
}

/// Every difference that is meant.
pub(super) const DECLARED: &[Declared] = &[
    Declared {
        path: "solve/printed.txt",
        change: Change::Lines("2 rows were comments"),
        last: "19e0d0251007",
        reason: "`solve` and `convert` count what they read and do not use",
    },
    Declared {
        path: "solve/table/index.html",
        change: Change::Reworded(&[("<ul><li>late", "<ul><li>2 rows were comments</li><li>late")]),
        last: "19e0d0251007",
        reason: "the same on the page",
    },
    Declared {
        path: "solve/table/schedule.ics",
        change: Change::Remade,
        last: "19e0d0251007",
        reason: "events have names of their own plan, lines are folded; schedule.csv holds the same times and is compared",
    },
];
