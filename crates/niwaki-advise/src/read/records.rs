//! What every layout gives: rows one by one, and what a pass wants of them.

use crate::error::{Error, Place};
use crate::schema::Field;
use crate::trajectory::Record;
use std::path::Path;

/// One layout's rows, in order.
pub(super) trait Records: Send {
    /// Fills the record with the next row; false at the end.
    fn next(&mut self, record: &mut Record) -> Result<bool, Error>;
    /// Where the row last read stands.
    fn place(&self) -> Place;
    /// The names of the file, or of the row last read, those that the schema does not know included.
    fn names(&self) -> Vec<String>;
    /// About how many bytes of the file are done.
    fn done(&self) -> u64;
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
        let first =
            [Field::Reward, Field::Group, Field::Iteration, Field::Age, Field::Weight, Field::Advantage];
        self == Self::Whole || first.contains(&field)
    }
}

/// A file as users wrote it.
pub(super) fn shown(file: &Path) -> String {
    file.display().to_string()
}
