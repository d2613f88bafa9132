//! Job shops, flexible or not, with or without rests: one solver.
//!
//! A dispatching rule gives the first schedule and a tabu search shortens it ([`tabu`]); bounds that ignore the
//! order on machines ([`relaxation`]) and on all machines but one give the first lower bound. What is left between
//! the two is closed by the learning engine over the disjunctive model ([`model`]), which either finds a schedule
//! of a given length or proves that there is none. The two searches take turns, and each helps the other.
//!
//! Why an engine of our own: `pumpkin-solver` 0.5 (default search, pair orders and load sums, no edge finding, no first
//! schedule) decided none of twelve questions "is there a 10 × 5 flexible schedule of length U, of U − 1?" in 10 s each,
//! U being this room's best; this room, all parts together, proved U on five of the six instances within 20 s in the
//! same run on a busy machine. That compares two whole set-ups, not the two engines.

mod budget;
mod edge_finding;
mod graph;
mod model;
#[cfg(feature = "pumpkin")]
mod pumpkin;
mod relaxation;
mod shop;
mod solve;
mod start;
mod tabu;

pub(super) use shop::Shop;
pub(super) use solve::{solve, solve_within_windows};
