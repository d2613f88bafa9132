//! What a policy plays.
//!
//! A task shows itself through a **view**: [`Sequence`] is the view of a process whose state is the sequence of
//! tokens chosen so far. A policy for that view plays every task that offers it and knows none of them by name.
//! A new task is one file here and one line in the spec that names it.
//!
//! | module | tasks |
//! |---|---|
//! | [`ladder`] | the paper's four rewards over tokens, any vocabulary and horizon |
//! | [`choice`] | free choice and its environments: emergent terminal, coupled choices |

pub mod choice;
mod error;
pub mod ladder;
mod sequence;

pub use choice::{Choice, Terminal};
pub use error::Error;
pub use ladder::Ladder;
pub use sequence::{Sequence, payoff};
