//! What can go wrong in this crate, each as one line that names the place.

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong in this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The parts of an instance contradict each other.
    #[error("{0}")]
    Instance(String),
    /// A schedule breaks a constraint of its instance.
    #[error("{0}")]
    Schedule(String),
    /// A file cannot be understood at a place.
    #[error("line {line}, column {column}: {what}")]
    Parse {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What was expected and what came.
        what: String,
    },
    /// A table cannot be understood at a cell.
    #[error("{table}, row {row}, column {column}: {what}")]
    Cell {
        /// The table's name.
        table: String,
        /// The row: its line in CSV, its number from 1 in JSON.
        row: usize,
        /// The column's name.
        column: String,
        /// What was expected and what came.
        what: String,
    },
    /// A file cannot be opened or read.
    #[error("{path}: {what}")]
    File {
        /// The file as it was named.
        path: String,
        /// What the system or the reader said.
        what: String,
    },
    /// A name, size or option that this crate does not have.
    #[error("{0}")]
    Choice(String),
}

impl Error {
    /// The same complaint, placed at a line and column unless it has a place already.
    #[must_use]
    pub fn at(self, line: usize, column: usize) -> Self {
        match self {
            Self::Instance(what) | Self::Schedule(what) | Self::Choice(what) => {
                Self::Parse { line, column, what }
            }
            placed @ (Self::Parse { .. } | Self::Cell { .. } | Self::File { .. }) => placed,
        }
    }
}
