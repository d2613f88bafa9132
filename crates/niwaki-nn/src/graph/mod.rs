//! The program of a policy, written once and run by every engine: a tape of fat ops.
//!
//! `shape` holds the handles and shapes; `build` the program, to which every op of [`crate::ops`] adds itself. A program
//! says nothing of members, of how many items there are, or of devices.

mod build;
mod shape;

pub(crate) use build::expect;
pub use build::{Graph, IndexSource, Named};
pub use shape::{Columns, Index, Mask, Shape, Value};
