//! Values side by side.

use super::{OnCpu, Operation, Reads, Rows};
use crate::cpu::kernels::scale;
use crate::cpu::rows::copy_columns;
use crate::cpu::{Block, Real, accumulate, scale_range};
use crate::graph::{Graph, Value, expect};
use crate::plan::Backward;
use crate::{Error, Result};

/// The operands side by side: equal rows, widths add up.
#[derive(Clone, Debug, PartialEq)]
pub struct Concat {
    /// The operands.
    pub inputs: Vec<Value>,
    /// The result.
    pub output: Value,
}

impl Graph {
    /// Adds [`Concat`].
    ///
    /// # Errors
    /// If there is no operand, or their rows differ.
    pub fn concat(&mut self, inputs: &[Value]) -> Result<Value> {
        let Some(&first) = inputs.first() else {
            return Err(Error::Unsupported { op: "concat", reason: "no operand".to_owned() });
        };
        for &input in inputs {
            expect("concat", "rows", self.shape(first).rows, self.shape(input).rows)?;
        }
        let width = inputs.iter().map(|&input| self.shape(input).width).sum();
        let output = self.value(self.shape(first).rows, width);
        self.push(Concat { inputs: inputs.to_vec(), output });
        Ok(output)
    }
}

impl Operation for Concat {
    fn name(&self) -> &'static str {
        "concat"
    }

    fn reads(&self) -> Reads {
        Reads::values(self.inputs.clone())
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

impl OnCpu for Concat {
    fn scratch(&self, _: &Graph) -> usize {
        0
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, _: usize) {
        let shape = block.graph.shape(self.output);
        let out = block.result(self.output);
        let mut start = 0;
        for &input in &self.inputs {
            let width = block.graph.shape(input).width;
            let x = block.value(input);
            for rows in block.spans(shape.rows) {
                let (from, to) = (scale_range(&rows, width), scale_range(&rows, shape.width));
                copy_columns(&x[from], width, &mut out[to], shape.width, start);
            }
            start += width;
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        let whole = block.graph.shape(self.output).width;
        let mut start = 0;
        for (place, &input) in self.inputs.iter().enumerate() {
            let width = block.graph.shape(input).width;
            if let Some(add) = accumulate(&step.writes, place) {
                let d = block.pulled(self.output).chunks_exact(whole);
                for (d, dx) in d.zip(block.cotangent(input).chunks_exact_mut(width)) {
                    scale(&d[start..start + width], F::ONE, dx, add);
                }
            }
            start += width;
        }
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::Concat;
    use crate::Result;
    use crate::cuda::check::{Case, ROWS, followed, grown};
    use crate::cuda::kernels::Unit;
    use crate::cuda::lower::{Block, Combine, Fused, Lowering, Program, Stage, View};
    use crate::graph::{Graph, Value};
    use crate::ops::OnCuda;
    use crate::plan::{Backward, Write};

    fn program(g: &mut Graph, width: usize) -> Result<Value> {
        let a = grown(g, "a", ROWS, width)?;
        let b = grown(g, "b", ROWS, width)?;
        let twice = g.add(a, a)?;
        let product = g.mul(a, b)?;
        let square = g.mul(b, b)?;
        let scaled = g.scale(product, -1.7);
        let sum = g.add(twice, scaled)?;
        g.concat(&[sum, b, square, sum])
    }

    impl OnCuda for Concat {
        const CASES: &'static [Case] = &[
            ("concat, add, mul, scale", |g| Ok(vec![program(g, 10)?])),
            ("concat, add, mul, scale, inside", |g| {
                let wide = program(g, 16)?;
                Ok(vec![followed(g, wide)?])
            }),
        ];

        fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
            self.inputs.iter().chain([&self.output]).map(|&value| vec![value]).collect()
        }

        fn units(&self, _: &Program<'_>) -> Result<Vec<Unit>> {
            Ok(Vec::new())
        }

        fn lower(&self, to: &mut Lowering<'_>, _: usize) -> Result<()> {
            let out = to.view(self.output)?;
            let mut start = 0;
            for &input in &self.inputs {
                let x = to.view(input)?;
                to.combine("concat", Combine::Scaled, x, x, 1.0, out.at_column(start), false)?;
                start += x.width;
            }
            Ok(())
        }

        fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
            let from = to.cotangent_view(self.output)?;
            let mut start = 0;
            for (&input, write) in self.inputs.iter().zip(&step.writes) {
                let width = to.shape(input).width;
                if let Some(write) = write {
                    let into = to.cotangent_view(input)?;
                    let part = View { width, ..from.at_column(start) };
                    to.combine("concat'", Combine::Scaled, part, part, 1.0, into, *write == Write::Add)?;
                }
                start += width;
            }
            Ok(())
        }
    }

    impl Fused for Concat {
        fn stages(&self, block: &Block<'_>) -> Result<Vec<Stage>> {
            let (out, width) = (block.result(self.output)?, block.shape(self.output).width);
            let mut column = 0;
            let part = |&input: &Value| {
                let (shape, from, start) = (block.shape(input), block.value(input)?, column);
                column += shape.width;
                Ok(Stage::combining(Combine::Scaled, [from; 2], out, shape, (width, start), 1.0))
            };
            self.inputs.iter().map(part).collect()
        }
    }
}

#[cfg(test)]
impl super::Law for Concat {
    fn check() {
        use super::law::{check, leaf};
        let mut graph = Graph::new();
        let (x, y) = (leaf(&mut graph, "x", 3, 4), leaf(&mut graph, "y", 3, 2));
        let wide = graph.concat(&[x, y, x]).unwrap();
        let double = graph.add(wide, wide).unwrap();
        let product = graph.mul(double, wide).unwrap();
        check("concat", &graph, &[product, x]);
    }
}
