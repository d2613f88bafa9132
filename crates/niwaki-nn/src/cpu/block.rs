//! One block of items of one member: the tape run in the arena. This file gives ops their slices.

use super::Real;
use super::apart::Apart;
use super::buffer::Buffer;
use super::kernels::{elu_backward, multiply_into, relu_backward, scale, sigmoid_backward, tanh_backward};
use super::rows::copy_row;
use crate::graph::{Graph, Index, IndexSource, Mask, Value};
use crate::layout::Param;
use crate::ops::{Activation, OnCpu, Op, Weights};
use crate::plan::{Plan, Region, Write};
use std::ops::Range;

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
    /// `[value]`
    apart: Vec<Apart>,
}

impl<F: Real> Workspace<F> {
    /// Makes room for `items` items of a plan.
    pub(crate) fn reserve(&mut self, graph: &Graph, plan: &Plan, items: usize) {
        self.arena.reserve(plan.arena() * items);
        self.scratch.reserve(graph.ops().iter().map(|op| op.scratch(graph)).max().unwrap_or(0));
        self.apart.resize_with(graph.values(), Apart::default);
    }
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
    pub(crate) graph: &'a Graph,
    plan: &'a Plan,
    inputs: &'a Inputs<F>,
    pub(crate) parameters: &'a [F],
    pub(crate) extent: Extent,
    arena: *mut F,
    pub(crate) scratch: &'a mut [F],
    apart: &'a mut [Apart],
    pub(crate) weights: &'a Weights<F>,
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
        let Workspace { scratch, apart, .. } = workspace;
        apart.iter_mut().for_each(Apart::forget);
        Self { graph, plan, inputs, parameters, extent, arena, scratch, apart, weights }
    }

    /// Runs the plan's forward pass.
    pub(crate) fn forward(&mut self) {
        let (graph, plan) = (self.graph, self.plan);
        for &position in plan.forward() {
            graph.ops()[position].forward(self, position);
        }
    }

    /// Runs the plan's backward pass, adding to the member's flat gradient. The outputs' cotangents are filled.
    pub(crate) fn backward(&mut self, gradient: &mut [F]) {
        let (graph, plan) = (self.graph, self.plan);
        for step in plan.backward() {
            graph.ops()[step.op].backward(self, step, gradient);
        }
    }

    pub(crate) fn items(&self) -> usize {
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
    pub(crate) fn result(&self, value: Value) -> &'a mut [F] {
        // SAFETY: a result is written by one op, which takes it once. An output that nothing needs has no region.
        self.plan.value(value).map_or(&mut [], |region| unsafe { self.region(region) })
    }

    /// What an op saves for its backward pass; empty where the plan has no backward pass.
    pub(crate) fn saved(&self, op: usize) -> &'a mut [F] {
        // SAFETY: each op takes its own saved region once.
        self.plan.saved(op).map_or(&mut [], |region| unsafe { self.region(region) })
    }

    /// A value's cotangent; empty where there is none.
    pub(crate) fn cotangent(&self, value: Value) -> &'a mut [F] {
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
    pub(crate) fn pulled(&self, value: Value) -> &'a [F] {
        self.cotangent(value)
    }

    pub(crate) fn parameter(&self, param: Param) -> &'a [F] {
        &self.parameters[self.graph.layout().slice(param).range()]
    }

    /// Which rows of a value are worked on, to look at or to change.
    pub(crate) fn apart(&mut self, value: Value) -> &mut Apart {
        &mut self.apart[value.position()]
    }

    /// The only op that reads a value, where a pass forward is all there is.
    pub(crate) fn only_reader(&self, value: Value) -> Option<&'a Op> {
        let reader = self.plan.only_reader(value).filter(|_| self.plan.backward().is_empty());
        reader.map(|reader| &self.graph.ops()[reader])
    }

    /// The integer of a row, counted over all items of the block.
    pub(crate) fn index(&self, index: Index) -> impl Fn(usize) -> i32 + 'a {
        let (entries, period) = match &self.graph.index_sources()[index.position()] {
            IndexSource::Constant(entries) => (entries.as_slice(), entries.len()),
            IndexSource::Input { rows, .. } => {
                (self.part(&self.inputs.indices[index.position()], *rows), rows * self.items())
            }
        };
        // A division takes longer than all else that is done to most rows.
        move |row| entries[if row < period { row } else { row % period }]
    }

    pub(crate) fn mask(&self, mask: Mask) -> &'a [u8] {
        let shape = self.graph.masks()[mask.position()].what;
        self.part(&self.inputs.masks[mask.position()], shape.size())
    }

    /// The block's part of a buffer `[member, item, size]`.
    fn part<T>(&self, data: &'a [T], size: usize) -> &'a [T] {
        let Extent { member, items, total, .. } = &self.extent;
        &data[(member * total + items.start) * size..(member * total + items.end) * size]
    }

    /// Runs of rows that this pass computes, of a value with `rows` rows per item.
    pub(crate) fn spans(&self, rows: usize) -> impl Iterator<Item = Range<usize>> + use<'a, F> {
        let items = self.items();
        let (count, first, length, stride) = match self.extent.row {
            None => (1, 0, rows * items, 0),
            Some(row) => (items, row, 1, rows),
        };
        (0..count).map(move |place| first + place * stride..first + place * stride + length)
    }

    /// Rows of a table, or of each item's own `stride` scalars of it.
    pub(crate) fn copy_rows(&self, table: &[F], stride: usize, index: Index, output: Value) {
        let shape = self.graph.shape(output);
        let index = self.index(index);
        let out = self.result(output);
        for row in self.spans(shape.rows).flatten() {
            let item = row / shape.rows;
            copy_row(
                &table[item * stride..],
                index(row),
                &mut out[row * shape.width..(row + 1) * shape.width],
            );
        }
    }

    /// Turns the output's cotangent in place into that of the pre-activation.
    pub(crate) fn activation_backward(&self, activation: Activation, output: Value, saved: &[F]) {
        match activation {
            Activation::None => {}
            Activation::Relu => relu_backward(self.cotangent(output), self.value(output)),
            Activation::Tanh => tanh_backward(self.cotangent(output), self.value(output)),
            Activation::Elu => elu_backward(self.cotangent(output), self.value(output)),
            Activation::Sigmoid => sigmoid_backward(self.cotangent(output), self.value(output)),
            Activation::Gelu | Activation::Silu => multiply_into(self.cotangent(output), saved),
        }
    }

    /// An operand's cotangent, ready to be added to: zeroed first where this op is the first to write it.
    pub(crate) fn zeroed(&self, value: Value, writes: &[Option<Write>], place: usize) -> Option<&'a mut [F]> {
        let add = accumulate(writes, place)?;
        let d = self.cotangent(value);
        if !add {
            d.fill(F::ZERO);
        }
        Some(d)
    }

    /// Gives an operand `factor` times the output's cotangent.
    pub(crate) fn pass_on(
        &self,
        value: Value,
        output: Value,
        factor: F,
        writes: &[Option<Write>],
        place: usize,
    ) {
        if let Some(add) = accumulate(writes, place) {
            scale(self.pulled(output), factor, self.cotangent(value), add);
        }
    }
}

/// How the operand at a place is written: `None` not at all, `Some(accumulate)` otherwise. An alias needs nothing.
pub(crate) fn accumulate(writes: &[Option<Write>], place: usize) -> Option<bool> {
    match writes[place] {
        None | Some(Write::Alias) => None,
        Some(Write::Set) => Some(false),
        Some(Write::Add) => Some(true),
    }
}

/// Columns of rows as the range of scalars.
pub(crate) fn scale_range(rows: &Range<usize>, width: usize) -> Range<usize> {
    rows.start * width..rows.end * width
}
