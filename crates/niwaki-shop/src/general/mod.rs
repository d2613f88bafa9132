//! General shops, as planners have them: named jobs with releases, due dates and deadlines; operations with modes, windows
//! and waits; machines with calendars, availability and setups; an objective that is a weighted sum or a list of them.
//!
//! | file | what |
//! |---|---|
//! | `model.rs`, `check.rs` | the shop, checked once when it is made |
//! | `says.rs` | how times are said in messages |
//! | `calendar.rs` | closed times, and where work fits between them |
//! | `objective.rs` | measures, weighted sums, their importance |
//! | `verify.rs` | the independent checker |
//! | `list.rs` | a solution as one list of operations, and the schedule that follows from it |
//! | `waits.rs` | longest waits, which push operations of a list later |
//! | `gaps.rs` | another reading of a list, which fills gaps |
//! | `moves.rs` | changes of a list that never contradict the precedences |
//! | `construct.rs`, `queues.rs` | first lists by priority rules, of shops of usual size and of large ones |
//! | `core.rs` | the job shop at the heart of a shop, for the tabu search |
//! | `anneal.rs` | simulated annealing |
//! | `search.rs` | local searches and the proof in rounds, on all threads |
//! | `branch.rs` | exact search over small shops |
//! | `bounds.rs` | what no schedule can beat, and what no schedule can keep |
//! | `proof.rs` | the same by refutation, with the learning engine |
//! | `sequences.rs` | a schedule from the order of jobs on every machine |
//! | `special.rs` | special problems as general shops, and back |
//! | `solve.rs` | all of it together |
//!
//! This room must not know files, dates or terminals.

mod anneal;
mod bounds;
mod branch;
mod calendar;
mod check;
mod construct;
mod core;
mod gaps;
mod list;
mod model;
mod moves;
mod objective;
mod proof;
mod queues;
mod says;
mod search;
mod sequences;
mod solve;
mod special;
mod verify;
mod waits;

pub use calendar::{Calendar, Span};
pub use check::Parts;
pub use model::{Job, Machine, Mode, Operation, Precedence, Setups, Shop};
pub use objective::{Measure, Objective, Sum};
pub use says::Says;
pub use sequences::follow;
pub use solve::{Answer, Past, Progress, solve};
pub(crate) use special::Maxima;
pub use verify::{Verification, verify};
