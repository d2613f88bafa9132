//! A function of each scalar.

use super::{OnCpu, Operation, Reads, Rows};
use crate::cpu::apart::runs;
use crate::cpu::kernels::activate;
use crate::cpu::{Block, Real, scale_range};
use crate::graph::{Graph, Value};
use crate::plan::Backward;

/// A function applied to each scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// The identity.
    None,
    /// `z · Φ(z)` with the exact normal distribution, `Φ(z) = (1 + erf(z/√2)) / 2`; derivative `Φ(z) + z φ(z)`.
    Gelu,
    /// `max(z, 0)`; derivative 1 where `z > 0`, else 0.
    Relu,
    /// `tanh z`; derivative `1 − tanh² z`.
    Tanh,
    /// `z · σ(z)`, `σ(z) = 1 / (1 + e^{−z})` (Swish); derivative `σ + z σ (1 − σ)`.
    Silu,
    /// `z` where `z > 0`, else `e^z − 1`; derivative 1 where `z > 0`, else `e^z`.
    Elu,
    /// `σ(z) = 1 / (1 + e^{−z})`; derivative `σ (1 − σ)`.
    Sigmoid,
}

impl Activation {
    /// Whether its derivative is kept from the forward pass.
    pub(crate) fn keeps_slope(self) -> bool {
        match self {
            Self::Gelu | Self::Silu => true,
            Self::None | Self::Relu | Self::Tanh | Self::Elu | Self::Sigmoid => false,
        }
    }

    /// Whether its derivative follows from its result.
    pub(crate) fn keeps_output(self) -> bool {
        match self {
            Self::Relu | Self::Tanh | Self::Elu | Self::Sigmoid => true,
            Self::None | Self::Gelu | Self::Silu => false,
        }
    }
}

/// `activation(input)` element by element. Saved as in [`super::Linear`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Activate {
    /// The operand.
    pub input: Value,
    /// The function.
    pub activation: Activation,
    /// The result.
    pub output: Value,
}

impl Graph {
    /// Adds [`Activate`].
    pub fn activate(&mut self, input: Value, activation: Activation) -> Value {
        let output = self.like(input);
        self.push(Activate { input, activation, output });
        output
    }
}

impl Operation for Activate {
    fn name(&self) -> &'static str {
        "activate"
    }

    fn reads(&self) -> Reads {
        Reads::values([self.input])
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.output]
    }

    fn kept(&self) -> Vec<Value> {
        self.activation.keeps_output().then_some(self.output).into_iter().collect()
    }

    fn saved(&self, graph: &Graph) -> usize {
        if self.activation.keeps_slope() { graph.shape(self.output).size() } else { 0 }
    }

    fn rows(&self) -> Rows {
        Rows::Apart
    }

    fn passes_through(&self, _: usize) -> bool {
        false
    }
}

impl OnCpu for Activate {
    fn scratch(&self, _: &Graph) -> usize {
        0
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, at: usize) {
        let saved = block.saved(at);
        let keep = !saved.is_empty();
        let shape = block.graph.shape(self.output);
        if block.extent.row.is_none() && !keep && block.apart(self.input).leaves_out() {
            let apart = std::mem::take(block.apart(self.input));
            let (x, y) = (block.value(self.input), block.result(self.output));
            for run in runs(apart.rows()) {
                let at = scale_range(&run, shape.width);
                y[at.clone()].copy_from_slice(&x[at.clone()]);
                activate(&mut y[at], None, self.activation, None);
            }
            apart.fill(y);
            block.apart(self.output).become_like(&apart);
            *block.apart(self.input) = apart;
            return;
        }
        for rows in block.spans(shape.rows) {
            let at = scale_range(&rows, shape.width);
            let y = &mut block.result(self.output)[at.clone()];
            y.copy_from_slice(&block.value(self.input)[at.clone()]);
            activate(y, None, self.activation, keep.then(|| &mut saved[at]));
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        block.activation_backward(self.activation, self.output, block.saved(step.op));
        block.pass_on(self.input, self.output, F::ONE, &step.writes, 0);
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::{Activate, Activation};
    use crate::Result;
    use crate::cuda::check::{Case, ROWS, followed, grown};
    use crate::cuda::kernels::{ROWWISE, Unit};
    use crate::cuda::lower::{Block, Combine, Fused, Lowering, Program, Stage};
    use crate::cuda::tape::arguments;
    use crate::graph::{Graph, Value};
    use crate::ops::OnCuda;
    use crate::plan::{Backward, Write};

    impl Activation {
        /// Its code in the kernels.
        pub(crate) fn code(self) -> usize {
            match self {
                Self::None => 0,
                Self::Gelu => 1,
                Self::Relu => 2,
                Self::Tanh => 3,
                Self::Silu => 4,
                Self::Elu => 5,
                Self::Sigmoid => 6,
            }
        }
    }

    impl OnCuda for Activate {
        const CASES: &'static [Case] = &[
            ("activate", |g| {
                let x = grown(g, "x", ROWS, 10)?;
                use Activation::{Elu, Gelu, None, Sigmoid, Silu, Tanh};
                let kinds = [None, Gelu, Tanh, Silu, Elu, Sigmoid];
                Ok(kinds.into_iter().map(|activation| g.activate(x, activation)).collect())
            }),
            ("activate, inside", |g| {
                let x = grown(g, "x", ROWS, 16)?;
                use Activation::{Elu, Gelu, None, Sigmoid, Silu, Tanh};
                let kinds = [None, Gelu, Tanh, Silu, Elu, Sigmoid];
                let values = kinds.map(|activation| g.activate(x, activation));
                let last = g.activate(x, Silu);
                values.into_iter().map(|value| followed(g, value)).chain([Ok(last)]).collect()
            }),
            ("activate relu", |g| {
                let x = grown(g, "x", ROWS, 10)?;
                Ok(vec![g.activate(x, Activation::Relu)])
            }),
        ];

        fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
            vec![vec![self.input], vec![self.output]]
        }

        fn units(&self, _: &Program<'_>) -> Result<Vec<Unit>> {
            Ok(Vec::new())
        }

        fn lower(&self, to: &mut Lowering<'_>, at: usize) -> Result<()> {
            let (x, out) = (to.view(self.input)?, to.view(self.output)?);
            let saved = if self.activation.keeps_slope() { to.saved(at) } else { None };
            let none: Option<u64> = None;
            let arguments = arguments![
                self.activation.code(),
                x.at,
                x.pitch,
                none,
                0_usize,
                out.at,
                saved,
                out.pitch,
                x.rows,
                x.rows_per_member,
                x.width,
                x.half,
                out.half
            ];
            to.per_entry("activate", (to.mixed(ROWWISE), "finish"), x.rows, x.width, arguments)
        }

        fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
            let Self { input, activation, output } = *self;
            let Some(write) = step.writes[0] else { return Ok(()) };
            let (from, into) = (to.cotangent_view(output)?, to.cotangent_view(input)?);
            let kept = match (activation.code(), activation.keeps_slope()) {
                // The identity's slope is 1, which scaling passes on.
                (0, _) => return to.pass_on("activate'", input, output, 1.0, write),
                (_, true) => to.must_saved(step.op)?,
                (_, false) => to.base(output)?,
            };
            let arguments = arguments![
                activation.code(),
                from.at,
                kept,
                into.at,
                write == Write::Add,
                from.rows,
                from.width,
                from.half,
                into.half
            ];
            let kernel = (to.mixed(ROWWISE), "activate_backward");
            to.per_entry("activate'", kernel, from.rows, from.width, arguments)
        }
    }

    impl Fused for Activate {
        fn stages(&self, block: &Block<'_>) -> Result<Vec<Stage>> {
            let (shape, from) = (block.shape(self.output), block.value(self.input)?);
            let out = (block.value(self.output)?, self.activation.code());
            Ok(vec![Stage::combining(Combine::Scaled, [from; 2], out, shape, (shape.width, 0), 1.0)])
        }
    }
}

#[cfg(test)]
impl super::Law for Activate {
    fn check() {
        use super::law::{check, leaf};
        use Activation::{Elu, Gelu, None, Relu, Sigmoid, Silu, Tanh};
        let mut graph = Graph::new();
        let x = leaf(&mut graph, "x", 3, 4);
        let outputs: Vec<Value> = [Gelu, Relu, Tanh, Silu, Elu, Sigmoid, None]
            .map(|activation| graph.activate(x, activation))
            .into();
        check("activate", &graph, &outputs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_units_and_sigmoids() {
        // e^{ln ½} − 1 = −½, and above 0 nothing changes; σ(0) = ½, σ(ln 3) = ¾.
        let mut z = [0.5_f64.ln(), 2.0, 0.0];
        activate(&mut z, None, Activation::Elu, None);
        assert!((z[0] + 0.5).abs() < 1e-15 && z[1..] == [2.0, 0.0]);
        let mut z = [0.0, 3.0_f64.ln()];
        activate(&mut z, None, Activation::Sigmoid, None);
        assert!(z[0] == 0.5 && (z[1] - 0.75).abs() < 1e-15);
    }
}
