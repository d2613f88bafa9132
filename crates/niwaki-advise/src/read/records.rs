//! What every layout gives: rows one by one, and what a pass wants of them.

use crate::error::{Error, Place};
use crate::schema::Field;
use crate::trajectory::Record;
use std::collections::BTreeSet;
use std::path::Path;

/// One layout's rows, in order.
pub(super) trait Records: Send {
    /// Fills the record with the next row; false at the end.
    fn next(&mut self, record: &mut Record) -> Result<bool, Error>;
    /// Where the row last read stands.
    fn place(&self) -> Place;
    /// The names of the file, or of the row last read, those that the schema does not know included.
    fn names(&self) -> Vec<String>;
    /// The names that were there and not read.
    fn unread(&mut self) -> &mut Unread;
    /// About how many bytes of the file are done.
    fn done(&self) -> u64;
}

/// Names that a reader saw and did not read, because the schema does not know them or another name of the field was read.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread {
    pub(super) names: BTreeSet<String>,
    /// Those that nobody has looked at yet.
    pub(super) fresh: Vec<String>,
}

/// The line's own digest, which our dumps carry.
const CHECK: &str = "check";

/// Names that are kept; what has more of them has names that are data.
const NAMES: usize = 64;

impl Unread {
    pub(super) fn add(&mut self, name: &str) {
        if name != CHECK && self.names.len() < NAMES && !self.names.contains(name) {
            self.names.insert(name.to_owned());
            self.fresh.push(name.to_owned());
        }
    }
}

/// What a pass needs of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// Rewards, groups, iterations, ages and weights.
    Rewards,
    /// Everything.
    Whole,
}

impl Pass {
    pub(super) fn wants(self, field: Field) -> bool {
        self == Self::Whole
            || field.is_single()
            || matches!(field, Field::Reward | Field::Advantage | Field::Age)
    }
}

/// A file as users wrote it.
pub(crate) fn shown(file: &Path) -> String {
    file.display().to_string()
}
