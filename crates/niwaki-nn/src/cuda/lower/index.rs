//! Ops steered by integers and masks: `embed`, `gather`, `pool`, `score`, `rope` and `pick_log_prob`.

use super::{Lowering, Partial, ROWS_PER_SUM, SCALAR};
use crate::Result;
use crate::cuda::kernels::Unit;
use crate::cuda::tape::arguments;
use crate::graph::{Columns, Graph, Index, Mask, Op, Pooling, Value};
use crate::layout::Param;
use crate::plan::{Backward, Plan, Write};

/// Scalars of a table whose gradient is summed in a block's shared memory (48 KB).
const SMALL_TABLE: usize = 12 * 1024;

/// Choices up to which a thread takes a whole row of logits.
const FEW_CHOICES: usize = 64;

/// Finds sums of two embeddings, each read by nothing else and asked for by nobody: they are looked up and added in one
/// kernel, and both tables' gradients are taken from the sum's cotangent.
///
/// The sum's cotangent lives on as the left operand's, so the left one must come first in the program: its backward
/// pass is then the later of the two.
pub(super) fn summed_embeddings(graph: &Graph, plan: &Plan) -> Vec<Option<Value>> {
    let mut summed = vec![None; graph.values()];
    let maker = |value: Value| graph.ops().iter().position(|op| op.outputs().contains(&value));
    let private = |value: Value| {
        let uses = graph.ops().iter().flat_map(Op::operands).filter(|operand| *operand == value).count();
        uses == 1 && !plan.outputs().contains(&value)
    };
    for op in graph.ops() {
        let Op::Add { left, right, output } = *op else { continue };
        let (Some(first), Some(second)) = (maker(left), maker(right)) else { continue };
        let embeds = [first, second].iter().all(|&at| matches!(graph.ops()[at], Op::Embed { .. }));
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
    pub(super) fn embedding_sum(&mut self, left: Value, right: Value, output: Value) -> Result<bool> {
        if self.summed[left.position()] != Some(output) {
            return Ok(false);
        }
        let find = |value: Value| {
            self.tools.graph.ops().iter().find_map(|op| match *op {
                Op::Embed { table, index, output } if output == value => Some((table, index)),
                _ => None,
            })
        };
        let (Some((table, index)), Some((other, other_index))) = (find(left), find(right)) else {
            return Ok(false);
        };
        let out = self.view(output)?;
        let (first, step) = self.rows_of(output);
        let arguments = arguments![
            self.param(table),
            self.integers(index),
            self.param(other),
            self.integers(other_index),
            self.length() / 4,
            self.base(output)?,
            first,
            step,
            out.rows,
            out.rows_per_member,
            out.width / 4,
        ];
        self.per_entry("embed", (Unit::Index, "embed_pair_forward"), out.rows, out.width / 4, arguments)?;
        Ok(true)
    }

    fn integers(&self, index: Index) -> u64 {
        self.ground.indices[index.position()]
    }

    fn mask(&self, mask: Option<Mask>) -> Option<u64> {
        mask.map(|mask| self.ground.masks[mask.position()])
    }

    fn all_rows(&self, value: Value) -> usize {
        self.shape(value).rows * self.items()
    }

    pub(super) fn index_forward(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Embed { output, .. } if self.summed[output.position()].is_some() => Ok(()),
            Op::Embed { table, index, output } => {
                let out = self.view(*output)?;
                let (first, step) = self.rows_of(*output);
                let arguments = arguments![
                    self.param(*table),
                    self.length(),
                    self.integers(*index),
                    self.base(*output)?,
                    first,
                    step,
                    out.rows,
                    out.rows_per_member,
                    out.width,
                ];
                self.per_entry("embed", (Unit::Index, "embed_forward"), out.rows, out.width, arguments)
            }
            Op::Gather { input, index, output } => {
                let (from, to) = (self.shape(*input), self.shape(*output));
                let rows = self.all_rows(*output);
                let quads = to.width.is_multiple_of(4);
                let (name, width) =
                    if quads { ("gather_forward_4", to.width / 4) } else { ("gather_forward", to.width) };
                let arguments = arguments![
                    self.base(*input)?,
                    self.integers(*index),
                    self.base(*output)?,
                    from.rows,
                    to.rows,
                    rows,
                    width
                ];
                self.per_entry("gather", (Unit::Index, name), rows, width, arguments)
            }
            Op::Pool { input, group, mask, pooling, output } => {
                let rows = self.all_rows(*output);
                let width = self.shape(*output).width;
                let mean = *pooling == Pooling::Mean;
                let arguments = arguments![
                    self.base(*input)?,
                    self.mask(*mask),
                    self.base(*output)?,
                    *group,
                    mean,
                    rows,
                    width
                ];
                self.per_entry("pool", (Unit::Index, "pool_forward"), rows, width, arguments)
            }
            Op::Score { query, key, scale, output } => {
                let (from, out) = (self.shape(*query), self.shape(*output));
                let rows = self.all_rows(*output);
                let arguments = arguments![
                    self.base(*query)?,
                    self.base(*key)?,
                    self.base(*output)?,
                    from.rows,
                    from.width,
                    *scale as f32,
                    rows,
                    out.width
                ];
                self.per_entry("score", (Unit::Index, "score_forward"), rows, out.width, arguments)
            }
            Op::Rope { input, heads, head_width, base, position, output } => {
                let out = self.view(*output)?;
                let (first, step) = self.rows_of(*output);
                let from = self.base(input.value)? + (input.start * SCALAR) as u64;
                let half = head_width / 2;
                let arguments = arguments![
                    from,
                    self.shape(input.value).width,
                    self.integers(*position),
                    self.base(*output)?,
                    out.width,
                    first,
                    step,
                    half,
                    *base,
                    1.0_f32,
                    false,
                    out.rows,
                    heads * half,
                ];
                self.per_entry("rope", (Unit::Index, "rope"), out.rows, heads * half, arguments)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn index_backward(&mut self, step: &Backward) -> Result<()> {
        match &self.tools.graph.ops()[step.op] {
            Op::Embed { table, index, output } => self.embed_backward(*table, *index, *output),
            Op::Gather { input, index, output } => {
                let Some(write) = step.writes[0] else { return Ok(()) };
                let (from, to) = (self.shape(*input), self.shape(*output));
                let din = self.cotangent(*input)?;
                if write == Write::Set {
                    let bytes = self.cotangent_bytes(*input);
                    self.tape.zero("gather'", din, bytes);
                }
                let items = self.items();
                let arguments = arguments![
                    self.cotangent(*output)?,
                    self.integers(*index),
                    din,
                    from.rows,
                    to.rows,
                    items,
                    to.width
                ];
                self.per_entry("gather'", (Unit::Index, "gather_backward"), items, to.width, arguments)
            }
            Op::Pool { input, group, mask, pooling, output } => {
                let Some(write) = step.writes[0] else { return Ok(()) };
                let rows = self.all_rows(*output);
                let width = self.shape(*output).width;
                let mean = *pooling == Pooling::Mean;
                let arguments = arguments![
                    self.cotangent(*output)?,
                    self.mask(*mask),
                    self.cotangent(*input)?,
                    *group,
                    mean,
                    write == Write::Add,
                    rows,
                    width,
                ];
                self.per_entry("pool'", (Unit::Index, "pool_backward"), rows, width, arguments)
            }
            Op::Score { query, key, scale, output } => {
                self.score_backward(step, *query, *key, *scale as f32, *output)
            }
            Op::Rope { input, heads, head_width, base, position, output } => {
                if step.writes[0].is_none() {
                    return Ok(());
                }
                self.rope_backward(step, *input, (*heads, *head_width), *base, *position, *output)
            }
            _ => Ok(()),
        }
    }

    fn embed_backward(&mut self, table: Param, index: Index, output: Value) -> Result<()> {
        let output = self.summed[output.position()].unwrap_or(output);
        let out = self.view(output)?;
        let entries = self.tools.graph.layout().slice(table).shape[0];
        let (dout, integers) = (self.cotangent(output)?, self.integers(index));
        let columns = entries * out.width;
        if columns <= SMALL_TABLE {
            let blocks = out.rows_per_member.div_ceil(ROWS_PER_SUM);
            let partial = self.scratch(self.ground.members * blocks * columns);
            let arguments = arguments![dout, integers, partial, out.rows_per_member, entries, out.width];
            let grid = (blocks, self.ground.members, 1);
            let kernel = (Unit::Index, "embed_backward_small");
            self.launch("embed'", kernel, grid, 128, (columns * SCALAR) as u32, arguments)?;
            return self.gather_partials(
                "embed'",
                partial,
                Partial::dense(blocks, columns),
                (table, columns),
                None,
            );
        }
        let (gradient, add) = self.gradient(table);
        if !add {
            // A member's gradient lies `length` scalars from the next one's: one fill each.
            for member in 0..self.ground.members {
                let at = gradient + (member * self.length() * SCALAR) as u64;
                self.tape.zero("embed'", at, columns * SCALAR);
            }
        }
        let arguments =
            arguments![dout, integers, gradient, self.length(), out.rows, out.rows_per_member, out.width];
        self.per_entry("embed'", (Unit::Index, "embed_backward_large"), out.rows, out.width, arguments)
    }

    fn score_backward(
        &mut self,
        step: &Backward,
        query: Value,
        key: Value,
        scale: f32,
        output: Value,
    ) -> Result<()> {
        let (q, k) = (self.shape(query), self.shape(key));
        let dout = self.cotangent(output)?;
        if let Some(write) = step.writes[0] {
            let rows = self.all_rows(query);
            let (to, add) = (self.cotangent(query)?, write == Write::Add);
            let arguments = arguments![dout, self.base(key)?, to, add, q.rows, k.rows, scale, rows, q.width];
            self.per_entry("score'", (Unit::Index, "score_backward_query"), rows, q.width, arguments)?;
        }
        if let Some(write) = step.writes[1] {
            let rows = self.all_rows(key);
            let (to, add) = (self.cotangent(key)?, write == Write::Add);
            let arguments =
                arguments![dout, self.base(query)?, to, add, q.rows, k.rows, scale, rows, q.width];
            self.per_entry("score'", (Unit::Index, "score_backward_key"), rows, q.width, arguments)?;
        }
        Ok(())
    }

    fn rope_backward(
        &mut self,
        step: &Backward,
        input: Columns,
        (heads, head_width): (usize, usize),
        base: f64,
        position: Index,
        output: Value,
    ) -> Result<()> {
        let targets = self.column_targets("rope", &[(input, heads * head_width)], &step.writes)?;
        let Some((to, add)) = targets[0] else { return Ok(()) };
        let half = head_width / 2;
        let rows = self.all_rows(output);
        let arguments = arguments![
            self.cotangent(output)?,
            self.shape(output).width,
            self.integers(position),
            to,
            self.shape(input.value).width,
            0_usize,
            1_usize,
            half,
            base,
            -1.0_f32,
            add,
            rows,
            heads * half,
        ];
        self.per_entry("rope'", (Unit::Index, "rope"), rows, heads * half, arguments)
    }

    pub(super) fn pick_forward(&mut self, at: usize) -> Result<()> {
        let Op::Pick { logits, action, mask, log_prob, entropy } = self.tools.graph.ops()[at] else {
            return Ok(());
        };
        let x = self.view(logits)?;
        let (first, step) = self.rows_of(logits);
        let arguments = arguments![
            self.base(logits)?,
            self.integers(action),
            self.mask(mask),
            self.base(log_prob)?,
            self.base(entropy)?,
            self.saved(at),
            first,
            step,
            x.rows,
            x.width,
        ];
        let (name, lanes) = if x.width <= FEW_CHOICES { ("pick_few", 1) } else { ("pick_many", 32) };
        self.per_entry("pick_log_prob", (Unit::Index, name), x.rows, lanes, arguments)
    }

    pub(super) fn pick_backward(&mut self, step: &Backward) -> Result<()> {
        let Op::Pick { logits, action, mask, log_prob, entropy } = self.tools.graph.ops()[step.op] else {
            return Ok(());
        };
        let Some(write) = step.writes[0] else { return Ok(()) };
        let x = self.view(logits)?;
        let arguments = arguments![
            x.at,
            self.integers(action),
            self.mask(mask),
            self.must_saved(step.op)?,
            self.maybe_cotangent(log_prob),
            self.maybe_cotangent(entropy),
            self.cotangent(logits)?,
            write == Write::Add,
            x.rows,
            x.width,
        ];
        self.per_entry("pick_log_prob'", (Unit::Index, "pick_backward"), x.rows, x.width, arguments)
    }
}
