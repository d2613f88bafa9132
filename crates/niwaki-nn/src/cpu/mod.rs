//! The CPU engine, generic over f32 and f64 (the laws use f64).
//!
//! A cohort is split into single-member programs that run in parallel over cores; each runs block by block of items,
//! forward and backward, so that a block's activations stay in cache. No sum crosses threads, so results have the
//! same bits whatever the number of threads and whatever else is in the cohort.
//!
//! `engine` holds the members and drives blocks; `block` runs one block's tape in the arena; the other files are
//! kernels over plain slices, which know rows and widths and nothing of graphs.

mod attention;
mod block;
mod buffer;
mod engine;
mod kernels;
mod norm;
mod panels;
mod pick;
mod point;
mod product;
mod real;
mod rope;
mod rows;
mod simd;
mod step;

pub use engine::Cpu;
pub use pick::log_softmax;
pub(crate) use product::{Matrix, product};
pub use real::{Kernel, Real};
