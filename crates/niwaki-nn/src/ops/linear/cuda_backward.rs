//! The backward pass of `linear` on CUDA.

use super::Linear;
use super::cuda::{Ending, Factor, KERNELS, TILE};
use crate::Result;
use crate::cuda::blas::Operand;
use crate::cuda::kernels::ROWWISE;
use crate::cuda::lower::{Lowering, Partial, ROWS_PER_SUM, View};
use crate::cuda::tape::arguments;
use crate::graph::Value;
use crate::layout::Param;
use crate::ops::Activation;
use crate::plan::{Backward, Write};

/// Multiprocessors of sixteen that a product beside a short pass is planned for (H200: a decoder's step takes 3.86 instead of 4.05 ms with
/// 40 of 132; 80 of them change nothing).
const FEW: usize = 5;

impl Lowering<'_> {
    pub(super) fn linear_backward(&mut self, linear: &Linear, step: &Backward) -> Result<()> {
        let x = self.view(linear.input)?;
        let dy = View { at: self.cotangent(linear.output)?, ..self.view(linear.output)? };
        if self.is_narrow(linear) {
            return self.narrow_backward(linear, step.writes[0], x, dy);
        }
        let sloped = self.sloped[linear.output.position()];
        self.slope_and_bias(linear, step.op, dy, sloped)?;
        let dx = match step.writes[0] {
            Some(write) => Some((write, View { at: self.cotangent(linear.input)?, ..x })),
            None => None,
        };
        let fused = match dx {
            Some((_, dx)) => self.fused_cotangent(linear, dx, dy)?,
            None => false,
        };
        // Both products read it. In a short pass the one aside is queued first: it runs beside the other, which leaves much of the device idle.
        let slope = self.factor(dy, 0)?;
        let first = self.is_short();
        if first {
            self.weight_gradient(linear, x, dy, slope)?;
        }
        if let Some((write, dx)) = dx.filter(|_| !fused) {
            let right = self.weight_factor(linear, !linear.transposed);
            let onto = (write == Write::Add).then_some(dx.at);
            self.library_product("linear'", [slope, right], dx.into(), onto, None)?;
        }
        if !first {
            self.weight_gradient(linear, x, dy, slope)?;
        }
        if let (Some(residual), Some(Some(write @ (Write::Set | Write::Add)))) =
            (linear.residual, step.writes.get(1))
        {
            self.pass_on("linear", residual, linear.output, 1.0, *write)?;
        }
        Ok(())
    }

    /// Turns `d output` into `dz` in place where an activation stands between, and sums `dz` for the bias.
    fn slope_and_bias(&mut self, linear: &Linear, position: usize, dy: View, sloped: bool) -> Result<()> {
        let kind = if sloped { 0 } else { linear.activation.code() };
        let kept = match (kind, linear.activation.keeps_slope()) {
            (0, _) => dy.at,
            (_, true) => self.must_saved(position)?,
            (_, false) => self.base(linear.output)?,
        };
        match linear.bias {
            // What wrote the last part of `dz` summed its columns too.
            Some(_) if sloped || self.totalled[linear.output.position()] => Ok(()),
            Some(bias) => {
                let blocks = dy.rows_per_member.div_ceil(ROWS_PER_SUM);
                let partial = self.scratch(self.addresses.members * blocks * dy.width);
                let arguments = arguments![kind, dy.at, kept, partial, dy.rows_per_member, dy.width, dy.half];
                let grid = (blocks, self.addresses.members, dy.width.div_ceil(128));
                self.launch("linear'", (self.mixed(ROWWISE), "column_sums"), grid, 128, 0, arguments)?;
                self.gather_partials(
                    "linear'",
                    partial,
                    Partial::dense(blocks, dy.width),
                    (bias, dy.width),
                    None,
                )
            }
            None if kind != 0 => {
                let arguments =
                    arguments![kind, dy.at, kept, dy.at, false, dy.rows, dy.width, dy.half, dy.half];
                let kernel = (self.mixed(ROWWISE), "activate_backward");
                self.per_entry("linear'", kernel, dy.rows, dy.width, arguments)
            }
            None => Ok(()),
        }
    }

    /// The bias of the `linear` that made this value, if the value's cotangent is that bias's too, row by row.
    pub(crate) fn bias_behind(&self, value: Value) -> Option<Param> {
        let position = self.tools.graph.ops().iter().position(|op| op.outputs().contains(&value))?;
        let linear = self.linear_at(position)?;
        if linear.activation == Activation::None && !self.is_narrow(&linear) { linear.bias } else { None }
    }

    /// The `linear` with GELU behind this value, if the tensor cores computed it and one more `linear`, whose backward
    /// product goes through the tensor cores too, is all that reads it. Such a pair keeps its slopes in 16 bits.
    pub(super) fn pair_behind(&self, value: Value) -> Option<(usize, Linear)> {
        let graph = self.tools.graph;
        let position = graph.ops().iter().position(|op| op.outputs().contains(&value))?;
        let inner = self.linear_at(position)?;
        let hidden = self.shape(value).width;
        let tensor_cores = self.is_hopper(hidden, self.shape(inner.input).width) && self.is_even(&inner);
        if inner.activation != Activation::Gelu || !tensor_cores {
            return None;
        }
        let mut readers = (0..graph.ops().len()).filter(|&at| graph.ops()[at].operands().contains(&value));
        let outer = self.linear_at(readers.next()?)?;
        let alone = readers.next().is_none() && !self.tools.plan.outputs().contains(&value);
        let through = outer.input == value && outer.residual != Some(value);
        let fits = !outer.transposed
            && !self.is_narrow(&outer)
            && self.is_even(&outer)
            && self.is_hopper(hidden, self.shape(outer.output).width);
        (alone && through && fits).then_some((position, inner))
    }

    /// The cotangent of an input that a `linear` with GELU made, on the tensor cores with that one's slope; whether it could.
    fn fused_cotangent(&mut self, linear: &Linear, dx: View, dy: View) -> Result<bool> {
        let Some((position, inner)) = self.pair_behind(linear.input) else { return Ok(false) };
        // The tensor cores want `[in, out]`, which is how the weight is stored.
        let right = self.right(linear);
        let saved = self.must_saved(position)?;
        let blocks = dx.rows_per_member.div_ceil(TILE);
        let partial = match inner.bias {
            Some(_) => Some(self.scratch(self.addresses.members * blocks * dx.width)),
            None => None,
        };
        self.tensor_product("linear'", dy, right, dx, Ending::Slope { saved, partial })?;
        if let (Some(bias), Some(partial)) = (inner.bias, partial) {
            let sums = Partial::dense(blocks, dx.width);
            self.gather_partials("linear'", partial, sums, (bias, dx.width), None)?;
        }
        self.sloped[linear.input.position()] = true;
        Ok(true)
    }

    /// `dW (+)= inputᵀ · dz`, with the factor of `dz` at the start of scratch where it was rounded. Nothing in the pass needs it, so it
    /// runs aside, unless it reads scratch or others write the same gradient.
    fn weight_gradient(&mut self, linear: &Linear, x: View, dy: View, slope: Factor) -> Result<()> {
        let (gradient, add) = self.gradient(linear.weight);
        let half = self.is_half_gradient(linear.weight);
        let mut operand = self.weight_operand(linear, false);
        if half {
            // Halves take the room of floats.
            operand.stride *= 2;
        }
        let out = Factor { operand, at: gradient, half };
        let input = self.factor(x, self.room(dy))?;
        let (left, right) = if linear.transposed { (slope, input) } else { (input, slope) };
        let left = Factor { operand: Operand { transposed: true, ..left.operand }, ..left };
        let aside = self.tools.graph.has_one_reader(linear.weight) && self.room(x) + self.room(dy) == 0;
        // Few multiprocessors, so that it does not hold up what it runs beside.
        let few = (aside && self.is_short()).then_some(self.tools.multiprocessors * FEW / 16);
        let (product, places) = self.planned_for([left, right], out, add.then_some(gradient), None, few)?;
        if aside {
            let place = self.tape.product_aside("weight'", product, places);
            self.reads_aside(x, place);
            self.reads_aside(dy, place);
        } else {
            self.tape.product("weight'", product, places);
        }
        Ok(())
    }

    fn narrow_backward(&mut self, linear: &Linear, write: Option<Write>, x: View, dy: View) -> Result<()> {
        let blocks = x.rows_per_member.div_ceil(ROWS_PER_SUM);
        let columns = x.width * dy.width + dy.width;
        let partial = self.scratch(self.addresses.members * blocks * columns);
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
            x.half,
        ];
        let grid = (blocks, self.addresses.members, 1);
        let name = if dy.width <= 4 { "narrow_backward_4" } else { "narrow_backward_8" };
        self.launch("linear'", (self.mixed(KERNELS), name), grid, 128, 0, arguments)?;
        let weights = (linear.weight, x.width * dy.width);
        self.gather_partials("linear'", partial, Partial::dense(blocks, columns), weights, linear.bias)
    }
}
