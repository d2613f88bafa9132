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
    /// Its rows, but for those that nobody reads and those that are like another. Rows have the bits that they have among all. Returns
    /// whether there are such rows.
    fn forward_apart<F: Real>(&self, block: &mut Block<'_, F>, weight: Weight<'_, F>) -> bool {
        let Self { input, bias, activation, output, .. } = *self;
        let shape = [input, output].map(|value| block.graph.shape(value).width);
        let (x, y, bias) = (block.value(input), block.result(output), bias.map(|bias| block.parameter(bias)));
        let mut work = |rows: &[u32]| {
            weight.product_listed(shape, rows, x, y);
            if bias.is_some() || activation != Activation::None {
                let [_, outer] = shape;
                runs(rows).for_each(|run| activate(&mut y[scale_range(&run, outer)], bias, activation, None));
            }
        };
        if let Some(Op::Pairs(pairs)) = block.only_reader(output)
            && pairs.operations == output
        {
            work(&pairs.operations_read(block));
            return true;
        }
        if !block.apart(input).is_known() {
            look_for_zeros(x, shape[0], block.apart(input));
        }
        if !block.apart(input).leaves_out() {
            return false;
        }
        let apart = std::mem::take(block.apart(input));
        work(apart.rows());
        apart.fill(y);
        block.apart(output).become_like(&apart);
        *block.apart(input) = apart;
        true
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
}
