//! The permutation flow shop's optimum.
//!
//! NEH and iterated greedy give good orders. Branch and bound builds orders from both ends: at each node one more
//! job goes to the front or to the back, whichever end leaves fewer children (`branch`). A child is bounded by
//! each machine alone and then by pairs of machines (`pairs`). The two take turns until the bounds meet.
//!
//! Methods: Lageweg, Lenstra and Rinnooy Kan (1978) for the bounds; Potts (1980) for branching at both ends; Gmys,
//! Mezmaz, Melab and Tuyttens (2020) for choosing the end at each node.

mod branch;
mod pairs;
mod solve;

pub use solve::solve;
