//! A gated product, as decoders use it between their two projections.

use super::{OnCpu, Operation, Reads, Rows};
use crate::Result;
use crate::cpu::{Block, Real, accumulate, scale_range};
use crate::graph::{Graph, Value};
use crate::plan::Backward;
use niwaki_simd::vectorised;

/// `output = gate · σ(gate) · up` element by element, equal shapes (SwiGLU), `σ(z) = 1 / (1 + e^{−z})`.
///
/// Backward, with `s = gate · σ(gate)` and `s'` its derivative: `d gate += d output · up · s'`, `d up += d output · s`, both
/// recomputed from the operands. Saved: nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Swiglu {
    /// What decides how much passes.
    pub gate: Value,
    /// What passes.
    pub up: Value,
    /// The result.
    pub output: Value,
}

impl Graph {
    /// Adds [`Swiglu`].
    ///
    /// # Errors
    /// If the shapes differ.
    pub fn swiglu(&mut self, gate: Value, up: Value) -> Result<Value> {
        self.same("swiglu", up, self.shape(gate))?;
        let output = self.like(gate);
        self.push(Swiglu { gate, up, output });
        Ok(output)
    }
}

impl Operation for Swiglu {
    fn name(&self) -> &'static str {
        "swiglu"
    }

    fn reads(&self) -> Reads {
        Reads::values([self.gate, self.up])
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.output]
    }

    fn kept(&self) -> Vec<Value> {
        vec![self.gate, self.up]
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
        let shape = block.graph.shape(self.output);
        for rows in block.spans(shape.rows) {
            let at = scale_range(&rows, shape.width);
            let (gate, up) = (&block.value(self.gate)[at.clone()], &block.value(self.up)[at.clone()]);
            gated(gate, up, &mut block.result(self.output)[at]);
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        let (gate, up, d) = (block.value(self.gate), block.value(self.up), block.pulled(self.output));
        if let Some(add) = accumulate(&step.writes, 0) {
            gate_backward(gate, up, d, block.cotangent(self.gate), add);
        }
        if let Some(add) = accumulate(&step.writes, 1) {
            up_backward(gate, d, block.cotangent(self.up), add);
        }
    }
}

vectorised! {
    fn gated<F: Real>(gate: &[F], up: &[F], out: &mut [F]) {
        for ((out, &gate), &up) in out.iter_mut().zip(gate).zip(up) {
            *out = gate.silu().0 * up;
        }
    }

    fn gate_backward<F: Real>(gate: &[F], up: &[F], d: &[F], d_gate: &mut [F], accumulate: bool) {
        for (((d_gate, &gate), &up), &d) in d_gate.iter_mut().zip(gate).zip(up).zip(d) {
            let part = d * up * gate.silu().1;
            *d_gate = if accumulate { *d_gate + part } else { part };
        }
    }

    fn up_backward<F: Real>(gate: &[F], d: &[F], d_up: &mut [F], accumulate: bool) {
        for ((d_up, &gate), &d) in d_up.iter_mut().zip(gate).zip(d) {
            let part = d * gate.silu().0;
            *d_up = if accumulate { *d_up + part } else { part };
        }
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::Swiglu;
    use crate::Result;
    use crate::cuda::check::{Case, ROWS, grown};
    use crate::cuda::kernels::{ENTRIES, File, Unit};
    use crate::cuda::lower::{Lowering, Program};
    use crate::cuda::tape::arguments;
    use crate::ops::OnCuda;
    use crate::plan::{Backward, Write};

    const KERNELS: &File = &File {
        name: "swiglu",
        source: &[ENTRIES, include_str!("swiglu.cu")],
        constants: &[],
        kernels: &[("swiglu_forward", 0), ("swiglu_backward", 0)],
    };

    const UNIT: Unit = Unit::plain(KERNELS);

    impl OnCuda for Swiglu {
        const CASES: &'static [Case] = &[("swiglu", |g| {
            let gate = grown(g, "gate", ROWS, 10)?;
            let up = grown(g, "up", ROWS, 10)?;
            let once = g.swiglu(gate, up)?;
            // The same value twice, and operands that are used again: cotangents must add up.
            Ok(vec![once, g.swiglu(gate, gate)?, up])
        })];

        fn units(&self, _: &Program<'_>) -> Result<Vec<Unit>> {
            Ok(vec![UNIT])
        }

        fn lower(&self, to: &mut Lowering<'_>, _: usize) -> Result<()> {
            let (gate, up, out) = (to.view(self.gate)?, to.view(self.up)?, to.view(self.output)?);
            let arguments =
                arguments![gate.at, gate.pitch, up.at, up.pitch, out.at, out.pitch, out.rows, out.width];
            to.per_entry("swiglu", (UNIT, "swiglu_forward"), out.rows, out.width, arguments)
        }

        fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
            // One operand after the other, so that one value may be both.
            for (place, operand) in [self.gate, self.up].into_iter().enumerate() {
                let Some(write) = step.writes[place] else { continue };
                let (gate, up, d) = (to.base(self.gate)?, to.base(self.up)?, to.cotangent_view(self.output)?);
                let into = to.cotangent(operand)?;
                let arguments = arguments![gate, up, d.at, into, place, write == Write::Add, d.rows, d.width];
                to.per_entry("swiglu'", (UNIT, "swiglu_backward"), d.rows, d.width, arguments)?;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
impl super::Law for Swiglu {
    fn check() {
        use super::law::{check, leaf};
        let mut graph = Graph::new();
        let (gate, up) = (leaf(&mut graph, "gate", 3, 19), leaf(&mut graph, "up", 3, 19));
        let once = graph.swiglu(gate, up).unwrap();
        let twice = graph.swiglu(once, once).unwrap();
        check("swiglu", &graph, &[twice, once, up]);
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
        let mut d = [1.0_f64];
        gate_backward(&[0.0], &[5.0], &[2.0], &mut d, true);
        assert_eq!(d, [6.0]);
    }
}
