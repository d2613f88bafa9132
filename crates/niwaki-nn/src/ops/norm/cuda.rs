//! `layer_norm` and `rms_norm` on CUDA: one kernel each way, and one that adds up the sums for gain and bias.

use super::{LayerNorm, RmsNorm};
use crate::cuda::check::{Case, ROWS, followed, grown};
use crate::cuda::kernels::{File, Unit};
use crate::cuda::lower::{Lowering, Once, Partial, Program, ROWS_PER_SUM, SCALAR};
use crate::cuda::tape::arguments;
use crate::graph::{Graph, Value};
use crate::layout::Param;
use crate::ops::OnCuda;
use crate::plan::{Backward, Write};
use crate::{Error, Init, Result};

/// Norms: accesses per lane, scalars per access, whether operand and result are in halves, whether it is LayerNorm.
const KERNELS: &File = &File {
    name: "norm",
    source: &[include_str!("kernel.cu")],
    constants: &["NORM_V", "NORM_P", "NORM_X", "NORM_Y", "NORM_LAYER"],
    kernels: &[("norm_forward_rows", 0), ("norm_backward_rows", 0), ("norm_backward_whole", 0)],
};

const LAYER_NORM: &str = "layer_norm";

/// Accesses and floats for rows of a width, or `None` where a row does not fit a warp's registers.
fn sizes(width: usize) -> Option<[u8; 2]> {
    match (width, width % 4) {
        (..=1024, 0) => Some([width.div_ceil(128) as u8, 4]),
        (..=256, _) => Some([8, 1]),
        (..=1024, _) => Some([32, 1]),
        _ => None,
    }
}

/// Rows that a block of a backward pass takes: few where there are few, or most of the device would stand idle.
fn rows_per_block(members: usize, rows_per_member: usize) -> usize {
    match rows_per_member {
        _ if members * rows_per_member <= 1024 => 4,
        ..2048 => 8,
        _ => ROWS_PER_SUM,
    }
}

/// The kernel file for a width, and for operand and result in halves.
fn unit(op: &'static str, width: usize, halves: [bool; 2]) -> Result<Unit> {
    let reason = || format!("rows of {width} do not fit a warp's registers on this device, at most 1024 do");
    let [accesses, scalars] = sizes(width).ok_or_else(|| Error::Unsupported { op, reason: reason() })?;
    let [x, y] = halves.map(u8::from);
    Ok(Unit::sized(KERNELS, &[accesses, scalars, x, y, u8::from(op == LAYER_NORM)]))
}

/// A norm's operands: `bias` is there for LayerNorm only.
struct Norm {
    input: Value,
    gain: Param,
    bias: Option<Param>,
    epsilon: f64,
    output: Value,
}

impl Norm {
    fn name(&self) -> &'static str {
        if self.bias.is_some() { LAYER_NORM } else { "rms_norm" }
    }
}

impl From<LayerNorm> for Norm {
    fn from(LayerNorm { input, gain, bias, epsilon, output }: LayerNorm) -> Self {
        Self { input, gain, bias: Some(bias), epsilon, output }
    }
}

impl From<RmsNorm> for Norm {
    fn from(RmsNorm { input, gain, epsilon, output }: RmsNorm) -> Self {
        Self { input, gain, bias: None, epsilon, output }
    }
}

impl Lowering<'_> {
    fn norm_forward(&mut self, position: usize, norm: &Norm) -> Result<()> {
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
        let kernel = (unit(norm.name(), x.width, [x.half, y.half])?, "norm_forward_rows");
        self.launch(norm.name(), kernel, (x.rows.div_ceil(8), 1, 1), 256, 0, arguments)
    }

    fn norm_backward(&mut self, step: &Backward, norm: &Norm) -> Result<()> {
        let x = self.view(norm.input)?;
        let per_block = rows_per_block(self.addresses.members, x.rows_per_member);
        let blocks = x.rows_per_member.div_ceil(per_block);
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
        // Gain, bias and the cotangent's own sums lie side by side; what is not asked for is left alone. They are added up aside,
        // so they have a place of their own.
        let count = self.addresses.members * blocks * 3 * x.width;
        let (partial, _) = self.once(Once::Sums(step.op), count * SCALAR);
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
            per_block,
            x.rows_per_member,
            x.width,
        ];
        let halves = [x.half, self.is_half(norm.output)];
        let name = if behind.is_some() { "norm_backward_whole" } else { "norm_backward_rows" };
        let kernel = (unit(norm.name(), x.width, halves)?, name);
        let shared = (8 * x.width * SCALAR) as u32;
        let label = if norm.bias.is_some() { "layer_norm'" } else { "rms_norm'" };
        self.launch(label, kernel, (blocks, self.addresses.members, 1), 256, shared, arguments)?;
        let columns = if norm.bias.is_some() { 2 * x.width } else { x.width };
        self.aside = [Some(norm.gain), norm.bias, behind]
            .into_iter()
            .flatten()
            .all(|param| self.tools.graph.has_one_reader(param));
        let sums = Partial { blocks, pitch: 3 * x.width, columns };
        self.gather_partials(label, partial, sums, (norm.gain, x.width), norm.bias)?;
        if let Some(bias) = behind {
            let third = partial + (2 * x.width * SCALAR) as u64;
            let sums = Partial { columns: x.width, ..sums };
            self.gather_partials(label, third, sums, (bias, x.width), None)?;
            self.totalled[norm.input.position()] = true;
        }
        self.aside = false;
        Ok(())
    }
}

fn program(g: &mut Graph, width: usize, layer: bool) -> Result<Vec<Value>> {
    let x = grown(g, "x", ROWS, width)?;
    let gain = g.param("gain", &[width], Init::Ones)?;
    let bias = g.param("bias", &[width], Init::Zeros)?;
    let normed = if layer { g.layer_norm(x, gain, bias)? } else { g.rms_norm(x, gain, 1e-6)? };
    let both = g.add(normed, x)?;
    Ok(vec![both])
}

/// In bf16 one norm from halves to halves, and one from halves to what the caller sees.
fn inside(g: &mut Graph, width: usize, layer: bool) -> Result<Vec<Value>> {
    let both = program(g, width, layer)?[0];
    let gain = g.param("last", &[width], Init::Ones)?;
    Ok(vec![followed(g, both)?, g.rms_norm(both, gain, 1e-5)?])
}

impl OnCuda for LayerNorm {
    const CASES: &'static [Case] = &[
        ("layer_norm 128", |g| program(g, 128, true)),
        ("layer_norm 200", |g| program(g, 200, true)),
        ("layer_norm 37", |g| program(g, 37, true)),
        ("layer_norm 900", |g| program(g, 900, true)),
        ("layer_norm 1000 + 3", |g| program(g, 1003, true)),
        ("layer_norm 128, inside", |g| inside(g, 128, true)),
        ("layer_norm 200, inside", |g| inside(g, 200, true)),
    ];

    fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
        vec![vec![self.input], vec![self.output]]
    }

    fn units(&self, program: &Program<'_>) -> Result<Vec<Unit>> {
        let halves = [program.is_half(self.input), program.is_half(self.output)];
        Ok(vec![unit(LAYER_NORM, program.graph.shape(self.input).width, halves)?])
    }

    fn lower(&self, to: &mut Lowering<'_>, at: usize) -> Result<()> {
        to.norm_forward(at, &(*self).into())
    }

    fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
        to.norm_backward(step, &(*self).into())
    }
}

impl OnCuda for RmsNorm {
    const CASES: &'static [Case] = &[
        ("rms_norm 64", |g| program(g, 64, false)),
        ("rms_norm 33", |g| program(g, 33, false)),
        ("rms_norm 576", |g| program(g, 576, false)),
        ("rms_norm 576, inside", |g| inside(g, 576, false)),
    ];

    fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
        vec![vec![self.input], vec![self.output]]
    }

    fn units(&self, program: &Program<'_>) -> Result<Vec<Unit>> {
        let halves = [program.is_half(self.input), program.is_half(self.output)];
        Ok(vec![unit("rms_norm", program.graph.shape(self.input).width, halves)?])
    }

    fn lower(&self, to: &mut Lowering<'_>, at: usize) -> Result<()> {
        to.norm_forward(at, &(*self).into())
    }

    fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
        to.norm_backward(step, &(*self).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_up_to_1024_has_a_norm_that_covers_it() {
        for width in 1..=1024 {
            let Some([accesses, floats]) = sizes(width) else { panic!("no unit for {width}") };
            assert!(32 * usize::from(accesses) * usize::from(floats) >= width, "{width}");
            assert!(width.is_multiple_of(usize::from(floats)), "{width}");
        }
        assert_eq!(sizes(1025), None);
        assert_eq!((sizes(128), sizes(576), sizes(1024)), (Some([1, 4]), Some([5, 4]), Some([8, 4])));
    }
}
