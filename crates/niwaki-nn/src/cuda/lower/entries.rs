//! Entry-wise ops: `concat`, `add`, `mul`, `scale`, `activate`. One kernel serves all but the activation.

use super::linear::{activation_code, keeps_slope};
use super::{Lowering, SCALAR, View};
use crate::Result;
use crate::cuda::kernels::Unit;
use crate::cuda::tape::arguments;
use crate::graph::{Op, Value};
use crate::plan::{Backward, Write};

/// What [`Lowering::combine`] computes.
#[derive(Clone, Copy)]
enum Kind {
    Scaled = 0,
    Sum = 1,
    Product = 2,
}

impl Lowering<'_> {
    /// `out (+)= factor · a`, `a + b` or `a · b`, entry by entry.
    fn combine(
        &mut self,
        label: &'static str,
        kind: Kind,
        a: View,
        b: View,
        factor: f64,
        out: View,
        add: bool,
    ) -> Result<()> {
        let arguments = arguments![
            kind as usize,
            a.at,
            a.pitch,
            b.at,
            b.pitch,
            out.at,
            out.pitch,
            factor as f32,
            add,
            a.rows,
            a.width
        ];
        self.per_entry(label, (Unit::Rows, "combine"), a.rows, a.width, arguments)
    }

    /// Copies the rows of this pass to `place`, one after the other.
    pub(super) fn pack_row(&mut self, value: Value, place: u64) -> Result<()> {
        let from = self.view(value)?;
        let to = View { at: place, pitch: from.width, ..from };
        self.combine("pack", Kind::Scaled, from, from, 1.0, to, false)
    }

    fn cotangent_view(&self, value: Value) -> Result<View> {
        Ok(View { at: self.cotangent(value)?, ..self.view_shape(value) })
    }

    /// All rows of a value, without a place.
    fn view_shape(&self, value: Value) -> View {
        let shape = self.shape(value);
        let rows_per_member = self.ground.items * shape.rows;
        View {
            at: 0,
            pitch: shape.width,
            rows: rows_per_member * self.ground.members,
            rows_per_member,
            width: shape.width,
        }
    }

    /// `d operand (+)= factor · d output`.
    pub(super) fn pass_on(
        &mut self,
        label: &'static str,
        operand: Value,
        output: Value,
        factor: f64,
        write: Write,
    ) -> Result<()> {
        if write == Write::Alias {
            return Ok(());
        }
        let (from, to) = (self.cotangent_view(output)?, self.cotangent_view(operand)?);
        self.combine(label, Kind::Scaled, from, from, factor, to, write == Write::Add)
    }

    pub(super) fn entries_forward(&mut self, position: usize) -> Result<()> {
        match &self.tools.graph.ops()[position] {
            Op::Concat { inputs, output } => {
                let out = self.view(*output)?;
                let mut start = 0;
                for &input in inputs {
                    let x = self.view(input)?;
                    let place = View { at: out.at + (start * SCALAR) as u64, ..out };
                    self.combine("concat", Kind::Scaled, x, x, 1.0, place, false)?;
                    start += x.width;
                }
                Ok(())
            }
            Op::Add { left, right, output } => {
                if self.embedding_sum(*left, *right, *output)? {
                    return Ok(());
                }
                let (a, b, out) = (self.view(*left)?, self.view(*right)?, self.view(*output)?);
                self.combine("add", Kind::Sum, a, b, 1.0, out, false)
            }
            Op::Mul { left, right, output } => {
                let (a, b, out) = (self.view(*left)?, self.view(*right)?, self.view(*output)?);
                self.combine("mul", Kind::Product, a, b, 1.0, out, false)
            }
            Op::Scale { input, factor, output } => {
                let (a, out) = (self.view(*input)?, self.view(*output)?);
                self.combine("scale", Kind::Scaled, a, a, *factor, out, false)
            }
            Op::Activate { input, activation, output } => {
                let (x, out) = (self.view(*input)?, self.view(*output)?);
                let saved = if keeps_slope(*activation) { self.saved(position) } else { None };
                let none: Option<u64> = None;
                let kind = activation_code(*activation);
                let arguments = arguments![
                    kind,
                    x.at,
                    x.pitch,
                    none,
                    0_usize,
                    none,
                    out.at,
                    saved,
                    out.pitch,
                    x.rows,
                    x.rows_per_member,
                    x.width
                ];
                self.per_entry("activate", (Unit::Rows, "finish"), x.rows, x.width, arguments)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn entries_backward(&mut self, step: &Backward) -> Result<()> {
        match &self.tools.graph.ops()[step.op] {
            Op::Concat { inputs, output } => {
                let from = self.cotangent_view(*output)?;
                let mut start = 0;
                for (&input, write) in inputs.iter().zip(&step.writes) {
                    let width = self.shape(input).width;
                    if let Some(write) = write {
                        let to = self.cotangent_view(input)?;
                        let part = View { at: from.at + (start * SCALAR) as u64, width, ..from };
                        self.combine("concat'", Kind::Scaled, part, part, 1.0, to, *write == Write::Add)?;
                    }
                    start += width;
                }
                Ok(())
            }
            Op::Add { left, .. } if self.summed[left.position()].is_some() => Ok(()),
            Op::Add { left, right, output } => {
                for (operand, write) in [(*left, step.writes[0]), (*right, step.writes[1])] {
                    if let Some(write) = write {
                        self.pass_on("add'", operand, *output, 1.0, write)?;
                    }
                }
                Ok(())
            }
            Op::Mul { left, right, output } => {
                let from = self.cotangent_view(*output)?;
                for (operand, other, write) in
                    [(*left, *right, step.writes[0]), (*right, *left, step.writes[1])]
                {
                    if let Some(write) = write {
                        let (to, factor) = (self.cotangent_view(operand)?, self.view(other)?);
                        self.combine("mul'", Kind::Product, from, factor, 1.0, to, write == Write::Add)?;
                    }
                }
                Ok(())
            }
            Op::Scale { input, factor, output } => match step.writes[0] {
                Some(write) => self.pass_on("scale'", *input, *output, *factor, write),
                None => Ok(()),
            },
            Op::Activate { input, activation, output } => {
                let Some(write) = step.writes[0] else { return Ok(()) };
                let (from, to) = (self.cotangent_view(*output)?, self.cotangent(*input)?);
                let kept = match (activation_code(*activation), keeps_slope(*activation)) {
                    // The identity's slope is 1, which scaling passes on.
                    (0, _) => return self.pass_on("activate'", *input, *output, 1.0, write),
                    (_, true) => self.must_saved(step.op)?,
                    (_, false) => self.base(*output)?,
                };
                let kind = activation_code(*activation);
                let arguments =
                    arguments![kind, from.at, kept, to, write == Write::Add, from.rows, from.width];
                self.per_entry(
                    "activate'",
                    (Unit::Rows, "activate_backward"),
                    from.rows,
                    from.width,
                    arguments,
                )
            }
            _ => Ok(()),
        }
    }
}
