//! Laws of the population engine.
#![expect(clippy::unwrap_used, reason = "a law that cannot be set up has failed")]

mod checkpoints;
mod harness;
mod plans;
mod population;
mod soak;
