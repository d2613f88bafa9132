//! The exact estimator diagnostics: fixed policy pairs, every loss, no sampling.
//!
//! | file | what belongs there |
//! |---|---|
//! | `grid.rs` | rewards × drifts × seeds × losses, and the policy pairs they name |
//! | `row.rs` | one measured cell, and its summary over seeds |
//! | `spec.rs` | a study file of this kind |
//! | `judge.rs` | its statements held against what was measured |
//! | `table.rs` | the league table |
//! | `figures.rs` | MSE against α, sweeps over drift, channels, witness |
//! | `page.rs` | the pages |

mod figures;
mod grid;
mod judge;
mod page;
mod row;
mod spec;
mod table;

pub use grid::{Grid, Policies};
pub use page::{OracleResults, oracle_page, study_page};
pub use row::{Row, Summary, summarise};
pub use spec::Diagnostics;
pub use table::league_table;
