//! Construction as a process: one decision per step, thousands of lanes at once.
//!
//! A lane builds one schedule. [`Lanes::legal`] says which actions a lane may take, [`Lanes::step`] takes one in every
//! lane, and after [`Lanes::horizon`] steps every lane is done and has a makespan. State is kept as struct-of-arrays
//! over lanes and updated in place: nothing is allocated after the lanes are made, so an episode costs what its
//! decisions cost. There is no undo. This room must not know policies, rewards or files.
//!
//! | lanes | problems | canonical action | free action |
//! |---|---|---|---|
//! | [`SequenceLanes`] | flow shop, lagged flow shop, single machine | job for the next position | (job, any empty position) |
//! | [`JobLanes`] | job shop | job for the machine that next becomes free ([`JobOrder`]) | any job that can start now, or any at all |
//! | [`FlexibleLanes`] | flexible job shop, windows | job for the machine that next becomes free | (job, machine) that can start now |
//!
//! [`Outlook`] looks ahead from any such state: one-machine bounds of what is left, and what each choice makes of them.
//!
//! # Why the canonical order makes a tree
//!
//! Call (machine, rank) a *slot*: the rank-th operation that a machine runs; in a sequence, a slot is a position. A state
//! records what fills each slot so far. Under [`Order::Canonical`] the slot that is filled next is a function of the
//! state: the next position, or the next rank of the machine that next becomes free, the lowest numbered of those that
//! tie. An action only says what goes in. So a state tells its own history: start from the empty state, ask which slot
//! comes first, read off what fills it, and go on. Two histories that reach one state are therefore equal, which is
//! history-injectivity, and the process is a tree.
//!
//! Under [`Order::Free`] the action also chooses the slot. Filling slot A then B, or B then A, leads to the same state:
//! histories merge, and the process is a DAG. It ends at the same sequences and the same job-shop schedules; in the
//! flexible shop it may also send a job to a free machine while a lower numbered one stays idle. All of this is tested by
//! enumeration.
//!
//! A machine *next becomes free* when it can start an operation that is waiting for it, earlier than any other machine
//! can: the lanes of the job shops then build non-delay schedules, one decision per operation. Non-delay schedules need
//! not contain an optimum; [`JobOrder::Active`] and [`FlexibleLanes::active`] build active ones (Giffler and Thompson),
//! which do, by the same argument in a canonical order. [`JobOrder::Machine`] takes the words literally instead: the
//! machine that has finished first decides, and may wait.
//!
//! Paper: sec:setting, app:derivation

mod flexible;
mod job;
mod lanes;
mod mask;
mod outlook;
mod sequence;

pub use flexible::FlexibleLanes;
pub use job::{JobLanes, JobOrder};
pub use lanes::{Lanes, Order};
pub use mask::{count, nth, pick};
pub use outlook::{Outlook, Prospect, Sight, Standing, View};
pub use sequence::SequenceLanes;
