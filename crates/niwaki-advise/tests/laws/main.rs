//! What must hold of the advice, whatever the data.

#![expect(clippy::unwrap_used, reason = "a law that cannot be checked has failed")]

mod convergence;
mod coverage;
mod dumps;
mod garbage;
mod lags;
mod layouts;
mod long;
mod oracle;
#[path = "../../examples/regime/mod.rs"]
mod regime;
mod story;
mod streaming;
mod support;
mod tallies;
mod uses;
mod verl;
