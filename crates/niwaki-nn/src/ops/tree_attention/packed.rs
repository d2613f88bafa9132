//! Tree attention on Hopper in tiles that pack the query heads of a key head: one kernel there, one back.

use super::{AttendTree, TreeAttention};
use crate::Result;
use crate::cuda::kernels::{EARLY, File, TILES, Unit};
use crate::cuda::lower::{Lowering, Program};
use crate::cuda::map::{Axis, Swizzle, Tiled, two};
use crate::cuda::tape::{Arguments, arguments};
use crate::ops::Op;
use std::f64::consts::LOG2_E;

const KERNELS: &File = &File {
    name: "tree-attention-packed",
    source: &[EARLY, TILES, include_str!("packed.cu"), include_str!("packed_back.cu")],
    constants: &["TILE_COLUMNS", "TILE_STAGES", "PACKED_SHARE", "PACKED_GROUPS", "PACKED_CLUSTER"],
    kernels: &[("attend_forward", SHARED), ("attend_means", 0), ("attend_backward", SHARED)],
};

/// Columns of a head.
const HEAD: usize = 64;

/// Rows of a tile, and its bytes.
const ROWS: usize = 64;
const TILE: usize = ROWS * HEAD * 2;

/// Bytes of dynamic shared memory that either kernel may ask for: what is left beside lists and numbers.
const SHARED: u32 = 200 * 1024;

/// Rows of a pass for which there is room for lists of tiles: MOST there.
const MOST: usize = 1024;

/// Blocks that share a tile of keys on the way back.
const CLUSTER: usize = 2;

/// Bytes in which a block is given the sums of the other one of its cluster: rows of HEAD floats that keep banks apart.
const GIVEN: usize = ROWS * (HEAD + 8) * 4;

/// Groups of four warps of a block, each of which has two stages of two tiles: few where many blocks keep the device busy.
const FEW: usize = 1;
const MANY: usize = 3;

/// How queries lie in tiles, and who works on them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed {
    /// Query heads that share a key head.
    share: usize,
    /// Rows of the pass in a tile.
    rows: usize,
    groups: usize,
}

/// What a backward pass reads besides, and where it writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pulled {
    /// The cotangent of what came of attention, `[row, head, column]`.
    pub(crate) slope: u64,
    /// Means of that times what it is of, `[row, head]`: the sums of weight times slope.
    pub(crate) means: u64,
    /// How far rows were turned.
    pub(crate) turns: u64,
    /// Where the cotangents of queries, keys and values go, side by side, as they were before they were turned.
    pub(crate) out: u64,
    /// What they are scaled by, `[row]`, and where their sums times what they belong to go, not scaled, `[row, heads + 2 key heads]`.
    pub(crate) scaled: Option<(u64, u64)>,
}

impl Packed {
    fn new(attention: &TreeAttention, groups: usize) -> Self {
        let share = attention.heads / attention.key_heads;
        Self { share, rows: ROWS / share, groups }
    }

    /// Whether heads and rows are such that tiles have room for them.
    fn is_able(attention: &TreeAttention, rows: usize) -> bool {
        let &TreeAttention { heads, key_heads, head_width, scale, .. } = attention;
        head_width == HEAD && heads / key_heads <= ROWS && scale > 0.0 && rows <= MOST
    }

    fn unit(self) -> Unit {
        // Tiles of attention have as many columns as a head.
        Unit::sized(KERNELS, &[HEAD, 2, self.share, self.groups, CLUSTER].map(|size| size as u8))
    }

    fn threads(self) -> u32 {
        128 * self.groups as u32
    }

    /// Bytes of shared memory in the forward pass, of that many rows: the queries' tile, stages, and what each row sees.
    fn forward_shared(self, rows: usize) -> u32 {
        ((1 + 4 * self.groups) * TILE + self.seen(rows) + 1024) as u32
    }

    /// The same in the backward pass: two tiles that stay, stages, and either what each row sees or what the other block gives.
    fn backward_shared(self, rows: usize) -> u32 {
        ((2 + 4 * self.groups) * TILE + self.seen(rows).max(GIVEN) + 1024) as u32
    }

    fn seen(self, rows: usize) -> usize {
        self.rows * rows.div_ceil(32) * 4
    }
}

/// The kernels that an op may call for.
pub(super) fn units(op: &AttendTree, program: &Program<'_>) -> Vec<Unit> {
    let rows = program.graph.shape(op.output).rows;
    if !program.hopper || !program.is_half(op.output) || !Packed::is_able(&op.attention, rows) {
        return Vec::new();
    }
    [FEW, MANY].map(|groups| Packed::new(&op.attention, groups).unit()).to_vec()
}

impl Lowering<'_> {
    /// How an op is done so in a pass over all rows, where it is: in halves on Hopper, and if it is pulled back, cotangents turn on their
    /// way to one value.
    pub(crate) fn packed(&self, op: &AttendTree, position: usize) -> Option<Packed> {
        let (a, rows) = (&op.attention, self.shape(op.output).rows);
        let able = self.tools.hopper && self.is_half(op.output) && Packed::is_able(a, rows);
        // Rows start on 16 bytes.
        let even = a.columns().iter().all(|of| self.shape(of.value).width.is_multiple_of(8));
        let step = self.tools.plan.backward().iter().find(|step| step.op == position);
        let pulled = step.is_none_or(|step| self.turning(a, step).is_some());
        (able && even && pulled).then(|| self.pack(op))
    }

    /// Makes aside what the ops of a tape that are done so have in common: how far rows turn, and who sees whom.
    pub(crate) fn prepare_attention(&mut self) -> Result<()> {
        let ops = self.tools.graph.ops();
        let attend = ops.iter().enumerate().find_map(|(position, op)| match op {
            Op::TreeAttention(attend) => self.packed(attend, position).map(|_| *attend),
            _ => None,
        });
        let Some(attend) = attend else { return Ok(()) };
        let rope = ops.iter().find_map(|op| match op {
            Op::Rope(rope) => (rope.output == attend.attention.query.value).then_some(*rope),
            _ => None,
        });
        self.aside = true;
        let turned = rope.map_or(Ok(0), |rope| self.turns(&rope, attend.attention.head_width / 2));
        let made = turned.and_then(|_| self.seen_rows(&attend));
        self.aside = false;
        self.prepared = Some(self.tape.last());
        made.map(|_| ())
    }

    /// What follows waits for what was made so: a caller that finds it made is about to read it.
    pub(crate) fn wait_for_prepared(&mut self) {
        if let Some(place) = self.prepared.take() {
            self.tape.wait_for(place);
        }
    }

    /// How an op is done so which is known to be able to.
    pub(crate) fn pack(&self, op: &AttendTree) -> Packed {
        let (a, rows) = (&op.attention, self.shape(op.output).rows);
        let many = Packed::new(a, MANY);
        let blocks = rows.div_ceil(many.rows) * a.key_heads * self.items();
        if blocks <= self.tools.multiprocessors { many } else { Packed::new(a, FEW) }
    }

    /// Heads of rows `[item, row, head, column]`, in tiles of so many rows and heads.
    fn heads(&self, at: u64, pitch: usize, heads: usize, rows: usize, tile: [usize; 2]) -> Tiled {
        let axes = vec![
            Axis { size: HEAD, apart: 1, tile: HEAD },
            Axis { size: heads, apart: HEAD, tile: tile[1] },
            Axis { size: rows, apart: pitch, tile: tile[0] },
            Axis { size: self.items(), apart: rows * pitch, tile: 1 },
        ];
        Tiled { at, axes, swizzle: Swizzle::Bytes128 }
    }

    /// Tiles of queries, keys and values.
    fn operands(&self, op: &AttendTree, packed: Packed) -> Result<[Tiled; 3]> {
        let (a, rows) = (&op.attention, self.shape(op.output).rows);
        let tiled = |of, heads, tile| {
            let (at, pitch) = self.columns(of)?;
            Ok(self.heads(at, pitch, heads, rows, tile))
        };
        let queries = tiled(a.query, a.heads, [packed.rows, packed.share])?;
        Ok([queries, tiled(a.key, a.key_heads, [ROWS, 1])?, tiled(a.value, a.key_heads, [ROWS, 1])?])
    }

    pub(crate) fn attend_packed(
        &mut self,
        op: &AttendTree,
        packed: Packed,
        ways: u64,
        saved: u64,
    ) -> Result<()> {
        let (a, rows) = (&op.attention, self.shape(op.output).rows);
        let tiled = self.operands(op, packed)?;
        let scale = (a.scale * LOG2_E) as f32;
        let words =
            [ways, saved, self.base(op.output)?, two(a.heads, rows), two(scale.to_bits() as usize, 0)];
        let grid = (rows.div_ceil(packed.rows), a.key_heads, self.items());
        let (kernel, arguments) =
            ((packed.unit(), "attend_forward"), Arguments::behind(tiled.to_vec(), &words));
        self.launch("tree attention", kernel, grid, packed.threads(), packed.forward_shared(rows), arguments)
    }

    /// Means for [`Pulled`] where nobody else has made them.
    pub(super) fn packed_means(&mut self, op: &AttendTree, packed: Packed, slope: u64) -> Result<u64> {
        let count = self.all_rows(op.output) * op.attention.heads;
        let (means, pieces) = (self.scratch(count), count * HEAD / 8);
        let arguments = arguments![self.base(op.output)?, slope, means, pieces];
        let (kernel, grid) = ((packed.unit(), "attend_means"), (pieces.div_ceil(256), 1, 1));
        self.launch("tree attention'", kernel, grid, 256, 0, arguments)?;
        Ok(means)
    }

    /// Begins before the kernel before it has ended, which may write slope, means and nothing else that this reads.
    pub(crate) fn attend_packed_backward(
        &mut self,
        op: &AttendTree,
        packed: Packed,
        (ways, saved): (u64, u64),
        pulled: Pulled,
    ) -> Result<()> {
        let (a, rows) = (&op.attention, self.shape(op.output).rows);
        let [query, key, value] = self.operands(op, packed)?;
        let slope = self.heads(pulled.slope, a.heads * HEAD, a.heads, rows, [packed.rows, packed.share]);
        let [(queries, q), (keys, k), (values, v)] =
            [self.columns(a.query)?, self.columns(a.key)?, self.columns(a.value)?];
        let [scale, natural] = [a.scale * LOG2_E, a.scale].map(|by| (by as f32).to_bits() as usize);
        let (scales, sums) = pulled.scaled.unwrap_or_default();
        let words = [
            queries,
            keys,
            values,
            ways,
            saved,
            pulled.means,
            pulled.turns,
            scales,
            sums,
            pulled.out,
            two(a.heads, a.key_heads),
            two(rows, q),
            two(k, v),
            two(scale, natural),
        ];
        let tiles = rows.div_ceil(packed.rows) * a.key_heads;
        let clusters = tiles.div_ceil(CLUSTER) + rows.div_ceil(ROWS) * a.key_heads;
        let arguments = Arguments::behind(vec![query, slope, key, value], &words);
        let (kernel, grid) = ((packed.unit(), "attend_backward"), (CLUSTER, self.items(), clusters));
        let (threads, shared) = (packed.threads(), packed.backward_shared(rows));
        self.early(|to| to.launch("tree attention'", kernel, grid, threads, shared, arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fit_shared_memory() {
        // SmolLM2-135M: three query heads share a key head, so that a tile has 21 rows.
        let packed = |share: usize, groups: usize| Packed { share, rows: ROWS / share, groups };
        assert_eq!(packed(3, MANY).rows, 21);
        for groups in [FEW, MANY] {
            // The sums of a tile's keys and values of each group take the place of its stages.
            let (sums, tiles) = (groups * 2 * GIVEN, (2 + 4 * groups) * TILE);
            assert!(sums <= tiles, "{sums} bytes in {tiles}");
            for packed in (1..=ROWS).map(|share| packed(share, groups)) {
                assert!(
                    packed.forward_shared(MOST).max(packed.backward_shared(MOST)) <= SHARED,
                    "{packed:?}"
                );
            }
        }
    }
}
