//! `linear` on the CPU: a product strip by strip, each with its activation while it is in the first cache.

use super::Linear;
use crate::cpu::kernels::{activate, add_column_sums, multiply_and_add_column_sums};
use crate::cpu::panels::add_outer;
use crate::cpu::product::Matrix;
use crate::cpu::{Block, Real, accumulate};
use crate::graph::Graph;
use crate::ops::{Activation, OnCpu};
use crate::plan::Backward;

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
