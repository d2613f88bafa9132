//! Training studies: arms × cells × seeds, trained as cohorts, resumed, and held against the paper.
//!
//! The way is a file → [`Training`] → (where it has a pilot, a [`Calibration`]) → [`Plan`] (every run it names) → [`Runner`] (results on disk) → [`Results`] →
//! tables, statements and a page. A report reads the results folder and nothing else.
//!
//! | file | what belongs there |
//! |---|---|
//! | `spec.rs`, `claims.rs` | a study file of this kind, and what the paper printed |
//! | `pilot.rs` | runs of one arm that choose a setting of each cell first |
//! | `strength.rs`, `settle.rs` | strengths by the rule, measured before anything is trained |
//! | `stages.rs` | what is planned from what: the pilot's runs, then the arms' |
//! | `plan.rs` | its runs: an arm, a cell, a seed, and where their results live |
//! | `store.rs`, `optima.rs` | files beside the runs, written whole; optima of pools that several studies play |
//! | `runner.rs` | from a plan to finished runs, on a device |
//! | `results.rs` | the finished runs of a plan, read from disk; endpoints are those of `niwaki_train::reading` |
//! | `extreme.rs`, `fisher.rs` | printed extremes and shares beside ours, exactly |
//! | `summary.rs` | an endpoint over the seeds of a cell, and paired comparisons |
//! | `judge.rs` | the paper's numbers and statements held against them |
//! | `kept.rs` | the same where one line per run is all that is left |
//! | `analysis/` | what a study looks into beyond endpoints: the pilot, dose, scaling, failures and more |
//! | `table.rs`, `figures.rs`, `charts.rs`, `page.rs` | what the report shows |
//! | `report.rs` | from the file to the report |

mod analysis;
mod charts;
mod claims;
mod extreme;
mod figures;
mod fisher;
mod judge;
mod kept;
mod optima;
mod page;
mod pilot;
mod plan;
mod report;
mod results;
mod runner;
mod settle;
mod spec;
mod stages;
mod store;
mod strength;
mod summary;
mod table;

pub use crate::report::{Speed, Workplace};
pub use analysis::{Correlated, DosePoint, correlation, dose_points, partialled};
pub use claims::Half;
pub use fisher::fisher_exact;
pub use judge::judge;
pub(crate) use judge::statements;
pub use kept::judge_lines;
pub use niwaki_train::reading::Endpoint;
pub use page::training_page;
pub use plan::{Plan, Planned};
pub(crate) use report::report;
pub use results::{Results, Run};
pub use runner::Runner;
pub(crate) use runner::{alike, pool_of};
pub use spec::{Calibration, Choice, Feasible, Pilot, Training, Tried};
pub(crate) use stages::Stages;
pub(crate) use strength::STRENGTHS;
pub use strength::Strength;
pub use summary::{Board, Comparison, Estimate};
pub use table::{comparisons_table, endpoints_csv, endpoints_table};
