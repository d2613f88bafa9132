//! `factor · input`.

use super::{OnCpu, Operation, Reads, Rows};
use crate::cpu::kernels::scale;
use crate::cpu::{Block, Real, scale_range};
use crate::graph::{Graph, Value};
use crate::plan::Backward;

/// `factor · input`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The operand.
    pub input: Value,
    /// The factor.
    pub factor: f64,
    /// The result.
    pub output: Value,
}

impl Graph {
    /// Adds [`Scale`].
    pub fn scale(&mut self, input: Value, factor: f64) -> Value {
        let output = self.like(input);
        self.push(Scale { input, factor, output });
        output
    }
}

impl Operation for Scale {
    fn name(&self) -> &'static str {
        "scale"
    }

    fn reads(&self) -> Reads {
        Reads::values([self.input])
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.output]
    }

    fn kept(&self) -> Vec<Value> {
        Vec::new()
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

impl OnCpu for Scale {
    fn scratch(&self, _: &Graph) -> usize {
        0
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, _: usize) {
        let shape = block.graph.shape(self.output);
        for rows in block.spans(shape.rows) {
            let at = scale_range(&rows, shape.width);
            let x = &block.value(self.input)[at.clone()];
            scale(x, F::from_f64(self.factor), &mut block.result(self.output)[at], false);
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        block.pass_on(self.input, self.output, F::from_f64(self.factor), &step.writes, 0);
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::Scale;
    use crate::Result;
    use crate::cuda::check::{Case, ROWS, grown};
    use crate::cuda::kernels::Unit;
    use crate::cuda::lower::{Block, Combine, Fused, Lowering, Program, Stage};
    use crate::graph::{Graph, Value};
    use crate::ops::OnCuda;
    use crate::plan::Backward;

    impl OnCuda for Scale {
        const CASES: &'static [Case] = &[("scale", |g| {
            let a = grown(g, "a", ROWS, 10)?;
            Ok(vec![g.scale(a, -1.7), a])
        })];

        fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
            vec![vec![self.input], vec![self.output]]
        }

        fn units(&self, _: &Program<'_>) -> Result<Vec<Unit>> {
            Ok(Vec::new())
        }

        fn lower(&self, to: &mut Lowering<'_>, _: usize) -> Result<()> {
            let (a, out) = (to.view(self.input)?, to.view(self.output)?);
            to.combine("scale", Combine::Scaled, a, a, self.factor, out, false)
        }

        fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
            match step.writes[0] {
                Some(write) => to.pass_on("scale'", self.input, self.output, self.factor, write),
                None => Ok(()),
            }
        }
    }

    impl Fused for Scale {
        fn stages(&self, block: &Block<'_>) -> Result<Vec<Stage>> {
            block.combined(Combine::Scaled, [self.input; 2], self.output, self.factor)
        }
    }
}

#[cfg(test)]
impl super::Law for Scale {
    fn check() {
        use super::law::{check, leaf};
        let mut graph = Graph::new();
        let x = leaf(&mut graph, "x", 3, 4);
        let scaled = graph.scale(x, -1.5);
        let product = graph.mul(scaled, x).unwrap();
        check("scale", &graph, &[product, scaled]);
    }
}
