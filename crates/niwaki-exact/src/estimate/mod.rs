//! The estimate of a loss, measured exactly.
//!
//! | file | what belongs there |
//! |---|---|
//! | `measure.rs` | what comes out, for any loss |
//! | `factors.rs` | what a member reads at each prefix, and the factors it makes of it |
//! | `by_choice.rs` | members whose factor the prefix (or the choice) decides: recursions over the tree |
//! | `by_sequence.rs` | members whose factor only the whole sequence decides: sums from the leaves up |
//! | `by_listing.rs` | losses that are written out: every sequence is listed |
//! | `plain.rs` | PPO's own terms, and what the last step's rows come to where a factor multiplies them |
//! | `scores.rs` | how terms weigh scores, and the gradient that this makes |
//! | `noise.rs` | how much the gradient of one trajectory strays from its mean |
//! | `steps.rs` | steps of trajectories, listed or drawn, as the correction takes them |
//! | `batches.rs` | gradients of batches that are drawn, as a trainer sees them |
//!
//! But for losses that are written out nothing here lists sequences. A term of the estimate belongs to an edge of the tree, so
//! moments, gradients and routed credit are each one pass over the edges.

mod batches;
mod by_choice;
mod by_listing;
mod by_sequence;
mod factors;
mod measure;
mod noise;
mod plain;
mod scores;
mod steps;

pub use batches::Batches;
pub(crate) use by_listing::Listing;
pub(crate) use measure::Moments;
pub use measure::{Measurement, Workspace};
pub(crate) use noise::score_squares;
pub(crate) use plain::Plain;
