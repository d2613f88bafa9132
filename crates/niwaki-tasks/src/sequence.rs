//! The view of a process whose state is the sequence of tokens chosen so far.
//!
//! Owns what a sequence policy may know of a task: sizes, which tokens are open, what a whole sequence pays.

use crate::Error;
use niwaki_exact::{Payoff, Process};
use std::fmt;

/// One of `vocab` tokens is chosen at each of `horizon` steps; the state is the prefix, so the process is a tree.
///
/// Paper: `sec:setting`
pub trait Sequence: fmt::Debug + Send + Sync {
    /// Number of tokens.
    fn vocab(&self) -> usize;

    /// Number of steps.
    fn horizon(&self) -> usize;

    /// Whether some tokens may ever be closed. Where not, nobody asks [`Sequence::open`].
    fn masked(&self) -> bool {
        false
    }

    /// Writes which tokens may follow a prefix; at least one may.
    ///
    /// Shapes: `prefix [step]`, `open [vocab]`
    fn open(&self, prefix: &[usize], open: &mut [bool]) {
        let _ = prefix;
        open.fill(true);
    }

    /// What a complete sequence pays.
    ///
    /// Shapes: `tokens [horizon]`
    fn reward(&self, tokens: &[usize]) -> f64;
}

/// What every sequence of a task pays, for exact values.
///
/// # Errors
/// Where the process is too large to enumerate.
pub fn payoff(task: &dyn Sequence) -> Result<Payoff, Error> {
    let process = Process::new(task.vocab(), task.horizon())?;
    Ok(Payoff::from_fn(process, |tokens| task.reward(tokens))?)
}
