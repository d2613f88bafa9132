//! Studies: the paper's tables and figures as specifications, runs and reports.
//!
//! A study is a TOML file under `studies/` that says what to run and what the paper printed; running it gives
//! numbers, and a report is a pure function of those numbers. This crate owns the way from the one to the other.
//! It prints nothing; it writes the results of training runs, and the command writes the reports.
//!
//! | module | what belongs there |
//! |---|---|
//! | `ahead` | whether one of two is ahead, paired by seed |
//! | [`catalogue`] | the studies that ship with the program, by the paper's labels |
//! | [`claim`] | what the paper printed, and how ours compares with it |
//! | [`diagnostics`] | studies of the exact estimator diagnostics: statements and pages |
//! | [`training`] | training studies: plan, runner, results, endpoints, comparisons, pages |
//! | `report` | what is asked of a study, and what comes back |
//! | `shipped` | the study files as they were when the program was built |
//! | [`verdict`] | the paper's statements beside ours, for both |
//! | [`machines`] | a study as units of work for many machines |
//! | [`sweep`] | a study of one's own from arms, settings and seeds |
//! | [`runs`] | runs of one's own: the page of one, several side by side |
//! | [`board`] | the page of several |
//! | [`reproduce`] | the door: a study re-run and reported |

mod ahead;
pub mod board;
pub mod catalogue;
pub mod claim;
pub mod diagnostics;
mod error;
pub mod machines;
mod report;
mod reproduce;
pub mod runs;
mod shipped;
pub mod sweep;
pub mod training;
pub mod verdict;

pub use ahead::Difference;
pub use catalogue::{Contents, answering, find};
pub use error::Error;
pub use report::{Asked, Progress, Report, judged_tables};
pub use reproduce::reproduce;
pub use shipped::{Study, studies};
