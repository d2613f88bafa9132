//! Attention on CUDA: the kernel for 8 rows of 32-wide heads, the one for few keys on the tensor cores, and the general
//! one.

use super::{Attend, Attention, Visible};
use crate::cuda::Precision;
use crate::cuda::check::{Case, followed, grown};
use crate::cuda::kernels::{File, PRODUCTS, SHARED_LIMIT, TENSOR, TENSOR_CONSTANTS, Unit};
use crate::cuda::lower::{Lowering, Program, SCALAR};
use crate::cuda::tape::arguments;
use crate::graph::{Columns, Graph, Value};
use crate::ops::OnCuda;
use crate::plan::Backward;
use crate::{Error, Result};

/// Whether queries, keys and values are in halves, and whether results are.
const STORAGE: &[&str] = &["ATTENTION_IN", "ATTENTION_OUT"];

const SMALL_KERNELS: &File = &File {
    name: "attention-small",
    source: &[include_str!("small.cu")],
    constants: STORAGE,
    kernels: &[("attention_small_forward", 0), ("attention_small_backward", 0)],
};

const FEW_KERNELS: &File = &File {
    name: "attention-few",
    source: &[PRODUCTS, TENSOR, include_str!("few.cu")],
    constants: TENSOR_CONSTANTS,
    kernels: &[("attention_few_forward", SHARED_LIMIT), ("attention_few_backward", SHARED_LIMIT)],
};

const ANY_KERNELS: &File = &File {
    name: "attention-any",
    source: &[include_str!("any.cu")],
    constants: STORAGE,
    kernels: &[
        ("attention_any_forward", SHARED_LIMIT),
        ("attention_row", 0),
        ("attention_row_32", 0),
        ("attention_any_backward", SHARED_LIMIT),
    ],
};

/// A kernel file for operands and results in halves, or not.
fn stored(file: &'static File, halves: [bool; 2]) -> Unit {
    Unit::sized(file, &halves.map(u8::from))
}

impl OnCuda for Attend {
    const CASES: &'static [Case] = &[
        ("attention 8 × 32, causal", |g| program(g, 8, (4, 4, 32), Which::Causal)),
        ("attention 8 × 32, all", |g| program(g, 8, (2, 2, 32), Which::All)),
        ("attention 8 × 32, masked", |g| program(g, 8, (2, 2, 32), Which::Masked)),
        ("attention 13 × 16, all", |g| program(g, 13, (3, 3, 16), Which::All)),
        ("attention 11 × 12, causal, shared keys", |g| program(g, 11, (6, 2, 12), Which::Causal)),
        ("attention 20 × 16, all", |g| program(g, 20, (4, 4, 16), Which::All)),
        ("attention 20 × 16, masked", |g| program(g, 20, (4, 4, 16), Which::Masked)),
        ("attention, wide heads", |g| program(g, 9, (2, 2, 48), Which::All)),
        ("attention, cross, masked", cross),
        ("attention 8 × 32, causal, inside", |g| inside(g, 8, (4, 4, 32), Which::Causal)),
        ("attention 11 × 16, causal, shared keys, inside", |g| inside(g, 11, (6, 2, 16), Which::Causal)),
        ("attention 9 × 48, masked, inside", |g| inside(g, 9, (2, 2, 48), Which::Masked)),
    ];

    fn halves(&self, graph: &Graph) -> Vec<Vec<Value>> {
        let a = &self.attention;
        let columns = [a.query, a.key, a.value];
        // The kernel for few keys knows f32 alone; the small one reads eight halves at a time.
        let able = few(graph, a, Precision::Bf16).is_none()
            && columns.iter().all(|columns| columns.start.is_multiple_of(8));
        if able { vec![columns.map(|columns| columns.value).to_vec(), vec![self.output]] } else { Vec::new() }
    }

    fn units(&self, program: &Program<'_>) -> Result<Vec<Unit>> {
        let Program { graph, precision, .. } = *program;
        let halves = [self.attention.query.value, self.output].map(|value| program.is_half(value));
        let small = is_small(graph, &self.attention).then(|| stored(SMALL_KERNELS, halves));
        let few = few(graph, &self.attention, precision);
        Ok(std::iter::once(stored(ANY_KERNELS, halves)).chain(small).chain(few).collect())
    }

    fn lower(&self, to: &mut Lowering<'_>, at: usize) -> Result<()> {
        to.attention_forward(at, &self.attention, self.output)
    }

    fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
        to.attention_backward(step, &self.attention, self.output)
    }
}

/// Rows and head width of the small kernel.
const SMALL: (usize, usize) = (8, 32);

/// Whether the small kernel serves this attention.
fn is_small(graph: &Graph, attention: &Attention) -> bool {
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
pub(crate) const ROWS: usize = 16;

/// Scalars from one key to the next in the shared memory of kernels on the tensor cores; `tensor.cu` says why.
pub(crate) fn pitch(heads: usize, depth: usize) -> usize {
    heads * depth.next_multiple_of(8) + 4
}

/// Scalars that a warp of those kernels needs to transpose its rows of two sets of columns.
pub(crate) fn stage(left: usize, right: usize) -> usize {
    ROWS * ((left.next_multiple_of(ROWS) + right.next_multiple_of(8) + 23) / 32 * 32 + 8)
}

/// Keys, heads and columns of a head up to which the sums of the kernel for few keys stay in registers.
const FEW: (usize, usize, usize) = (64, 16, 32);

/// The kernel file for few keys and narrow heads, where it serves this attention.
fn few(graph: &Graph, attention: &Attention, precision: Precision) -> Option<Unit> {
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
    let split = u8::from(precision == Precision::F32);
    serves.then(|| Unit::sized(FEW_KERNELS, &[heads as u8, depth as u8, keys as u8, split]))
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
    pub(crate) fn columns(&self, columns: Columns) -> Result<(u64, usize)> {
        let at = self.base(columns.value)? + (columns.start * self.bytes(columns.value)) as u64;
        Ok((at, self.shape(columns.value).width))
    }

    /// Where the mask lies, where there is one.
    fn mask_of(&self, a: &Attention) -> Option<u64> {
        match a.visible {
            Visible::Masked(mask) => Some(self.addresses.masks[mask.position()]),
            Visible::All | Visible::Causal => None,
        }
    }

    fn attention_forward(&mut self, position: usize, a: &Attention, output: Value) -> Result<()> {
        let ((query, q), (key, k), (value, v)) =
            (self.columns(a.query)?, self.columns(a.key)?, self.columns(a.value)?);
        let (out, width) = (self.base(output)?, self.shape(output).width);
        let scale = a.scale as f32;
        let halves = [self.is_half(a.query.value), self.is_half(output)];
        let any = stored(ANY_KERNELS, halves);
        if is_small(self.tools.graph, a) && self.row.is_none() {
            let causal = a.visible == Visible::Causal;
            let arguments =
                arguments![query, q, key, k, value, v, out, width, self.items(), a.heads, scale, causal];
            let grid = ((self.items() * a.heads).div_ceil(8), 1, 1);
            let kernel = (stored(SMALL_KERNELS, halves), "attention_small_forward");
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
            return self.launch("attention", (any, name), grid, 256, 0, arguments);
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
            code(a.visible),
            a.heads,
            a.key_heads,
            a.head_width,
            rows,
            keys,
            first,
            count,
            scale,
        ];
        let kernel = (any, "attention_any_forward");
        self.launch("attention", kernel, (self.items(), a.heads, 1), 128, shared as u32, arguments)
    }

    fn attention_backward(&mut self, step: &Backward, a: &Attention, output: Value) -> Result<()> {
        let ((query, q), (key, k), (value, v)) =
            (self.columns(a.query)?, self.columns(a.key)?, self.columns(a.value)?);
        let (dout, width) = (self.cotangent(output)?, self.shape(output).width);
        let narrow = a.key_heads * a.head_width;
        let operands = [(a.query, a.heads * a.head_width), (a.key, narrow), (a.value, narrow)];
        let targets = self.column_targets("attention", &operands, &step.writes)?;
        let at = |place: usize| targets[place].map(|(at, _)| at);
        let add = |place: usize| targets[place].is_some_and(|(_, add)| add);
        let scale = a.scale as f32;
        let halves = [self.is_half(a.query.value), self.is_half(output)];
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
            let kernel = (stored(SMALL_KERNELS, halves), "attention_small_backward");
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
        let kernel = (stored(ANY_KERNELS, halves), "attention_any_backward");
        self.launch("attention'", kernel, (self.items(), a.key_heads, 1), 128, shared as u32, arguments)
    }
}

/// The code of a visibility in the kernels.
fn code(visible: Visible) -> usize {
    match visible {
        Visible::All => 0,
        Visible::Causal => 1,
        Visible::Masked(_) => 2,
    }
}

enum Which {
    All,
    Causal,
    Masked,
}

fn program(g: &mut Graph, rows: usize, sizes: (usize, usize, usize), which: Which) -> Result<Vec<Value>> {
    let (heads, key_heads, head_width) = sizes;
    let (wide, narrow) = (heads * head_width, key_heads * head_width);
    let mixed = grown(g, "x", rows, wide + 2 * narrow)?;
    let visible = match which {
        Which::All => Visible::All,
        Which::Causal => Visible::Causal,
        Which::Masked => Visible::Masked(g.mask("seen", rows, rows)),
    };
    let out = g.attention(Attention {
        query: Columns { value: mixed, start: 0 },
        key: Columns { value: mixed, start: wide },
        value: Columns { value: mixed, start: wide + narrow },
        heads,
        key_heads,
        head_width,
        scale: 1.0 / (head_width as f64).sqrt(),
        visible,
    })?;
    Ok(vec![out])
}

fn inside(g: &mut Graph, rows: usize, sizes: (usize, usize, usize), which: Which) -> Result<Vec<Value>> {
    let out = program(g, rows, sizes, which)?[0];
    Ok(vec![followed(g, out)?])
}

fn cross(g: &mut Graph) -> Result<Vec<Value>> {
    let query = grown(g, "query", 3, 2 * 10)?;
    let both = grown(g, "both", 9, 4 * 10 + 4)?;
    let mask = g.mask("seen", 3, 9);
    let out = g.attention(Attention {
        query: query.into(),
        key: Columns { value: both, start: 4 },
        value: Columns { value: both, start: 24 },
        heads: 2,
        key_heads: 2,
        head_width: 10,
        scale: 0.4,
        visible: Visible::Masked(mask),
    })?;
    Ok(vec![out])
}
