//! Tree attention on CUDA: tiles of rows against tiles of rows on the tensor cores; one row of each item walks up.

use super::{AttendTree, Pulled, TreeAttention, cases, packed};
use crate::cuda::Precision;
use crate::cuda::check::Case;
use crate::cuda::kernels::{File, PRODUCTS, TENSOR, TENSOR_CONSTANTS, Unit};
use crate::cuda::lower::{Lowering, Once, Program, SCALAR};
use crate::cuda::tape::arguments;
use crate::graph::{Graph, Value};
use crate::ops::{OnCuda, Op, Rope};
use crate::plan::{Backward, Write};
use crate::{Error, Result};

/// Who sees whom.
const WAYS: &str = include_str!("ways.cu");

const KERNELS: &File = &File {
    name: "tree-attention",
    source: &[PRODUCTS, TENSOR, WAYS, include_str!("kernel.cu")],
    constants: TENSOR_CONSTANTS,
    kernels: &[
        ("tree_ways", 0),
        ("tree_forward", stages(WIDEST)),
        ("tree_backward_query", stages(WIDEST)),
        ("tree_backward_key", stages(WIDEST)),
        ("tree_gather", 0),
    ],
};

const HALVES_KERNELS: &File = &File {
    name: "tree-attention-halves",
    source: &[WAYS, include_str!("halves.cu")],
    constants: &["TREE_DEPTH", "TREE_MANY"],
    kernels: &[
        ("tree_ways", 0),
        ("tree_forward", MOST_STAGES),
        ("tree_backward", MOST_STAGES),
        ("tree_gather", 0),
    ],
};

const ROW_KERNELS: &File = &File {
    name: "tree-attention-row",
    source: &[include_str!("row.cu")],
    constants: &["TREE_PIECES", "TREE_HALVES"],
    kernels: &[("tree_row", 0)],
};

/// Columns of a head that a warp has registers for.
const WIDEST: usize = 128;

/// Rows of a tile in shared memory: a word of bits.
const TILE: usize = 32;

/// Rows of a block, MANY there: many where blocks keep the device busy, few where it would be idle.
const MANY: usize = 64;
const FEW: usize = 32;

/// Rows of a block where all is in halves.
fn rows_of_block(multiprocessors: usize, rows: usize, heads: usize, items: usize) -> usize {
    if rows.div_ceil(MANY) * heads * items < 2 * multiprocessors { FEW } else { MANY }
}

/// Threads of a block, or where all is in halves of each of its groups: 32 for sixteen rows.
fn threads(many: usize) -> u32 {
    2 * many as u32
}

/// Shared memory of a block: two tiles of two matrices, in rows of the next eight columns and four that keep banks apart.
const fn stages(head_width: usize) -> u32 {
    (2 * 2 * TILE * (head_width.next_multiple_of(8) + 4) * SCALAR) as u32
}

/// The same for a group of threads where all is in halves: two tiles of so many matrices, whose rows are eight longer.
const fn stages_of_halves(head_width: usize, matrices: usize) -> u32 {
    (2 * matrices * TILE * (head_width + 8) * SCALAR / 2) as u32
}

/// Matrices of a stage in the forward and in the backward pass.
const MATRICES: [usize; 2] = [2, 3];

/// Of two groups in a backward pass with heads of 128 columns, which is more than four in a forward pass with heads of 64.
const MOST_STAGES: u32 = 2 * stages_of_halves(128, 3);

/// Groups of threads that share out a block's tiles in the forward and in the backward pass, as many as a multiprocessor has
/// registers for: FORWARD_GROUPS and BACKWARD_GROUPS there.
fn groups(many: usize, head_width: usize, tiles: usize) -> [usize; 2] {
    let most = match (many, head_width) {
        (MANY, _) => [1, 1],
        (_, ..=64) => [4, 2],
        _ => [2, 2],
    };
    most.map(|most| most.min(tiles))
}

/// Parts into which the work on keys and values is cut: with the blocks for queries beside them they fill the device once, three small
/// ones or two others on a multiprocessor, where there are so few.
fn parts(
    multiprocessors: usize,
    (many, head_width): (usize, usize),
    blocks: usize,
    tiles: usize,
    groups: usize,
) -> usize {
    let together = if many == FEW && head_width <= 64 { 3 } else { 2 };
    let sets = together * multiprocessors / blocks.max(1);
    sets.saturating_sub(1).clamp(1, tiles.div_ceil(2 * groups).clamp(1, 8))
}

/// The kernels of all rows.
fn unit(head_width: usize, precision: Precision, half: bool, many: usize) -> Unit {
    if half {
        return Unit::sized(HALVES_KERNELS, &[head_width as u8, many as u8]);
    }
    Unit::sized(KERNELS, &[1, head_width as u8, TILE as u8, u8::from(precision == Precision::F32)])
}

/// The kernel of one row.
fn row_unit(head_width: usize, half: bool) -> Unit {
    Unit::sized(ROW_KERNELS, &[head_width.div_ceil(8) as u8, u8::from(half)])
}

impl OnCuda for AttendTree {
    const CASES: &'static [Case] = cases::CASES;

    fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
        let TreeAttention { query, key, value, head_width, .. } = self.attention;
        let columns = [query, key, value];
        // Rows of a head start on 16 bytes, and products take 16 columns at a time.
        let able = head_width.is_multiple_of(16) && columns.iter().all(|of| of.start.is_multiple_of(8));
        if able { vec![columns.iter().map(|of| of.value).chain([self.output]).collect()] } else { Vec::new() }
    }

    fn units(&self, program: &Program<'_>) -> Result<Vec<Unit>> {
        let width = self.attention.head_width;
        if width > WIDEST {
            let reason = format!("heads of {width} columns; on this device at most {WIDEST}");
            return Err(Error::Unsupported { op: "tree_attention", reason });
        }
        let half = program.is_half(self.output);
        let sizes = if half { &[MANY, FEW][..] } else { &[MANY] };
        let all = sizes.iter().map(|&many| unit(width, program.precision, half, many));
        Ok(all.chain([row_unit(width, half)]).chain(packed::units(self, program)).collect())
    }

    fn lower(&self, to: &mut Lowering<'_>, at: usize) -> Result<()> {
        let (a, rows, half) = (&self.attention, to.shape(self.output).rows, to.is_half(self.output));
        let ((query, q), (key, k), (value, v)) =
            (to.columns(a.query)?, to.columns(a.key)?, to.columns(a.value)?);
        let (out, width, scale) = (to.base(self.output)?, to.shape(self.output).width, a.scale as f32);
        let all = arguments![query, q, key, k, value, v, out, width];
        if let Some(row) = to.row {
            let arguments = all
                .with(to.integers(a.parent))
                .with(a.heads)
                .with(a.key_heads)
                .with(a.head_width)
                .with(rows)
                .with(row)
                .with(to.items())
                .with(scale);
            let grid = ((to.items() * a.heads).div_ceil(4), 1, 1);
            let kernel = (row_unit(a.head_width, half), "tree_row");
            return to.launch("tree attention", kernel, grid, 128, 0, arguments);
        }
        if let Some(packed) = to.packed(self, at) {
            let ways = to.seen_rows(self)?;
            return to.attend_packed(self, packed, ways, to.saved(at).unwrap_or(0));
        }
        let many = to.rows_of_block(a, rows, half);
        let ways = to.ways(a, rows, half)?;
        let arguments = all
            .with(to.saved(at))
            .with(ways.rows)
            .with(ways.seen)
            .with(a.heads)
            .with(a.key_heads)
            .with(rows)
            .with(scale);
        let grid = (rows.div_ceil(many), a.heads, to.items());
        let kernel = (unit(a.head_width, to.tools.precision, half, many), "tree_forward");
        let (groups, shared) = match half {
            true => {
                let [groups, _] = groups(many, a.head_width, rows.div_ceil(TILE));
                (groups as u32, stages_of_halves(a.head_width, MATRICES[0]))
            }
            false => (1, stages(a.head_width)),
        };
        to.launch("tree attention", kernel, grid, groups * threads(many), groups * shared, arguments)
    }

    fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
        let (a, rows, half) = (&self.attention, to.shape(self.output).rows, to.is_half(self.output));
        let ((query, q), (key, k), (value, v)) =
            (to.columns(a.query)?, to.columns(a.key)?, to.columns(a.value)?);
        let (out, dout) = (to.base(self.output)?, to.cotangent(self.output)?);
        let (saved, items, width) = (to.must_saved(step.op)?, to.items(), to.shape(self.output).width);
        let narrow = a.key_heads * a.head_width;
        if let Some(packed) = to.packed(self, step.op)
            && let Some(Turned { targets, turns, .. }) = to.turned(a, step)?
        {
            let ways = to.seen_rows(self)?;
            let means = to.packed_means(self, packed, dout)?;
            let out = targets[0].map_or(0, |(at, _)| at);
            let pulled = Pulled { slope: dout, means, turns, out, scaled: None };
            return to.attend_packed_backward(self, packed, (ways, saved), pulled);
        }
        let turned = if half { to.turned(a, step)? } else { None };
        let (targets, pitches, turns) = match turned {
            Some(Turned { targets, pitch, turns }) => (targets, [pitch; 3], Some(turns)),
            None => {
                let operands = [(a.query, a.heads * a.head_width), (a.key, narrow), (a.value, narrow)];
                (to.column_targets("tree attention", &operands, &step.writes)?, [q, k, v], None)
            }
        };
        let at = |place: usize| targets[place].map(|(at, _)| at);
        let add = |place: usize| targets[place].is_some_and(|(_, add)| add);
        let ways = to.ways(a, rows, half)?;
        let many = to.rows_of_block(a, rows, half);
        let (unit, scale) = (unit(a.head_width, to.tools.precision, half, many), a.scale as f32);
        let grid = (rows.div_ceil(many), a.heads, items);
        if half {
            let wanted = at(1).is_some() || at(2).is_some();
            let (tiles, blocks) = (rows.div_ceil(TILE), grid.0 * grid.1 * grid.2);
            let groups = groups(many, a.head_width, tiles)[1];
            let parts = parts(to.tools.multiprocessors, (many, a.head_width), blocks, tiles, groups);
            let parts = if wanted { parts } else { 0 };
            let sums = to.scratch(items * a.heads * parts * rows * 2 * a.head_width);
            let arguments = arguments![query, q, key, k, value, v, out, dout, width, saved]
                .with(ways.rows)
                .with(ways.seen)
                .with(ways.seeing)
                .with(turns)
                .with(at(0))
                .with(pitches[0])
                .with(add(0))
                .with(sums)
                .with(parts)
                .with(a.heads)
                .with(a.key_heads)
                .with(rows)
                .with(scale);
            let (groups, grid) = (groups as u32, (grid.0 * (1 + parts), grid.1, grid.2));
            let shared = groups * stages_of_halves(a.head_width, MATRICES[1]);
            let (kernel, threads) = ((unit, "tree_backward"), groups * threads(many));
            to.launch("tree attention'", kernel, grid, threads, shared, arguments)?;
            if !wanted {
                return Ok(());
            }
            let count = items * rows * 2 * narrow / 8;
            let arguments = arguments![sums, turns, at(1), pitches[1], at(2), pitches[2], add(1), add(2)]
                .with(parts)
                .with(a.heads)
                .with(a.key_heads)
                .with(rows)
                .with(count);
            let grid = (count.div_ceil(256), 1, 1);
            return to.launch("tree attention'", (unit, "tree_gather"), grid, 256, 0, arguments);
        }
        // Means first, then the parts of each query head in the cotangents of keys and values.
        let count = items * a.heads * rows;
        let means = to.scratch(count * (1 + 2 * a.head_width));
        let parts = means + (count * SCALAR) as u64;
        let arguments = arguments![query, q, key, k, value, v, out, dout, width, saved]
            .with(ways.rows)
            .with(ways.seen)
            .with(means)
            .with(at(0))
            .with(add(0))
            .with(a.heads)
            .with(a.key_heads)
            .with(rows)
            .with(scale);
        let shared = stages(a.head_width);
        to.launch("tree attention'", (unit, "tree_backward_query"), grid, threads(many), shared, arguments)?;
        if at(1).is_none() && at(2).is_none() {
            return Ok(());
        }
        let arguments = arguments![query, q, key, k, value, v, dout, width, saved, ways.rows]
            .with(ways.seeing)
            .with(means)
            .with(parts)
            .with(a.heads)
            .with(a.key_heads)
            .with(rows)
            .with(scale);
        to.launch("tree attention'", (unit, "tree_backward_key"), grid, threads(many), shared, arguments)?;
        let count = items * rows * 2 * narrow;
        let arguments = arguments![parts, at(1), k, at(2), v, add(1), add(2)]
            .with(a.heads)
            .with(a.key_heads)
            .with(rows)
            .with(count);
        to.launch("tree attention'", (unit, "tree_gather"), (count.div_ceil(256), 1, 1), 256, 0, arguments)
    }
}

/// Where cotangents of queries, keys and values go that were turned before.
struct Turned {
    targets: Vec<Option<(u64, bool)>>,
    pitch: usize,
    /// How far rows turned.
    turns: u64,
}

/// Who sees whom, as bits.
struct Ways {
    /// The rows that each row sees, `[item, rows, words]`.
    rows: u64,
    /// The tiles that rows of a block see, `[item, blocks, halves]`.
    seen: u64,
    /// The tiles that see rows of a block, `[item, blocks, halves]`.
    seeing: u64,
}

impl Lowering<'_> {
    /// The position of what turned queries and keys, where nobody else reads them, and queries, keys and values fill one value before
    /// that: the cotangents may go straight to that value's.
    pub(super) fn turning(&self, a: &TreeAttention, step: &Backward) -> Option<(usize, Rope)> {
        let graph = self.tools.graph;
        let (position, rope) = graph.ops().iter().enumerate().find_map(|(position, op)| match op {
            Op::Rope(rope) if rope.output == a.query.value => Some((position, *rope)),
            _ => None,
        })?;
        let readers = graph.ops().iter().filter(|op| op.operands().contains(&rope.output)).count();
        let (queries, keys) = (a.heads * a.head_width, a.key_heads * a.head_width);
        let alone = readers == 1 && !self.tools.plan.outputs().contains(&rope.output);
        let same = a.key.value == rope.output
            && (a.query.start, a.key.start) == (0, queries)
            && (rope.heads, rope.head_width) == (a.heads + a.key_heads, a.head_width);
        let whole = rope.input.value == a.value.value
            && (rope.input.start, a.value.start) == (0, queries + keys)
            && self.shape(a.value.value).width == queries + 2 * keys;
        let fresh = step.writes.iter().all(Option::is_some) && step.writes[2] == Some(Write::Set);
        (alone && same && whole && fresh).then_some((position, rope))
    }

    /// Cotangents go that way, and turning has no step of its own.
    fn turned(&mut self, a: &TreeAttention, step: &Backward) -> Result<Option<Turned>> {
        let Some((position, rope)) = self.turning(a, step) else { return Ok(None) };
        let (queries, keys) = (a.heads * a.head_width, a.key_heads * a.head_width);
        let turns = self.turns(&rope, a.head_width / 2)?;
        self.done[position] = true;
        let base = self.cotangent(a.value.value)?;
        let at = |column: usize| Some((base + (column * self.bytes(a.value.value)) as u64, false));
        let targets = vec![at(0), at(queries), at(queries + keys)];
        Ok(Some(Turned { targets, pitch: queries + 2 * keys, turns }))
    }

    fn rows_of_block(&self, a: &TreeAttention, rows: usize, half: bool) -> usize {
        let (multiprocessors, items) = (self.tools.multiprocessors, self.items());
        if half { rows_of_block(multiprocessors, rows, a.heads, items) } else { MANY }
    }

    /// The rows that each row sees, `[item, rows, words]` of bits.
    pub(crate) fn seen_rows(&mut self, op: &AttendTree) -> Result<u64> {
        let (rows, half) = (self.shape(op.output).rows, self.is_half(op.output));
        self.ways(&op.attention, rows, half).map(|ways| ways.rows)
    }

    /// Found once for all ops of a tape that share their parents.
    fn ways(&mut self, a: &TreeAttention, rows: usize, half: bool) -> Result<Ways> {
        let many = self.rows_of_block(a, rows, half);
        let (count, words, blocks) = (self.items() * rows, rows.div_ceil(TILE), rows.div_ceil(many));
        let halves = words.div_ceil(32);
        let (of_rows, of_blocks) = (count * words * SCALAR, self.items() * blocks * halves * SCALAR);
        let bytes = of_rows + 2 * of_blocks;
        let (at, first) = self.once(Once::Ways { parent: a.parent.position(), many }, bytes);
        let (seen, seeing) = (at + of_rows as u64, at + (of_rows + of_blocks) as u64);
        if first {
            self.tape.zero("tree attention", at, bytes);
            let arguments =
                arguments![self.integers(a.parent), at, seen, seeing, rows, words, blocks, halves, count];
            let kernel = (unit(a.head_width, self.tools.precision, half, many), "tree_ways");
            self.launch("tree attention", kernel, ((32 * count).div_ceil(128), 1, 1), 128, 0, arguments)?;
        } else {
            self.wait_for_prepared();
        }
        Ok(Ways { rows: at, seen, seeing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_blocks_are_cut_into_parts() {
        // 117 blocks on 132 multiprocessors: three sets, one of them for queries. Eight times as many need no parts; 9 blocks leave room
        // for many, but 13 tiles are worth four, and one tile is worth one.
        let small = |blocks, tiles, groups| parts(132, (FEW, 64), blocks, tiles, groups);
        assert_eq!([small(117, 13, 2), small(936, 13, 2), small(9, 13, 2), small(1, 1, 1)], [2, 1, 4, 1]);
        // Wide heads and large blocks have two sets.
        assert_eq!([parts(132, (FEW, 128), 117, 13, 2), parts(132, (MANY, 64), 63, 13, 1)], [1, 3]);
    }

    #[test]
    fn groups_have_room() {
        for (many, width, tiles) in
            [(FEW, 16, 1), (FEW, 64, 13), (FEW, 128, 40), (MANY, 64, 13), (MANY, 128, 40)]
        {
            for (groups, matrices) in groups(many, width, tiles).into_iter().zip(MATRICES) {
                assert!(groups as u32 * stages_of_halves(width, matrices) <= MOST_STAGES, "{width}, {tiles}");
                assert!((1..=tiles).contains(&groups));
            }
        }
        assert_eq!([groups(FEW, 64, 13), groups(FEW, 128, 13), groups(FEW, 64, 1)], [[4, 2], [2, 2], [1, 1]]);
    }

    #[test]
    fn small_blocks_where_the_device_would_be_idle() {
        // 7 blocks of 64 rows for each of 9 heads are 63; eight members have 504.
        assert_eq!([1, 8].map(|items| rows_of_block(132, 387, 9, items)), [FEW, MANY]);
    }
}
