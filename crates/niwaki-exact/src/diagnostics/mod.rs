//! The diagnostics: policy pairs, every loss, no sampling.
//!
//! | file | what belongs there |
//! |---|---|
//! | `grid.rs` | rewards × drifts × seeds × losses, and the policy pairs they name |
//! | `row.rs` | one measured cell, and its summary over seeds |
//! | `oracle.rs` | a whole question: the league, and sweeps over α and drift for its page |
//! | `files.rs` | summaries as CSV and JSON |
//! | `league.rs` | the league table of the paper's measures |
//! | `ranking.rs` | what a batch of N makes of each loss: the ranking, who leads at which N, its figures |
//! | `figures.rs` | MSE against α, sweeps over drift, channels, witness |
//! | `page.rs` | the page of a question |

pub mod figures;
mod files;
mod grid;
mod league;
mod oracle;
mod page;
mod ranking;
mod row;

pub use files::{iterations_to_csv, to_csv, to_json};
pub use grid::{BATCH, Grid, Policies};
pub use league::league_table;
pub use oracle::{Progress, Report, Sweeps, oracle};
pub use ranking::{leaders, ranking};
pub use row::{Row, Spread, Summary, summarise};
