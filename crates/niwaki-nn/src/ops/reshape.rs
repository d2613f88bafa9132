//! The same scalars with other rows.

use super::{OnCpu, Operation, Reads, Rows};
use crate::cpu::{Block, Real};
use crate::graph::{Graph, Value};
use crate::plan::Backward;
use crate::{Error, Result};

/// `[r · k, w]` as `[r, k · w]` or the other way round: row-major, the same scalars in the same order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reshape {
    /// The operand.
    pub input: Value,
    /// The result.
    pub output: Value,
}

impl Graph {
    /// Adds [`Reshape`] to so many rows.
    ///
    /// # Errors
    /// If the operand's scalars do not fill that many rows.
    pub fn reshape(&mut self, input: Value, rows: usize) -> Result<Value> {
        let size = self.shape(input).size();
        if rows == 0 || !size.is_multiple_of(rows) {
            let reason = format!("{size} scalars do not fill {rows} rows");
            return Err(Error::Unsupported { op: "reshape", reason });
        }
        let output = self.value(rows, size / rows);
        self.push(Reshape { input, output });
        Ok(output)
    }
}

impl Operation for Reshape {
    fn name(&self) -> &'static str {
        "reshape"
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
        Rows::Mixed
    }

    fn passes_through(&self, _: usize) -> bool {
        true
    }
}

impl OnCpu for Reshape {
    fn scratch(&self, _: &Graph) -> usize {
        0
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, _: usize) {
        block.result(self.output).copy_from_slice(block.value(self.input));
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        block.pass_on(self.input, self.output, F::ONE, &step.writes, 0);
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::Reshape;
    use crate::Result;
    use crate::cuda::check::{Case, ROWS, followed, grown};
    use crate::cuda::kernels::Unit;
    use crate::cuda::lower::{Block, Combine, Fused, Kind, Lowering, Program, Stage, View};
    use crate::graph::{Graph, Shape, Value};
    use crate::ops::OnCuda;
    use crate::plan::{Backward, Write};

    impl OnCuda for Reshape {
        const CASES: &'static [Case] = &[
            ("reshape", |g| {
                let x = grown(g, "x", ROWS, 10)?;
                let wide = g.reshape(x, ROWS / 2)?;
                // The operand is used again, and one result is reshaped back: cotangents must add up.
                let back = g.reshape(wide, 2 * ROWS)?;
                Ok(vec![g.mul(back, back)?, wide, x])
            }),
            ("reshape, inside", |g| {
                let x = grown(g, "x", ROWS, 16)?;
                let wide = g.reshape(x, ROWS / 2)?;
                let back = g.reshape(wide, 2 * ROWS)?;
                Ok(vec![followed(g, back)?, followed(g, wide)?, followed(g, x)?])
            }),
        ];

        fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
            vec![vec![self.input], vec![self.output]]
        }

        fn units(&self, _: &Program<'_>) -> Result<Vec<Unit>> {
            Ok(Vec::new())
        }

        fn lower(&self, to: &mut Lowering<'_>, _: usize) -> Result<()> {
            let (x, out) = (to.view(self.input)?, to.view(self.output)?);
            let out = View { at: out.at, ..x };
            to.combine("reshape", Combine::Scaled, x, x, 1.0, out, false)
        }

        fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
            let Some(write @ (Write::Set | Write::Add)) = step.writes[0] else { return Ok(()) };
            let into = to.cotangent_view(self.input)?;
            let from = View { at: to.cotangent(self.output)?, ..into };
            to.combine("reshape'", Combine::Scaled, from, from, 1.0, into, write == Write::Add)
        }
    }

    impl Fused for Reshape {
        fn stages(&self, block: &Block<'_>) -> Result<Vec<Stage>> {
            let (Shape { rows, width }, other) = (block.shape(self.input), block.shape(self.output).width);
            let stage =
                Stage::new(Kind::Reshape).with(&[block.value(self.input)?, block.value(self.output)?]);
            Ok(vec![stage.with(&[rows, width, other])])
        }
    }
}

#[cfg(test)]
impl super::Law for Reshape {
    fn check() {
        use super::law::{check, leaf};
        let mut graph = Graph::new();
        let x = leaf(&mut graph, "x", 6, 2);
        let wide = graph.reshape(x, 2).unwrap();
        let square = graph.mul(wide, wide).unwrap();
        let tall = graph.reshape(square, 12).unwrap();
        check("reshape", &graph, &[tall, x]);
        assert_eq!((graph.shape(tall).rows, graph.shape(tall).width), (12, 1));
        assert!(graph.reshape(x, 5).is_err() && graph.reshape(x, 0).is_err());
    }
}
