//! How an engine is run.

use super::blas::Precision;
use std::path::PathBuf;

/// How to run on the device.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which GPU, counted from 0.
    pub ordinal: usize,
    /// How products round their operands.
    pub precision: Precision,
    /// Bytes that activations may take; the device's free memory where absent. A cohort beyond it runs in groups.
    pub memory: Option<usize>,
    /// Engines that work on the same device at the same time; each takes no more than its part of what is free.
    pub beside: usize,
    /// Where compiled kernels are kept; `NIWAKI_CACHE` or the user's cache folder where absent.
    pub cache: Option<PathBuf>,
}
