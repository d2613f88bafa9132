//! Job shops, flexible or not, with or without rests: one solver.
//!
//! A dispatching rule gives the first schedule and a tabu search shortens it ([`tabu`]); bounds that ignore the
//! order on machines ([`relaxation`]) and on all machines but one give the first lower bound. What is left between
//! the two is closed by the learning engine over the disjunctive model ([`model`]), which either finds a schedule
//! of a given length or proves that there is none. The two searches take turns, and each helps the other.
//!
//! Why an engine of our own: `pumpkin-solver` 0.5 with the same variables, order clauses and load sums decided none of
//! twelve questions "is there a 10 × 5 flexible schedule of length C*, of C* − 1?" within 10 s each (six instances),
//! where this room proves C* of most in seconds.

mod budget;
mod edge_finding;
mod graph;
mod model;
mod relaxation;
mod shop;
mod solve;
mod start;
mod tabu;

pub(super) use shop::Shop;
pub(super) use solve::{solve, solve_within_windows};
