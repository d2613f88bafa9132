//! Tree attention on the CPU: item by item, row by row, the way from the root down.

use super::{AttendTree, TreeAttention};
use crate::cpu::kernels::{add_scaled, dot, largest, sum};
use crate::cpu::{Block, Real};
use crate::graph::{Columns, Graph};
use crate::ops::OnCpu;
use crate::plan::Backward;
use niwaki_simd::vectorised;

impl OnCpu for AttendTree {
    fn scratch(&self, graph: &Graph) -> usize {
        // A row's weights and their cotangents.
        2 * graph.shape(self.output).rows
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, at: usize) {
        let (a, shape) = (&self.attention, block.graph.shape(self.output));
        let rows = block.extent.row.map_or(0..shape.rows, |row| row..row + 1);
        let (parent, saved) = (block.index(a.parent), block.saved(at));
        let mut seen = Vec::with_capacity(shape.rows);
        for (item, out) in block.result(self.output).chunks_exact_mut(shape.size()).enumerate() {
            let views = a.columns().map(|columns| view(block, columns, item));
            let saved = saved.chunks_exact_mut(a.heads * shape.rows).nth(item);
            let saved = saved.unwrap_or_default();
            for row in rows.clone() {
                ancestors(row, |row| parent(item * shape.rows + row), &mut seen);
                let out = &mut out[row * shape.width..][..shape.width];
                attend_row(a, views, row, &seen, block.scratch, out, saved);
            }
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        let (a, graph) = (&self.attention, block.graph);
        let shape = graph.shape(self.output);
        for (place, columns) in a.columns().into_iter().enumerate() {
            block.zeroed(columns.value, &step.writes, place);
        }
        let (parent, saved) = (block.index(a.parent), &*block.saved(step.op));
        let scratch = std::mem::take(&mut block.scratch);
        let (weights, d_scores) = scratch.split_at_mut(shape.rows);
        let mut seen = Vec::with_capacity(shape.rows);
        for item in 0..block.items() {
            let views = a.columns().map(|columns| view(block, columns, item));
            let saved = &saved[item * a.heads * shape.rows..][..a.heads * shape.rows];
            for row in 0..shape.rows {
                ancestors(row, |row| parent(item * shape.rows + row), &mut seen);
                let d = &block.pulled(self.output)[item * shape.size() + row * shape.width..][..shape.width];
                for head in 0..a.heads {
                    let lse = saved[head * shape.rows + row];
                    pull_head(a, views, (row, head), &seen, lse, d, weights, d_scores);
                    // One operand's cotangent at a time: they may be columns of one value.
                    for (place, columns) in a.columns().into_iter().enumerate() {
                        if step.writes[place].is_some() {
                            let whole = graph.shape(columns.value);
                            let out =
                                &mut block.cotangent(columns.value)[item * whole.size()..][..whole.size()];
                            let from = if place == 2 { &*weights } else { &*d_scores };
                            let out = (out, whole.width, columns.start);
                            push_head(a, views, (row, head), &seen, d, from, place, out);
                        }
                    }
                }
            }
        }
        block.scratch = scratch;
    }
}

/// The rows from a row's root down to itself.
fn ancestors(row: usize, parent: impl Fn(usize) -> i32, seen: &mut Vec<usize>) {
    seen.clear();
    let mut at = Some(row);
    while let Some(row) = at {
        seen.push(row);
        at = usize::try_from(parent(row)).ok().filter(|&before| before < row);
    }
    seen.reverse();
}

/// Columns of one item: rows `stride` apart, the first column at `start`.
#[derive(Clone, Copy)]
struct View<'a, F> {
    data: &'a [F],
    stride: usize,
    start: usize,
}

impl<'a, F> View<'a, F> {
    #[inline(always)]
    fn row(&self, row: usize, head: usize, width: usize) -> &'a [F] {
        &self.data[row * self.stride + self.start + head * width..][..width]
    }
}

fn view<'a, F: Real>(block: &Block<'a, F>, columns: Columns, item: usize) -> View<'a, F> {
    let shape = block.graph.shape(columns.value);
    let data = &block.value(columns.value)[item * shape.size()..][..shape.size()];
    View { data, stride: shape.width, start: columns.start }
}

/// The key head of a query head.
#[inline(always)]
fn key_head(a: &TreeAttention, head: usize) -> usize {
    head / (a.heads / a.key_heads)
}

vectorised! {
    /// All heads of one row; `saved [heads, rows]` gets the logarithms of the sums unless it is empty.
    fn attend_row<F: Real>(
        a: &TreeAttention,
        views: [View<'_, F>; 3],
        row: usize,
        seen: &[usize],
        scratch: &mut [F],
        out: &mut [F],
        saved: &mut [F],
    ) {
        let [query, key, value] = views;
        let (width, scale) = (a.head_width, F::from_f64(a.scale));
        let weights = &mut scratch[..seen.len()];
        for (head, out) in out.chunks_exact_mut(width).enumerate() {
            let (from, other) = (query.row(row, head, width), key_head(a, head));
            for (weight, &seen) in weights.iter_mut().zip(seen) {
                *weight = scale * dot(from, key.row(seen, other, width));
            }
            let highest = largest(weights);
            for weight in &mut *weights {
                *weight = (*weight - highest).exponential();
            }
            let total = sum(weights);
            let share = F::ONE / total;
            out.fill(F::ZERO);
            for (&weight, &seen) in weights.iter().zip(seen) {
                add_scaled(out, weight * share, value.row(seen, other, width));
            }
            if let Some(saved) = saved.get_mut(head * (saved.len() / a.heads) + row) {
                *saved = highest + total.logarithm();
            }
        }
    }

    /// The weights of one head of one row again, and the cotangents of its scores.
    fn pull_head<F: Real>(
        a: &TreeAttention,
        views: [View<'_, F>; 3],
        at: (usize, usize),
        seen: &[usize],
        lse: F,
        d: &[F],
        weights: &mut [F],
        d_scores: &mut [F],
    ) {
        let [query, key, value] = views;
        let ((row, head), width) = (at, a.head_width);
        let (from, other, scale) = (query.row(row, head, width), key_head(a, head), F::from_f64(a.scale));
        let d = &d[head * width..][..width];
        let (weights, d_scores) = (&mut weights[..seen.len()], &mut d_scores[..seen.len()]);
        for ((weight, d_score), &seen) in weights.iter_mut().zip(&mut *d_scores).zip(seen) {
            *weight = (scale * dot(from, key.row(seen, other, width)) - lse).exponential();
            *d_score = dot(d, value.row(seen, other, width));
        }
        let mean = dot(weights, d_scores);
        for (weight, d_score) in weights.iter().zip(d_scores) {
            *d_score = scale * *weight * (*d_score - mean);
        }
    }

    /// Adds one head of one row to the cotangent of queries, keys or values (`place` 0, 1, 2).
    fn push_head<F: Real>(
        a: &TreeAttention,
        views: [View<'_, F>; 3],
        at: (usize, usize),
        seen: &[usize],
        d: &[F],
        factors: &[F],
        place: usize,
        out: (&mut [F], usize, usize),
    ) {
        let ((row, head), width) = (at, a.head_width);
        let ((out, stride, start), other) = (out, key_head(a, head));
        let [query, key, _] = views;
        for (&factor, &seen) in factors.iter().zip(seen) {
            let (to, to_head, from) = match place {
                0 => (row, head, key.row(seen, other, width)),
                1 => (seen, other, query.row(row, head, width)),
                _ => (seen, other, &d[head * width..][..width]),
            };
            add_scaled(&mut out[to * stride + start + to_head * width..][..width], factor, from);
        }
    }
}
