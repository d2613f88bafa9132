//! Norms over the columns of a row. Both share their kernels on CUDA.

#[cfg(feature = "cuda")]
mod cuda;
mod layer;
mod rms;

pub use layer::LayerNorm;
pub use rms::RmsNorm;
