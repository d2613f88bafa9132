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
    /// A candidate that a model cannot choose by one token.
    #[error("{}: candidate '{candidate}' of slot '{slot}': {reason}", path.display())]
    Candidate {
        /// The record's file.
        path: PathBuf,
        /// The slot.
        slot: String,
        /// The candidate.
        candidate: String,
        /// What the tokenizer makes of it.
        reason: String,
    },
    /// A record that is too large to enumerate.
    #[error("{}: {prefixes} prefixes and more; at most {most} are enumerated: take fewer slots or candidates", path.display())]
    Prefixes {
        /// The record's file.
        path: PathBuf,
        /// How many there are at least.
        prefixes: usize,
        /// How many there may be.
        most: usize,
    },
    /// A record that its task refuses.
    #[error(transparent)]
    Task(#[from] niwaki_tasks::Error),
    /// Text that the tokenizer refuses.
    #[error("tokenizer: {0}")]
    Text(String),
    /// A token that the program has no row for.
    #[error("token {token} is not one of the program's {entries}")]
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

impl From<Error> for niwaki_policies::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Engine(error) => error.into(),
            other => niwaki_nn::Error::Unsupported { op: "decoder", reason: other.to_string() }.into(),
        }
    }
}
