//! Studies: the paper's tables and figures as specifications, runs and reports.
//!
//! A study is a TOML file under `studies/` that says what to run and what the paper printed; running it gives
//! numbers, and a report is a pure function of those numbers. This crate owns the way from the one to the other.
//! It prints nothing and writes nothing: the command does.
//!
//! | module | what belongs there |
//! |---|---|
//! | [`catalogue`] | the studies that ship with the program, by the paper's labels |
//! | [`claim`] | what the paper printed, and how ours compares with it |
//! | [`diagnostics`] | the exact estimator diagnostics: grid, rows, league table, pages |

pub mod catalogue;
pub mod claim;
pub mod diagnostics;
mod error;

pub use catalogue::{Study, find, studies};
pub use error::Error;
