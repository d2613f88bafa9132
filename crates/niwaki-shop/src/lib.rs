//! Scheduling without learning, useful alone to anyone with a shop to schedule.
//!
//! An [`Instance`] is one of five problems. Code that builds a schedule for it — a rule, a heuristic, a solver, a
//! policy — returns a [`Schedule`], and the checker of [`mod@verify`] judges it without knowing how it was made.
//!
//! | room | what belongs there |
//! |---|---|
//! | [`instance`] | the five problems, checked once when they are made |
//! | [`schedule`] | who runs what, where and when; makespan and violation |
//! | [`mod@verify`] | the independent checker |
//! | [`formats`] | files: nine layouts of instances, schedules as JSON and CSV |
//! | [`construct`] | construction as a process: batched lanes, canonical and free order |
//! | [`general`] | shops as planners have them: dates, calendars, setups, objectives; their checker and search |
//! | [`plan`] | a planner's files: tables of named jobs, dates, schedules by name |
//! | [`gantt`] | schedules as SVG charts |
//! | [`generate`] | instances of the paper's tasks, of the literature, of Taillard |
//! | [`heuristics`] | NEH, iterated greedy, Johnson, Jackson |
//! | [`rules`] | dispatching rules, non-delay and active, once or in samples |
//! | [`optimum`] | `{lower, upper, proven}` for each problem, within a time limit |
//! | [`planning`] | what the commands do, as calls that return values |
//!
//! Times are whole numbers. Jobs, operations and machines count from 0 everywhere in this crate.

pub mod construct;
pub mod error;
pub mod formats;
pub mod gantt;
pub mod general;
pub mod generate;
pub mod heuristics;
pub mod instance;
pub mod optimum;
pub mod plan;
pub mod planning;
pub mod rules;
pub mod schedule;
pub mod verify;

pub use error::{Error, Result};
pub use instance::{
    Alternative, FlexibleShop, FlowShop, Instance, JobShop, LaggedJob, Operation, SingleMachine,
    TwoMachineLags, Window,
};
pub use optimum::{Bounds, Limits, Optimum};
pub use schedule::{Placed, Schedule};
pub use verify::{Verification, verify};

/// The README's example is run with the other ones.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
