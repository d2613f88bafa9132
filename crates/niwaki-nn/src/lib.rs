//! The population engine: many runs trained as one program, on the CPU and on CUDA.
//!
//! Read in this order. A policy writes its program once as a [`Graph`], a tape of fat ops for **one item of one
//! member**; [`graph::op`] gives every op's formula. A member's parameters lie in one flat buffer, described by a
//! [`Layout`]. A [`Plan`] derives the backward pass and lays out the arena. An [`Engine`] runs the plan for every
//! item of every member: the axes `[member, item]` lead everywhere and nothing ever mixes members. The caller turns
//! outputs into cotangents (the correction does), and an [`Optimiser`] turns the gradient into a step.

mod checkpoint;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod engine;
mod error;
pub mod extension;
pub mod graph;
mod init;
mod layout;
pub mod limits;
pub mod optimiser;
mod plan;

pub use checkpoint::{Checkpoint, Stored, checkpoint_state};
pub use cpu::{Cpu, Real, log_softmax};
pub use engine::{Choosing, Engine, Span, Surrogate};
pub use error::{Error, Result};
pub use extension::{Answer, Argument, Extension, Given};
pub use graph::{
    Activation, Attention, Columns, Graph, Index, Mask, Op, Point, Pooling, Shape, Value, Visible,
};
pub use init::{Init, initialise};
pub use layout::{ALIGNMENT, Layout, Param, Slice};
pub use optimiser::{Optimiser, Rule, Schedule};
pub use plan::{Backward, Plan, Region, Write};
