//! Root-mean-square norm.

use crate::Result;
use crate::cpu::kernels::dot;
use crate::cpu::{Block, Real, accumulate, scale_range};
use crate::graph::{Graph, Value, expect};
use crate::layout::Param;
use crate::ops::{OnCpu, Operation, Reads, Rows};
use crate::plan::Backward;
use niwaki_simd::vectorised;

/// `output[r] = x[r] · s_r · gain`, `s_r = 1/√(mean(x[r]²) + epsilon)`.
///
/// Backward, with `n = x s`, `g = d output · gain`: `dx = s (g − n · mean(g n))`, `d gain += Σ_r d output · n`.
/// Saved: `[r, 1]` = `s_r`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsNorm {
    /// The operand.
    pub input: Value,
    /// `[width]`.
    pub gain: Param,
    /// Added to the mean square.
    pub epsilon: f64,
    /// The result.
    pub output: Value,
}

impl Graph {
    /// Adds [`RmsNorm`].
    ///
    /// # Errors
    /// If the gain is not as wide as the input.
    pub fn rms_norm(&mut self, input: Value, gain: Param, epsilon: f64) -> Result<Value> {
        let shape = self.shape(input);
        expect("rms_norm", "gain", shape.width, self.layout().slice(gain).len())?;
        let output = self.value(shape.rows, shape.width);
        self.push(RmsNorm { input, gain, epsilon, output });
        Ok(output)
    }
}

impl Operation for RmsNorm {
    fn name(&self) -> &'static str {
        "rms_norm"
    }

    fn reads(&self) -> Reads {
        Reads { params: vec![self.gain], ..Reads::values([self.input]) }
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.output]
    }

    fn kept(&self) -> Vec<Value> {
        vec![self.input]
    }

    fn saved(&self, graph: &Graph) -> usize {
        graph.shape(self.input).rows
    }

    fn rows(&self) -> Rows {
        Rows::Apart
    }

    fn passes_through(&self, _: usize) -> bool {
        false
    }
}

impl OnCpu for RmsNorm {
    fn scratch(&self, graph: &Graph) -> usize {
        2 * graph.shape(self.input).width
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, at: usize) {
        let saved = block.saved(at);
        let gain = block.parameter(self.gain);
        for rows in block.spans(block.graph.shape(self.input).rows) {
            let at = scale_range(&rows, gain.len());
            let (x, y) = (&block.value(self.input)[at.clone()], &mut block.result(self.output)[at]);
            rms_norm(x, gain, F::from_f64(self.epsilon), y, saved);
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, gradient: &mut [F]) {
        let d_gain = &mut gradient[block.graph.layout().slice(self.gain).range()];
        let add = accumulate(&step.writes, 0);
        let dx = add.map_or(&mut [][..], |_| block.cotangent(self.input));
        let (x, dy, saved) = (block.value(self.input), block.pulled(self.output), block.saved(step.op));
        let gain = block.parameter(self.gain);
        let (normed, weighted) = block.scratch.split_at_mut(d_gain.len());
        rms_norm_backward(x, gain, saved, dy, dx, add.unwrap_or(false), d_gain, normed, weighted);
    }
}

vectorised! {
    /// Writes `y`, and `1/√mean square` of each row into `saved` unless it is empty.
    fn rms_norm<F: Real>(x: &[F], gain: &[F], epsilon: F, y: &mut [F], saved: &mut [F]) {
        let width = gain.len();
        let share = F::ONE / F::from_f64(width as f64);
        for (row, (x, y)) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)).enumerate() {
            let factor = F::ONE / (dot(x, x) * share + epsilon).root();
            for ((y, &x), &gain) in y.iter_mut().zip(x).zip(gain) {
                *y = x * factor * gain;
            }
            if let Some(saved) = saved.get_mut(row) {
                *saved = factor;
            }
        }
    }

    /// Writes or adds `dx` unless it is empty, and adds to the gain's cotangent.
    fn rms_norm_backward<F: Real>(
        x: &[F],
        gain: &[F],
        saved: &[F],
        dy: &[F],
        dx: &mut [F],
        accumulate: bool,
        d_gain: &mut [F],
        normed: &mut [F],
        weighted: &mut [F],
    ) {
        let width = gain.len();
        let share = F::ONE / F::from_f64(width as f64);
        let (normed, weighted) = (&mut normed[..width], &mut weighted[..width]);
        for (row, (x, dy)) in x.chunks_exact(width).zip(dy.chunks_exact(width)).enumerate() {
            let factor = saved[row];
            for i in 0..width {
                normed[i] = x[i] * factor;
                weighted[i] = dy[i] * gain[i];
                d_gain[i] += dy[i] * normed[i];
            }
            let Some(dx) = dx.get_mut(row * width..(row + 1) * width) else { continue };
            let tilt = dot(weighted, normed) * share;
            for i in 0..width {
                let d = factor * (weighted[i] - normed[i] * tilt);
                dx[i] = if accumulate { dx[i] + d } else { d };
            }
        }
    }
}

#[cfg(test)]
impl crate::ops::Law for RmsNorm {
    fn check() {
        use crate::ops::law::{check, leaf, param};
        let mut graph = Graph::new();
        let x = leaf(&mut graph, "x", 3, 21);
        let gain = param(&mut graph, "gain", &[21]);
        let y = graph.rms_norm(x, gain, 1e-6).unwrap();
        let z = graph.mul(x, y).unwrap();
        check("rms_norm", &graph, &[z]);
    }
}
