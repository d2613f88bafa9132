//! The program of a policy, written once and run by every engine: a tape of fat ops.
//!
//! [`op`] says what each op computes, to the formula; `shape` holds the handles and shapes; `build` adds ops
//! and checks their shapes. A program says nothing of members, of how many items there are, or of devices.

mod attend;
mod build;
pub mod op;
mod shape;

pub use build::{Graph, IndexSource, Named};
pub use op::{Activation, Attention, Columns, Op, Point, Pooling, Visible};
pub use shape::{Index, Mask, Shape, Value};
