//! Training studies: arms × cells × seeds, trained as cohorts, resumed, and held against the paper.
//!
//! The way is a file → [`Training`] → (where it has a pilot, a [`Calibration`]) → [`Plan`] (every run it names) → [`Runner`] (results on disk) → [`Results`] →
//! tables, statements and a page. A report reads the results folder and nothing else.
//!
//! | file | what belongs there |
//! |---|---|
//! | `spec.rs`, `claims.rs` | a study file of this kind, and what the paper printed |
//! | `pilot.rs` | runs of one arm that choose a setting of each cell first |
//! | `strength.rs` | strengths by the rule, measured before anything is trained |
//! | `plan.rs` | its runs: an arm, a cell, a seed, and where their results live |
//! | `store.rs` | files beside the runs, written whole |
//! | `runner.rs` | from a plan to finished runs, on a device |
//! | `results.rs` | the finished runs of a plan, read from disk |
//! | `endpoint.rs` | what is read off a curve |
//! | `summary.rs` | an endpoint over the seeds of a cell, and paired comparisons |
//! | `judge.rs` | the paper's numbers and statements held against them |
//! | `anatomy.rs` | how runs fail |
//! | `scaling.rs` | how an advantage scales with the axes of a grid |
//! | `boundary.rs` | two orders: which share of the ways to run them is on time |
//! | `dose.rs` | whether the lead follows the dose |
//! | `table.rs`, `figures.rs`, `charts.rs`, `page.rs` | what the report shows |
//! | `report.rs` | from the file to the report |

mod anatomy;
mod boundary;
mod charts;
mod claims;
mod dose;
mod endpoint;
mod figures;
mod fisher;
mod judge;
mod page;
mod pilot;
mod plan;
mod report;
mod results;
mod runner;
mod scaling;
mod spec;
mod store;
mod strength;
mod summary;
mod table;

pub use boundary::Feasible;
pub use claims::Half;
pub use dose::{Correlated, DosePoint, correlation, partialled};
pub use endpoint::Endpoint;
pub use fisher::fisher_exact;
pub use page::training_page;
pub use pilot::{Calibration, Choice, Pilot, Tried};
pub use plan::{Plan, Planned};
pub use report::Workplace;
pub(crate) use report::report;
pub use results::{Results, Run};
pub use runner::{Runner, Speed};
pub use spec::Training;
pub use strength::Strength;
pub use summary::{Board, Comparison, Estimate};
pub use table::{comparisons_table, endpoints_csv, endpoints_table};
