//! The population engine: many runs trained as one program, on the CPU and on CUDA.
//!
//! Read in this order. A policy writes its program once as a [`Graph`], a tape of fat ops for **one item of one
//! member**; [`ops`] has every op: its formula, its passes and its law. A member's parameters lie in one flat buffer, described by a
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
pub mod ops;
pub mod optimiser;
mod plan;

pub use checkpoint::{
    Checkpoint, RawTensor, Stored, checkpoint_state, checkpoint_state_of, copy_without_moments, load_tensors,
    restate_checkpoint, save_tensors,
};
pub use cpu::{Cpu, Real};
pub use engine::{Choosing, CotangentFn, DynEngine, Engine, Load, Span};
pub use error::{Error, Result};
pub use extension::{Answer, Argument, Extension, HostArray};
pub use graph::{Columns, Graph, Index, Mask, Shape, Value};
pub use init::{Init, initialise};
pub use layout::{ALIGNMENT, Layout, Param, Slice};
pub use ops::{Activation, Arcs, Attention, Op, Point, Pooling, Rotary, TreeAttention, Visible, log_softmax};
pub use optimiser::{LearningRate, Optimiser, StepRule, Storage};
pub use plan::{Backward, Plan, Region, Write};

/// Under its own name, so that the harness of the laws serves the unit tests too.
#[cfg(test)]
extern crate self as niwaki_nn;
#[cfg(test)]
#[path = "../tests/laws/harness.rs"]
mod harness;
