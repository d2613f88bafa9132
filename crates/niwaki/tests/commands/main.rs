//! The command as users meet it, one file per door; one binary, so that they link once.

#![expect(clippy::unwrap_used, reason = "a command that cannot be run has failed")]

mod advise;
mod board;
mod engine;
#[cfg(unix)]
mod launch;
mod machines;
mod oracle;
mod output;
mod planner;
mod policy;
mod pretrained;
mod shop;
mod train;
