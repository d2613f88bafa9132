//! The view of a process whose state is the sequence of tokens chosen so far.
//!
//! Owns what a sequence policy may know of a task: sizes, which tokens are open, what a whole sequence pays.

use crate::Error;
use niwaki_exact::{Payoff, Process};
use std::fmt;

/// One of `vocab` tokens is chosen at each of at most `horizon` steps; the state is the prefix, so the process is a tree.
///
/// Paper: `sec:setting`
pub trait Sequence: fmt::Debug + Send + Sync {
    /// Number of tokens.
    fn vocab(&self) -> usize;

    /// The most steps that a sequence can have.
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

    /// The token that ends a sequence before its last step, where there is one.
    fn end(&self) -> Option<usize> {
        None
    }

    /// What a complete sequence pays.
    ///
    /// Shapes: `tokens [horizon]`, or fewer where the last of them is [`Sequence::end`]
    fn reward(&self, tokens: &[usize]) -> f64;
}

/// The tokens up to and with the first that ends a sequence.
#[must_use]
pub fn complete<'a>(task: &dyn Sequence, tokens: &'a [usize]) -> &'a [usize] {
    let end = task.end().and_then(|end| tokens.iter().position(|&token| token == end));
    end.map_or(tokens, |place| &tokens[..=place])
}

/// What every sequence of a task pays, for exact values.
///
/// # Errors
/// Where the process is too large to enumerate.
pub fn payoff(task: &dyn Sequence) -> Result<Payoff, Error> {
    let process = Process::new(task.vocab(), task.horizon())?;
    Ok(Payoff::from_fn(process, |tokens| task.reward(complete(task, tokens)))?)
}
