//! From the tape of ops to device work: each op's forward and backward pass as kernels and products.
//!
//! One [`Lowering`] writes one [`Tape`] for one pass: some members, all their items, all rows or one row of each item. This
//! file knows where things lie; each op of [`crate::ops`] writes its own launches, and what several of them launch is in
//! [`shared`].

mod brought;
mod fused;
mod readers;
mod shared;
mod squares;
mod units;
mod view;

pub(crate) use brought::Brought;
pub(crate) use fused::{Block, Fused, Kind, Stage};
pub(crate) use shared::{Combine, Partial};
pub(crate) use units::Program;
pub(crate) use view::View;

use self::squares::Squares;
use super::blas::{Blas, Precision};
use super::kernels::{CHOOSE, Kernels};
use super::pieces::Pieces;
use super::tape::Tape;
use crate::engine::Choosing;
use crate::graph::{Graph, Index, Mask, Shape, Value};
use crate::layout::Param;
use crate::ops::{Layer, Op, Perceptron, folded, summed_embeddings};
use crate::plan::{Backward, Plan};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a scalar.
pub(crate) const SCALAR: usize = 4;

/// Bytes of a stored scalar.
fn bytes(half: bool) -> usize {
    if half { SCALAR / 2 } else { SCALAR }
}

/// Rows that one block of a summing kernel takes.
pub(crate) const ROWS_PER_SUM: usize = 64;

/// Rows of a short pass, at most.
const SHORT: usize = 1024;

/// Scalars that a member's flat buffer takes on the device: a multiple of 256 bytes, so that what is aligned in one
/// member is aligned in all, and the library may use its fastest products. The end stays zero.
pub(crate) fn padded(graph: &Graph) -> usize {
    graph.layout().len().next_multiple_of(64)
}

/// Addresses of one pass: everything starts at the pass's first member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    /// Members of the pass.
    pub(crate) members: usize,
    /// Items per member.
    pub(crate) items: usize,
    /// The arena.
    pub(crate) arena: u64,
    /// Parameters `[member, length]`.
    pub(crate) parameters: u64,
    /// The same in bf16, where products read them so.
    pub(crate) rounded: Option<u64>,
    /// Gradients `[member, length]`.
    pub(crate) gradient: u64,
    /// Where groups of a member's gradient lie, where not all are in f32.
    pub(crate) places: Option<u64>,
    /// Sums of squares of their chunks, where they are wanted.
    pub(crate) squares: Option<u64>,
    /// Which of their chunks do not rest, where that is known: a byte each.
    pub(crate) live: Option<u64>,
    /// Inputs of scalars by position of their value; 0 for values in the arena.
    pub(crate) inputs: Vec<u64>,
    /// Integers by position.
    pub(crate) indices: Vec<u64>,
    /// Masks by position.
    pub(crate) masks: Vec<u64>,
    /// Where the host waits for outputs, by their order; empty where it fetches them.
    pub(crate) outputs: Vec<u64>,
    /// Partial sums, one op's at a time.
    pub(crate) scratch: u64,
    /// What a tape makes once for several of its ops.
    pub(crate) shared: u64,
}

/// What a tape makes once for several of its ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Once {
    /// A transposed weight, by position of the parameter.
    Transposed { param: usize, half: bool },
    /// The rows that each row of a tree sees, by position of the index of parents, for blocks of so many rows.
    Ways { parent: usize, many: usize },
    /// A value in f32 that is stored in halves, by position.
    Whole(usize),
    /// How far rows turn, by position of the index of positions, pairs of columns, and the bits of the numbers that say so.
    Turns { position: usize, pairs: usize, numbers: [u64; 5] },
    /// Partial sums that are added up aside, by position of the op.
    Sums(usize),
    /// Parts of sums over the columns of rows, by position of the norm that they are for.
    Rows(usize),
    /// A cotangent within a decoder's layer, by what it is of and by turns.
    Within { part: usize, turn: usize },
}

/// What an engine lends to all its passes.
#[derive(Clone, Copy)]
pub(crate) struct Tools<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) plan: &'a Plan,
    pub(crate) blas: &'a Blas,
    pub(crate) kernels: &'a Kernels,
    pub(crate) precision: Precision,
    /// Whether the tensor cores' own kernels may be used.
    pub(crate) hopper: bool,
    /// Values that are stored in halves, by position.
    pub(crate) halves: &'a [bool],
    /// Parameters whose gradients are stored in halves, by position.
    pub(crate) half_gradients: &'a [bool],
    pub(crate) multiprocessors: usize,
    /// Bytes of shared memory that a block may have.
    pub(crate) shared: usize,
    /// The pieces of an update that a pass may begin beside.
    pub(crate) pieces: Option<&'a Pieces>,
}

/// Writes the tape of one pass.
pub(crate) struct Lowering<'a> {
    pub(crate) tools: Tools<'a>,
    pub(crate) addresses: Addresses,
    pub(crate) row: Option<usize>,
    /// Whether all rows stand on one tape, which then transposes weights once for all of them.
    pub(crate) rows_together: bool,
    pub(crate) tape: Tape,
    scratch: usize,
    /// Where in the room for it lies what was made once, and how much that is.
    once: BTreeMap<Once, usize>,
    once_bytes: usize,
    /// Parameters whose gradient already holds a part.
    written: Vec<bool>,
    /// Values whose cotangent was already multiplied by the slope of the activation that made them.
    pub(crate) sloped: Vec<bool>,
    /// Values whose cotangent's columns were already summed into the bias of the `linear` that made them.
    pub(crate) totalled: Vec<bool>,
    /// Ops whose step of the backward pass another op has done.
    pub(crate) done: Vec<bool>,
    /// Whether kernels are launched aside.
    pub(crate) aside: bool,
    /// Whether they wait for the one before them by themselves.
    early: bool,
    /// What products aside read, and their places on the tape.
    read_aside: Vec<(Range<u64>, usize)>,
    /// Ops that a pointer or the last layer of a perceptron does in its own kernels.
    folded: Vec<bool>,
    /// Perceptrons that one kernel computes, by position of their last layer.
    pub(crate) perceptrons: Vec<Option<Perceptron>>,
    /// A decoder's layers that have kernels of their own.
    pub(crate) layers: Vec<Layer>,
    /// What was made aside for all attention along trees, by place on the tape, until it has been waited for.
    pub(crate) prepared: Option<usize>,
    /// For the outputs of two embeddings that are only read by one sum: that sum's output. They are never written.
    pub(crate) summed: Vec<Option<Value>>,
}

/// What lowering found out besides the tape.
pub(crate) struct Lowered {
    pub(crate) tape: Tape,
    /// Bytes of scratch that the tape needs.
    pub(crate) scratch: usize,
    /// Bytes of what the tape makes once for several ops.
    pub(crate) shared: usize,
}

impl<'a> Lowering<'a> {
    fn new(tools: Tools<'a>, addresses: &Addresses, row: Option<usize>) -> Self {
        let (graph, outputs) = (tools.graph, tools.plan.outputs());
        let perceptrons: Vec<Option<Perceptron>> = graph
            .ops()
            .iter()
            .map(|op| match op {
                Op::Linear(last) if tools.hopper && row.is_none() => {
                    Perceptron::ending_with(graph, outputs, last)
                }
                _ => None,
            })
            .collect();
        let mut folded = folded(graph, outputs);
        perceptrons.iter().flatten().flat_map(Perceptron::inner).for_each(|position| folded[position] = true);
        let short = graph.tallest() * addresses.members * addresses.items <= SHORT;
        let training = row.is_none() && !tools.plan.backward().is_empty() && short;
        let layers = match training && tools.hopper && addresses.rounded.is_some() {
            true => Layer::able(&tools),
            false => Vec::new(),
        };
        Self {
            tools,
            addresses: addresses.clone(),
            row,
            rows_together: false,
            tape: Tape::default(),
            scratch: 0,
            once: BTreeMap::new(),
            once_bytes: 0,
            written: vec![false; tools.graph.layout().slices().len()],
            sloped: vec![false; tools.graph.values()],
            totalled: vec![false; tools.graph.values()],
            done: vec![false; graph.ops().len()],
            aside: false,
            early: false,
            read_aside: Vec::new(),
            folded,
            perceptrons,
            layers,
            prepared: None,
            summed: summed_embeddings(graph, tools.plan),
        }
    }

    fn finish(self) -> Lowered {
        Lowered { tape: self.tape, scratch: self.scratch, shared: self.once_bytes }
    }

    /// The forward pass of all rows.
    ///
    /// # Errors
    /// If an op's shape is beyond the kernels.
    pub(crate) fn forward(tools: Tools<'a>, addresses: &Addresses) -> Result<Lowered> {
        let mut lowering = Self::new(tools, addresses, None);
        lowering.prepare_attention()?;
        let pieces = tools.pieces.filter(|_| !lowering.layers.is_empty());
        for &position in tools.plan.forward() {
            if let Some(mark) = pieces.and_then(|pieces| pieces.before(position)) {
                lowering.tape.await_each_time(mark.clone());
            }
            lowering.op_forward(position)?;
        }
        Ok(lowering.finish())
    }

    /// The forward pass of one row of every item; that row of each output goes, packed, to a place of its own.
    ///
    /// # Errors
    /// If an op's shape is beyond the kernels.
    pub(crate) fn forward_row(
        tools: Tools<'a>,
        addresses: &Addresses,
        row: usize,
        places: &[u64],
    ) -> Result<Lowered> {
        let mut lowering = Self::new(tools, addresses, Some(row));
        for &position in tools.plan.forward() {
            lowering.op_forward(position)?;
        }
        for (&output, &place) in tools.plan.outputs().iter().zip(places) {
            lowering.pack_row(output, place)?;
        }
        Ok(lowering.finish())
    }

    /// All rows one after the other, each followed by the choice that the next one reads.
    ///
    /// `uniforms` is the place of `[item, row]` numbers.
    ///
    /// # Errors
    /// If an op's shape is beyond the kernels.
    pub(crate) fn choosing(
        tools: Tools<'a>,
        addresses: &Addresses,
        choosing: Choosing,
        uniforms: u64,
    ) -> Result<Lowered> {
        let mut lowering = Self { rows_together: true, ..Self::new(tools, addresses, Some(0)) };
        let Shape { rows, width } = lowering.shape(choosing.logits);
        for row in 0..rows {
            lowering.row = Some(row);
            for &position in tools.plan.forward() {
                lowering.op_forward(position)?;
            }
            let logits = lowering.whole(choosing.logits)?;
            let arguments = super::tape::arguments![
                logits,
                uniforms,
                addresses.indices[choosing.actions.position()],
                addresses.indices[choosing.tokens.position()],
                row,
                rows,
                lowering.items(),
                width,
            ];
            let grid = (lowering.items().div_ceil(128), 1, 1);
            lowering.launch("choose", (CHOOSE, "choose_row"), grid, 128, 0, arguments)?;
        }
        Ok(lowering.finish())
    }

    /// The backward pass.
    ///
    /// # Errors
    /// If an op's shape is beyond the kernels.
    pub(crate) fn backward(tools: Tools<'a>, addresses: &Addresses) -> Result<Lowered> {
        let mut lowering = Self::new(tools, addresses, None);
        let mut squares = Squares::new(&lowering);
        lowering.prepare_attention()?;
        for (place, step) in tools.plan.backward().iter().enumerate() {
            lowering.op_backward(step)?;
            squares.sum_complete(&mut lowering, place)?;
        }
        squares.sum_rest(&mut lowering)?;
        Ok(lowering.finish())
    }

    fn op_forward(&mut self, position: usize) -> Result<()> {
        let graph = self.tools.graph;
        match self.layer_at(position) {
            Some((layer, part)) => self.layer_forward(&layer, part),
            None if self.folded[position] => Ok(()),
            None => graph.ops()[position].lower(self, position),
        }
    }

    fn op_backward(&mut self, step: &Backward) -> Result<()> {
        if self.folded[step.op] || self.done[step.op] {
            return Ok(());
        }
        if let Some((layer, part)) = self.layer_at(step.op) {
            return self.layer_backward(&layer, part);
        }
        self.wait_for_readers(step);
        self.tools.graph.ops()[step.op].lower_backward(self, step)
    }

    pub(crate) fn shape(&self, value: Value) -> Shape {
        self.tools.graph.shape(value)
    }

    /// Items of the pass.
    pub(crate) fn items(&self) -> usize {
        self.addresses.members * self.addresses.items
    }

    /// Scalars from one member's parameters to the next one's.
    pub(crate) fn length(&self) -> usize {
        padded(self.tools.graph)
    }

    /// Where a value starts.
    pub(crate) fn base(&self, value: Value) -> Result<u64> {
        match self.addresses.inputs[value.position()] {
            0 => {
                let region = self.tools.plan.value(value).ok_or_else(|| unplanned("a value"))?;
                Ok(self.addresses.arena + (region.offset * self.items() * SCALAR) as u64)
            }
            input => Ok(input),
        }
    }

    /// Whether a value and its cotangent are stored in halves.
    pub(crate) fn is_half(&self, value: Value) -> bool {
        self.tools.halves[value.position()]
    }

    /// Bytes of a stored scalar of a value.
    pub(crate) fn bytes(&self, value: Value) -> usize {
        bytes(self.is_half(value))
    }

    /// Whether a value has a place: a result that nobody reads has none.
    pub(crate) fn is_planned(&self, value: Value) -> bool {
        self.tools.plan.value(value).is_some()
    }

    pub(crate) fn saved(&self, op: usize) -> Option<u64> {
        let region = self.tools.plan.saved(op)?;
        Some(self.addresses.arena + (region.offset * self.items() * SCALAR) as u64)
    }

    pub(crate) fn must_saved(&self, op: usize) -> Result<u64> {
        self.saved(op).ok_or_else(|| unplanned("a saved buffer"))
    }

    pub(crate) fn maybe_cotangent(&self, value: Value) -> Option<u64> {
        let region = self.tools.plan.cotangent(value)?;
        Some(self.addresses.arena + (region.offset * self.items() * SCALAR) as u64)
    }

    pub(crate) fn cotangent(&self, value: Value) -> Result<u64> {
        self.maybe_cotangent(value).ok_or_else(|| unplanned("a cotangent"))
    }

    /// A buffer of a value's cotangent, whole: bytes.
    pub(crate) fn cotangent_bytes(&self, value: Value) -> usize {
        self.shape(value).size() * self.items() * self.bytes(value)
    }

    pub(crate) fn param(&self, param: Param) -> u64 {
        self.addresses.parameters + (self.tools.graph.layout().slice(param).offset * SCALAR) as u64
    }

    /// A parameter as products read it: rounded where they read it so.
    pub(crate) fn working(&self, param: Param) -> u64 {
        let offset = self.tools.graph.layout().slice(param).offset;
        match self.addresses.rounded {
            Some(rounded) => rounded + (offset * SCALAR / 2) as u64,
            None => self.param(param),
        }
    }

    /// Whether so few rows pass that what counts is how long kernels take one after the other, not how much they do.
    pub(crate) fn is_short(&self) -> bool {
        self.tools.graph.tallest() * self.items() <= SHORT
    }

    /// Where a parameter's gradient lies, and whether it already holds a part; it does from now on.
    pub(crate) fn gradient(&mut self, param: Param) -> (u64, bool) {
        let add = std::mem::replace(&mut self.written[param.0], true);
        let at = self.addresses.gradient + (self.tools.graph.layout().slice(param).offset * SCALAR) as u64;
        (at, add)
    }

    /// Whether a parameter's gradient is stored in halves.
    pub(crate) fn is_half_gradient(&self, param: Param) -> bool {
        self.tools.half_gradients[param.0]
    }

    /// Scratch for one op's partial sums.
    pub(crate) fn scratch(&mut self, scalars: usize) -> u64 {
        self.scratch = self.scratch.max(scalars * SCALAR);
        self.addresses.scratch
    }

    /// Where something lies that a tape makes once, and whether the caller has to make it.
    pub(crate) fn once(&mut self, what: Once, bytes: usize) -> (u64, bool) {
        let known = self.once.get(&what).copied();
        let offset = known.unwrap_or(self.once_bytes);
        if known.is_none() {
            self.once.insert(what, offset);
            self.once_bytes += bytes.next_multiple_of(256);
        }
        (self.addresses.shared + offset as u64, known.is_none())
    }

    pub(crate) fn integers(&self, index: Index) -> u64 {
        self.addresses.indices[index.position()]
    }

    pub(crate) fn mask(&self, mask: Option<Mask>) -> Option<u64> {
        mask.map(|mask| self.addresses.masks[mask.position()])
    }

    /// Rows of a value in the whole pass.
    pub(crate) fn all_rows(&self, value: Value) -> usize {
        self.shape(value).rows * self.items()
    }
}

fn unplanned(what: &str) -> Error {
    super::device::refused(format!("the plan has no place for {what} that the program needs"))
}
