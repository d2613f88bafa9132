//! What can be wrong with a model's files.

use std::path::{Path, PathBuf};
use thiserror::Error;

/// A model that cannot be read, or a program that cannot be made of it.
#[derive(Debug, Error)]
pub enum Error {
    /// A file that is not there, cut short, or not of its format.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A key of a model's description.
    #[error("{}: {key}: {reason}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// A tensor that is missing, of another shape or packed in an unknown way.
    #[error("{}: tensor '{name}': {reason}", path.display())]
    Tensor {
        /// The file.
        path: PathBuf,
        /// The tensor's name in the file.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// Text that the tokenizer refuses.
    #[error("tokenizer: {0}")]
    Text(String),
    /// A token that the program has no row for.
    #[error("token {token} is none of the program's {entries}")]
    Token {
        /// The token.
        token: u32,
        /// How many the program has.
        entries: usize,
    },
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] niwaki_nn::Error),
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn file(path: &Path, reason: impl ToString) -> Self {
        Self::File { path: path.to_owned(), reason: reason.to_string() }
    }

    pub(crate) fn key(path: &Path, key: &str, reason: impl ToString) -> Self {
        Self::Key { path: path.to_owned(), key: key.to_owned(), reason: reason.to_string() }
    }

    pub(crate) fn tensor(path: &Path, name: &str, reason: impl ToString) -> Self {
        Self::Tensor { path: path.to_owned(), name: name.to_owned(), reason: reason.to_string() }
    }
}
