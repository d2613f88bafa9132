//! Perceptrons of three layers, which a device may compute in one kernel each way.

use super::Linear;
use crate::graph::{Graph, Value};
use crate::ops::{Activation, Op};

/// Widths of hidden layers that the kernels are laid out for.
const HIDDEN: [usize; 2] = [64, 128];

/// Most inputs and outputs.
const MOST_IN: usize = 64;
const MOST_OUT: usize = 8;

/// Three `linear` ops in a row, of which nobody else reads what the first two write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Perceptron {
    /// Position of the first.
    pub(super) first: usize,
    /// All of them.
    pub(super) layers: [Linear; 3],
}

impl Perceptron {
    /// The perceptron whose last layer is this one, where it has the kernels' sizes.
    pub(crate) fn ending_with(graph: &Graph, outputs: &[Value], last: &Linear) -> Option<Self> {
        let end = graph.ops().iter().position(|op| op.outputs() == [last.output])?;
        let first = end.checked_sub(2)?;
        let linear = |position: usize| match &graph.ops()[position] {
            Op::Linear(linear) => Some(*linear),
            _ => None,
        };
        let layers = [linear(first)?, linear(first + 1)?, *last];
        let width = |value: Value| graph.shape(value).width;
        let plain = |layer: &Linear| !layer.transposed && layer.residual.is_none() && layer.bias.is_some();
        let chained = layers[1].input == layers[0].output && last.input == layers[1].output;
        let alike = layers[0].activation == layers[1].activation && layers[0].activation.keeps_output();
        let hidden = width(layers[0].output);
        let fits = HIDDEN.contains(&hidden)
            && width(layers[1].output) == hidden
            && width(layers[0].input) <= MOST_IN
            && width(last.output) <= MOST_OUT;
        let alone = |value: Value| {
            let readers = graph.ops().iter().flat_map(Op::operands).filter(|operand| *operand == value);
            readers.count() == 1 && !outputs.contains(&value)
        };
        let ends = last.activation == Activation::None;
        (layers.iter().all(plain) && chained && alike && fits && ends)
            .then_some(())
            .filter(|()| alone(layers[0].output) && alone(layers[1].output))
            .map(|()| Self { first, layers })
    }

    /// Positions of the layers before the last.
    #[cfg(feature = "cuda")]
    pub(crate) fn inner(&self) -> [usize; 2] {
        [self.first, self.first + 1]
    }

    /// What it reads.
    pub(crate) fn input(&self) -> Value {
        self.layers[0].input
    }
}
