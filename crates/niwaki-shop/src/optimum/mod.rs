//! How good a schedule can be: bounds, incumbents and proofs within a time limit.
//!
//! One room per problem, each with a `solve`; [`solve`] is the same over [`crate::Instance`]. A solver is anytime:
//! it reports each move of a bound to its watch and returns the best schedule it has when time is up. The same
//! input and seed give the same result unless the time limit cuts the search short. Nothing here knows files or
//! terminals.
//!
//! | room | problem | how |
//! |---|---|---|
//! | [`flow_shop`] | permutation flow shop | NEH, iterated greedy, branch and bound from both ends |
//! | [`job_shop`], [`flexible`] | job shops with or without a choice of machines, with or without rests | tabu search and a search that learns clauses |
//! | [`two_machine`] | two machines with lags | Johnson's rule with lags |
//! | [`single_machine`] | one machine with due dates | Moore and Hodgson's algorithm |

mod bounds;
mod clock;
pub(crate) mod disjunctive;
mod dispatch;
pub(crate) mod learning;
mod result;

pub mod flexible;
pub mod flow_shop;
pub mod job_shop;
pub mod single_machine;
pub mod two_machine;

pub(crate) use bounds::one_machine;
pub(crate) use disjunctive::{Machine as Lane, Node, Pair, Task};
pub use dispatch::{solve, solve_from};
pub use result::{Bounds, Limits, Optimum, Watch};
