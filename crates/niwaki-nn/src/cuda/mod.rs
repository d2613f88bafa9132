//! The CUDA engine: a whole cohort as one batched program on one GPU. Behind the feature `cuda`.
//!
//! Built without a CUDA toolkit: `libraries` finds the driver, NVRTC and cuBLASLt when the engine is made, and a machine
//! without them gets one line; `device` has its queues, `event` marks in them; `staging` is the way of host values there. `compile` turns kernel files into machine code once and keeps it on disk; `kernels`
//! knows files and units. `storage` says which values are halves. `lower` lets each op write its passes down on a `tape`, which replays as one CUDA graph; `blas` plans the products, `map` tells the copy engine of tiles. `parameters` are the members' weights, `chunks` says what a step may leave alone; `session` lays out memory for a number of items and splits a cohort
//! that exceeds it, `part` works on some of the items; `pull_back` is one gradient, `extension` a kernel that the caller brings, `engine` what a policy sees;
//! `update` is the optimiser, in `pieces` where the next pass can begin beside it; [`check`] compares every op with the CPU engine on the device at hand; `limits` is what
//! the device can do at best.

pub(crate) mod blas;
pub mod check;
pub(crate) mod chunks;
mod compile;
mod device;
mod engine;
mod event;
mod extension;
pub(crate) mod kernels;
mod libraries;
mod limits;
pub(crate) mod lower;
pub(crate) mod map;
mod options;
mod parameters;
mod part;
pub(crate) mod pieces;
mod pull_back;
mod session;
mod staging;
mod storage;
pub(crate) mod tape;
mod update;

pub use blas::Precision;
pub use engine::Cuda;
pub use options::Options;
