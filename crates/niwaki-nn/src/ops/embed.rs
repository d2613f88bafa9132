//! Rows of a table of parameters.

use super::{OnCpu, Operation, Reads, Rows};
use crate::Result;
use crate::cpu::rows::add_row;
use crate::cpu::{Block, Real};
use crate::graph::{Graph, Index, Value};
use crate::layout::Param;
use crate::plan::Backward;

#[cfg(feature = "cuda")]
pub(crate) use cuda::{looked_up, summed_embeddings};

/// `output[r] = table[index[r]]`, zeros where `index[r] < 0`. Backward: `d table[index[r]] += d output[r]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Embed {
    /// `[entries, width]`.
    pub table: Param,
    /// Rows of the table.
    pub index: Index,
    /// The result.
    pub output: Value,
}

impl Graph {
    /// Adds [`Embed`].
    ///
    /// # Errors
    /// If the table is no matrix, or the indices may exceed it.
    pub fn embed(&mut self, table: Param, index: Index) -> Result<Value> {
        let [entries, width] = self.matrix("embed", table)?;
        self.bounded("embed", index, entries)?;
        let output = self.value(self.index_rows(index), width);
        self.push(Embed { table, index, output });
        Ok(output)
    }
}

impl Operation for Embed {
    fn name(&self) -> &'static str {
        "embed"
    }

    fn reads(&self) -> Reads {
        Reads { params: vec![self.table], index: Some(self.index), ..Reads::default() }
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

impl OnCpu for Embed {
    fn scratch(&self, _: &Graph) -> usize {
        0
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, _: usize) {
        block.copy_rows(block.parameter(self.table), 0, self.index, self.output);
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, _: &Backward, gradient: &mut [F]) {
        let graph = block.graph;
        let table = &mut gradient[graph.layout().slice(self.table).range()];
        let index = block.index(self.index);
        let d = block.pulled(self.output).chunks_exact(graph.shape(self.output).width);
        d.enumerate().for_each(|(row, d)| add_row(table, index(row), d));
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::Embed;
    use crate::cuda::check::{Case, ROWS, followed};
    use crate::cuda::chunks::{chunks, chunks_of};
    use crate::cuda::kernels::{ENTRIES, File, MIXED, STEP, Unit};
    use crate::cuda::lower::{Lowering, Partial, Program, ROWS_PER_SUM, SCALAR};
    use crate::cuda::tape::arguments;
    use crate::graph::{Graph, Value};
    use crate::ops::{Add, OnCuda, Op, Operation};
    use crate::plan::{Backward, Plan};
    use crate::{Init, Result};

    /// Scalars of a table whose gradient is summed in a block's shared memory (48 KB).
    const SMALL_TABLE: usize = 12 * 1024;

    const KERNELS: &File = &File {
        name: "embed",
        source: &[ENTRIES, include_str!("embed.cu")],
        constants: MIXED,
        kernels: &[
            ("embed_forward", 0),
            ("embed_pair_forward", 0),
            ("embed_backward_small", 0),
            ("embed_backward_large", 0),
        ],
    };

    /// For each parameter: whether it is a large table that is looked up and nothing else, so that only the gradients of the rows that are
    /// looked up are ever written.
    pub(crate) fn looked_up(graph: &Graph) -> Vec<bool> {
        let mut looked_up: Vec<bool> =
            graph.layout().slices().iter().map(|slice| slice.len() > SMALL_TABLE).collect();
        for op in graph.ops().iter().filter(|op| !matches!(op, Op::Embed(_))) {
            op.reads().params.iter().for_each(|param| looked_up[param.0] = false);
        }
        looked_up
    }

    /// Finds sums of two embeddings, each read by nothing else and asked for by nobody: they are looked up and added in
    /// one kernel, and both tables' gradients are taken from the sum's cotangent.
    ///
    /// The sum's cotangent lives on as the left operand's, so the left one must come first in the program: its backward
    /// pass is then the later of the two.
    pub(crate) fn summed_embeddings(graph: &Graph, plan: &Plan) -> Vec<Option<Value>> {
        let mut summed = vec![None; graph.values()];
        let maker = |value: Value| graph.ops().iter().position(|op| op.outputs().contains(&value));
        let private = |value: Value| {
            let uses = graph.ops().iter().flat_map(Op::operands).filter(|operand| *operand == value).count();
            uses == 1 && !plan.outputs().contains(&value)
        };
        for op in graph.ops() {
            let Op::Add(Add { left, right, output }) = *op else { continue };
            let (Some(first), Some(second)) = (maker(left), maker(right)) else { continue };
            let embeds = [first, second].iter().all(|&at| matches!(graph.ops()[at], Op::Embed(_)));
            let quads = graph.shape(output).width.is_multiple_of(4);
            if embeds && quads && first < second && private(left) && private(right) {
                summed[left.position()] = Some(output);
                summed[right.position()] = Some(output);
            }
        }
        summed
    }

    impl Lowering<'_> {
        /// Writes the sum of two embeddings, if this value is one.
        pub(crate) fn embedding_sum(&mut self, left: Value, right: Value, output: Value) -> Result<bool> {
            if self.summed[left.position()] != Some(output) {
                return Ok(false);
            }
            let find = |value: Value| {
                self.tools.graph.ops().iter().find_map(|op| match *op {
                    Op::Embed(embed) if embed.output == value => Some(embed),
                    _ => None,
                })
            };
            let (Some(one), Some(other)) = (find(left), find(right)) else { return Ok(false) };
            let out = self.view(output)?;
            let (first, step) = self.rows_of(output);
            let arguments = arguments![
                self.param(one.table),
                self.integers(one.index),
                self.param(other.table),
                self.integers(other.index),
                self.length() / 4,
                self.base(output)?,
                first,
                step,
                out.rows,
                out.rows_per_member,
                out.width / 4,
                out.half,
            ];
            let kernel = (self.mixed(KERNELS), "embed_pair_forward");
            self.per_entry("embed", kernel, out.rows, out.width / 4, arguments)?;
            Ok(true)
        }
    }

    fn program(g: &mut Graph, entries: usize, width: usize) -> Result<Vec<Value>> {
        let table = g.param("table", &[entries, width], Init::Normal { deviation: 1.0 })?;
        let places = g.param("places", &[ROWS, width], Init::Normal { deviation: 1.0 })?;
        let tokens = g.indices("tokens", ROWS, entries);
        let positions = g.constant(&[0, 1, 2, 3, 4, 5]);
        let token = g.embed(table, tokens)?;
        let place = g.embed(places, positions)?;
        Ok(vec![g.add(token, place)?])
    }

    fn inside(g: &mut Graph, entries: usize) -> Result<Vec<Value>> {
        let sum = program(g, entries, 24)?[0];
        let table = g.param("other", &[entries, 16], Init::Normal { deviation: 1.0 })?;
        let tokens = g.indices("other tokens", ROWS, entries);
        let other = g.embed(table, tokens)?;
        Ok(vec![followed(g, sum)?, followed(g, other)?])
    }

    impl OnCuda for Embed {
        const CASES: &'static [Case] = &[
            ("embed", |g| program(g, 9, 20)),
            ("embed, large table", |g| program(g, 700, 20)),
            ("embed, inside", |g| inside(g, 9)),
            ("embed, large table, inside", |g| inside(g, 700)),
        ];

        fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
            vec![vec![self.output]]
        }

        fn units(&self, program: &Program<'_>) -> Result<Vec<Unit>> {
            Ok(vec![Unit::mixed(KERNELS, program.precision)])
        }

        fn lower(&self, to: &mut Lowering<'_>, _: usize) -> Result<()> {
            let Self { table, index, output } = *self;
            if to.summed[output.position()].is_some() {
                return Ok(());
            }
            let out = to.view(output)?;
            let (first, step) = to.rows_of(output);
            let arguments = arguments![
                to.param(table),
                to.length(),
                to.integers(index),
                to.base(output)?,
                first,
                step,
                out.rows,
                out.rows_per_member,
                out.width,
                out.half,
            ];
            to.per_entry("embed", (to.mixed(KERNELS), "embed_forward"), out.rows, out.width, arguments)
        }

        fn lower_backward(&self, to: &mut Lowering<'_>, _: &Backward) -> Result<()> {
            let Self { table, index, output } = *self;
            let output = to.summed[output.position()].unwrap_or(output);
            let out = to.view(output)?;
            let entries = to.tools.graph.layout().slice(table).shape[0];
            let (dout, integers) = (to.cotangent(output)?, to.integers(index));
            let columns = entries * out.width;
            if columns <= SMALL_TABLE {
                let blocks = out.rows_per_member.div_ceil(ROWS_PER_SUM);
                let partial = to.scratch(to.addresses.members * blocks * columns);
                let arguments =
                    arguments![dout, integers, partial, out.rows_per_member, entries, out.width, out.half];
                let grid = (blocks, to.addresses.members, 1);
                let shared = (columns * SCALAR) as u32;
                let kernel = (to.mixed(KERNELS), "embed_backward_small");
                to.launch("embed'", kernel, grid, 128, shared, arguments)?;
                let sums = Partial::dense(blocks, columns);
                return to.gather_partials("embed'", partial, sums, (table, columns), None);
            }
            let (_, add) = to.gradient(table);
            let place = to.tools.graph.layout().slice(table).range();
            let (gradient, live, length) = (to.addresses.gradient, to.addresses.live, to.length());
            if !add {
                let arguments = arguments![gradient, live, place.start, place.end, chunks(length), length];
                let grid = (chunks_of(&place).len(), to.addresses.members, 1);
                to.launch("embed'", (STEP, "clear_chunks"), grid, 256, 0, arguments)?;
            }
            let arguments = arguments![
                dout,
                integers,
                gradient,
                place.start,
                live,
                chunks(length),
                length,
                out.rows_per_member,
                out.width,
                out.half,
            ];
            let kernel = (to.mixed(KERNELS), "embed_backward_large");
            let grid = (out.rows_per_member, to.addresses.members, out.width.div_ceil(128));
            to.launch("embed'", kernel, grid, 128, 0, arguments)
        }
    }
}

#[cfg(test)]
impl super::Law for Embed {
    fn check() {
        use super::law::{check, param};
        let mut graph = Graph::new();
        let table = param(&mut graph, "table", &[5, 3]);
        let tokens = graph.indices("tokens", 6, 5);
        let x = graph.embed(table, tokens).unwrap();
        let squares = graph.mul(x, x).unwrap();
        check("embed", &graph, &[squares, x]);
    }
}
