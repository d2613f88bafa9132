//! Instances out of nothing: the paper's tasks, the distributions of the learning literature, and Taillard's
//! benchmarks bit for bit.
//!
//! [`Task`] is the table: one line per distribution, with its name and default size. Draws come from streams keyed by
//! (seed, index), so instance 7 of a pool is the same whether or not the others are drawn. This room must not know
//! rewards or policies.

mod draw;
mod literature;
mod paper;
mod taillard;
mod task;

pub use taillard::{taillard_flow_shop, taillard_job_shop};
pub use task::{Size, Task, generate};
