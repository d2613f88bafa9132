//! `linear`, the op that costs. Three ways to multiply:
//!
//! - *narrow*: up to 8 outputs (a head), a warp per row, everything of its backward pass in one reading;
//! - *Hopper*: our tensor-core product with GELU or its derivative fused in, where the device is one and the precision
//!   is not f32;
//! - *library*: cuBLASLt batched over members, bias and residual in its epilogue, other activations in a kernel after
//!   it. All weight gradients go here.

use super::{Lowering, Partial, ROWS_PER_SUM, SCALAR, View};
use crate::Result;
use crate::cuda::blas::{Onto, Operand, Places, Precision};
use crate::cuda::kernels::{HOPPER_SHARED, Unit};
use crate::cuda::tape::arguments;
use crate::graph::{Activation, Op, Value};
use crate::layout::Param;
use crate::plan::{Backward, Write};

const NARROW: usize = 8;

/// Inputs that a narrow product may have: its weights fit 48 KB of shared memory.
const NARROW_INPUT: usize = 1536;

/// Rows and columns of a tile of the tensor-core product.
const TILE: usize = 128;

/// The operands of one `linear`, unpacked.
#[derive(Clone, Copy)]
struct Linear {
    input: Value,
    weight: Param,
    transposed: bool,
    bias: Option<Param>,
    activation: Activation,
    residual: Option<Value>,
    output: Value,
}

/// The activation's code in the kernels.
pub(super) fn activation_code(activation: Activation) -> usize {
    match activation {
        Activation::None => 0,
        Activation::Gelu => 1,
        Activation::Relu => 2,
        Activation::Tanh => 3,
        Activation::Silu => 4,
    }
}

/// Whether an activation's derivative is kept from the forward pass (else it follows from the output).
pub(super) fn keeps_slope(activation: Activation) -> bool {
    matches!(activation, Activation::Gelu | Activation::Silu)
}

/// A second operand of the tensor-core product, `[columns, depth]` per member.
struct Right {
    at: u64,
    stride: usize,
}

/// What the tensor-core product does with its sums.
enum Ending {
    Gelu { bias: Option<u64>, saved: Option<u64>, halves: bool },
    Slope { saved: u64, partial: Option<u64> },
}

impl Lowering<'_> {
    fn unpack(&self, position: usize) -> Option<Linear> {
        match self.tools.graph.ops()[position] {
            Op::Linear { input, weight, transposed, bias, activation, residual, output } => {
                Some(Linear { input, weight, transposed, bias, activation, residual, output })
            }
            _ => None,
        }
    }

    fn is_narrow(&self, linear: &Linear) -> bool {
        self.shape(linear.output).width <= NARROW
            && self.shape(linear.input).width <= NARROW_INPUT
            && linear.activation == Activation::None
            && linear.residual.is_none()
            && !linear.transposed
    }

    /// Whether the tensor-core product can take these sizes, and is worth it.
    fn is_hopper(&self, columns: usize, depth: usize) -> bool {
        self.tools.hopper
            && self.tools.precision != Precision::F32
            && (self.row.is_none() || self.rows_together)
            && columns.is_multiple_of(4)
            && depth.is_multiple_of(4)
            && columns >= TILE / 2
            && depth >= 32
    }

    pub(super) fn linear_forward(&mut self, position: usize) -> Result<()> {
        let Some(linear) = self.unpack(position) else { return Ok(()) };
        let (x, y) = (self.view(linear.input)?, self.view(linear.output)?);
        let weight = self.param(linear.weight);
        let bias = linear.bias.map(|bias| self.param(bias));
        let length = self.length();
        let residual = linear.residual.map(|residual| self.view(residual)).transpose()?.map(|view| view.at);
        if self.is_narrow(&linear) {
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
                y.width
            ];
            let grid = (x.rows_per_member.div_ceil(ROWS_PER_SUM), self.ground.members, 1);
            let (name, outs) = if y.width <= 4 { ("narrow_forward_4", 4) } else { ("narrow_forward_8", 8) };
            let shared = (x.width * outs * SCALAR) as u32;
            return self.launch("linear", (Unit::Rows, name), grid, 256, shared, arguments);
        }
        let saved = if keeps_slope(linear.activation) { self.saved(position) } else { None };
        if self.is_hopper(y.width, x.width) && linear.activation == Activation::Gelu {
            let right = self.turned(&linear)?;
            let halves = self.pair_behind(linear.output).is_some();
            return self.tensor_product("linear", x, right, y, Ending::Gelu { bias, saved, halves });
        }
        let plain = linear.activation == Activation::None;
        let left = operand(x);
        let right = self.weight_operand(&linear, linear.transposed);
        let onto = if plain && residual.is_some() { Onto::Matrix } else { Onto::Nothing };
        let fused_bias = if plain { bias.map(|bias| (bias, length)) } else { None };
        let places = Places { left: x.at, right: weight, onto: residual.unwrap_or(y.at), out: y.at };
        self.library_product("linear", (left, right, operand(y)), places, onto, fused_bias)?;
        if plain {
            return Ok(());
        }
        let kind = activation_code(linear.activation);
        let none: Option<u64> = None;
        let arguments = arguments![
            kind,
            y.at,
            y.pitch,
            bias,
            length,
            none,
            y.at,
            saved,
            y.pitch,
            y.rows,
            y.rows_per_member,
            y.width
        ];
        self.per_entry("linear", (Unit::Rows, "finish"), y.rows, y.width, arguments)
    }

    /// The weight as `[out, in]` rounded to tf32: transposed once per pass where it is stored the other way.
    fn turned(&mut self, linear: &Linear) -> Result<Right> {
        let (rows, columns) = (self.shape(linear.input).width, self.shape(linear.output).width);
        if linear.transposed {
            return Ok(Right { at: self.param(linear.weight), stride: self.length() });
        }
        let stride = rows * columns;
        let members = self.ground.members;
        if let Some(&offset) = self.turned.get(&linear.weight.0) {
            return Ok(Right { at: self.ground.turned + offset as u64, stride });
        }
        let offset = self.turned_bytes;
        self.turned.insert(linear.weight.0, offset);
        self.turned_bytes += (stride * members * SCALAR).next_multiple_of(256);
        let at = self.ground.turned + offset as u64;
        let arguments = arguments![self.param(linear.weight), self.length(), at, stride, rows, columns];
        let grid = (columns.div_ceil(32), rows.div_ceil(32), members);
        self.launch("transpose", (Unit::Rows, "transpose"), grid, 256, 0, arguments)?;
        Ok(Right { at, stride })
    }

    fn weight_operand(&self, linear: &Linear, transposed: bool) -> Operand {
        let (wide, long) = (self.shape(linear.output).width, self.shape(linear.input).width);
        let (rows, columns) = if linear.transposed { (wide, long) } else { (long, wide) };
        Operand { rows, columns, pitch: columns, stride: self.length(), transposed }
    }

    fn tensor_product(
        &mut self,
        label: &'static str,
        a: View,
        b: Right,
        out: View,
        ending: Ending,
    ) -> Result<()> {
        let (name, bias, saved, halves, partial) = match ending {
            Ending::Gelu { bias, saved, halves } => ("product_gelu", bias, saved, halves, None),
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
            halves,
            partial,
            a.rows_per_member,
            out.width,
            a.width,
        ];
        let grid = (out.width.div_ceil(TILE), a.rows_per_member.div_ceil(TILE), self.ground.members);
        self.launch(label, (Unit::Hopper, name), grid, 256, HOPPER_SHARED, arguments)
    }

    pub(super) fn linear_backward(&mut self, step: &Backward) -> Result<()> {
        let Some(linear) = self.unpack(step.op) else { return Ok(()) };
        let x = self.view(linear.input)?;
        let dy = View { at: self.cotangent(linear.output)?, ..self.view(linear.output)? };
        if self.is_narrow(&linear) {
            return self.narrow_backward(&linear, step.writes[0], x, dy);
        }
        let sloped = self.sloped[linear.output.position()];
        self.slope_and_bias(&linear, step.op, dy, sloped)?;
        if let Some(write) = step.writes[0] {
            self.input_cotangent(&linear, write, x, dy)?;
        }
        self.weight_gradient(&linear, x, dy)?;
        if let (Some(residual), Some(Some(write @ (Write::Set | Write::Add)))) =
            (linear.residual, step.writes.get(1))
        {
            self.pass_on("linear", residual, linear.output, 1.0, *write)?;
        }
        Ok(())
    }

    /// Turns `d output` into `dz` in place where an activation stands between, and sums `dz` for the bias.
    fn slope_and_bias(&mut self, linear: &Linear, position: usize, dy: View, sloped: bool) -> Result<()> {
        let kind = if sloped { 0 } else { activation_code(linear.activation) };
        let kept = match (kind, keeps_slope(linear.activation)) {
            (0, _) => dy.at,
            (_, true) => self.must_saved(position)?,
            (_, false) => self.base(linear.output)?,
        };
        match linear.bias {
            // What wrote the last part of `dz` summed its columns too.
            Some(_) if sloped || self.totalled[linear.output.position()] => Ok(()),
            Some(bias) => {
                let blocks = dy.rows_per_member.div_ceil(ROWS_PER_SUM);
                let partial = self.scratch(self.ground.members * blocks * dy.width);
                let arguments = arguments![kind, dy.at, kept, partial, dy.rows_per_member, dy.width];
                let grid = (blocks, self.ground.members, dy.width.div_ceil(128));
                self.launch("linear'", (Unit::Rows, "column_sums"), grid, 128, 0, arguments)?;
                self.gather_partials(
                    "linear'",
                    partial,
                    Partial::dense(blocks, dy.width),
                    (bias, dy.width),
                    None,
                )
            }
            None if kind != 0 => {
                let arguments = arguments![kind, dy.at, kept, dy.at, false, dy.rows, dy.width];
                self.per_entry("linear'", (Unit::Rows, "activate_backward"), dy.rows, dy.width, arguments)
            }
            None => Ok(()),
        }
    }

    /// The bias of the `linear` that made this value, if the value's cotangent is that bias's too, row by row.
    pub(super) fn bias_behind(&self, value: Value) -> Option<Param> {
        let position = self.tools.graph.ops().iter().position(|op| op.outputs().contains(&value))?;
        let linear = self.unpack(position)?;
        if linear.activation == Activation::None && !self.is_narrow(&linear) { linear.bias } else { None }
    }

    /// The `linear` with GELU behind this value, if the tensor cores computed it and one more `linear`, whose backward
    /// product goes through the tensor cores too, is all that reads it. Such a pair keeps its slopes as halves.
    fn pair_behind(&self, value: Value) -> Option<(usize, Linear)> {
        let graph = self.tools.graph;
        let position = graph.ops().iter().position(|op| op.outputs().contains(&value))?;
        let inner = self.unpack(position)?;
        let hidden = self.shape(value).width;
        if inner.activation != Activation::Gelu || !self.is_hopper(hidden, self.shape(inner.input).width) {
            return None;
        }
        let mut readers = (0..graph.ops().len()).filter(|&at| graph.ops()[at].operands().contains(&value));
        let outer = self.unpack(readers.next()?)?;
        let alone = readers.next().is_none() && !self.tools.plan.outputs().contains(&value);
        let through = outer.input == value && outer.residual != Some(value);
        let fits = !outer.transposed
            && !self.is_narrow(&outer)
            && self.is_hopper(hidden, self.shape(outer.output).width);
        (alone && through && fits).then_some((position, inner))
    }

    fn input_cotangent(&mut self, linear: &Linear, write: Write, x: View, dy: View) -> Result<()> {
        let dx = View { at: self.cotangent(linear.input)?, ..x };
        // The tensor cores want `[in, out]`, which is how the weight is stored.
        if let Some((position, inner)) = self.pair_behind(linear.input) {
            let right = Right { at: self.param(linear.weight), stride: self.length() };
            let saved = self.must_saved(position)?;
            let blocks = x.rows_per_member.div_ceil(TILE);
            let partial = match inner.bias {
                Some(_) => Some(self.scratch(self.ground.members * blocks * x.width)),
                None => None,
            };
            self.tensor_product("linear'", dy, right, dx, Ending::Slope { saved, partial })?;
            if let (Some(bias), Some(partial)) = (inner.bias, partial) {
                self.gather_partials(
                    "linear'",
                    partial,
                    Partial::dense(blocks, x.width),
                    (bias, x.width),
                    None,
                )?;
            }
            self.sloped[linear.input.position()] = true;
            return Ok(());
        }
        let right = self.weight_operand(linear, !linear.transposed);
        let onto = if write == Write::Add { Onto::Matrix } else { Onto::Nothing };
        let places = Places { left: dy.at, right: self.param(linear.weight), onto: dx.at, out: dx.at };
        self.library_product("linear'", (operand(dy), right, operand(dx)), places, onto, None)
    }

    fn weight_gradient(&mut self, linear: &Linear, x: View, dy: View) -> Result<()> {
        let (gradient, add) = self.gradient(linear.weight);
        let out = self.weight_operand(linear, false);
        let (left, right) = if linear.transposed { (dy, x) } else { (x, dy) };
        let turned = Operand { transposed: true, ..operand(left) };
        let onto = if add { Onto::Matrix } else { Onto::Nothing };
        let places = Places { left: left.at, right: right.at, onto: gradient, out: gradient };
        self.library_product("weight'", (turned, operand(right), out), places, onto, None)
    }

    fn library_product(
        &mut self,
        label: &'static str,
        operands: (Operand, Operand, Operand),
        places: Places,
        onto: Onto,
        bias: Option<(u64, usize)>,
    ) -> Result<()> {
        let (precision, members) = (self.tools.precision, self.ground.members);
        let (operands, places) = match precision {
            Precision::Bf16 => self.rounded(operands, places)?,
            Precision::F32 | Precision::Tf32 => (operands, places),
        };
        let product = self.tools.blas.plan(precision, members, operands, places, onto, bias)?;
        self.tape.product(label, product, places);
        Ok(())
    }

    /// Both operands of a product rounded to bf16 and packed in scratch.
    fn rounded(
        &mut self,
        (left, right, out): (Operand, Operand, Operand),
        places: Places,
    ) -> Result<((Operand, Operand, Operand), Places)> {
        let members = self.ground.members;
        // Two bf16 to a scalar of scratch; the second operand starts on 256 bytes.
        let room =
            |operand: Operand| (operand.rows * operand.columns * members).div_ceil(2).next_multiple_of(64);
        let at = self.scratch(room(left) + room(right));
        let packed = Places { left: at, right: at + (room(left) * SCALAR) as u64, ..places };
        for (operand, from, to) in [(left, places.left, packed.left), (right, places.right, packed.right)] {
            let rows = operand.rows * members;
            let arguments =
                arguments![from, operand.stride, operand.pitch, to, operand.rows, rows, operand.columns];
            self.per_entry("round", (Unit::Rows, "to_bf16"), rows, operand.columns, arguments)?;
        }
        let dense = |operand: Operand| Operand {
            pitch: operand.columns,
            stride: operand.rows * operand.columns,
            ..operand
        };
        Ok(((dense(left), dense(right), out), packed))
    }

    fn narrow_backward(&mut self, linear: &Linear, write: Option<Write>, x: View, dy: View) -> Result<()> {
        let blocks = x.rows_per_member.div_ceil(ROWS_PER_SUM);
        let columns = x.width * dy.width + dy.width;
        let partial = self.scratch(self.ground.members * blocks * columns);
        let dx = match write {
            Some(_) => Some(self.cotangent(linear.input)?),
            None => None,
        };
        let add = write == Some(Write::Add);
        let arguments = arguments![
            x.at,
            dy.at,
            self.param(linear.weight),
            self.length(),
            dx,
            add,
            partial,
            x.rows_per_member,
            x.width,
            dy.width,
        ];
        let grid = (blocks, self.ground.members, 1);
        let name = if dy.width <= 4 { "narrow_backward_4" } else { "narrow_backward_8" };
        self.launch("linear'", (Unit::Rows, name), grid, 128, 0, arguments)?;
        let weights = (linear.weight, x.width * dy.width);
        self.gather_partials("linear'", partial, Partial::dense(blocks, columns), weights, linear.bias)
    }
}

/// A view as a row-major operand of the library.
fn operand(view: View) -> Operand {
    Operand {
        rows: view.rows_per_member,
        columns: view.width,
        pitch: view.pitch,
        stride: view.rows_per_member * view.pitch,
        transposed: false,
    }
}
