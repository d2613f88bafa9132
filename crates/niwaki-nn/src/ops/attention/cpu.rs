//! Attention on the CPU: item by item.

use super::kernel::{Heads, View, attend, attend_backward, mix};
use super::{Attend, Attention, Visible};
use crate::cpu::kernels::LANES;
use crate::cpu::{Block, Real};
use crate::graph::{Columns, Graph};
use crate::ops::OnCpu;
use crate::plan::Backward;

impl OnCpu for Attend {
    fn scratch(&self, graph: &Graph) -> usize {
        let a = &self.attention;
        let (queries, keys) = (graph.shape(a.query.value).rows, graph.shape(a.key.value).rows);
        a.heads * queries * keys + LANES * keys
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, at: usize) {
        let (a, saved) = (&self.attention, block.saved(at));
        let (queries, keys) = (block.graph.shape(a.query.value).rows, block.graph.shape(a.key.value).rows);
        let rows = block.extent.row.map_or(0..queries, |row| row..row + 1);
        let per_item = a.heads * queries * keys;
        let size = block.graph.shape(self.output).size();
        for (item, out) in block.result(self.output).chunks_exact_mut(size).enumerate() {
            let shape = heads(block, a, item);
            let views = [a.query, a.key, a.value].map(|columns| view(block, columns, item));
            let (own, room) = block.scratch.split_at_mut(per_item);
            // Without a backward pass nothing is saved: the weights of one item at a time will do.
            let weights =
                if saved.is_empty() { own } else { &mut saved[item * per_item..(item + 1) * per_item] };
            attend(&shape, F::from_f64(a.scale), views, rows.clone(), weights, room, out);
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        let (a, saved) = (&self.attention, &*block.saved(step.op));
        let operands = [a.query, a.key, a.value];
        for (place, columns) in operands.into_iter().enumerate() {
            block.zeroed(columns.value, &step.writes, place);
        }
        let graph = block.graph;
        let (queries, keys) = (graph.shape(a.query.value).rows, graph.shape(a.key.value).rows);
        let per_item = a.heads * queries * keys;
        let scratch = std::mem::take(&mut block.scratch);
        let (d_scores, room) = scratch.split_at_mut(per_item);
        for item in 0..block.items() {
            let shape = heads(block, a, item);
            let [query, key, value] = operands.map(|columns| view(block, columns, item));
            let weights = &saved[item * per_item..(item + 1) * per_item];
            let (size, stride) = (graph.shape(self.output).size(), graph.shape(self.output).width);
            let d_out =
                View { data: &block.pulled(self.output)[item * size..(item + 1) * size], stride, start: 0 };
            attend_backward(&shape, F::from_f64(a.scale), value, weights, d_out, room, d_scores);
            let d_scores = &*d_scores;
            // What each operand's rows are mixed from, and the heads of that and of the operand.
            let sources = [
                (d_scores, key, [a.key_heads, a.heads]),
                (d_scores, query, [a.heads, a.key_heads]),
                (weights, d_out, [a.heads, a.key_heads]),
            ];
            for (place, (columns, (factors, other, heads))) in operands.into_iter().zip(sources).enumerate() {
                if step.writes[place].is_some() {
                    let whole = graph.shape(columns.value);
                    let out = &mut block.cotangent(columns.value)[item * whole.size()..][..whole.size()];
                    mix(&shape, factors, place > 0, heads, other, out, [whole.width, columns.start]);
                }
            }
        }
        block.scratch = scratch;
    }
}

/// Columns of one item.
fn view<'a, F: Real>(block: &Block<'a, F>, columns: Columns, item: usize) -> View<'a, F> {
    let shape = block.graph.shape(columns.value);
    let data = &block.value(columns.value)[item * shape.size()..(item + 1) * shape.size()];
    View { data, stride: shape.width, start: columns.start }
}

/// The sizes of an attention and the mask of one item.
fn heads<'a, F: Real>(block: &Block<'a, F>, a: &Attention, item: usize) -> Heads<'a> {
    let (query_rows, key_rows) = (block.graph.shape(a.query.value).rows, block.graph.shape(a.key.value).rows);
    let mask = match a.visible {
        Visible::Masked(mask) => {
            Some(&block.mask(mask)[item * query_rows * key_rows..][..query_rows * key_rows])
        }
        Visible::All | Visible::Causal => None,
    };
    Heads {
        heads: a.heads,
        key_heads: a.key_heads,
        width: a.head_width,
        query_rows,
        key_rows,
        causal: a.visible == Visible::Causal,
        mask,
    }
}
