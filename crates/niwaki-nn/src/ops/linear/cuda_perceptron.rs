//! A perceptron of three layers on CUDA: what is wide between its layers never reaches memory.

use super::perceptron::Perceptron;
use crate::cuda::Precision;
use crate::cuda::kernels::{File, PRODUCTS, Unit};
use crate::cuda::lower::{Lowering, Partial, Program, SCALAR, View};
use crate::cuda::tape::arguments;
use crate::graph::Graph;
use crate::plan::Write;
use crate::{Error, Result};

/// Shared memory that the passes may ask for; a block of Hopper has 227 KB.
const FORWARD_SHARED: u32 = 108 * 1024;
const BACKWARD_SHARED: u32 = 200 * 1024;

const KERNELS: &File = &File {
    name: "perceptron",
    source: &[PRODUCTS, include_str!("perceptron.cu")],
    constants: &[
        "PERCEPTRON_IN",
        "PERCEPTRON_HIDDEN",
        "PERCEPTRON_OUT",
        "PERCEPTRON_ACTIVATION",
        "TENSOR_SPLIT",
    ],
    kernels: &[("perceptron_forward", FORWARD_SHARED), ("perceptron_backward", BACKWARD_SHARED)],
};

/// Rows that a block of the backward pass takes at a time: ROWS there.
const ROWS: usize = 64;
/// Rows that a block of the forward pass takes at a time: sixteen for each of eight warps.
const FORWARD_ROWS: usize = 128;

/// Inputs, hidden columns and outputs.
#[derive(Clone, Copy)]
struct Widths {
    inner: usize,
    hidden: usize,
    outer: usize,
}

impl Widths {
    fn of(graph: &Graph, perceptron: &Perceptron) -> Self {
        let [first, _, last] = &perceptron.layers;
        let width = |value| graph.shape(value).width;
        Self { inner: width(first.input), hidden: width(first.output), outer: width(last.output) }
    }

    /// Groups of eight inputs.
    fn steps(self) -> usize {
        self.inner.div_ceil(8)
    }

    /// Bytes of what both passes share: weights and biases.
    fn weights(self) -> usize {
        (8 * self.steps() + self.hidden + 10) * self.hidden * SCALAR
    }

    /// Bytes of a block of the backward pass: two tiles of hidden columns, inputs and cotangents besides.
    fn backward(self) -> usize {
        let pitches = 2 * (self.hidden + 8) + 8 * (self.steps() | 1) + 8;
        self.weights() + ROWS * pitches * SCALAR
    }

    /// Scalars of each layer's gradient, weight and bias.
    fn gradients(self) -> [usize; 3] {
        let Self { inner, hidden, outer } = self;
        [(inner + 1) * hidden, (hidden + 1) * hidden, (hidden + 1) * outer]
    }
}

/// The kernel file of a perceptron's passes, where a program may use it.
pub(super) fn unit(program: &Program<'_>, perceptron: &Perceptron) -> Option<Unit> {
    program.hopper.then(|| sized(program.graph, program.precision, perceptron))
}

fn sized(graph: &Graph, precision: Precision, perceptron: &Perceptron) -> Unit {
    let Widths { inner, hidden, outer } = Widths::of(graph, perceptron);
    let kind = perceptron.layers[0].activation.code();
    let split = u8::from(precision == Precision::F32);
    Unit::sized(KERNELS, &[inner as u8, hidden as u8, outer as u8, kind as u8, split])
}

impl Lowering<'_> {
    /// Blocks for each member that fill the device, so many on a multiprocessor, where there is work for them.
    fn blocks(&self, rows_per_member: usize, rows: usize, together: usize) -> usize {
        let most = together * self.tools.multiprocessors / self.addresses.members;
        most.clamp(1, rows_per_member.div_ceil(rows).max(1))
    }

    pub(super) fn perceptron_forward(&mut self, perceptron: &Perceptron) -> Result<()> {
        let [first, second, last] = &perceptron.layers;
        let (x, y) = (self.view(first.input)?, self.view(last.output)?);
        let [(w1, b1), (w2, b2), (w3, b3)] = [first, second, last]
            .map(|layer| (self.param(layer.weight), layer.bias.map(|bias| self.param(bias))));
        let arguments = arguments![x.at, w1, b1, w2, b2, w3, b3, self.length(), y.at, x.rows_per_member];
        let unit = sized(self.tools.graph, self.tools.precision, perceptron);
        let grid = (self.blocks(x.rows_per_member, FORWARD_ROWS, 2), self.addresses.members, 1);
        let shared = Widths::of(self.tools.graph, perceptron).weights() as u32;
        self.launch("perceptron", (unit, "perceptron_forward"), grid, 256, shared, arguments)
    }

    pub(super) fn perceptron_backward(&mut self, perceptron: &Perceptron) -> Result<()> {
        let [first, second, last] = perceptron.layers;
        let x = self.view(first.input)?;
        let dy = View { at: self.cotangent(last.output)?, ..self.view(last.output)? };
        let step = self.tools.plan.backward().iter().find(|step| step.op == perceptron.first);
        let write = step.and_then(|step| step.writes[0]);
        let dx = match write {
            Some(_) => Some(self.cotangent(first.input)?),
            None => None,
        };
        let widths = Widths::of(self.tools.graph, perceptron);
        let gradients = widths.gradients();
        let columns: usize = gradients.iter().sum();
        let blocks = self.blocks(x.rows_per_member, ROWS, 1);
        let partial = self.scratch(self.addresses.members * blocks * columns);
        let [(w1, b1), (w2, b2), (w3, _)] = [first, second, last]
            .map(|layer| (self.param(layer.weight), layer.bias.map(|bias| self.param(bias))));
        let add = write == Some(Write::Add);
        let arguments =
            arguments![x.at, dy.at, w1, b1, w2, b2, w3, self.length(), dx, add, partial, x.rows_per_member];
        let unit = sized(self.tools.graph, self.tools.precision, perceptron);
        let grid = (blocks, self.addresses.members, 1);
        let shared = widths.backward() as u32;
        self.launch("perceptron'", (unit, "perceptron_backward"), grid, 256, shared, arguments)?;
        let mut start = 0;
        for (layer, size) in [first, second, last].into_iter().zip(gradients) {
            let bias = layer.bias.ok_or_else(|| Error::Unsupported {
                op: "perceptron",
                reason: "a layer has no bias".to_owned(),
            })?;
            let split = size - self.shape(layer.output).width;
            let place = partial + (start * SCALAR) as u64;
            let partial = Partial { blocks, pitch: columns, columns: size };
            self.gather_partials("perceptron'", place, partial, (layer.weight, split), Some(bias))?;
            start += size;
        }
        Ok(())
    }
}
