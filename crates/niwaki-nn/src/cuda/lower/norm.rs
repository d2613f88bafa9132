//! `layer_norm` and `rms_norm`: one kernel each way, and one that adds up the sums for gain and bias.

use super::{Lowering, Partial, ROWS_PER_SUM, SCALAR};
use crate::cuda::kernels::Unit;
use crate::cuda::tape::arguments;
use crate::graph::{Op, Value};
use crate::layout::Param;
use crate::plan::{Backward, Write};
use crate::{Error, Result};

/// The kernel file for a width.
pub(super) fn unit(op: &'static str, width: usize) -> Result<Unit> {
    let reason = || format!("rows of {width} do not fit a warp's registers on this device, at most 1024 do");
    Unit::norm(width).ok_or_else(|| Error::Unsupported { op, reason: reason() })
}

/// A norm's operands: `bias` is there for LayerNorm only.
struct Norm {
    input: Value,
    gain: Param,
    bias: Option<Param>,
    epsilon: f64,
    output: Value,
}

fn unpack(op: &Op) -> Option<Norm> {
    match *op {
        Op::LayerNorm { input, gain, bias, epsilon, output } => {
            Some(Norm { input, gain, bias: Some(bias), epsilon, output })
        }
        Op::RmsNorm { input, gain, epsilon, output } => {
            Some(Norm { input, gain, bias: None, epsilon, output })
        }
        _ => None,
    }
}

impl Lowering<'_> {
    pub(super) fn norm_forward(&mut self, position: usize) -> Result<()> {
        let op = &self.tools.graph.ops()[position];
        let Some(norm) = unpack(op) else { return Ok(()) };
        let (x, y) = (self.view(norm.input)?, self.view(norm.output)?);
        let per_row = if norm.bias.is_some() { 2 } else { 1 };
        let (first, step) = self.rows_of(norm.input);
        let stats = self.saved(position).map(|at| at + (first * per_row * SCALAR) as u64);
        let arguments = arguments![
            x.at,
            x.pitch,
            y.at,
            y.pitch,
            stats,
            step * per_row,
            self.param(norm.gain),
            norm.bias.map(|bias| self.param(bias)),
            self.length(),
            x.rows,
            x.rows_per_member,
            x.width,
            norm.epsilon as f32,
        ];
        let kernel = (unit(op.name(), x.width)?, "norm_forward_rows");
        self.launch(op.name(), kernel, (x.rows.div_ceil(8), 1, 1), 256, 0, arguments)
    }

    pub(super) fn norm_backward(&mut self, step: &Backward) -> Result<()> {
        let op = &self.tools.graph.ops()[step.op];
        let Some(norm) = unpack(op) else { return Ok(()) };
        let x = self.view(norm.input)?;
        let blocks = x.rows_per_member.div_ceil(ROWS_PER_SUM);
        // Where this norm is the first to read x, it is the last to add to x's cotangent, and can sum it.
        let first_reader = self
            .tools
            .plan
            .forward()
            .iter()
            .copied()
            .find(|&at| self.tools.graph.ops()[at].operands().contains(&norm.input));
        let behind = match (step.writes[0], first_reader == Some(step.op)) {
            (Some(_), true) => self.bias_behind(norm.input),
            _ => None,
        };
        // Gain, bias and the cotangent's own sums lie side by side; what is not asked for is left alone.
        let partial = self.scratch(self.ground.members * blocks * 3 * x.width);
        let dx = match step.writes[0] {
            Some(_) => Some(self.cotangent(norm.input)?),
            None => None,
        };
        let arguments = arguments![
            self.cotangent(norm.output)?,
            x.at,
            self.must_saved(step.op)?,
            self.param(norm.gain),
            self.length(),
            dx,
            step.writes[0] == Some(Write::Add),
            partial,
            norm.bias.is_some(),
            behind.is_some(),
            x.rows_per_member,
            x.width,
        ];
        let kernel = (unit(op.name(), x.width)?, "norm_backward_rows");
        let shared = (8 * x.width * SCALAR) as u32;
        let label = if norm.bias.is_some() { "layer_norm'" } else { "rms_norm'" };
        self.launch(label, kernel, (blocks, self.ground.members, 1), 256, shared, arguments)?;
        let sums = Partial { blocks, pitch: 3 * x.width, columns: 2 * x.width };
        self.gather_partials(label, partial, sums, (norm.gain, x.width), norm.bias)?;
        if let Some(bias) = behind {
            let third = partial + (2 * x.width * SCALAR) as u64;
            let sums = Partial { columns: x.width, ..sums };
            self.gather_partials(label, third, sums, (bias, x.width), None)?;
            self.totalled[norm.input.position()] = true;
        }
        Ok(())
    }
}
