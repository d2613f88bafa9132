//! Handles and shapes.
//!
//! A program describes **one item** of **one member**. An engine runs it for every item (a lane, or a group of
//! lanes that share an encoder) of every member; the axes `[member, item]` are implied and leading everywhere.

/// Rows and width of a value within one item; in memory `[member, item, rows, width]`, row-major, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Rows per item (steps, jobs, candidates…).
    pub rows: usize,
    /// Scalars per row.
    pub width: usize,
}

impl Shape {
    /// Scalars per item.
    #[must_use]
    pub fn size(self) -> usize {
        self.rows * self.width
    }
}

/// A handle on a value: an input of scalars or the output of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub(crate) usize);

/// A handle on integers `[rows]` per item: tokens, actions, rows to gather, positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Index(pub(crate) usize);

/// A handle on bytes `[rows, width]` per item: 1 where something may be seen or chosen, 0 where it may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mask(pub(crate) usize);

/// A run of columns of a value, so that one product can yield queries, keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Columns {
    /// The value.
    pub value: Value,
    /// The first column; the op that reads it says how many.
    pub start: usize,
}

impl From<Value> for Columns {
    fn from(value: Value) -> Self {
        Self { value, start: 0 }
    }
}

impl Value {
    /// Position in the program's table of values.
    #[must_use]
    pub fn position(self) -> usize {
        self.0
    }
}

impl Index {
    /// Position in the program's table of indices.
    #[must_use]
    pub fn position(self) -> usize {
        self.0
    }
}

impl Mask {
    /// Position in the program's table of masks.
    #[must_use]
    pub fn position(self) -> usize {
        self.0
    }
}
