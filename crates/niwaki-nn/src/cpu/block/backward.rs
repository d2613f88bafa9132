//! Backward passes, op by op.

use super::{Block, pointing};
use crate::cpu::Real;
use crate::cpu::attention::{View, attend_backward, mix, score_backward};
use crate::cpu::kernels::{
    add_column_sums, multiply, multiply_and_add_column_sums, multiply_into, relu_backward, scale,
    tanh_backward,
};
use crate::cpu::norm::{layer_norm_backward, rms_norm_backward};
use crate::cpu::panels::add_outer;
use crate::cpu::pick::pick_backward;
use crate::cpu::point::point_backward;
use crate::cpu::product::Matrix;
use crate::cpu::rope::turn;
use crate::cpu::rows::{add_row, pool_backward};
use crate::graph::{Activation, Attention, Op, Point, Value};
use crate::plan::Write;

/// How the operand at a place is written: `None` not at all, `Some(accumulate)` otherwise. An alias needs nothing.
fn accumulate(writes: &[Option<Write>], place: usize) -> Option<bool> {
    match writes[place] {
        None | Some(Write::Alias) => None,
        Some(Write::Set) => Some(false),
        Some(Write::Add) => Some(true),
    }
}

impl<'a, F: Real> Block<'a, F> {
    /// Runs the plan's backward pass, adding to the member's flat gradient. The outputs' cotangents are filled.
    pub(crate) fn backward(&mut self, gradient: &mut [F]) {
        let plan = self.plan;
        for step in plan.backward() {
            self.backward_op(step.op, &step.writes, gradient);
        }
    }

    fn backward_op(&mut self, position: usize, writes: &[Option<Write>], gradient: &mut [F]) {
        let graph = self.graph;
        let saved = &*self.saved(position);
        match &graph.ops()[position] {
            Op::Linear { .. } => self.linear_backward(position, writes, gradient),
            Op::LayerNorm { input, gain, bias, output, .. } => {
                let layout = graph.layout();
                let places = [layout.slice(*gain).range(), layout.slice(*bias).range()];
                let Ok([d_gain, d_bias]) = gradient.get_disjoint_mut(places) else { return };
                let add = accumulate(writes, 0);
                let dx = add.map_or(&mut [][..], |_| self.cotangent(*input));
                let (x, dy) = (self.value(*input), self.pulled(*output));
                let (normed, weighted) = self.scratch.split_at_mut(d_gain.len());
                layer_norm_backward(
                    x,
                    &self.parameters[layout.slice(*gain).range()],
                    saved,
                    dy,
                    dx,
                    add.unwrap_or(false),
                    d_gain,
                    d_bias,
                    normed,
                    weighted,
                );
            }
            Op::RmsNorm { input, gain, output, .. } => {
                let range = graph.layout().slice(*gain).range();
                let add = accumulate(writes, 0);
                let dx = add.map_or(&mut [][..], |_| self.cotangent(*input));
                let (x, dy) = (self.value(*input), self.pulled(*output));
                let (normed, weighted) = self.scratch.split_at_mut(range.len());
                rms_norm_backward(
                    x,
                    &self.parameters[range.clone()],
                    saved,
                    dy,
                    dx,
                    add.unwrap_or(false),
                    &mut gradient[range],
                    normed,
                    weighted,
                );
            }
            Op::Attention { attention, output } => self.attention_backward(attention, *output, writes, saved),
            Op::Score { query, key, scale, output } => {
                let width = graph.shape(*query).width;
                let keys = graph.shape(*key).rows;
                for (place, (value, other)) in [(*query, *key), (*key, *query)].into_iter().enumerate() {
                    let Some(dx) = self.zeroed(value, writes, place) else { continue };
                    let others = self.value(other).chunks_exact(graph.shape(other).size());
                    let d = self.pulled(*output).chunks_exact(graph.shape(*output).size());
                    for ((d, other), dx) in d.zip(others).zip(dx.chunks_exact_mut(graph.shape(value).size()))
                    {
                        score_backward(d, keys, other, width, F::from_f64(*scale), place == 1, dx);
                    }
                }
            }
            Op::Point { point, output } => self.point_backward(point, *output, writes),
            Op::Embed { table, index, output } => {
                let table = &mut gradient[graph.layout().slice(*table).range()];
                let index = self.index(*index);
                let d = self.pulled(*output).chunks_exact(graph.shape(*output).width);
                d.enumerate().for_each(|(row, d)| add_row(table, index(row), d));
            }
            Op::Gather { input, index, output } => {
                let Some(dx) = self.zeroed(*input, writes, 0) else { return };
                let shape = graph.shape(*output);
                let index = self.index(*index);
                for (row, d) in self.pulled(*output).chunks_exact(shape.width).enumerate() {
                    add_row(&mut dx[row / shape.rows * graph.shape(*input).size()..], index(row), d);
                }
            }
            Op::Pool { input, group, mask, pooling, output } => {
                let Some(dx) = self.zeroed(*input, writes, 0) else { return };
                let width = graph.shape(*input).width;
                let mask = mask.map(|mask| self.mask(mask));
                let d = self.pulled(*output).chunks_exact(width);
                for (place, (d, rows)) in d.zip(dx.chunks_exact_mut(group * width)).enumerate() {
                    pool_backward(
                        d,
                        mask.map(|mask| &mask[place * group..(place + 1) * group]),
                        *pooling,
                        rows,
                    );
                }
            }
            Op::Concat { inputs, output } => {
                let whole = graph.shape(*output).width;
                let mut start = 0;
                for (place, &input) in inputs.iter().enumerate() {
                    let width = graph.shape(input).width;
                    if let Some(add) = accumulate(writes, place) {
                        let d = self.pulled(*output).chunks_exact(whole);
                        for (d, dx) in d.zip(self.cotangent(input).chunks_exact_mut(width)) {
                            scale(&d[start..start + width], F::ONE, dx, add);
                        }
                    }
                    start += width;
                }
            }
            Op::Add { left, right, output } => {
                for (place, value) in [*left, *right].into_iter().enumerate() {
                    self.pass_on(value, *output, F::ONE, writes, place);
                }
            }
            Op::Mul { left, right, output } => {
                for (place, (value, other)) in [(*left, *right), (*right, *left)].into_iter().enumerate() {
                    if let Some(add) = accumulate(writes, place) {
                        multiply(self.pulled(*output), self.value(other), self.cotangent(value), add);
                    }
                }
            }
            Op::Scale { input, factor, output } => {
                self.pass_on(*input, *output, F::from_f64(*factor), writes, 0);
            }
            Op::Activate { input, activation, output } => {
                self.activation_backward(*activation, *output, saved);
                self.pass_on(*input, *output, F::ONE, writes, 0);
            }
            Op::Rope { input, head_width, base, position, output, .. } => {
                let Some(dx) = self.zeroed(input.value, writes, 0) else { return };
                let (stride, width) = (graph.shape(input.value).width, graph.shape(*output).width);
                let index = self.index(*position);
                for (row, d) in self.pulled(*output).chunks_exact(width).enumerate() {
                    let dx = &mut dx[row * stride + input.start..][..width];
                    turn(d, index(row), *head_width, *base, true, dx, true);
                }
            }
            Op::Pick { logits, action, mask, log_prob, entropy } => {
                let Some(add) = accumulate(writes, 0) else { return };
                let width = graph.shape(*logits).width;
                let (index, mask) = (self.index(*action), mask.map(|mask| self.mask(mask)));
                let (x, dx) = (self.value(*logits), self.cotangent(*logits));
                let (d_log_prob, d_entropy) = (self.pulled(*log_prob), self.pulled(*entropy));
                let or_zero = |d: &[F], row: usize| d.get(row).copied().unwrap_or(F::ZERO);
                for row in 0..x.len() / width {
                    let at = row * width..(row + 1) * width;
                    pick_backward(
                        &x[at.clone()],
                        mask.map(|mask| &mask[at.clone()]),
                        index(row),
                        &saved[2 * row..2 * row + 2],
                        or_zero(d_log_prob, row),
                        or_zero(d_entropy, row),
                        &mut dx[at],
                        add,
                    );
                }
            }
        }
    }

    fn linear_backward(&self, position: usize, writes: &[Option<Write>], gradient: &mut [F]) {
        let Op::Linear { input, weight, transposed, bias, activation, residual, output } =
            &self.graph.ops()[position]
        else {
            return;
        };
        let (inner, outer) = (self.graph.shape(*input).width, self.graph.shape(*output).width);
        let (layout, saved) = (self.graph.layout(), &*self.saved(position));
        match (activation, bias.map(|bias| &mut gradient[layout.slice(bias).range()])) {
            (Activation::Gelu | Activation::Silu, Some(d_bias)) => {
                multiply_and_add_column_sums(self.cotangent(*output), saved, d_bias);
            }
            (_, d_bias) => {
                self.activation_backward(*activation, *output, saved);
                d_bias.into_iter().for_each(|d_bias| add_column_sums(self.pulled(*output), d_bias));
            }
        }
        let dz = self.pulled(*output);
        let rows = dz.len() / outer;
        let (x, d_weight) = (self.value(*input), &mut gradient[layout.slice(*weight).range()]);
        match transposed {
            false => add_outer([rows, inner, outer], x, dz, d_weight),
            true => add_outer([rows, outer, inner], dz, x, d_weight),
        }
        if let Some(add) = accumulate(writes, 0)
            && let Some(weight) = self.weights.of(self.graph, position, self.parameters, true)
        {
            let dz = Matrix::rows(dz, outer);
            weight.product([rows, outer, inner], dz, self.cotangent(*input), inner, add);
        }
        if let Some(residual) = residual {
            self.pass_on(*residual, *output, F::ONE, writes, 1);
        }
    }

    /// Turns the output's cotangent in place into that of the pre-activation.
    fn activation_backward(&self, activation: Activation, output: Value, saved: &[F]) {
        match activation {
            Activation::None => {}
            Activation::Relu => relu_backward(self.cotangent(output), self.value(output)),
            Activation::Tanh => tanh_backward(self.cotangent(output), self.value(output)),
            Activation::Gelu | Activation::Silu => multiply_into(self.cotangent(output), saved),
        }
    }

    fn attention_backward(&mut self, a: &Attention, output: Value, writes: &[Option<Write>], saved: &[F]) {
        let operands = [a.query, a.key, a.value];
        for (place, columns) in operands.into_iter().enumerate() {
            self.zeroed(columns.value, writes, place);
        }
        let graph = self.graph;
        let (queries, keys) = (graph.shape(a.query.value).rows, graph.shape(a.key.value).rows);
        let per_item = a.heads * queries * keys;
        let scratch = std::mem::take(&mut self.scratch);
        let (d_scores, room) = scratch.split_at_mut(per_item);
        for item in 0..self.items() {
            let shape = self.heads(a, item);
            let [query, key, value] = operands.map(|columns| self.view(columns, item));
            let weights = &saved[item * per_item..(item + 1) * per_item];
            let (size, stride) = (graph.shape(output).size(), graph.shape(output).width);
            let d_out = View { data: &self.pulled(output)[item * size..(item + 1) * size], stride, start: 0 };
            attend_backward(&shape, F::from_f64(a.scale), value, weights, d_out, room, d_scores);
            let d_scores = &*d_scores;
            // What each operand's rows are mixed from, and the heads of that and of the operand.
            let sources = [
                (d_scores, key, [a.key_heads, a.heads]),
                (d_scores, query, [a.heads, a.key_heads]),
                (weights, d_out, [a.heads, a.key_heads]),
            ];
            for (place, (columns, (factors, other, heads))) in operands.into_iter().zip(sources).enumerate() {
                if writes[place].is_some() {
                    let whole = graph.shape(columns.value);
                    let out = &mut self.cotangent(columns.value)[item * whole.size()..][..whole.size()];
                    mix(&shape, factors, place > 0, heads, other, out, [whole.width, columns.start]);
                }
            }
        }
        self.scratch = scratch;
    }

    fn point_backward(&mut self, point: &Point, output: Value, writes: &[Option<Write>]) {
        let (graph, sizes) = (self.graph, pointing(self.graph, point));
        let add = accumulate(writes, 0);
        let d_query = add.map_or(&mut [][..], |_| self.cotangent(point.query));
        let wanted = |place, value| self.zeroed(value, writes, place).map_or(&mut [][..], |d| d);
        let (d_glimpse, d_key) = (wanted(1, point.glimpse), wanted(2, point.key));
        let size = graph.shape(output).size();
        let (out, d_out) = (self.value(output), self.pulled(output).chunks_exact(size));
        for (item, d_out) in d_out.enumerate() {
            let part = |value: Value| {
                let size = graph.shape(value).size();
                item * size..(item + 1) * size
            };
            point_backward(
                &sizes,
                &self.operands(point, item),
                &out[part(output)],
                d_out,
                self.scratch,
                d_query.get_mut(part(point.query)).unwrap_or_default(),
                add.unwrap_or(false),
                d_glimpse.get_mut(part(point.glimpse)).unwrap_or_default(),
                d_key.get_mut(part(point.key)).unwrap_or_default(),
            );
        }
    }

    /// An operand's cotangent, ready to be added to: zeroed first where this op is the first to write it.
    fn zeroed(&self, value: Value, writes: &[Option<Write>], place: usize) -> Option<&'a mut [F]> {
        let add = accumulate(writes, place)?;
        let d = self.cotangent(value);
        if !add {
            d.fill(F::ZERO);
        }
        Some(d)
    }

    /// Gives an operand `factor` times the output's cotangent.
    fn pass_on(&self, value: Value, output: Value, factor: F, writes: &[Option<Write>], place: usize) {
        if let Some(add) = accumulate(writes, place) {
            scale(self.pulled(output), factor, self.cotangent(value), add);
        }
    }
}
