//! What a policy plays.
//!
//! A task shows itself through a **view**: [`Sequence`] is the view of a process whose state is the sequence of
//! tokens chosen so far, and [`Construction`] that of one which chooses among candidates with features. A policy for a
//! view plays every task that offers it and knows none of them by name. What a schedule pays is a [`Payment`], apart
//! from the task, so that runs with different deadlines can share one. A new task is one file here and one line in the spec that names it.
//!
//! | module | tasks |
//! |---|---|
//! | [`ladder`] | the paper's four rewards over tokens, any vocabulary and horizon |
//! | [`choice`] | free choice and its environments: emergent terminal, coupled choices |
//! | [`flow_shop`] | permutation flow shops: which job comes next |

pub mod choice;
mod construction;
mod error;
pub mod flow_shop;
pub mod ladder;
mod payment;
mod sequence;

pub use choice::{Choice, Terminal};
pub use construction::{Building, Construction, Stations};
pub use error::Error;
pub use flow_shop::{FlowPool, FlowTask};
pub use ladder::Ladder;
pub use payment::{Outcome, Payment};
pub use sequence::{Sequence, payoff};
