//! The view of a shop under construction as a typed graph: operations, machines, the arcs between them, and the pairs of
//! job and machine that may be chosen now.
//!
//! A job shop is a flexible shop in which every operation has one machine, so one dispatcher plays both. A choice is
//! always a pair, `job · machines + machine`. In a canonical order one machine decides and only its pairs are open; in
//! the free order all pairs that can start now are. Shops of a pool may differ in all sizes: rows and pairs are numbered
//! as in the largest of them, and what a shop does not have is never offered.
//!
//! The features are those of Song and others (2022) and raw; how a network scales them is its own affair. Of an operation:
//!
//! | # | | before it is placed | after |
//! |---|---|---|---|
//! | 0 | placed | 0 | 1 |
//! | 1 | arcs | machines that can run it | 1 |
//! | 2 | time | mean over those | the chosen one |
//! | 3 | left | operations of its job that are not placed | same |
//! | 4 | completion | when its job would end | same |
//! | 5 | start | when it would start | when it does |
//! | 6, 7 | least rest before it, and how much more it may rest | same | same |
//!
//! "Would" means: from the end of the job's last placed operation (0 before the first) with mean times and least rests
//! and no waiting; it is not lifted to the clock. The last two columns are there where some shop of the pool has
//! windows; where a rest knows no most, the slack is the longest that the shop has anywhere. Of a machine: arcs (operations
//! that it can still run or has run), the time at which it is free, and the share of the time so far in which it was busy.
//! Of an arc: the time. A placed operation keeps one arc.
//!
//! Where this differs from Song's code: a mean divides by the count and not by the count plus 1e-9, and a share by the
//! clock and not by the clock plus 1e-9 or 1e-5, whichever event came last.
//!
//! | file | what belongs there |
//! |---|---|
//! | `task.rs` | the pool: shops, sizes, what never changes |
//! | `lanes.rs` | shops under construction: what is open, what was chosen |
//! | `features.rs` | one lane's features, kept up to date placement by placement |
//! | `improve.rs` | schedules as choices, and better ones by local search |
//!
//! Paper: `app:sched-driftdial`

mod features;
mod improve;
mod lanes;
mod task;

pub use features::{LEFT, MACHINE, OPERATION, PLACED, START, TIME};
pub use lanes::GraphLanes;
pub(crate) use task::flexible;
pub use task::{GraphSizes, GraphTask, OperationTimes};
