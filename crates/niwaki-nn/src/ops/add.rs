//! `left + right`.

use super::{OnCpu, Operation, Reads, Rows};
use crate::Result;
use crate::cpu::kernels::add;
use crate::cpu::{Block, Real, scale_range};
use crate::graph::{Graph, Value};
use crate::plan::Backward;

/// `left + right`, equal shapes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Add {
    /// An operand.
    pub left: Value,
    /// An operand.
    pub right: Value,
    /// The result.
    pub output: Value,
}

impl Graph {
    /// Adds [`Add`].
    ///
    /// # Errors
    /// If the shapes differ.
    pub fn add(&mut self, left: Value, right: Value) -> Result<Value> {
        self.same("add", right, self.shape(left))?;
        let output = self.like(left);
        self.push(Add { left, right, output });
        Ok(output)
    }
}

impl Operation for Add {
    fn name(&self) -> &'static str {
        "add"
    }

    fn reads(&self) -> Reads {
        Reads::values([self.left, self.right])
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

    fn passes_through(&self, place: usize) -> bool {
        place == 0 && self.left != self.right
    }
}

impl OnCpu for Add {
    fn scratch(&self, _: &Graph) -> usize {
        0
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, _: usize) {
        let shape = block.graph.shape(self.output);
        for rows in block.spans(shape.rows) {
            let at = scale_range(&rows, shape.width);
            let (a, b) = (&block.value(self.left)[at.clone()], &block.value(self.right)[at.clone()]);
            add(a, b, &mut block.result(self.output)[at]);
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        for (place, value) in [self.left, self.right].into_iter().enumerate() {
            block.pass_on(value, self.output, F::ONE, &step.writes, place);
        }
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::Add;
    use crate::Result;
    use crate::cuda::check::{Case, ROWS, grown};
    use crate::cuda::kernels::Unit;
    use crate::cuda::lower::{Block, Combine, Fused, Lowering, Program, Stage};
    use crate::graph::{Graph, Value};
    use crate::ops::OnCuda;
    use crate::plan::Backward;

    impl OnCuda for Add {
        const CASES: &'static [Case] = &[("add", |g| {
            let a = grown(g, "a", ROWS, 10)?;
            let b = grown(g, "b", ROWS, 10)?;
            let twice = g.add(a, a)?;
            Ok(vec![g.add(twice, b)?])
        })];

        fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
            vec![vec![self.left], vec![self.right], vec![self.output]]
        }

        fn units(&self, _: &Program<'_>) -> Result<Vec<Unit>> {
            Ok(Vec::new())
        }

        fn lower(&self, to: &mut Lowering<'_>, _: usize) -> Result<()> {
            let Self { left, right, output } = *self;
            if to.embedding_sum(left, right, output)? {
                return Ok(());
            }
            let (a, b, out) = (to.view(left)?, to.view(right)?, to.view(output)?);
            to.combine("add", Combine::Sum, a, b, 1.0, out, false)
        }

        fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
            if to.summed[self.left.position()].is_some() {
                return Ok(());
            }
            for (operand, write) in [(self.left, step.writes[0]), (self.right, step.writes[1])] {
                if let Some(write) = write {
                    to.pass_on("add'", operand, self.output, 1.0, write)?;
                }
            }
            Ok(())
        }
    }

    impl Fused for Add {
        fn stages(&self, block: &Block<'_>) -> Result<Vec<Stage>> {
            block.combined(Combine::Sum, [self.left, self.right], self.output, 1.0)
        }
    }
}

#[cfg(test)]
impl super::Law for Add {
    fn check() {
        use super::law::{check, leaf};
        let mut graph = Graph::new();
        let (x, y) = (leaf(&mut graph, "x", 3, 4), leaf(&mut graph, "y", 3, 4));
        let sum = graph.add(x, y).unwrap();
        let double = graph.add(sum, sum).unwrap();
        let square = graph.mul(double, x).unwrap();
        check("add", &graph, &[square, sum]);
    }
}
