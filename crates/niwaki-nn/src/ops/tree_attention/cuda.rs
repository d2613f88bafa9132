//! Tree attention on CUDA: a warp per row and head that walks up, and one per key that meets the rows below it.

use super::{AttendTree, TreeAttention};
use crate::cuda::check::{Case, grown};
use crate::cuda::kernels::{File, SHARED_LIMIT, Unit};
use crate::cuda::lower::{Lowering, Program};
use crate::cuda::tape::arguments;
use crate::graph::{Columns, Graph, Index, Value};
use crate::ops::OnCuda;
use crate::plan::Backward;
use crate::{Error, Result};

const KERNELS: &File = &File {
    name: "tree-attention",
    source: &[include_str!("kernel.cu")],
    constants: &[],
    kernels: &[("tree_forward", 0), ("tree_backward_query", 0), ("tree_backward_key", SHARED_LIMIT)],
};

const UNIT: Unit = Unit::plain(KERNELS);

/// Columns of a head that a warp has registers for.
const WIDEST: usize = 256;

impl OnCuda for AttendTree {
    const CASES: &'static [Case] = &[
        ("tree attention, any parents", |g| {
            let parent = g.indices("parent", 11, 11);
            program(g, parent, 11, (6, 2, 12))
        }),
        // A prompt of 40 rows and three continuations of 9.
        ("tree attention, shared prompt", |g| {
            let branch = |row: i32| if row >= 40 && (row - 40) % 9 == 0 { 39 } else { row - 1 };
            let parents: Vec<i32> = (0..67).map(branch).collect();
            let parent = g.constant(&parents);
            program(g, parent, 67, (3, 1, 64))
        }),
        ("tree attention, wide heads", |g| {
            let parent = g.constant(&[-1, 0, 1, 1, 3, 0, 5]);
            program(g, parent, 7, (2, 2, 128))
        }),
    ];

    fn units(&self, program: &Program<'_>) -> Result<Vec<Unit>> {
        let (width, rows) = (self.attention.head_width, program.graph.shape(self.output).rows);
        if width > WIDEST || rows > SHARED_LIMIT as usize {
            let reason = format!(
                "{rows} rows with heads of {width} columns; on this device at most {SHARED_LIMIT} rows and {WIDEST} columns"
            );
            return Err(Error::Unsupported { op: "tree_attention", reason });
        }
        Ok(vec![UNIT])
    }

    fn lower(&self, to: &mut Lowering<'_>, at: usize) -> Result<()> {
        let (a, rows) = (&self.attention, to.shape(self.output).rows);
        let ((query, q), (key, k), (value, v)) =
            (to.columns(a.query)?, to.columns(a.key)?, to.columns(a.value)?);
        let (first, count) = to.row.map_or((0, rows), |row| (row, 1));
        let arguments = arguments![
            query,
            q,
            key,
            k,
            value,
            v,
            to.base(self.output)?,
            to.shape(self.output).width,
            to.saved(at),
            to.integers(a.parent),
            a.heads,
            a.key_heads,
            a.head_width,
            rows,
            first,
            count,
            to.items(),
            a.scale as f32,
        ];
        let grid = ((to.items() * a.heads * count).div_ceil(4), 1, 1);
        to.launch("tree attention", (UNIT, "tree_forward"), grid, 128, 0, arguments)
    }

    fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
        let (a, rows) = (&self.attention, to.shape(self.output).rows);
        let ((query, q), (key, k), (value, v)) =
            (to.columns(a.query)?, to.columns(a.key)?, to.columns(a.value)?);
        let (dout, width) = (to.cotangent(self.output)?, to.shape(self.output).width);
        let (saved, parent, items) = (to.must_saved(step.op)?, to.integers(a.parent), to.items());
        let narrow = a.key_heads * a.head_width;
        let operands = [(a.query, a.heads * a.head_width), (a.key, narrow), (a.value, narrow)];
        let targets = to.column_targets("tree attention", &operands, &step.writes)?;
        let at = |place: usize| targets[place].map(|(at, _)| at);
        let add = |place: usize| targets[place].is_some_and(|(_, add)| add);
        let means = to.scratch(items * a.heads * rows);
        let scale = a.scale as f32;
        let arguments = arguments![
            query,
            q,
            key,
            k,
            value,
            v,
            dout,
            width,
            saved,
            parent,
            means,
            at(0),
            add(0),
            a.heads,
            a.key_heads,
            a.head_width,
            rows,
            items,
            scale,
        ];
        let grid = ((items * a.heads * rows).div_ceil(4), 1, 1);
        to.launch("tree attention'", (UNIT, "tree_backward_query"), grid, 128, 0, arguments)?;
        let arguments = arguments![
            query,
            q,
            key,
            k,
            value,
            v,
            dout,
            width,
            saved,
            parent,
            means,
            at(1),
            at(2),
            add(1),
            add(2),
            a.heads,
            a.key_heads,
            a.head_width,
            rows,
            scale,
        ];
        let grid = (items * a.key_heads * rows, 1, 1);
        to.launch("tree attention'", (UNIT, "tree_backward_key"), grid, 32, rows as u32, arguments)
    }
}

fn program(g: &mut Graph, parent: Index, rows: usize, sizes: (usize, usize, usize)) -> Result<Vec<Value>> {
    let (heads, key_heads, head_width) = sizes;
    let (wide, narrow) = (heads * head_width, key_heads * head_width);
    let mixed = grown(g, "x", rows, wide + 2 * narrow + 3)?;
    let out = g.tree_attention(TreeAttention {
        query: Columns { value: mixed, start: 0 },
        key: Columns { value: mixed, start: wide + 3 },
        value: Columns { value: mixed, start: wide + narrow + 3 },
        heads,
        key_heads,
        head_width,
        scale: 1.0 / (head_width as f64).sqrt(),
        parent,
    })?;
    Ok(vec![out])
}
