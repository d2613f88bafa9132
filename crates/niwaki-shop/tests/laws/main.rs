//! Properties of this crate, one file per room; one binary, so that they link once.

#![expect(clippy::unwrap_used, reason = "a law whose instance cannot be made has failed")]

mod checking;
mod construction;
mod data;
mod files;
mod gaps;
mod general;
mod generation;
mod odd;
mod optimum;
