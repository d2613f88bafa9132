//! Layer norm.

use crate::Result;
use crate::cpu::kernels::{dot, sum};
use crate::cpu::{Block, Real, accumulate, scale_range};
use crate::graph::{Graph, Value, expect};
use crate::layout::Param;
use crate::ops::{OnCpu, Operation, Reads, Rows};
use crate::plan::Backward;
use niwaki_simd::vectorised;

/// `output[r] = (x[r] − mean_r) · s_r · gain + bias`, `s_r = 1/√(variance_r + epsilon)`, the biased variance.
///
/// Backward, with `n = (x − mean) s` and `g = d output · gain`: `dx = s (g − mean(g) − n · mean(g n))`,
/// `d gain += Σ_r d output · n`, `d bias += Σ_r d output`. Saved: `[r, 2]` = `(mean_r, s_r)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerNorm {
    /// The operand.
    pub input: Value,
    /// `[width]`.
    pub gain: Param,
    /// `[width]`.
    pub bias: Param,
    /// Added to the variance.
    pub epsilon: f64,
    /// The result.
    pub output: Value,
}

impl Graph {
    /// Adds [`LayerNorm`] with ε = 1e-5.
    ///
    /// # Errors
    /// If gain or bias is not as wide as the input.
    pub fn layer_norm(&mut self, input: Value, gain: Param, bias: Param) -> Result<Value> {
        let shape = self.shape(input);
        expect("layer_norm", "gain", shape.width, self.layout().slice(gain).len())?;
        expect("layer_norm", "bias", shape.width, self.layout().slice(bias).len())?;
        let output = self.value(shape.rows, shape.width);
        self.push(LayerNorm { input, gain, bias, epsilon: 1e-5, output });
        Ok(output)
    }
}

impl Operation for LayerNorm {
    fn name(&self) -> &'static str {
        "layer_norm"
    }

    fn reads(&self) -> Reads {
        Reads { params: vec![self.gain, self.bias], ..Reads::values([self.input]) }
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.output]
    }

    fn kept(&self) -> Vec<Value> {
        vec![self.input]
    }

    fn saved(&self, graph: &Graph) -> usize {
        2 * graph.shape(self.input).rows
    }

    fn rows(&self) -> Rows {
        Rows::Apart
    }

    fn passes_through(&self, _: usize) -> bool {
        false
    }
}

impl OnCpu for LayerNorm {
    fn scratch(&self, graph: &Graph) -> usize {
        2 * graph.shape(self.input).width
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, at: usize) {
        let saved = block.saved(at);
        let (gain, bias) = (block.parameter(self.gain), block.parameter(self.bias));
        for rows in block.spans(block.graph.shape(self.input).rows) {
            let at = scale_range(&rows, gain.len());
            let (x, y) = (&block.value(self.input)[at.clone()], &mut block.result(self.output)[at]);
            layer_norm(x, gain, bias, F::from_f64(self.epsilon), y, saved);
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, gradient: &mut [F]) {
        let layout = block.graph.layout();
        let places = [layout.slice(self.gain).range(), layout.slice(self.bias).range()];
        let Ok([d_gain, d_bias]) = gradient.get_disjoint_mut(places) else { return };
        let add = accumulate(&step.writes, 0);
        let dx = add.map_or(&mut [][..], |_| block.cotangent(self.input));
        let (x, dy, saved) = (block.value(self.input), block.pulled(self.output), block.saved(step.op));
        let gain = block.parameter(self.gain);
        let (normed, weighted) = block.scratch.split_at_mut(d_gain.len());
        let accumulate = add.unwrap_or(false);
        layer_norm_backward(x, gain, saved, dy, dx, accumulate, d_gain, d_bias, normed, weighted);
    }
}

vectorised! {
    /// Writes `y`, and `(mean, 1/deviation)` of each row into `saved` unless it is empty.
    fn layer_norm<F: Real>(x: &[F], gain: &[F], bias: &[F], epsilon: F, y: &mut [F], saved: &mut [F]) {
        let width = gain.len();
        let share = F::ONE / F::from_f64(width as f64);
        for (row, (x, y)) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)).enumerate() {
            let mean = sum(x) * share;
            for (y, &x) in y.iter_mut().zip(x) {
                *y = x - mean;
            }
            let factor = F::ONE / (dot(y, y) * share + epsilon).root();
            for ((y, &gain), &bias) in y.iter_mut().zip(gain).zip(bias) {
                *y = *y * factor * gain + bias;
            }
            if let Some(saved) = saved.get_mut(2 * row..2 * row + 2) {
                (saved[0], saved[1]) = (mean, factor);
            }
        }
    }

    /// Writes or adds `dx` unless it is empty, and adds to the cotangents of gain and bias.
    fn layer_norm_backward<F: Real>(
        x: &[F],
        gain: &[F],
        saved: &[F],
        dy: &[F],
        dx: &mut [F],
        accumulate: bool,
        d_gain: &mut [F],
        d_bias: &mut [F],
        normed: &mut [F],
        weighted: &mut [F],
    ) {
        let width = gain.len();
        let share = F::ONE / F::from_f64(width as f64);
        let (normed, weighted) = (&mut normed[..width], &mut weighted[..width]);
        for (row, (x, dy)) in x.chunks_exact(width).zip(dy.chunks_exact(width)).enumerate() {
            let (mean, factor) = (saved[2 * row], saved[2 * row + 1]);
            for i in 0..width {
                normed[i] = (x[i] - mean) * factor;
                weighted[i] = dy[i] * gain[i];
                d_gain[i] += dy[i] * normed[i];
                d_bias[i] += dy[i];
            }
            let Some(dx) = dx.get_mut(row * width..(row + 1) * width) else { continue };
            let centre = sum(weighted) * share;
            let tilt = dot(weighted, normed) * share;
            for i in 0..width {
                let d = factor * (weighted[i] - centre - normed[i] * tilt);
                dx[i] = if accumulate { dx[i] + d } else { d };
            }
        }
    }
}

#[cfg(test)]
impl crate::ops::Law for LayerNorm {
    fn check() {
        use crate::ops::law::{check, leaf, param};
        let mut graph = Graph::new();
        let x = leaf(&mut graph, "x", 3, 37);
        let (gain, bias) = (param(&mut graph, "gain", &[37]), param(&mut graph, "bias", &[37]));
        let y = graph.layer_norm(x, gain, bias).unwrap();
        let z = graph.add(x, y).unwrap();
        check("layer_norm", &graph, &[z]);
    }
}
