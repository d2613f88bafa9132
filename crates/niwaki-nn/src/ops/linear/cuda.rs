//! `linear`, the op that costs. Three ways to multiply (and for perceptrons of three layers another, [`cuda_perceptron`], as for a
//! decoder's layer, `ops/layer`):
//!
//! - *narrow*: up to 8 outputs (a head), a warp per row, everything of its backward pass in one reading;
//! - *Hopper*: our tensor-core product with GELU or its derivative fused in, where the device is one and the precision
//!   is not f32;
//! - *library*: cuBLASLt batched over members, bias and residual in its epilogue, other activations in a kernel after
//!   it. All weight gradients go here, but for those of a decoder's layer.

use super::{Linear, Perceptron, cases, cuda_perceptron};
use crate::Result;
use crate::cuda::Precision;
use crate::cuda::blas::{Onto, Operand, Places, Product};
use crate::cuda::check::Case;
use crate::cuda::kernels::{ENTRIES, File, HOPPER_SHARED, MIXED, ROWWISE, Unit};
use crate::cuda::lower::{Block, Fused, Kind, Lowering, Once, Program, ROWS_PER_SUM, SCALAR, Stage, View};
use crate::cuda::tape::arguments;
use crate::graph::{Graph, Shape, Value};
use crate::ops::{Activation, OnCuda, Op};
use crate::plan::Backward;

/// Operands as the libraries want them, and products with few outputs.
pub(super) const KERNELS: &File = &File {
    name: "linear",
    source: &[ENTRIES, include_str!("kernel.cu")],
    constants: MIXED,
    kernels: &[
        ("transpose", 0),
        ("transpose_halves", 0),
        ("to_bf16", 0),
        ("to_bf16_fours", 0),
        ("narrow_forward_4", 0),
        ("narrow_forward_8", 0),
        ("narrow_backward_4", 0),
        ("narrow_backward_8", 0),
    ],
};

/// Products on Hopper's tensor cores, of halves or of floats.
const HOPPER_KERNELS: &File = &File {
    name: "hopper",
    source: &[include_str!("hopper.cu")],
    constants: &["HOPPER_HALVES"],
    kernels: &[("product_gelu", HOPPER_SHARED), ("product_slope", HOPPER_SHARED)],
};

fn hopper_unit(half: bool) -> Unit {
    Unit::sized(HOPPER_KERNELS, &[u8::from(half)])
}

impl OnCuda for Linear {
    const CASES: &'static [Case] = cases::CASES;

    fn halves(&self, graph: &Graph) -> Vec<Vec<Value>> {
        // A product is stored as what it is added to.
        let result = std::iter::once(self.output).chain(self.residual).collect();
        if narrow(graph, self) { vec![vec![self.input]] } else { vec![vec![self.input], result] }
    }

    fn units(&self, program: &Program<'_>) -> Result<Vec<Unit>> {
        let tensor_cores = program.hopper && program.precision != Precision::F32;
        let half = program.is_half(self.input) && program.is_half(self.output);
        let perceptron = Perceptron::ending_with(program.graph, program.outputs, self);
        let perceptron = perceptron.and_then(|perceptron| cuda_perceptron::unit(program, &perceptron));
        let hopper = tensor_cores.then(|| hopper_unit(half));
        let own = Unit::mixed(KERNELS, program.precision);
        Ok(std::iter::once(own).chain(hopper).chain(perceptron).collect())
    }

    fn lower(&self, to: &mut Lowering<'_>, at: usize) -> Result<()> {
        match to.perceptrons[at] {
            Some(perceptron) => to.perceptron_forward(&perceptron),
            None => to.linear_forward(self, at),
        }
    }

    fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
        match to.perceptrons[step.op] {
            Some(perceptron) => to.perceptron_backward(&perceptron),
            None => to.linear_backward(self, step),
        }
    }
}

impl Fused for Linear {
    fn stages(&self, block: &Block<'_>) -> Result<Vec<Stage>> {
        let (Shape { rows, width: from }, width) = (block.shape(self.input), block.shape(self.output).width);
        let bias = self.bias.map_or(0, |bias| block.param(bias));
        let stage = Stage::new(Kind::Linear).at(&[block.param(self.weight), bias]);
        let places = [
            block.value(self.input)?,
            block.value(self.output)?,
            block.maybe(self.residual)?,
            self.activation.code(),
        ];
        Ok(vec![stage.with(&places).with(&[rows, from, width])])
    }
}

const NARROW: usize = 8;

/// Rows of a narrow product that leave most of a device idle in blocks of [`ROWS_PER_SUM`].
const FEW_ROWS: usize = 4096;

/// Inputs that a narrow product may have: its weights fit 48 KB of shared memory.
const NARROW_INPUT: usize = 1536;

/// Whether a product has so few outputs that it has kernels of its own; these write f32.
fn narrow(graph: &Graph, linear: &Linear) -> bool {
    graph.shape(linear.output).width <= NARROW
        && graph.shape(linear.input).width <= NARROW_INPUT
        && linear.activation == Activation::None
        && linear.residual.is_none()
        && !linear.transposed
}

/// For each parameter of a program, by position: whether all of its gradient is one product of the library, or of a decoder's layer, of
/// two factors in halves.
pub(crate) fn products_of_halves(graph: &Graph, halves: &[bool]) -> Vec<bool> {
    let mut found = vec![false; graph.layout().slices().len()];
    for op in graph.ops() {
        let Op::Linear(linear) = op else { continue };
        let half = [linear.input, linear.output].iter().all(|value| halves[value.position()]);
        found[linear.weight.0] = half && graph.has_one_reader(linear.weight) && !narrow(graph, linear);
    }
    found
}

/// Rows and columns of a tile of the tensor-core product.
pub(super) const TILE: usize = 128;

/// A second operand of the tensor-core product, `[columns, depth]` per member.
pub(super) struct Right {
    pub(super) at: u64,
    pub(super) stride: usize,
}

/// A matrix of a library product: as a factor in the scalars that the precision multiplies, as a result in f32 or halves.
#[derive(Clone, Copy)]
pub(super) struct Factor {
    pub(super) operand: Operand,
    pub(super) at: u64,
    pub(super) half: bool,
}

impl From<View> for Factor {
    fn from(view: View) -> Self {
        Self { operand: operand(view), at: view.at, half: view.half }
    }
}

/// What the tensor-core product does with its sums.
pub(super) enum Ending {
    Gelu { bias: Option<u64>, saved: Option<u64>, short: bool },
    Slope { saved: u64, partial: Option<u64> },
}

impl Lowering<'_> {
    /// The `linear` at a position.
    pub(super) fn linear_at(&self, position: usize) -> Option<Linear> {
        match &self.tools.graph.ops()[position] {
            Op::Linear(linear) => Some(*linear),
            _ => None,
        }
    }

    pub(super) fn is_narrow(&self, linear: &Linear) -> bool {
        narrow(self.tools.graph, linear)
    }

    /// Whether the tensor-core product can read and write what this op does: all in f32, or all in halves that start on 16 bytes.
    pub(super) fn is_even(&self, linear: &Linear) -> bool {
        let half = self.is_half(linear.input);
        let offset = self.tools.graph.layout().slice(linear.weight).offset;
        half == self.is_half(linear.output) && (!half || offset.is_multiple_of(8))
    }

    /// Whether the tensor-core product can take these sizes, and is worth it.
    pub(super) fn is_hopper(&self, columns: usize, depth: usize) -> bool {
        self.tools.hopper
            && self.tools.precision != Precision::F32
            && (self.row.is_none() || self.rows_together)
            && columns.is_multiple_of(4)
            && depth.is_multiple_of(4)
            && columns >= TILE / 2
            && depth >= 32
    }

    pub(super) fn linear_forward(&mut self, linear: &Linear, position: usize) -> Result<()> {
        let (x, y) = (self.view(linear.input)?, self.view(linear.output)?);
        let weight = self.param(linear.weight);
        let bias = linear.bias.map(|bias| self.param(bias));
        let length = self.length();
        let residual = linear.residual.map(|residual| self.view(residual)).transpose()?.map(|view| view.at);
        if self.is_narrow(linear) {
            // Few where there are few: a block's warps have one each.
            let per_block = if x.rows <= FEW_ROWS { 8 } else { ROWS_PER_SUM };
            let arguments = arguments![
                x.at,
                x.pitch,
                weight,
                bias,
                length,
                y.at,
                y.pitch,
                x.rows_per_member,
                x.width,
                y.width,
                x.half,
                per_block
            ];
            let grid = (x.rows_per_member.div_ceil(per_block), self.addresses.members, 1);
            let (name, outs) = if y.width <= 4 { ("narrow_forward_4", 4) } else { ("narrow_forward_8", 8) };
            let shared = (x.width * outs * SCALAR) as u32;
            return self.launch("linear", (self.mixed(KERNELS), name), grid, 256, shared, arguments);
        }
        let saved = if linear.activation.keeps_slope() { self.saved(position) } else { None };
        if linear.activation == Activation::Gelu && self.is_hopper(y.width, x.width) && self.is_even(linear) {
            let right = self.transposed(linear)?;
            let short = self.pair_behind(linear.output).is_some();
            return self.tensor_product("linear", x, right, y, Ending::Gelu { bias, saved, short });
        }
        let plain = linear.activation == Activation::None;
        let left = self.factor(x, 0)?;
        let right = self.weight_factor(linear, linear.transposed);
        let onto = residual.filter(|_| plain);
        // The library wants a bias as it writes the result.
        let added = if y.half { linear.bias.map(|bias| self.working(bias)) } else { bias };
        let fused_bias = added.filter(|_| plain).map(|bias| (bias, length));
        self.library_product("linear", [left, right], y.into(), onto, fused_bias)?;
        if plain {
            return Ok(());
        }
        let kind = linear.activation.code();
        let arguments = arguments![
            kind,
            y.at,
            y.pitch,
            bias,
            length,
            y.at,
            saved,
            y.pitch,
            y.rows,
            y.rows_per_member,
            y.width,
            y.half,
            y.half
        ];
        self.per_entry("linear", (self.mixed(ROWWISE), "finish"), y.rows, y.width, arguments)
    }

    /// The weight as `[out, in]` rounded to tf32 or, where the operands are, to halves: transposed once per pass where it is stored
    /// the other way.
    pub(super) fn transposed(&mut self, linear: &Linear) -> Result<Right> {
        let (rows, columns) = (self.shape(linear.input).width, self.shape(linear.output).width);
        let half = self.is_half(linear.input);
        if linear.transposed {
            return Ok(self.right(linear));
        }
        let stride = rows * columns;
        let members = self.addresses.members;
        let what = Once::Transposed { param: linear.weight.0, half };
        let (at, first) = self.once(what, stride * members * SCALAR);
        if !first {
            return Ok(Right { at, stride });
        }
        let arguments = arguments![self.param(linear.weight), self.length(), at, stride, rows, columns];
        let grid = (columns.div_ceil(32), rows.div_ceil(32), members);
        let name = if half { "transpose_halves" } else { "transpose" };
        self.launch("transpose", (self.mixed(KERNELS), name), grid, 256, 0, arguments)?;
        Ok(Right { at, stride })
    }

    /// The weight as it is stored, rounded to halves where the operands are.
    pub(super) fn right(&self, linear: &Linear) -> Right {
        let half = self.is_half(linear.input);
        let at = if half { self.working(linear.weight) } else { self.param(linear.weight) };
        Right { at, stride: self.length() }
    }

    pub(super) fn weight_operand(&self, linear: &Linear, transposed: bool) -> Operand {
        let (wide, long) = (self.shape(linear.output).width, self.shape(linear.input).width);
        let (rows, columns) = if linear.transposed { (wide, long) } else { (long, wide) };
        Operand { rows, columns, pitch: columns, stride: self.length(), transposed }
    }

    pub(super) fn tensor_product(
        &mut self,
        label: &'static str,
        a: View,
        b: Right,
        out: View,
        ending: Ending,
    ) -> Result<()> {
        let (name, bias, saved, short, partial) = match ending {
            Ending::Gelu { bias, saved, short } => ("product_gelu", bias, saved, short, None),
            Ending::Slope { saved, partial } => ("product_slope", None, Some(saved), true, partial),
        };
        let arguments = arguments![
            a.at,
            a.pitch,
            a.rows_per_member * a.pitch,
            b.at,
            a.width,
            b.stride,
            out.at,
            out.pitch,
            out.rows_per_member * out.pitch,
            bias,
            self.length(),
            saved,
            short,
            partial,
            a.rows_per_member,
            out.width,
            a.width,
        ];
        let grid = (out.width.div_ceil(TILE), a.rows_per_member.div_ceil(TILE), self.addresses.members);
        self.launch(label, (hopper_unit(a.half), name), grid, 256, HOPPER_SHARED, arguments)
    }

    /// `out = left · right (+ onto) (+ bias)` by the library.
    pub(super) fn library_product(
        &mut self,
        label: &'static str,
        [left, right]: [Factor; 2],
        out: Factor,
        onto: Option<u64>,
        bias: Option<(u64, usize)>,
    ) -> Result<()> {
        let (product, places) = self.planned([left, right], out, onto, bias)?;
        self.tape.product(label, product, places);
        Ok(())
    }

    /// A product of the library with its algorithm chosen.
    pub(super) fn planned(
        &self,
        factors: [Factor; 2],
        out: Factor,
        onto: Option<u64>,
        bias: Option<(u64, usize)>,
    ) -> Result<(Product, Places)> {
        self.planned_for(factors, out, onto, bias, None)
    }

    /// The same for so many multiprocessors, where not for all.
    pub(super) fn planned_for(
        &self,
        [left, right]: [Factor; 2],
        out: Factor,
        onto: Option<u64>,
        bias: Option<(u64, usize)>,
        multiprocessors: Option<usize>,
    ) -> Result<(Product, Places)> {
        let (precision, members) = (self.tools.precision, self.addresses.members);
        let places = Places { left: left.at, right: right.at, onto: onto.unwrap_or(out.at), out: out.at };
        let onto = if onto.is_some() { Onto::Matrix } else { Onto::Nothing };
        let operands = (left.operand, right.operand, out.operand);
        Ok((
            self.tools.blas.plan(
                precision,
                members,
                operands,
                out.half,
                places,
                onto,
                bias,
                multiprocessors,
            )?,
            places,
        ))
    }

    /// A factor of a product; in bf16 what is not stored in halves is rounded and packed in scratch, so many scalars after its
    /// start.
    pub(super) fn factor(&mut self, view: View, after: usize) -> Result<Factor> {
        if self.tools.precision != Precision::Bf16 || view.half {
            return Ok(view.into());
        }
        let (at, operand) = (view.at, operand(view));
        let Operand { rows, columns, pitch, stride, .. } = operand;
        let to = self.scratch(after + self.room(view)) + (after * SCALAR) as u64;
        let rows_in_all = rows * self.addresses.members;
        let fours = [columns, pitch, stride].iter().all(|n| n.is_multiple_of(4)) && at.is_multiple_of(16);
        let (name, width) = if fours { ("to_bf16_fours", columns / 4) } else { ("to_bf16", columns) };
        let arguments = arguments![at, stride, pitch, to, rows, rows_in_all, width];
        self.per_entry("round", (self.mixed(KERNELS), name), rows_in_all, width, arguments)?;
        let operand = Operand { pitch: columns, stride: rows * columns, ..operand };
        Ok(Factor { operand, at: to, half: true })
    }

    /// Scalars of scratch that a factor takes where it is rounded: two bf16 each, and what follows starts on 256 bytes.
    pub(super) fn room(&self, view: View) -> usize {
        match self.tools.precision {
            Precision::Bf16 if !view.half => (view.rows * view.width).div_ceil(2).next_multiple_of(64),
            _ => 0,
        }
    }

    /// A weight as a factor: in bf16 the rounded one.
    pub(super) fn weight_factor(&self, linear: &Linear, transposed: bool) -> Factor {
        let half = self.addresses.rounded.is_some();
        Factor { operand: self.weight_operand(linear, transposed), at: self.working(linear.weight), half }
    }
}

/// A view as a row-major operand of the library.
pub(super) fn operand(view: View) -> Operand {
    Operand {
        rows: view.rows_per_member,
        columns: view.width,
        pitch: view.pitch,
        stride: view.rows_per_member * view.pitch,
        transposed: false,
    }
}
