//! The CPU engine, generic over f32 and f64 (the laws use f64).
//!
//! A cohort is split into single-member programs that run in parallel over cores; each runs block by block of items,
//! forward and backward, so that a block's activations stay in cache. No sum crosses threads, so results have the
//! same bits whatever the number of threads and whatever else is in the cohort.
//!
//! `engine` holds the members and drives blocks, which `cuts` cuts, in the memory that `bytes` knows beforehand; `block` runs one block's tape in the arena and gives ops
//! their slices; the other files are kernels over plain slices that several ops share, which know rows and widths and
//! nothing of graphs.

pub(crate) mod apart;
mod block;
mod buffer;
mod bytes;
mod cuts;
mod engine;
pub(crate) mod kernels;
pub(crate) mod panels;
pub(crate) mod product;
mod real;
pub(crate) mod rows;
mod step;

pub(crate) use block::{Block, accumulate, scale_range};
pub(crate) use buffer::Buffer;
pub use bytes::Use;
pub use engine::Cpu;
pub(crate) use product::{Matrix, product};
pub use real::{Kernel, Real};
