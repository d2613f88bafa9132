//! Rows of a value.

use super::{OnCpu, Operation, Reads, Rows};
use crate::Result;
use crate::cpu::rows::add_row;
use crate::cpu::{Block, Real};
use crate::graph::{Graph, Index, Shape, Value};
use crate::plan::Backward;

/// `output[r] = input[index[r]]` within the item, zeros where `index[r] < 0`. Backward scatters and adds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gather {
    /// The operand.
    pub input: Value,
    /// Rows of the operand.
    pub index: Index,
    /// The result.
    pub output: Value,
}

impl Graph {
    /// Adds [`Gather`].
    ///
    /// # Errors
    /// If the indices may exceed the input's rows.
    pub fn gather(&mut self, input: Value, index: Index) -> Result<Value> {
        let Shape { rows, width } = self.shape(input);
        self.bounded("gather", index, rows)?;
        let output = self.value(self.index_rows(index), width);
        self.push(Gather { input, index, output });
        Ok(output)
    }
}

impl Operation for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn reads(&self) -> Reads {
        Reads { index: Some(self.index), ..Reads::values([self.input]) }
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
        false
    }
}

impl OnCpu for Gather {
    fn scratch(&self, _: &Graph) -> usize {
        0
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, _: usize) {
        let stride = block.graph.shape(self.input).size();
        block.copy_rows(block.value(self.input), stride, self.index, self.output);
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        let graph = block.graph;
        let Some(dx) = block.zeroed(self.input, &step.writes, 0) else { return };
        let shape = graph.shape(self.output);
        let index = block.index(self.index);
        for (row, d) in block.pulled(self.output).chunks_exact(shape.width).enumerate() {
            add_row(&mut dx[row / shape.rows * graph.shape(self.input).size()..], index(row), d);
        }
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::Gather;
    use crate::Result;
    use crate::cuda::check::{Case, ROWS, followed, grown};
    use crate::cuda::kernels::{ENTRIES, File, MIXED, Unit};
    use crate::cuda::lower::{Lowering, Program};
    use crate::cuda::tape::arguments;
    use crate::graph::{Graph, Value};
    use crate::ops::OnCuda;
    use crate::plan::{Backward, Write};

    const KERNELS: &File = &File {
        name: "gather",
        source: &[ENTRIES, include_str!("gather.cu")],
        constants: MIXED,
        kernels: &[
            ("gather_forward", 0),
            ("gather_forward_4", 0),
            ("gather_backward_few", 0),
            ("gather_backward_few_4", 0),
            ("gather_backward", 0),
        ],
    };

    /// Gathered rows up to which it is worth it to look through them for each row of the operand, where the device would be idle
    /// otherwise.
    const FEW: usize = 64;

    /// The kernel and the entries of a row: quads where rows are made of them.
    fn grouped([one, four]: [&'static str; 2], width: usize) -> (&'static str, usize) {
        if width.is_multiple_of(4) { (four, width / 4) } else { (one, width) }
    }

    fn program(g: &mut Graph, width: usize, gathered: usize) -> Result<Vec<Value>> {
        let x = grown(g, "x", ROWS, width)?;
        let index = g.indices("index", gathered, ROWS);
        Ok(vec![g.gather(x, index)?, x])
    }

    fn inside(g: &mut Graph) -> Result<Vec<Value>> {
        let x = grown(g, "x", ROWS, 24)?;
        let index = g.indices("index", 9, ROWS);
        let (one, other) = (g.gather(x, index)?, g.gather(x, index)?);
        Ok(vec![followed(g, one)?, other, followed(g, x)?])
    }

    impl OnCuda for Gather {
        const CASES: &'static [Case] = &[
            ("gather", |g| program(g, 18, 9)),
            ("gather, quads", |g| program(g, 20, 9)),
            ("gather, many", |g| program(g, 20, 70)),
            ("gather, inside", inside),
        ];

        fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
            vec![vec![self.input], vec![self.output]]
        }

        fn units(&self, program: &Program<'_>) -> Result<Vec<Unit>> {
            Ok(vec![Unit::mixed(KERNELS, program.precision)])
        }

        fn lower(&self, to: &mut Lowering<'_>, _: usize) -> Result<()> {
            let Self { input, index, output } = *self;
            let (from, out) = (to.shape(input), to.shape(output));
            let rows = to.all_rows(output);
            let (name, width) = grouped(["gather_forward", "gather_forward_4"], out.width);
            let arguments = arguments![
                to.base(input)?,
                to.integers(index),
                to.base(output)?,
                from.rows,
                out.rows,
                rows,
                width,
                to.is_half(input),
                to.is_half(output),
            ];
            to.per_entry("gather", (to.mixed(KERNELS), name), rows, width, arguments)
        }

        fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
            let Self { input, index, output } = *self;
            let Some(write) = step.writes[0] else { return Ok(()) };
            let (from, out) = (to.shape(input), to.shape(output));
            let din = to.cotangent(input)?;
            let (half_in, half_out) = (to.is_half(input), to.is_half(output));
            let idle = to.items() * out.width < 1024 * to.tools.multiprocessors;
            if idle && out.rows <= FEW {
                let (rows, add) = (to.all_rows(input), write == Write::Add);
                let (name, width) = grouped(["gather_backward_few", "gather_backward_few_4"], out.width);
                let arguments = arguments![to.cotangent(output)?, to.integers(index), din, add]
                    .with(from.rows)
                    .with(out.rows)
                    .with(rows)
                    .with(width)
                    .with(half_in)
                    .with(half_out);
                return to.per_entry("gather'", (to.mixed(KERNELS), name), rows, width, arguments);
            }
            if write == Write::Set {
                let bytes = to.cotangent_bytes(input);
                to.tape.zero("gather'", din, bytes);
            }
            let items = to.items();
            let arguments = arguments![
                to.cotangent(output)?,
                to.integers(index),
                din,
                from.rows,
                out.rows,
                items,
                out.width,
                half_in,
                half_out,
            ];
            to.per_entry("gather'", (to.mixed(KERNELS), "gather_backward"), items, out.width, arguments)
        }
    }
}

#[cfg(test)]
impl super::Law for Gather {
    fn check() {
        use super::law::{check, leaf};
        let mut graph = Graph::new();
        let x = leaf(&mut graph, "x", 6, 3);
        let rows = graph.indices("rows", 4, 6);
        let gathered = graph.gather(x, rows).unwrap();
        let squares = graph.mul(gathered, gathered).unwrap();
        check("gather", &graph, &[squares, x]);
    }
}
