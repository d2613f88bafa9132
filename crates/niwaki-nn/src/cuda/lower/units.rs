//! Which kernel files a program's passes call for.

use super::{Lowering, attention, norm, point};
use crate::Result;
use crate::cuda::blas::Precision;
use crate::cuda::kernels::Unit;
use crate::graph::{Graph, Op, Value};

impl Lowering<'_> {
    /// The kernel files that a program's passes need.
    ///
    /// # Errors
    /// If a norm is too wide.
    pub(crate) fn units(
        graph: &Graph,
        outputs: &[Value],
        precision: Precision,
        hopper: bool,
    ) -> Result<Vec<Unit>> {
        let mut units = vec![Unit::Rows, Unit::Index, Unit::Step];
        if hopper && precision != Precision::F32 {
            units.push(Unit::Hopper);
        }
        for op in graph.ops() {
            match op {
                Op::LayerNorm { input, .. } | Op::RmsNorm { input, .. } => {
                    units.push(norm::unit(op.name(), graph.shape(*input).width)?);
                }
                Op::Attention { attention, .. } => {
                    units.push(Unit::AttentionAny);
                    if attention::is_small(graph, attention) {
                        units.push(Unit::AttentionSmall);
                    }
                    units.extend(attention::few(graph, attention, precision));
                }
                Op::Point { point, .. } => {
                    units.push(point::unit(graph, outputs, point, precision)?);
                }
                _ => {}
            }
        }
        units.sort_unstable();
        units.dedup();
        Ok(units)
    }
}
