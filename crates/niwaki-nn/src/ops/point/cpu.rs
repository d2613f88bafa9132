//! A pointer on the CPU: item by item.

use super::kernel::{Operands, Sizes, point, point_backward};
use super::{Point, PointAt};
use crate::cpu::{Block, Real, accumulate};
use crate::graph::{Graph, Value};
use crate::ops::OnCpu;
use crate::plan::Backward;

impl OnCpu for PointAt {
    fn scratch(&self, graph: &Graph) -> usize {
        sizes(graph, &self.point).scratch()
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, _: usize) {
        let sizes = sizes(block.graph, &self.point);
        let out = block.result(self.output).chunks_exact_mut(block.graph.shape(self.output).size());
        for (item, out) in out.enumerate() {
            point(&sizes, &operands(block, &self.point, item), block.scratch, out);
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        let point = &self.point;
        let (graph, sizes) = (block.graph, sizes(block.graph, point));
        let add = accumulate(&step.writes, 0);
        let d_query = add.map_or(&mut [][..], |_| block.cotangent(point.query));
        let wanted = |place, value| block.zeroed(value, &step.writes, place).map_or(&mut [][..], |d| d);
        let (d_glimpse, d_key) = (wanted(1, point.glimpse), wanted(2, point.key));
        let size = graph.shape(self.output).size();
        let (out, d_out) = (block.value(self.output), block.pulled(self.output).chunks_exact(size));
        for (item, d_out) in d_out.enumerate() {
            let part = |value: Value| {
                let size = graph.shape(value).size();
                item * size..(item + 1) * size
            };
            point_backward(
                &sizes,
                &operands(block, point, item),
                &out[part(self.output)],
                d_out,
                block.scratch,
                d_query.get_mut(part(point.query)).unwrap_or_default(),
                add.unwrap_or(false),
                d_glimpse.get_mut(part(point.glimpse)).unwrap_or_default(),
                d_key.get_mut(part(point.key)).unwrap_or_default(),
            );
        }
    }
}

/// The sizes of a pointer.
fn sizes(graph: &Graph, point: &Point) -> Sizes {
    let key = graph.shape(point.key);
    let Point { heads, residual, bound, .. } = *point;
    Sizes { keys: key.rows, width: key.width, heads, residual, bound }
}

/// One item's operands of a pointer.
fn operands<'a, F: Real>(block: &Block<'a, F>, point: &Point, item: usize) -> Operands<'a, F> {
    let part = |value: Value| {
        let size = block.graph.shape(value).size();
        &block.value(value)[item * size..(item + 1) * size]
    };
    let size = block.graph.shape(point.query).rows * block.graph.shape(point.key).rows;
    let open = &block.mask(point.open)[item * size..(item + 1) * size];
    Operands { query: part(point.query), glimpse: part(point.glimpse), key: part(point.key), open }
}
