//! A gated product, as decoders use it between their two projections.

use super::{OnCpu, Operation, Reads, Rows};
use crate::cpu::{Block, Real, accumulate, scale_range};
use crate::graph::{Graph, Shape, Value};
use crate::plan::Backward;
use crate::{Error, Result};
use niwaki_simd::vectorised;

/// `output = gate · σ(gate) · up` element by element (SwiGLU), `σ(z) = 1 / (1 + e^{−z})`; the first half of the input's columns is
/// the gate, the second what passes, so that one product makes both.
///
/// Backward, with `s = gate · σ(gate)` and `s'` its derivative: `d gate += d output · up · s'`, `d up += d output · s`, both
/// recomputed from the operand. Saved: nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Swiglu {
    /// `[rows, 2 width]`: what decides how much passes, and what passes.
    pub input: Value,
    /// `[rows, width]`.
    pub output: Value,
}

impl Graph {
    /// Adds [`Swiglu`].
    ///
    /// # Errors
    /// If the input has no two halves.
    pub fn swiglu(&mut self, input: Value) -> Result<Value> {
        let Shape { rows, width } = self.shape(input);
        if !width.is_multiple_of(2) {
            let reason = format!("{width} columns have no two halves");
            return Err(Error::Unsupported { op: "swiglu", reason });
        }
        let output = self.value(rows, width / 2);
        self.push(Swiglu { input, output });
        Ok(output)
    }
}

impl Operation for Swiglu {
    fn name(&self) -> &'static str {
        "swiglu"
    }

    fn reads(&self) -> Reads {
        Reads::values([self.input])
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.output]
    }

    fn kept(&self) -> Vec<Value> {
        vec![self.input]
    }

    fn saved(&self, _: &Graph) -> usize {
        0
    }

    fn rows(&self) -> Rows {
        Rows::Apart
    }

    fn passes_through(&self, _: usize) -> bool {
        false
    }
}

impl OnCpu for Swiglu {
    fn scratch(&self, _: &Graph) -> usize {
        0
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, _: usize) {
        let Shape { rows, width } = block.graph.shape(self.output);
        for rows in block.spans(rows) {
            let x = &block.value(self.input)[scale_range(&rows, 2 * width)];
            let y = &mut block.result(self.output)[scale_range(&rows, width)];
            for (x, y) in x.chunks_exact(2 * width).zip(y.chunks_exact_mut(width)) {
                let (gate, up) = x.split_at(width);
                gated(gate, up, y);
            }
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        let Some(add) = accumulate(&step.writes, 0) else { return };
        let width = block.graph.shape(self.output).width;
        let (x, d, dx) = (block.value(self.input), block.pulled(self.output), block.cotangent(self.input));
        let rows = x.chunks_exact(2 * width).zip(d.chunks_exact(width)).zip(dx.chunks_exact_mut(2 * width));
        for ((x, d), dx) in rows {
            let ((gate, up), (d_gate, d_up)) = (x.split_at(width), dx.split_at_mut(width));
            gated_backward(gate, up, d, d_gate, d_up, add);
        }
    }
}

vectorised! {
    fn gated<F: Real>(gate: &[F], up: &[F], out: &mut [F]) {
        for ((out, &gate), &up) in out.iter_mut().zip(gate).zip(up) {
            *out = gate.silu().0 * up;
        }
    }

    fn gated_backward<F: Real>(gate: &[F], up: &[F], d: &[F], d_gate: &mut [F], d_up: &mut [F], accumulate: bool) {
        let operands = gate.iter().zip(up).zip(d);
        for (((&gate, &up), &d), (d_gate, d_up)) in operands.zip(d_gate.iter_mut().zip(d_up)) {
            let (passed, slope) = gate.silu();
            let (first, second) = (d * up * slope, d * passed);
            *d_gate = if accumulate { *d_gate + first } else { first };
            *d_up = if accumulate { *d_up + second } else { second };
        }
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::Swiglu;
    use crate::Result;
    use crate::cuda::check::{Case, ROWS, followed, grown};
    use crate::cuda::kernels::{ENTRIES, File, MIXED, Unit};
    use crate::cuda::lower::{Lowering, Program};
    use crate::cuda::tape::arguments;
    use crate::graph::{Graph, Value};
    use crate::ops::OnCuda;
    use crate::plan::{Backward, Write};

    const KERNELS: &File = &File {
        name: "swiglu",
        source: &[ENTRIES, include_str!("swiglu.cu")],
        constants: MIXED,
        kernels: &[
            ("swiglu_forward", 0),
            ("swiglu_backward", 0),
            ("swiglu_forward_8", 0),
            ("swiglu_backward_8", 0),
        ],
    };

    /// The kernel and the entries of a row: halves go by eight.
    fn grouped(halves: bool, [one, eight]: [&'static str; 2], width: usize) -> (&'static str, usize) {
        if halves { (eight, width / 8) } else { (one, width) }
    }

    impl OnCuda for Swiglu {
        const CASES: &'static [Case] = &[
            ("swiglu", |g| {
                let x = grown(g, "x", ROWS, 20)?;
                // The operand is used again: cotangents must add up.
                Ok(vec![g.swiglu(x)?, x])
            }),
            ("swiglu, inside", |g| {
                let x = grown(g, "x", ROWS, 48)?;
                let (once, other) = (g.swiglu(x)?, g.swiglu(x)?);
                Ok(vec![followed(g, once)?, other, followed(g, x)?])
            }),
        ];

        fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
            vec![vec![self.input], vec![self.output]]
        }

        fn units(&self, program: &Program<'_>) -> Result<Vec<Unit>> {
            Ok(vec![Unit::mixed(KERNELS, program.precision)])
        }

        fn lower(&self, to: &mut Lowering<'_>, _: usize) -> Result<()> {
            let (x, out) = (to.view(self.input)?, to.view(self.output)?);
            let (name, width) =
                grouped(x.half && out.half, ["swiglu_forward", "swiglu_forward_8"], out.width);
            let arguments = arguments![x.at, x.pitch, out.at, out.pitch, out.rows, width, x.half, out.half];
            to.per_entry("swiglu", (to.mixed(KERNELS), name), out.rows, width, arguments)
        }

        fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
            let Some(write) = step.writes[0] else { return Ok(()) };
            let (x, d, into) =
                (to.view(self.input)?, to.cotangent_view(self.output)?, to.cotangent(self.input)?);
            let (name, width) = grouped(x.half && d.half, ["swiglu_backward", "swiglu_backward_8"], d.width);
            let arguments = arguments![x.at, d.at, into, write == Write::Add, d.rows, width, x.half, d.half];
            to.per_entry("swiglu'", (to.mixed(KERNELS), name), d.rows, width, arguments)
        }
    }
}

#[cfg(test)]
impl super::Law for Swiglu {
    fn check() {
        use super::law::{check, leaf};
        let mut graph = Graph::new();
        let x = leaf(&mut graph, "x", 3, 38);
        let once = graph.swiglu(x).unwrap();
        let both = graph.concat(&[once, once]).unwrap();
        let twice = graph.swiglu(both).unwrap();
        check("swiglu", &graph, &[twice, once, x]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_open_gate() {
        // σ(0) = 1/2: the gate at 0 lets nothing through, and its slope is 1/2. At ln 3, σ = 3/4.
        let mut out = [0.0_f64; 2];
        gated(&[0.0, 3.0_f64.ln()], &[5.0, 4.0], &mut out);
        assert_eq!(out[0], 0.0);
        assert!((out[1] - 3.0 * 3.0_f64.ln()).abs() < 1e-14);
        let (mut d_gate, mut d_up) = ([1.0_f64], [1.0]);
        gated_backward(&[0.0], &[5.0], &[2.0], &mut d_gate, &mut d_up, true);
        assert_eq!((d_gate, d_up), ([6.0], [1.0]));
    }
}
