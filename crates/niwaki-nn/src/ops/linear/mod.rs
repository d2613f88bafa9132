//! `linear`, the op that costs.
//!
//! `weights` lays a member's weights out for the CPU, once for all blocks; `cuda` chooses among three ways to multiply, and
//! `cuda_perceptron` does three layers at once.

#[cfg(feature = "cuda")]
mod cases;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod cuda_backward;
#[cfg(feature = "cuda")]
mod cuda_perceptron;
#[cfg(test)]
mod law;
mod perceptron;
mod weights;

#[cfg(feature = "cuda")]
pub(crate) use cuda::products_of_halves;
pub(crate) use perceptron::Perceptron;
pub(crate) use weights::Weights;

use super::{Activation, Operation, Reads, Rows};
use crate::Result;
use crate::graph::{Graph, Shape, Value, expect};
use crate::layout::Param;

/// `output = activation(input · W + bias) + residual`.
///
/// `input [r, in]`, `weight [in, out]` (or `[out, in]` when `transposed`, and then `W` is its transpose), `bias
/// [out]`, `output [r, out]`. A residual goes with [`Activation::None`] only. Backward, with `dz = d output ·
/// activation'(z)`: `d input += dz · Wᵀ`, `dW += inputᵀ · dz`, `d bias += Σ_r dz[r]`, `d residual += d output`.
/// Saved: `[r, out]` for GELU and SiLU (the engine's choice of `z` or `activation'(z)`), else nothing: the
/// derivatives of the others follow from `output`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linear {
    /// The operand.
    pub input: Value,
    /// The matrix.
    pub weight: Param,
    /// Whether the matrix is stored `[out, in]` (a head tied to an embedding).
    pub transposed: bool,
    /// Added to every row.
    pub bias: Option<Param>,
    /// Applied to `z = input · W + bias`.
    pub activation: Activation,
    /// Added after the activation; same shape as the output.
    pub residual: Option<Value>,
    /// The result.
    pub output: Value,
}

impl Graph {
    /// Adds [`Linear`] with a weight `[in, out]`, without residual.
    ///
    /// # Errors
    /// If the weight's first axis is not the input's width, or the bias is not `[out]`.
    pub fn linear(
        &mut self,
        input: Value,
        weight: Param,
        bias: Option<Param>,
        activation: Activation,
    ) -> Result<Value> {
        self.add_linear(input, weight, false, bias, activation, None)
    }

    /// Adds [`Linear`] with a residual, without activation.
    ///
    /// # Errors
    /// As [`Graph::linear`], and if the residual's shape is not the output's.
    pub fn linear_onto(
        &mut self,
        residual: Value,
        input: Value,
        weight: Param,
        bias: Option<Param>,
    ) -> Result<Value> {
        self.add_linear(input, weight, false, bias, Activation::None, Some(residual))
    }

    /// Adds [`Linear`] with a weight stored `[out, in]`, without bias: a head tied to an embedding.
    ///
    /// # Errors
    /// If the weight's second axis is not the input's width.
    pub fn linear_tied(&mut self, input: Value, weight: Param) -> Result<Value> {
        self.add_linear(input, weight, true, None, Activation::None, None)
    }

    fn add_linear(
        &mut self,
        input: Value,
        weight: Param,
        transposed: bool,
        bias: Option<Param>,
        activation: Activation,
        residual: Option<Value>,
    ) -> Result<Value> {
        let op = "linear";
        let Shape { rows, width } = self.shape(input);
        let [first, second] = self.matrix(op, weight)?;
        let (wanted, out) = if transposed { (second, first) } else { (first, second) };
        expect(op, "weight's input width", width, wanted)?;
        if let Some(bias) = bias {
            expect(op, "bias", out, self.layout().slice(bias).len())?;
        }
        if let Some(residual) = residual {
            self.same(op, residual, Shape { rows, width: out })?;
        }
        let output = self.value(rows, out);
        self.push(Linear { input, weight, transposed, bias, activation, residual, output });
        Ok(output)
    }
}

impl Operation for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn reads(&self) -> Reads {
        let params = std::iter::once(self.weight).chain(self.bias).collect();
        let values: Vec<Value> = std::iter::once(self.input).chain(self.residual).collect();
        Reads { params, ..Reads::values(values) }
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.output]
    }

    fn kept(&self) -> Vec<Value> {
        std::iter::once(self.input).chain(self.activation.keeps_output().then_some(self.output)).collect()
    }

    fn saved(&self, graph: &Graph) -> usize {
        if self.activation.keeps_slope() { graph.shape(self.output).size() } else { 0 }
    }

    fn rows(&self) -> Rows {
        Rows::Apart
    }

    fn passes_through(&self, place: usize) -> bool {
        place == 1 && self.residual.is_some_and(|residual| residual != self.input)
    }
}
