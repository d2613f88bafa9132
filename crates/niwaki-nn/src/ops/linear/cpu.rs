//! `linear` on the CPU: a product strip by strip, each with its activation while it is in the first cache.

use super::Linear;
use super::weights::Weight;
use crate::cpu::apart::{Apart, runs};
use crate::cpu::kernels::{activate, add_column_sums, multiply_and_add_column_sums};
use crate::cpu::panels::add_outer;
use crate::cpu::product::Matrix;
use crate::cpu::{Block, Real, accumulate, scale_range};
use crate::graph::Graph;
use crate::ops::{Activation, OnCpu, Op};
use crate::plan::Backward;
use niwaki_simd::vectorised;
use std::ops::Range;

impl OnCpu for Linear {
    fn scratch(&self, _: &Graph) -> usize {
        0
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, position: usize) {
        let Self { input, bias, activation, residual, output, .. } = self;
        let (rows, inner, outer) = (
            block.graph.shape(*output).rows,
            block.graph.shape(*input).width,
            block.graph.shape(*output).width,
        );
        let (x, y, saved) = (block.value(*input), block.result(*output), block.saved(position));
        let bias = bias.map(|bias| block.parameter(bias));
        let Some(weight) = block.weights.of(block.graph, position, block.parameters, false) else { return };
        let whole = block.extent.row.is_none() && residual.is_none() && saved.is_empty();
        if whole && self.forward_apart(block, weight) {
            return;
        }
        // Row `row` of each item stands `rows` rows after that of the item before.
        let (count, first, stride) = match block.extent.row {
            None => (rows * block.items(), 0, 1),
            Some(row) => (block.items(), row, rows),
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
                spans().for_each(|at| y[at.clone()].copy_from_slice(&block.value(*residual)[at]));
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

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, gradient: &mut [F]) {
        let Self { input, weight, transposed, bias, activation, residual, output } = self;
        let (inner, outer) = (block.graph.shape(*input).width, block.graph.shape(*output).width);
        let (layout, saved) = (block.graph.layout(), &*block.saved(step.op));
        match (activation, bias.map(|bias| &mut gradient[layout.slice(bias).range()])) {
            (Activation::Gelu | Activation::Silu, Some(d_bias)) => {
                multiply_and_add_column_sums(block.cotangent(*output), saved, d_bias);
            }
            (_, d_bias) => {
                block.activation_backward(*activation, *output, saved);
                d_bias.into_iter().for_each(|d_bias| add_column_sums(block.pulled(*output), d_bias));
            }
        }
        let dz = block.pulled(*output);
        let rows = dz.len() / outer;
        let (x, d_weight) = (block.value(*input), &mut gradient[layout.slice(*weight).range()]);
        match transposed {
            false => add_outer([rows, inner, outer], x, dz, d_weight),
            true => add_outer([rows, outer, inner], dz, x, d_weight),
        }
        if let Some(add) = accumulate(&step.writes, 0)
            && let Some(weight) = block.weights.of(block.graph, step.op, block.parameters, true)
        {
            let dz = Matrix::rows(dz, outer);
            weight.product([rows, outer, inner], dz, block.cotangent(*input), inner, add);
        }
        if let Some(residual) = residual {
            block.pass_on(*residual, *output, F::ONE, &step.writes, 1);
        }
    }
}

/// Whether a row is zero: one of a graph's node that is not there, say.
#[inline(always)]
fn is_zero<F: Real>(row: &[F]) -> bool {
    // Most rows that are not show it at once; the others are read several at a time, without a branch for each.
    let (parts, rest) = row.as_chunks::<16>();
    row.first().is_none_or(|&first| first == F::ZERO)
        && parts.iter().all(|part| part.iter().fold(true, |zero, &value| zero & (value == F::ZERO)))
        && rest.iter().all(|&value| value == F::ZERO)
}

vectorised! {
    /// Looks at which rows are zero.
    fn look_for_zeros<F: Real>(x: &[F], inner: usize, apart: &mut Apart) {
        apart.look(x.len() / inner, |row| is_zero(&x[row * inner..(row + 1) * inner]));
    }
}

impl Linear {
    /// Whether it is a product and nothing else but a residual.
    fn is_plain(&self) -> bool {
        self.bias.is_none() && self.activation == Activation::None
    }

    /// Its rows, but for those that nobody reads and those that are like another. Rows have the bits that they have among all. Returns
    /// whether there are such rows.
    fn forward_apart<F: Real>(&self, block: &mut Block<'_, F>, weight: Weight<'_, F>) -> bool {
        let Self { input, bias, activation, output, .. } = *self;
        let [inner, outer] = [input, output].map(|value| block.graph.shape(value).width);
        let (x, y, bias) = (block.value(input), block.result(output), bias.map(|bias| block.parameter(bias)));
        let plain = self.is_plain();
        let parts = if plain { self.read(block) } else { Vec::new() };
        if !parts.is_empty() && parts.iter().all(|(columns, _)| weight.cuts_at(columns.start)) {
            for (columns, rows) in parts {
                weight.product_listed([inner, outer], columns, &rows, x, y);
            }
            return true;
        }
        if !block.apart(input).is_known() {
            look_for_zeros(x, inner, block.apart(input));
        }
        if !block.apart(input).leaves_out() {
            return false;
        }
        let apart = std::mem::take(block.apart(input));
        weight.product_listed([inner, outer], 0..outer, apart.rows(), x, y);
        if !plain {
            let runs = runs(apart.rows());
            runs.for_each(|run| activate(&mut y[scale_range(&run, outer)], bias, activation, None));
        }
        // Another linear op will not look at rows that are like one, unless it goes by what is read of its own result.
        let skips = |next: &Linear| next.residual.is_none() && !next.is_plain();
        if !matches!(block.only_reader(output), Some(Op::Linear(next)) if skips(next)) {
            apart.fill(y);
        }
        block.apart(output).become_like(&apart);
        *block.apart(input) = apart;
        true
    }

    /// Columns of the result with the rows of them that are read, where one op is known to read no others.
    fn read<F: Real>(&self, block: &Block<'_, F>) -> Vec<(Range<usize>, Vec<u32>)> {
        let width = block.graph.shape(self.output).width;
        match block.only_reader(self.output) {
            Some(Op::Pairs(pairs)) if pairs.operations == self.output => {
                vec![(0..width, pairs.operations_read(block))]
            }
            Some(Op::Pairs(pairs)) if pairs.machines == self.output => {
                vec![(0..width, pairs.machines_read(block))]
            }
            Some(Op::Surround(surround)) if surround.own == self.output => {
                vec![(0..width, surround.own_read(block))]
            }
            Some(Op::Surround(surround)) if surround.beside == self.output => {
                let [after, before] = surround.beside_read(block);
                vec![(0..width / 2, after), (width / 2..width, before)]
            }
            Some(Op::Arcs(attend)) if attend.arcs.operations == self.output => {
                vec![(0..width, attend.operations_read(block))]
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Activation, Cpu, Engine, Graph, Init};

    #[test]
    fn rows_of_zeros_are_left_out_and_change_nothing() {
        // More rows than are multiplied together, every third and the last ones of them zero.
        let (rows, inner, outer) = (151, 37, 21);
        let row = |row: usize| -> Vec<f32> {
            let zero = row % 3 == 1 || row > 140;
            (0..inner).map(|column| if zero { 0.0 } else { ((row * inner + column) as f32).sin() }).collect()
        };
        for (bias, activation) in [(true, Activation::Tanh), (false, Activation::None)] {
            let mut graph = Graph::new();
            let x = graph.scalars("x", 1, inner);
            let init = Init::Linear { fan_in: inner };
            let weight = graph.param("weight", &[inner, outer], init).unwrap();
            let bias = bias.then(|| graph.param("bias", &[outer], init).unwrap());
            let y = graph.linear(x, weight, bias, activation).unwrap();
            let parameters = crate::initialise(graph.layout(), 5);
            let run = |rows: std::ops::Range<usize>| {
                let mut engine = Cpu::<f32>::new(&graph, &[y], 1);
                engine.set_items(rows.len()).unwrap();
                engine.set_parameters(0, &parameters).unwrap();
                engine.load_scalars(x, &rows.flat_map(row).collect::<Vec<_>>()).unwrap();
                engine.forward().unwrap();
                engine.output(0, 0).to_vec()
            };
            let all = run(0..rows);
            for (place, together) in all.chunks_exact(outer).enumerate() {
                assert_eq!(run(place..place + 1), together, "row {place}");
            }
        }
    }

    #[test]
    fn rows_that_nobody_reads_are_left_out_and_change_nothing() {
        // Two states of five operations, two machines and three jobs; the second operation of the first state is over, and that of the
        // second state shows zeros too, but has arcs. A training pass
        // computes all rows. Widths of whole panels, and others.
        let (states, operations, machines, jobs) = (2, 5, 2, 3);
        for width in [64, 20] {
            let mut graph = Graph::new();
            let (of, on) = (
                graph.scalars("of", states * operations, width),
                graph.scalars("on", states * machines, width),
            );
            let times = graph.scalars("times", states * operations, machines);
            let arcs = graph.mask("arcs", states * operations, machines);
            let (neighbours, next) = (
                graph.indices("beside", states * operations, 4),
                graph.indices("next", states * jobs, operations),
            );
            let open = graph.mask("open", states, jobs * machines);
            let mut number = 0;
            let mut linear = |graph: &mut Graph, from, outer: usize| {
                number += 1;
                let init = Init::Linear { fan_in: width };
                let weight = graph.param(&format!("weight {number}"), &[width, outer], init).unwrap();
                graph.linear(from, weight, None, Activation::None).unwrap()
            };
            let vector = |graph: &mut Graph, name: &str| {
                graph.param(name, &[width], Init::Linear { fan_in: width }).unwrap()
            };
            // A layer whose rows are alike where `of` is zero, and one behind it that skips what nobody reads.
            let init = Init::Linear { fan_in: width };
            let weight = graph.param("first", &[width, width], init).unwrap();
            let bias = graph.param("first bias", &[width], init).unwrap();
            let first = graph.linear(of, weight, Some(bias), Activation::Tanh).unwrap();
            let arcs_of = crate::Arcs {
                operations: linear(&mut graph, first, width),
                machines: linear(&mut graph, on, width),
                times,
                along: vector(&mut graph, "along"),
                source: vector(&mut graph, "source"),
                target: vector(&mut graph, "target"),
                present: arcs,
            };
            let attended = graph.attend_arcs(arcs_of).unwrap();
            let own = linear(&mut graph, of, width);
            let beside = linear(&mut graph, of, 2 * width);
            let reach = linear(&mut graph, attended, width);
            let around = graph.surround(own, beside, reach, arcs, neighbours).unwrap();
            let around = graph.activate(around, Activation::Elu);
            let state = graph.pool(attended, machines, None, crate::Pooling::Mean).unwrap();
            let parts = [around, attended, state].map(|part| linear(&mut graph, part, width));
            let pairs = graph.pairs(parts[0], parts[1], parts[2], next, open).unwrap();
            let last = linear(&mut graph, pairs, width);
            let mut engine = Cpu::<f32>::new(&graph, &[last], 1);
            engine.set_items(1).unwrap();
            engine.set_parameters(0, &crate::initialise(graph.layout(), 7)).unwrap();
            let noise = |count: usize| (0..count).map(|at| (at as f32 * 0.7).sin()).collect::<Vec<f32>>();
            let mut rows = noise(states * operations * width);
            for alike in [1, 6] {
                rows[alike * width..(alike + 1) * width].fill(0.0);
            }
            engine.load_scalars(of, &rows).unwrap();
            engine.load_scalars(on, &noise(states * machines * width)).unwrap();
            engine.load_scalars(times, &noise(states * operations * machines)).unwrap();
            engine.load_mask(arcs, &[1, 0, 0, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1]).unwrap();
            engine.load_indices(neighbours, &[0, -1, 2, 3, 1, 2, 1, 0, 2, 1]).unwrap();
            engine.load_indices(next, &[0, 2, -1, 1, -1, 3]).unwrap();
            engine.load_mask(open, &[1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1]).unwrap();
            engine.forward().unwrap();
            let some = engine.output(0, 0).to_vec();
            engine.pull_back(&|_, _, cotangents| cotangents.iter_mut().for_each(|d| d.fill(0.0))).unwrap();
            assert_eq!(some, engine.output(0, 0), "width {width}");
            assert!(some.iter().any(|&value| value != 0.0) && some.iter().all(|value| value.is_finite()));
        }
    }
}
