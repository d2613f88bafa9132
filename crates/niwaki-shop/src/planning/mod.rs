//! What the commands of a shop do, as calls that return values: schedule and judge.
//!
//! Whoever calls parses flags before and prints afterwards; errors here carry data and never name a flag.
//!
//! | file | what |
//! |---|---|
//! | `method.rs` | the ways to schedule, by name |
//! | `solve.rs` | a checked schedule with what it was judged by |

mod method;
mod solve;

pub use method::Method;
pub use solve::{Score, Solved, judge, solve};
