//! `left · right`, element by element.

use super::{OnCpu, Operation, Reads, Rows};
use crate::Result;
use crate::cpu::kernels::multiply;
use crate::cpu::{Block, Real, accumulate, scale_range};
use crate::graph::{Graph, Value};
use crate::plan::Backward;

/// `left · right` element by element, equal shapes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mul {
    /// An operand.
    pub left: Value,
    /// An operand.
    pub right: Value,
    /// The result.
    pub output: Value,
}

impl Graph {
    /// Adds [`Mul`].
    ///
    /// # Errors
    /// If the shapes differ.
    pub fn mul(&mut self, left: Value, right: Value) -> Result<Value> {
        self.same("mul", right, self.shape(left))?;
        let output = self.like(left);
        self.push(Mul { left, right, output });
        Ok(output)
    }
}

impl Operation for Mul {
    fn name(&self) -> &'static str {
        "mul"
    }

    fn reads(&self) -> Reads {
        Reads::values([self.left, self.right])
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.output]
    }

    fn kept(&self) -> Vec<Value> {
        vec![self.left, self.right]
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

impl OnCpu for Mul {
    fn scratch(&self, _: &Graph) -> usize {
        0
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, _: usize) {
        let shape = block.graph.shape(self.output);
        for rows in block.spans(shape.rows) {
            let at = scale_range(&rows, shape.width);
            let (a, b) = (&block.value(self.left)[at.clone()], &block.value(self.right)[at.clone()]);
            multiply(a, b, &mut block.result(self.output)[at], false);
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        let Self { left, right, output } = *self;
        for (place, (value, other)) in [(left, right), (right, left)].into_iter().enumerate() {
            if let Some(add) = accumulate(&step.writes, place) {
                multiply(block.pulled(output), block.value(other), block.cotangent(value), add);
            }
        }
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::Mul;
    use crate::Result;
    use crate::cuda::check::{Case, ROWS, grown};
    use crate::cuda::kernels::Unit;
    use crate::cuda::lower::{Block, Combine, Fused, Lowering, Program, Stage};
    use crate::graph::{Graph, Value};
    use crate::ops::OnCuda;
    use crate::plan::{Backward, Write};

    impl OnCuda for Mul {
        const CASES: &'static [Case] = &[("mul", |g| {
            let a = grown(g, "a", ROWS, 10)?;
            let b = grown(g, "b", ROWS, 10)?;
            let product = g.mul(a, b)?;
            Ok(vec![product, g.mul(b, b)?])
        })];

        fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
            vec![vec![self.left], vec![self.right], vec![self.output]]
        }

        fn units(&self, _: &Program<'_>) -> Result<Vec<Unit>> {
            Ok(Vec::new())
        }

        fn lower(&self, to: &mut Lowering<'_>, _: usize) -> Result<()> {
            let (a, b, out) = (to.view(self.left)?, to.view(self.right)?, to.view(self.output)?);
            to.combine("mul", Combine::Product, a, b, 1.0, out, false)
        }

        fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
            let Self { left, right, output } = *self;
            let from = to.cotangent_view(output)?;
            for (operand, other, write) in [(left, right, step.writes[0]), (right, left, step.writes[1])] {
                if let Some(write) = write {
                    let (into, factor) = (to.cotangent_view(operand)?, to.view(other)?);
                    to.combine("mul'", Combine::Product, from, factor, 1.0, into, write == Write::Add)?;
                }
            }
            Ok(())
        }
    }

    impl Fused for Mul {
        fn stages(&self, block: &Block<'_>) -> Result<Vec<Stage>> {
            block.combined(Combine::Product, [self.left, self.right], self.output, 1.0)
        }
    }
}

#[cfg(test)]
impl super::Law for Mul {
    fn check() {
        use super::law::{check, leaf};
        let mut graph = Graph::new();
        let (x, y) = (leaf(&mut graph, "x", 3, 4), leaf(&mut graph, "y", 3, 4));
        let product = graph.mul(x, y).unwrap();
        let square = graph.mul(x, x).unwrap();
        check("mul", &graph, &[product, square]);
    }
}
