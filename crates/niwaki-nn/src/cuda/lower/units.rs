//! Which kernel files a program's passes call for.

use super::{Lowering, fused};
use crate::Result;
use crate::cuda::blas::Precision;
use crate::cuda::kernels::{CHOOSE, ITEMS, ROWWISE, STEP, Unit};
use crate::graph::{Graph, Value};
use crate::ops::layer_units;

/// A program and how it will be run.
#[derive(Clone, Copy)]
pub(crate) struct Program<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) outputs: &'a [Value],
    pub(crate) precision: Precision,
    /// Whether the tensor cores' own kernels may be used.
    pub(crate) hopper: bool,
    /// Values that are stored in halves, by position.
    pub(crate) halves: &'a [bool],
}

impl Program<'_> {
    pub(crate) fn is_half(&self, value: Value) -> bool {
        self.halves[value.position()]
    }
}

impl Lowering<'_> {
    /// The kernel files that a program's passes need.
    ///
    /// # Errors
    /// If an op's sizes are beyond the kernels.
    pub(crate) fn units(program: &Program<'_>) -> Result<Vec<Unit>> {
        let mut units = vec![Unit::mixed(ROWWISE, program.precision), STEP, CHOOSE, ITEMS];
        for op in program.graph.ops() {
            units.extend(op.units(program)?);
        }
        units.extend(layer_units(program));
        units.extend(fused::unit(program.graph, program.precision));
        units.sort_unstable();
        units.dedup();
        Ok(units)
    }
}
