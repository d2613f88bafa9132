//! What can go wrong between a policy and an engine.

use std::path::PathBuf;

/// A mistake in a program, its inputs or a file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Two shapes that must agree do not.
    #[error("{op}: {axis} must be {expected}, got {got}")]
    Shape {
        /// The op that was being added or run.
        op: &'static str,
        /// The axis in words.
        axis: &'static str,
        /// What the op needs.
        expected: usize,
        /// What it was given.
        got: usize,
    },
    /// A program asks an op for something that it does not do.
    #[error("{op}: {reason}")]
    Unsupported {
        /// The op.
        op: &'static str,
        /// Why not.
        reason: String,
    },
    /// An input's buffer has the wrong length.
    #[error("input {name}: expected {expected} elements [member, item, rows, width], got {got}")]
    InputLength {
        /// The input's name.
        name: String,
        /// Elements expected.
        expected: usize,
        /// Elements given.
        got: usize,
    },
    /// An index lies outside the table or rows that it selects from.
    #[error("input {name}: index {got} at position {position} is not below {bound}")]
    IndexRange {
        /// The input's name.
        name: String,
        /// Where in the buffer.
        position: usize,
        /// The index.
        got: i32,
        /// The number of rows that it selects from.
        bound: usize,
    },
    /// Per-member data of the wrong length.
    #[error("{what}: expected one for each of {members} members, got {got}")]
    Members {
        /// What was given.
        what: &'static str,
        /// Members of the population.
        members: usize,
        /// How many were given.
        got: usize,
    },
    /// A checkpoint that cannot be read or written.
    #[error("checkpoint {path}: {reason}")]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and the mend.
        reason: String,
    },
    /// Numbers that no policy can go on from.
    #[error("checkpoint {path}: tensor {tensor} holds what is not finite")]
    NotFinite {
        /// The file that was to be written or read.
        path: PathBuf,
        /// The first such tensor.
        tensor: String,
    },
    /// The device is not there, or refused.
    #[error("device {device}: {reason}")]
    Device {
        /// The device asked for.
        device: &'static str,
        /// Why it cannot be used, and the mend.
        reason: String,
    },
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
