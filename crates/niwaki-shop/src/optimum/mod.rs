//! How good a schedule can be: bounds, incumbents and proofs within a time limit.
//!
//! One file per problem, each with a `solve(&Problem, Limits, Watch) -> Optimum`; `optimum::solve` is the same
//! over [`crate::Instance`]. A solver is anytime: it reports each improvement to its watch and returns the best
//! schedule it has when time is up. It must not know files or terminals.

mod result;

pub use result::{Bounds, Limits, Optimum, Watch};
