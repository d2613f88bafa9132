//! `attention`: the kernel for 8 rows of 32-wide heads, the one for few keys on the tensor cores, and the general one.

use super::{Lowering, SCALAR, visible_code};
use crate::cuda::blas::Precision;
use crate::cuda::kernels::{Heads, SHARED_LIMIT, Unit};
use crate::cuda::tape::arguments;
use crate::graph::{Attention, Columns, Graph, Value, Visible};
use crate::plan::Backward;
use crate::{Error, Result};

/// Rows and head width of the small kernel.
const SMALL: (usize, usize) = (8, 32);

/// Whether the small kernel serves this attention.
pub(super) fn is_small(graph: &Graph, attention: &Attention) -> bool {
    let columns = [attention.query, attention.key, attention.value];
    attention.head_width == SMALL.1
        && attention.heads == attention.key_heads
        && !matches!(attention.visible, Visible::Masked(_))
        && columns.iter().all(|c| {
            graph.shape(c.value).rows == SMALL.0
                && c.start.is_multiple_of(4)
                && graph.shape(c.value).width.is_multiple_of(4)
        })
}

/// Rows that a warp takes at a time on the tensor cores.
pub(super) const ROWS: usize = 16;

/// Scalars from one key to the next in the shared memory of kernels on the tensor cores; `tensor.cu` says why.
pub(super) fn pitch(heads: usize, depth: usize) -> usize {
    heads * depth.next_multiple_of(8) + 4
}

/// Scalars that a warp of those kernels needs to turn its rows of two sets of columns.
pub(super) fn stage(left: usize, right: usize) -> usize {
    ROWS * ((left.next_multiple_of(ROWS) + right.next_multiple_of(8) + 23) / 32 * 32 + 8)
}

/// Keys, heads and columns of a head up to which the sums of the kernel for few keys stay in registers.
const FEW: (usize, usize, usize) = (64, 16, 32);

/// The kernel file for few keys and narrow heads, where it serves this attention.
pub(super) fn few(graph: &Graph, attention: &Attention, precision: Precision) -> Option<Unit> {
    let Attention { heads, head_width: depth, .. } = *attention;
    let keys = graph.shape(attention.key.value).rows;
    let fits = keys <= FEW.0 && heads <= FEW.1 && depth <= FEW.2 && heads == attention.key_heads;
    // Columns of an even number are read in pairs.
    let paired = [attention.query, attention.key, attention.value]
        .iter()
        .all(|columns| columns.start.is_multiple_of(2) && graph.shape(columns.value).width.is_multiple_of(2));
    let serves = fits
        && (paired || !depth.is_multiple_of(2))
        && few_shared(heads, depth, keys).1 <= SHARED_LIMIT as usize
        && attention.visible != Visible::Causal
        && !is_small(graph, attention);
    let split = precision == Precision::F32;
    let heads = Heads { heads: heads as u8, depth: depth as u8, keys: keys as u8, split };
    serves.then_some(Unit::AttentionFew(heads))
}

/// Bytes of shared memory of attention to few keys: keys and values, and in the backward pass a stage for each head.
fn few_shared(heads: usize, depth: usize, keys: usize) -> (usize, usize) {
    let both = 2 * keys.next_multiple_of(8) * pitch(heads, depth);
    (both * SCALAR, (both + heads * stage(depth, keys)) * SCALAR)
}

fn too_large(shared: usize) -> Error {
    let reason =
        format!("{shared} bytes of shared memory are needed on this device and {SHARED_LIMIT} are there");
    Error::Unsupported { op: "attention", reason }
}

/// Columns of a head that the kernel for one row takes: four per lane of a warp.
const ROW_WIDTH: usize = 128;

impl Lowering<'_> {
    /// Where a run of columns starts in its value, all rows, and the value's width.
    fn columns(&self, columns: Columns) -> Result<(u64, usize)> {
        let at = self.base(columns.value)? + (columns.start * SCALAR) as u64;
        Ok((at, self.shape(columns.value).width))
    }

    /// Where the mask lies, where there is one.
    fn mask_of(&self, a: &Attention) -> Option<u64> {
        match a.visible {
            Visible::Masked(mask) => Some(self.ground.masks[mask.position()]),
            Visible::All | Visible::Causal => None,
        }
    }

    pub(super) fn attention_forward(&mut self, position: usize, a: &Attention, output: Value) -> Result<()> {
        let ((query, q), (key, k), (value, v)) =
            (self.columns(a.query)?, self.columns(a.key)?, self.columns(a.value)?);
        let (out, width) = (self.base(output)?, self.shape(output).width);
        let scale = a.scale as f32;
        if is_small(self.tools.graph, a) && self.row.is_none() {
            let causal = a.visible == Visible::Causal;
            let arguments =
                arguments![query, q, key, k, value, v, out, width, self.items(), a.heads, scale, causal];
            let grid = ((self.items() * a.heads).div_ceil(8), 1, 1);
            let kernel = (Unit::AttentionSmall, "attention_small_forward");
            return self.launch("attention", kernel, grid, 256, 0, arguments);
        }
        let (rows, keys) = (self.shape(a.query.value).rows, self.shape(a.key.value).rows);
        let mask = self.mask_of(a);
        if let Some(unit) = few(self.tools.graph, a, self.tools.precision).filter(|_| self.row.is_none()) {
            let arguments = arguments![query, q, key, k, value, v, out, width, mask, rows, scale];
            let shared = few_shared(a.heads, a.head_width, keys).0 as u32;
            let (kernel, block) = ((unit, "attention_few_forward"), 32 * a.heads as u32);
            return self.launch("attention", kernel, (self.items(), 1, 1), block, shared, arguments);
        }
        if let Some(row) = self.row.filter(|_| a.visible == Visible::Causal && a.head_width <= ROW_WIDTH) {
            let arguments = arguments![
                query,
                q,
                key,
                k,
                value,
                v,
                out,
                width,
                a.heads,
                a.key_heads,
                a.head_width,
                rows,
                row,
                self.items(),
                scale,
            ];
            let grid = ((self.items() * a.heads).div_ceil(8), 1, 1);
            let name = if a.head_width == 32 { "attention_row_32" } else { "attention_row" };
            return self.launch("attention", (Unit::AttentionAny, name), grid, 256, 0, arguments);
        }
        let (first, count) = self.row.map_or((0, rows), |row| (row, 1));
        let shared = ((2 * keys + count) * (a.head_width + 1) + count * keys) * SCALAR;
        if shared > SHARED_LIMIT as usize {
            return Err(too_large(shared));
        }
        let arguments = arguments![
            query,
            q,
            key,
            k,
            value,
            v,
            out,
            width,
            self.saved(position),
            mask,
            visible_code(a.visible),
            a.heads,
            a.key_heads,
            a.head_width,
            rows,
            keys,
            first,
            count,
            scale,
        ];
        let kernel = (Unit::AttentionAny, "attention_any_forward");
        self.launch("attention", kernel, (self.items(), a.heads, 1), 128, shared as u32, arguments)
    }

    pub(super) fn attention_backward(&mut self, step: &Backward, a: &Attention, output: Value) -> Result<()> {
        let ((query, q), (key, k), (value, v)) =
            (self.columns(a.query)?, self.columns(a.key)?, self.columns(a.value)?);
        let (dout, width) = (self.cotangent(output)?, self.shape(output).width);
        let narrow = a.key_heads * a.head_width;
        let operands = [(a.query, a.heads * a.head_width), (a.key, narrow), (a.value, narrow)];
        let targets = self.column_targets("attention", &operands, &step.writes)?;
        let at = |place: usize| targets[place].map(|(at, _)| at);
        let add = |place: usize| targets[place].is_some_and(|(_, add)| add);
        let scale = a.scale as f32;
        if is_small(self.tools.graph, a) {
            if targets.contains(&None) {
                let reason =
                    "queries, keys and values must all lead back to parameters on this device".to_owned();
                return Err(Error::Unsupported { op: "attention", reason });
            }
            let causal = a.visible == Visible::Causal;
            let arguments = arguments![
                query,
                q,
                key,
                k,
                value,
                v,
                dout,
                width,
                at(0),
                at(1),
                at(2),
                add(0),
                add(1),
                add(2),
                self.items(),
                a.heads,
                scale,
                causal,
            ];
            let grid = ((self.items() * a.heads).div_ceil(4), 1, 1);
            let kernel = (Unit::AttentionSmall, "attention_small_backward");
            return self.launch("attention'", kernel, grid, 128, 0, arguments);
        }
        let (rows, keys) = (self.shape(a.query.value).rows, self.shape(a.key.value).rows);
        if let Some(unit) = few(self.tools.graph, a, self.tools.precision) {
            let mask = self.mask_of(a);
            let arguments = arguments![
                query,
                q,
                key,
                k,
                value,
                v,
                dout,
                width,
                mask,
                at(0),
                at(1),
                at(2),
                add(0),
                add(1),
                add(2),
                rows,
                scale,
            ];
            let (kernel, block) = ((unit, "attention_few_backward"), 32 * a.heads as u32);
            let shared = few_shared(a.heads, a.head_width, keys).1 as u32;
            return self.launch("attention'", kernel, (self.items(), 1, 1), block, shared, arguments);
        }
        let shared = ((4 * keys + 2 * rows) * (a.head_width + 1) + rows * keys) * SCALAR;
        if shared > SHARED_LIMIT as usize {
            return Err(too_large(shared));
        }
        let arguments = arguments![
            query,
            q,
            key,
            k,
            value,
            v,
            dout,
            width,
            self.must_saved(step.op)?,
            at(0),
            at(1),
            at(2),
            add(0),
            add(1),
            add(2),
            a.heads,
            a.key_heads,
            a.head_width,
            rows,
            keys,
            scale,
        ];
        let kernel = (Unit::AttentionAny, "attention_any_backward");
        self.launch("attention'", kernel, (self.items(), a.key_heads, 1), 128, shared as u32, arguments)
    }
}
