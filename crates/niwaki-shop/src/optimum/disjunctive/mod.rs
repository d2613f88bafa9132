//! Job shops, flexible or not, with or without rests: one solver.
//!
//! A dispatching rule or [`insertion`] gives the first schedule and a tabu search shortens it ([`blocks`]); bounds that ignore the
//! order on machines ([`relaxation`]) and on all machines but one give the first lower bound. What is left between
//! the two is closed by the learning engine over the disjunctive model ([`model`]), which either finds a schedule
//! of a given length or proves that there is none. The two searches take turns, and each helps the other.
//!
//! With the feature `pumpkin` the last third of the time goes to Pumpkin 0.5, a public solver of the same kind, on a model
//! as tight as ours (`pumpkin.rs`: start windows, loads, edge finding, an order for each pair, the same questions). It is a
//! second opinion rather than a gain: of what ours left open it has decided nothing yet, which is also why the engine is
//! our own. Measured on one core of a busy machine; instances by number, all of seed 5:
//!
//! | what | ours | Pumpkin |
//! |---|---|---|
//! | `flexible` 10 × 5, 0 to 5, either alone for 6 s | 4 of 6 proven | 0 of 6 proven, makespans 1 to 10% longer |
//! | `l2d` 8 × 8, 0 to 3, either alone | 4 of 4 in 7 to 49 ms | 4 of 4 in 22 to 262 ms |
//! | `flexible` 1, 2, `windows` 0, 1, 2, 4, 5, 7, la29, la38, ta02, abz8: open after 20 s, about 2 s of them on the core; then Pumpkin for 10 s, about 1 s on the core | 0 of 12 | 0 of 12; one shorter schedule (abz8, 732 to 716) |
//! | `windows` 2, la38: open after 20 s on the core, then Pumpkin for 10 s on the core | 0 of 2 | 0 of 2 |

mod balance;
mod blocks;
mod budget;
mod edge_finding;
mod graph;
mod insertion;
mod model;
mod orders;
mod pair;
#[cfg(feature = "pumpkin")]
mod pumpkin;
mod relaxation;
mod shop;
mod solve;
mod start;

pub(crate) use edge_finding::{Machine, Task};
pub(crate) use pair::{Node, Pair};
pub(super) use shop::Shop;
pub(super) use solve::{improve, solve, solve_within_windows};
