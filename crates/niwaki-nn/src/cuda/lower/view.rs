//! The rows of a value, as launches are told of them.

use super::{Lowering, bytes};
use crate::Result;
use crate::graph::{Shape, Value};

/// The rows of a value that a launch works on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) at: u64,
    /// Scalars from one row to the next.
    pub(crate) pitch: usize,
    pub(crate) rows: usize,
    pub(crate) rows_per_member: usize,
    pub(crate) width: usize,
    /// Whether it is stored in halves.
    pub(crate) half: bool,
}

impl View {
    /// The same from a column on.
    pub(crate) fn at_column(self, column: usize) -> Self {
        Self { at: self.at + (column * bytes(self.half)) as u64, ..self }
    }
}

impl Lowering<'_> {
    /// The rows of a value that this pass works on.
    pub(crate) fn view(&self, value: Value) -> Result<View> {
        let Shape { rows, width } = self.shape(value);
        let base = self.base(value)?;
        let (at, pitch, per_item) = match self.row {
            None => (base, width, rows),
            Some(row) => (base + (row * width * self.bytes(value)) as u64, rows * width, 1),
        };
        let rows_per_member = self.addresses.items * per_item;
        let (rows, half) = (rows_per_member * self.addresses.members, self.is_half(value));
        Ok(View { at, pitch, rows, rows_per_member, width, half })
    }

    /// First row and step from row to row, for kernels that look rows up in integers.
    pub(crate) fn rows_of(&self, value: Value) -> (usize, usize) {
        match self.row {
            None => (0, 1),
            Some(row) => (row, self.shape(value).rows),
        }
    }
}
