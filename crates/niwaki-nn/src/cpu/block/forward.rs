//! Forward passes, op by op.

use super::{Block, pointing, scale_range};
use crate::cpu::Real;
use crate::cpu::attention::{View, attend, score};
use crate::cpu::kernels::{activate, add, multiply, scale};
use crate::cpu::norm::{layer_norm, rms_norm};
use crate::cpu::pick::pick;
use crate::cpu::point::point as cpu_point;
use crate::cpu::product::Matrix;
use crate::cpu::rope::turn;
use crate::cpu::rows::{copy_row, pool};
use crate::graph::{Attention, Columns, Op, Value};

impl<'a, F: Real> Block<'a, F> {
    /// Runs the plan's forward pass.
    pub(crate) fn forward(&mut self) {
        let plan = self.plan;
        for &position in plan.forward() {
            self.forward_op(position);
        }
    }

    fn forward_op(&mut self, position: usize) {
        let graph = self.graph;
        let saved = self.saved(position);
        match &graph.ops()[position] {
            Op::Linear { output, .. } => self.linear(position, *output),
            Op::LayerNorm { input, gain, bias, epsilon, output } => {
                let (gain, bias) = (self.parameter(*gain), self.parameter(*bias));
                for rows in self.spans(graph.shape(*input).rows) {
                    let at = scale_range(&rows, gain.len());
                    let (x, y) = (&self.value(*input)[at.clone()], &mut self.result(*output)[at]);
                    layer_norm(x, gain, bias, F::from_f64(*epsilon), y, saved);
                }
            }
            Op::RmsNorm { input, gain, epsilon, output } => {
                let gain = self.parameter(*gain);
                for rows in self.spans(graph.shape(*input).rows) {
                    let at = scale_range(&rows, gain.len());
                    let (x, y) = (&self.value(*input)[at.clone()], &mut self.result(*output)[at]);
                    rms_norm(x, gain, F::from_f64(*epsilon), y, saved);
                }
            }
            Op::Attention { attention, output } => self.attention(attention, *output, saved),
            Op::Score { query, key, scale, output } => {
                let width = graph.shape(*query).width;
                let (queries, keys) = (graph.shape(*query).size(), graph.shape(*key).size());
                let (q, k) = (self.value(*query).chunks_exact(queries), self.value(*key).chunks_exact(keys));
                let out = self.result(*output).chunks_exact_mut(graph.shape(*output).size());
                for ((q, k), out) in q.zip(k).zip(out) {
                    score(q, k, width, F::from_f64(*scale), out);
                }
            }
            Op::Point { point, output } => {
                let sizes = pointing(graph, point);
                let out = self.result(*output).chunks_exact_mut(graph.shape(*output).size());
                for (item, out) in out.enumerate() {
                    cpu_point(&sizes, &self.operands(point, item), self.scratch, out);
                }
            }
            Op::Embed { table, index, output } => self.copy_rows(self.parameter(*table), 0, *index, *output),
            Op::Gather { input, index, output } => {
                self.copy_rows(self.value(*input), graph.shape(*input).size(), *index, *output);
            }
            Op::Pool { input, group, mask, pooling, output } => {
                let width = graph.shape(*input).width;
                let mask = mask.map(|mask| self.mask(mask));
                let groups = self.value(*input).chunks_exact(group * width);
                for (place, (rows, out)) in
                    groups.zip(self.result(*output).chunks_exact_mut(width)).enumerate()
                {
                    pool(rows, mask.map(|mask| &mask[place * group..(place + 1) * group]), *pooling, out);
                }
            }
            Op::Concat { inputs, output } => self.concat(inputs, *output),
            Op::Add { left, right, output } => {
                for rows in self.spans(graph.shape(*output).rows) {
                    let at = scale_range(&rows, graph.shape(*output).width);
                    let (a, b) = (&self.value(*left)[at.clone()], &self.value(*right)[at.clone()]);
                    add(a, b, &mut self.result(*output)[at]);
                }
            }
            Op::Mul { left, right, output } => {
                for rows in self.spans(graph.shape(*output).rows) {
                    let at = scale_range(&rows, graph.shape(*output).width);
                    let (a, b) = (&self.value(*left)[at.clone()], &self.value(*right)[at.clone()]);
                    multiply(a, b, &mut self.result(*output)[at], false);
                }
            }
            Op::Scale { input, factor, output } => {
                for rows in self.spans(graph.shape(*output).rows) {
                    let at = scale_range(&rows, graph.shape(*output).width);
                    let x = &self.value(*input)[at.clone()];
                    scale(x, F::from_f64(*factor), &mut self.result(*output)[at], false);
                }
            }
            Op::Activate { input, activation, output } => {
                let keep = !saved.is_empty();
                for rows in self.spans(graph.shape(*output).rows) {
                    let at = scale_range(&rows, graph.shape(*output).width);
                    let y = &mut self.result(*output)[at.clone()];
                    y.copy_from_slice(&self.value(*input)[at.clone()]);
                    activate(y, None, *activation, keep.then(|| &mut saved[at]));
                }
            }
            Op::Rope { input, head_width, base, position, output, .. } => {
                let (stride, width) = (graph.shape(input.value).width, graph.shape(*output).width);
                let index = self.index(*position);
                for row in self.spans(graph.shape(*output).rows).flatten() {
                    let x = &self.value(input.value)[row * stride + input.start..][..width];
                    let y = &mut self.result(*output)[row * width..][..width];
                    turn(x, index(row), *head_width, *base, false, y, false);
                }
            }
            Op::Pick { logits, action, mask, log_prob, entropy } => {
                let width = graph.shape(*logits).width;
                let (index, mask) = (self.index(*action), mask.map(|mask| self.mask(mask)));
                let (chosen, entropies) = (self.result(*log_prob), self.result(*entropy));
                for row in self.spans(graph.shape(*logits).rows).flatten() {
                    let at = row * width..(row + 1) * width;
                    let x = &self.value(*logits)[at.clone()];
                    let [a, b, total] = pick(x, mask.map(|mask| &mask[at]), index(row), self.scratch);
                    // Outputs that nobody asked for have no room.
                    chosen.get_mut(row).into_iter().for_each(|place| *place = a);
                    entropies.get_mut(row).into_iter().for_each(|place| *place = b);
                    if let Some(saved) = saved.get_mut(2 * row..2 * row + 2) {
                        (saved[0], saved[1]) = (total, b);
                    }
                }
            }
        }
    }

    fn linear(&self, position: usize, output: Value) {
        let Op::Linear { input, bias, activation, residual, .. } = &self.graph.ops()[position] else {
            return;
        };
        let (rows, inner, outer) =
            (self.graph.shape(output).rows, self.graph.shape(*input).width, self.graph.shape(output).width);
        let (x, y, saved) = (self.value(*input), self.result(output), self.saved(position));
        let bias = bias.map(|bias| self.parameter(bias));
        let Some(weight) = self.weights.of(self.graph, position, self.parameters, false) else { return };
        // Row `row` of each item stands `rows` rows after that of the item before.
        let (count, first, stride) = match self.extent.row {
            None => (rows * self.items(), 0, 1),
            Some(row) => (self.items(), row, rows),
        };
        let strip = weight.strip(count);
        for start in (0..count).step_by(strip) {
            let strip = strip.min(count - start);
            let start = first + start * stride;
            // Neighbouring rows are one span; rows of different items are one each.
            let spans = || {
                let (spans, length) = if stride == 1 { (1, strip) } else { (strip, 1) };
                (0..spans)
                    .map(move |span| start + span * stride)
                    .map(move |row| row * outer..(row + length) * outer)
            };
            if let Some(residual) = residual {
                spans().for_each(|at| y[at.clone()].copy_from_slice(&self.value(*residual)[at]));
            }
            let left = Matrix::rows(&x[start * inner..], stride * inner);
            let shape = [strip, inner, outer];
            weight.product(shape, left, &mut y[start * outer..], stride * outer, residual.is_some());
            for at in spans() {
                let slope = (!saved.is_empty()).then(|| &mut saved[at.clone()]);
                activate(&mut y[at], bias, *activation, slope);
            }
        }
    }

    fn attention(&mut self, a: &Attention, output: Value, saved: &mut [F]) {
        let (queries, keys) = (self.graph.shape(a.query.value).rows, self.graph.shape(a.key.value).rows);
        let rows = self.extent.row.map_or(0..queries, |row| row..row + 1);
        let per_item = a.heads * queries * keys;
        let size = self.graph.shape(output).size();
        for (item, out) in self.result(output).chunks_exact_mut(size).enumerate() {
            let shape = self.heads(a, item);
            let views = [a.query, a.key, a.value].map(|columns| self.view(columns, item));
            let (own, room) = self.scratch.split_at_mut(per_item);
            // Without a backward pass nothing is saved: the weights of one item at a time will do.
            let weights =
                if saved.is_empty() { own } else { &mut saved[item * per_item..(item + 1) * per_item] };
            attend(&shape, F::from_f64(a.scale), views, rows.clone(), weights, room, out);
        }
    }

    pub(super) fn view(&self, columns: Columns, item: usize) -> View<'a, F> {
        let shape = self.graph.shape(columns.value);
        let data = &self.value(columns.value)[item * shape.size()..(item + 1) * shape.size()];
        View { data, stride: shape.width, start: columns.start }
    }

    /// Rows of a table, or of each item's own `stride` scalars of it.
    fn copy_rows(&self, table: &[F], stride: usize, index: crate::graph::Index, output: Value) {
        let shape = self.graph.shape(output);
        let index = self.index(index);
        let out = self.result(output);
        for row in self.spans(shape.rows).flatten() {
            let item = row / shape.rows;
            copy_row(
                &table[item * stride..],
                index(row),
                &mut out[row * shape.width..(row + 1) * shape.width],
            );
        }
    }

    fn concat(&self, inputs: &[Value], output: Value) {
        let shape = self.graph.shape(output);
        let out = self.result(output);
        let mut start = 0;
        for &input in inputs {
            let width = self.graph.shape(input).width;
            let x = self.value(input);
            for row in self.spans(shape.rows).flatten() {
                let to = &mut out[row * shape.width + start..][..width];
                to.copy_from_slice(&x[row * width..(row + 1) * width]);
            }
            start += width;
        }
    }
}
