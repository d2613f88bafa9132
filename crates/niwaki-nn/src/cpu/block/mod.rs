//! One block of items of one member: the tape run in the arena.
//!
//! This file gives ops their slices; [`forward`] and [`backward`] match ops to kernels.

mod backward;
mod forward;
mod weights;

use super::Real;
use super::buffer::Buffer;
use super::kernels::LANES;
use super::point::{Operands, Sizes};
use crate::graph::{Attention, Graph, Index, IndexSource, Mask, Op, Point, Value, Visible};
use crate::layout::Param;
use crate::plan::{Plan, Region};
use std::ops::Range;

pub(crate) use weights::Weights;

/// What was loaded, `[member, item, …]`, by position in the graph's tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs<F> {
    pub(crate) scalars: Vec<Vec<F>>,
    pub(crate) indices: Vec<Vec<i32>>,
    pub(crate) masks: Vec<Vec<u8>>,
}

/// The memory that a thread runs blocks in.
#[derive(Debug, Default)]
pub(crate) struct Workspace<F> {
    arena: Buffer<F>,
    scratch: Buffer<F>,
}

impl<F: Real> Workspace<F> {
    /// Makes room for `items` items of a plan.
    pub(crate) fn reserve(&mut self, graph: &Graph, plan: &Plan, items: usize) {
        self.arena.reserve(plan.arena() * items);
        self.scratch.reserve(graph.ops().iter().map(|op| scratch(graph, op)).max().unwrap_or(0));
    }
}

/// Scalars that an op's kernels need besides the arena.
fn scratch(graph: &Graph, op: &Op) -> usize {
    match op {
        Op::Attention { attention: a, .. } => {
            let (queries, keys) = (graph.shape(a.query.value).rows, graph.shape(a.key.value).rows);
            a.heads * queries * keys + LANES * keys
        }
        Op::Point { point, .. } => pointing(graph, point).scratch(),
        Op::LayerNorm { input, .. } | Op::RmsNorm { input, .. } => 2 * graph.shape(*input).width,
        Op::Pick { logits, .. } => graph.shape(*logits).width,
        _ => 0,
    }
}

/// The sizes of a pointer.
fn pointing(graph: &Graph, point: &Point) -> Sizes {
    let key = graph.shape(point.key);
    let Point { heads, residual, bound, .. } = *point;
    Sizes { keys: key.rows, width: key.width, heads, residual, bound }
}

/// Which items of which member, and which rows of them.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    pub(crate) member: usize,
    /// Items of the member.
    pub(crate) items: Range<usize>,
    /// Items that the member has in all.
    pub(crate) total: usize,
    /// One row of each item, or all.
    pub(crate) row: Option<usize>,
}

/// A block at work.
pub(crate) struct Block<'a, F> {
    graph: &'a Graph,
    plan: &'a Plan,
    inputs: &'a Inputs<F>,
    parameters: &'a [F],
    extent: Extent,
    arena: *mut F,
    scratch: &'a mut [F],
    weights: &'a Weights<F>,
}

impl<'a, F: Real> Block<'a, F> {
    pub(crate) fn new(
        graph: &'a Graph,
        plan: &'a Plan,
        inputs: &'a Inputs<F>,
        (parameters, weights): (&'a [F], &'a Weights<F>),
        extent: Extent,
        workspace: &'a mut Workspace<F>,
    ) -> Self {
        assert!(workspace.arena.len() >= plan.arena() * extent.items.len(), "the arena was not reserved");
        let arena = workspace.arena.as_mut_ptr();
        let Workspace { scratch, .. } = workspace;
        Self { graph, plan, inputs, parameters, extent, arena, scratch, weights }
    }

    fn items(&self) -> usize {
        self.extent.items.len()
    }

    /// A region's scalars for all items of the block.
    ///
    /// # Safety
    /// No other slice of an overlapping region may be written while this one is held. The plan keeps the regions of
    /// one op's operands, results, saved scalars and cotangents apart (a law tests it), so slices taken while one op
    /// runs satisfy this as long as each region is taken once for writing.
    unsafe fn region(&self, region: Region) -> &'a mut [F] {
        let (offset, size) = (region.offset * self.items(), region.size * self.items());
        // SAFETY: `new` checked that the arena has room for the plan; disjointness is the caller's.
        unsafe { std::slice::from_raw_parts_mut(self.arena.add(offset), size) }
    }

    /// A value, to read: an input's slice or a region of the arena.
    pub(crate) fn value(&self, value: Value) -> &'a [F] {
        if let Some(region) = self.plan.value(value) {
            // SAFETY: values are read here and written only as results of the op that runs.
            return unsafe { self.region(region) };
        }
        let slot = self.graph.inputs().iter().position(|input| input.what == value);
        let size = self.graph.shape(value).size();
        slot.map_or(&[], |slot| self.part(&self.inputs.scalars[slot], size))
    }

    /// An op's result, to write.
    fn result(&self, value: Value) -> &'a mut [F] {
        // SAFETY: a result is written by one op, which takes it once. An output that nothing needs has no region.
        self.plan.value(value).map_or(&mut [], |region| unsafe { self.region(region) })
    }

    /// What an op saves for its backward pass; empty where the plan has no backward pass.
    fn saved(&self, op: usize) -> &'a mut [F] {
        // SAFETY: each op takes its own saved region once.
        self.plan.saved(op).map_or(&mut [], |region| unsafe { self.region(region) })
    }

    /// A value's cotangent; empty where there is none.
    fn cotangent(&self, value: Value) -> &'a mut [F] {
        // SAFETY: an op takes each operand's cotangent one after the other, and its result's only to read or to
        // scale in place before that.
        self.plan.cotangent(value).map_or(&mut [], |region| unsafe { self.region(region) })
    }

    /// The cotangent that the caller owes for an output; empty where nothing flows back from it.
    pub(crate) fn asked(&self, output: Value) -> &'a mut [F] {
        // SAFETY: outputs are distinct, so each of their regions is handed out once.
        self.plan.asked(output).map_or(&mut [], |region| unsafe { self.region(region) })
    }

    /// A result's cotangent, to read.
    fn pulled(&self, value: Value) -> &'a [F] {
        self.cotangent(value)
    }

    fn parameter(&self, param: Param) -> &'a [F] {
        &self.parameters[self.graph.layout().slice(param).range()]
    }

    /// The integer of a row, counted over all items of the block.
    fn index(&self, index: Index) -> impl Fn(usize) -> i32 + 'a {
        let (entries, period) = match &self.graph.index_sources()[index.position()] {
            IndexSource::Constant(entries) => (entries.as_slice(), entries.len()),
            IndexSource::Input { rows, .. } => {
                (self.part(&self.inputs.indices[index.position()], *rows), rows * self.items())
            }
        };
        move |row| entries[row % period]
    }

    fn mask(&self, mask: Mask) -> &'a [u8] {
        let shape = self.graph.masks()[mask.position()].what;
        self.part(&self.inputs.masks[mask.position()], shape.size())
    }

    /// The block's part of a buffer `[member, item, size]`.
    fn part<T>(&self, data: &'a [T], size: usize) -> &'a [T] {
        let Extent { member, items, total, .. } = &self.extent;
        &data[(member * total + items.start) * size..(member * total + items.end) * size]
    }

    /// Runs of rows that this pass computes, of a value with `rows` rows per item.
    fn spans(&self, rows: usize) -> impl Iterator<Item = Range<usize>> + use<'a, F> {
        let items = self.items();
        let (count, first, length, stride) = match self.extent.row {
            None => (1, 0, rows * items, 0),
            Some(row) => (items, row, 1, rows),
        };
        (0..count).map(move |place| first + place * stride..first + place * stride + length)
    }

    /// One item's operands of a pointer.
    fn operands(&self, point: &Point, item: usize) -> Operands<'a, F> {
        let part = |value: Value| {
            let size = self.graph.shape(value).size();
            &self.value(value)[item * size..(item + 1) * size]
        };
        let size = self.graph.shape(point.query).rows * self.graph.shape(point.key).rows;
        let open = &self.mask(point.open)[item * size..(item + 1) * size];
        Operands { query: part(point.query), glimpse: part(point.glimpse), key: part(point.key), open }
    }

    /// The sizes of an attention and the mask of one item.
    fn heads(&self, a: &Attention, item: usize) -> super::attention::Heads<'a> {
        let (query_rows, key_rows) =
            (self.graph.shape(a.query.value).rows, self.graph.shape(a.key.value).rows);
        let mask = match a.visible {
            Visible::Masked(mask) => {
                Some(&self.mask(mask)[item * query_rows * key_rows..][..query_rows * key_rows])
            }
            Visible::All | Visible::Causal => None,
        };
        super::attention::Heads {
            heads: a.heads,
            key_heads: a.key_heads,
            width: a.head_width,
            query_rows,
            key_rows,
            causal: a.visible == Visible::Causal,
            mask,
        }
    }
}

/// Columns of rows as the range of scalars.
fn scale_range(rows: &Range<usize>, width: usize) -> Range<usize> {
    rows.start * width..rows.end * width
}
