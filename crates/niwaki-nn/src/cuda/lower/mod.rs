//! From the tape of ops to device work: each op's forward and backward pass as kernels and products.
//!
//! One [`Lowering`] writes one [`Tape`] for one pass: some members, all their items, all rows or one row of each item.
//! [`linear`] chooses among three ways to multiply; the other files are one launch per op, or a few.

mod attention;
mod brought;
mod entries;
mod index;
mod linear;
mod norm;
mod point;
mod units;

pub(crate) use brought::Brought;

use super::blas::{Blas, Precision};
use super::kernels::{Kernels, Unit};
use super::tape::{Arguments, Tape};
use crate::engine::Choosing;
use crate::graph::{Columns, Graph, Op, Shape, Value, Visible};
use crate::layout::Param;
use crate::plan::{Backward, Plan, Write};
use crate::{Error, Result};
use std::collections::BTreeMap;

/// Bytes of a scalar.
pub(crate) const SCALAR: usize = 4;

/// Rows that one block of a summing kernel takes.
const ROWS_PER_SUM: usize = 64;

/// Scalars that a member's flat buffer takes on the device: a multiple of 256 bytes, so that what is aligned in one
/// member is aligned in all, and the library may use its fastest products. The end stays zero.
pub(crate) fn padded(graph: &Graph) -> usize {
    graph.layout().len().next_multiple_of(64)
}

/// Addresses of one pass: everything starts at the pass's first member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ground {
    /// Members of the pass.
    pub(crate) members: usize,
    /// Items per member.
    pub(crate) items: usize,
    /// The arena.
    pub(crate) arena: u64,
    /// Parameters `[member, length]`.
    pub(crate) parameters: u64,
    /// Gradients `[member, length]`.
    pub(crate) gradient: u64,
    /// Inputs of scalars by position of their value; 0 for values in the arena.
    pub(crate) inputs: Vec<u64>,
    /// Integers by position.
    pub(crate) indices: Vec<u64>,
    /// Masks by position.
    pub(crate) masks: Vec<u64>,
    /// Partial sums, one op's at a time.
    pub(crate) scratch: u64,
    /// Transposed weights.
    pub(crate) turned: u64,
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
}

/// The rows of a value that a launch works on.
#[derive(Clone, Copy, Debug)]
struct View {
    at: u64,
    /// Scalars from one row to the next.
    pitch: usize,
    rows: usize,
    rows_per_member: usize,
    width: usize,
}

/// Partial sums `[member, blocks, columns]`, blocks `pitch` apart.
#[derive(Clone, Copy, Debug)]
struct Partial {
    blocks: usize,
    pitch: usize,
    columns: usize,
}

impl Partial {
    /// Blocks side by side.
    fn dense(blocks: usize, columns: usize) -> Self {
        Self { blocks, pitch: columns, columns }
    }
}

/// Writes the tape of one pass.
pub(crate) struct Lowering<'a> {
    tools: Tools<'a>,
    ground: Ground,
    row: Option<usize>,
    /// Whether all rows stand on one tape, which then turns weights once for all of them.
    rows_together: bool,
    tape: Tape,
    scratch: usize,
    turned: BTreeMap<usize, usize>,
    turned_bytes: usize,
    /// Parameters whose gradient already holds a part.
    written: Vec<bool>,
    /// Values whose cotangent was already multiplied by the slope of the activation that made them.
    sloped: Vec<bool>,
    /// Values whose cotangent's columns were already summed into the bias of the `linear` that made them.
    totalled: Vec<bool>,
    /// Ops that a pointer does in its own kernels.
    folded: Vec<bool>,
    /// For the outputs of two embeddings that are only read by one sum: that sum's output. They are never written.
    summed: Vec<Option<Value>>,
}

/// What lowering found out besides the tape.
pub(crate) struct Lowered {
    pub(crate) tape: Tape,
    /// Bytes of scratch that the tape needs.
    pub(crate) scratch: usize,
    /// Bytes of transposed weights that the tape needs.
    pub(crate) turned: usize,
}

impl<'a> Lowering<'a> {
    fn new(tools: Tools<'a>, ground: &Ground, row: Option<usize>) -> Self {
        Self {
            tools,
            ground: ground.clone(),
            row,
            rows_together: false,
            tape: Tape::default(),
            scratch: 0,
            turned: BTreeMap::new(),
            turned_bytes: 0,
            written: vec![false; tools.graph.layout().slices().len()],
            sloped: vec![false; tools.graph.values()],
            totalled: vec![false; tools.graph.values()],
            folded: point::folded(tools.graph, tools.plan.outputs()),
            summed: index::summed_embeddings(tools.graph, tools.plan),
        }
    }

    fn finish(self) -> Lowered {
        Lowered { tape: self.tape, scratch: self.scratch, turned: self.turned_bytes }
    }

    /// The forward pass of all rows.
    ///
    /// # Errors
    /// If an op's shape is beyond the kernels.
    pub(crate) fn forward(tools: Tools<'a>, ground: &Ground) -> Result<Lowered> {
        let mut lowering = Self::new(tools, ground, None);
        for &position in tools.plan.forward() {
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
        ground: &Ground,
        row: usize,
        places: &[u64],
    ) -> Result<Lowered> {
        let mut lowering = Self::new(tools, ground, Some(row));
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
        ground: &Ground,
        choosing: Choosing,
        uniforms: u64,
    ) -> Result<Lowered> {
        let mut lowering = Self { rows_together: true, ..Self::new(tools, ground, None) };
        let Shape { rows, width } = lowering.shape(choosing.logits);
        for row in 0..rows {
            lowering.row = Some(row);
            for &position in tools.plan.forward() {
                lowering.op_forward(position)?;
            }
            let arguments = super::tape::arguments![
                lowering.base(choosing.logits)?,
                uniforms,
                ground.indices[choosing.actions.position()],
                ground.indices[choosing.tokens.position()],
                row,
                rows,
                lowering.items(),
                width,
            ];
            let grid = (lowering.items().div_ceil(128), 1, 1);
            lowering.launch("choose", (Unit::Index, "choose_row"), grid, 128, 0, arguments)?;
        }
        Ok(lowering.finish())
    }

    /// The backward pass.
    ///
    /// # Errors
    /// If an op's shape is beyond the kernels.
    pub(crate) fn backward(tools: Tools<'a>, ground: &Ground) -> Result<Lowered> {
        let mut lowering = Self::new(tools, ground, None);
        for step in tools.plan.backward() {
            lowering.op_backward(step)?;
        }
        Ok(lowering.finish())
    }

    fn op_forward(&mut self, position: usize) -> Result<()> {
        let graph = self.tools.graph;
        let op = &graph.ops()[position];
        match op {
            _ if self.folded[position] => Ok(()),
            Op::Linear { .. } => self.linear_forward(position),
            Op::LayerNorm { .. } | Op::RmsNorm { .. } => self.norm_forward(position),
            Op::Attention { attention, output } => self.attention_forward(position, attention, *output),
            Op::Embed { .. } | Op::Gather { .. } | Op::Pool { .. } | Op::Score { .. } | Op::Rope { .. } => {
                self.index_forward(op)
            }
            Op::Point { point, output } => self.point_forward(point, *output),
            Op::Pick { .. } => self.pick_forward(position),
            Op::Concat { .. } | Op::Add { .. } | Op::Mul { .. } | Op::Scale { .. } | Op::Activate { .. } => {
                self.entries_forward(position)
            }
        }
    }

    fn op_backward(&mut self, step: &Backward) -> Result<()> {
        let graph = self.tools.graph;
        let op = &graph.ops()[step.op];
        match op {
            _ if self.folded[step.op] => Ok(()),
            Op::Linear { .. } => self.linear_backward(step),
            Op::LayerNorm { .. } | Op::RmsNorm { .. } => self.norm_backward(step),
            Op::Attention { attention, output } => self.attention_backward(step, attention, *output),
            Op::Embed { .. } | Op::Gather { .. } | Op::Pool { .. } | Op::Score { .. } | Op::Rope { .. } => {
                self.index_backward(step)
            }
            Op::Point { point, output } => self.point_backward(step, point, *output),
            Op::Pick { .. } => self.pick_backward(step),
            Op::Concat { .. } | Op::Add { .. } | Op::Mul { .. } | Op::Scale { .. } | Op::Activate { .. } => {
                self.entries_backward(step)
            }
        }
    }

    fn shape(&self, value: Value) -> Shape {
        self.tools.graph.shape(value)
    }

    /// Items of the pass.
    fn items(&self) -> usize {
        self.ground.members * self.ground.items
    }

    /// Scalars from one member's parameters to the next one's.
    fn length(&self) -> usize {
        padded(self.tools.graph)
    }

    /// Where a value starts.
    fn base(&self, value: Value) -> Result<u64> {
        match self.ground.inputs[value.position()] {
            0 => {
                let region = self.tools.plan.value(value).ok_or_else(|| unplanned("a value"))?;
                Ok(self.ground.arena + (region.offset * self.items() * SCALAR) as u64)
            }
            input => Ok(input),
        }
    }

    /// The rows of a value that this pass works on.
    fn view(&self, value: Value) -> Result<View> {
        let Shape { rows, width } = self.shape(value);
        let base = self.base(value)?;
        let (at, pitch, per_item) = match self.row {
            None => (base, width, rows),
            Some(row) => (base + (row * width * SCALAR) as u64, rows * width, 1),
        };
        let rows_per_member = self.ground.items * per_item;
        Ok(View { at, pitch, rows: rows_per_member * self.ground.members, rows_per_member, width })
    }

    /// First row and step from row to row, for kernels that look rows up in integers.
    fn rows_of(&self, value: Value) -> (usize, usize) {
        match self.row {
            None => (0, 1),
            Some(row) => (row, self.shape(value).rows),
        }
    }

    fn saved(&self, op: usize) -> Option<u64> {
        let region = self.tools.plan.saved(op)?;
        Some(self.ground.arena + (region.offset * self.items() * SCALAR) as u64)
    }

    fn must_saved(&self, op: usize) -> Result<u64> {
        self.saved(op).ok_or_else(|| unplanned("a saved buffer"))
    }

    fn maybe_cotangent(&self, value: Value) -> Option<u64> {
        let region = self.tools.plan.cotangent(value)?;
        Some(self.ground.arena + (region.offset * self.items() * SCALAR) as u64)
    }

    fn cotangent(&self, value: Value) -> Result<u64> {
        self.maybe_cotangent(value).ok_or_else(|| unplanned("a cotangent"))
    }

    /// A buffer of a value's cotangent, whole: bytes.
    fn cotangent_bytes(&self, value: Value) -> usize {
        self.shape(value).size() * self.items() * SCALAR
    }

    fn param(&self, param: Param) -> u64 {
        self.ground.parameters + (self.tools.graph.layout().slice(param).offset * SCALAR) as u64
    }

    /// Where a parameter's gradient lies, and whether it already holds a part; it does from now on.
    fn gradient(&mut self, param: Param) -> (u64, bool) {
        let add = std::mem::replace(&mut self.written[param.0], true);
        let at = self.ground.gradient + (self.tools.graph.layout().slice(param).offset * SCALAR) as u64;
        (at, add)
    }

    /// Scratch for one op's partial sums.
    fn scratch(&mut self, scalars: usize) -> u64 {
        self.scratch = self.scratch.max(scalars * SCALAR);
        self.ground.scratch
    }

    fn launch(
        &mut self,
        label: &'static str,
        (unit, name): (Unit, &'static str),
        grid: (usize, usize, usize),
        block: u32,
        shared: u32,
        arguments: Arguments,
    ) -> Result<()> {
        let function = self.tools.kernels.get(unit, name)?;
        self.tape.kernel(label, function, grid, block, shared, arguments)
    }

    /// A kernel with a thread per entry of `rows × width`.
    fn per_entry(
        &mut self,
        label: &'static str,
        kernel: (Unit, &'static str),
        rows: usize,
        width: usize,
        arguments: Arguments,
    ) -> Result<()> {
        if rows * width > i32::MAX as usize {
            let mend = "use fewer members or lanes";
            return Err(super::device::refused(format!(
                "{label}: {rows} × {width} entries in one pass; {mend}"
            )));
        }
        self.launch(label, kernel, ((rows * width).div_ceil(256), 1, 1), 256, 0, arguments)
    }

    /// Adds up partial sums into the gradient of one parameter, columns below `split`, and
    /// into that of another, the rest, where there is one.
    fn gather_partials(
        &mut self,
        label: &'static str,
        partial: u64,
        Partial { blocks, pitch, columns }: Partial,
        (first, split): (Param, usize),
        second: Option<Param>,
    ) -> Result<()> {
        let (at, add) = self.gradient(first);
        let (other, add_other) = match second {
            Some(param) => {
                let (at, add) = self.gradient(param);
                (Some(at), add)
            }
            None => (None, false),
        };
        let arguments = super::tape::arguments![
            partial,
            blocks,
            pitch,
            columns,
            at,
            other,
            split,
            self.length(),
            add,
            add_other
        ];
        let grid = (columns.div_ceil(128), self.ground.members, 1);
        self.launch(label, (Unit::Rows, "gather_partials"), grid, 128, 0, arguments)
    }

    /// Readies the cotangents of operands that are runs of columns, `(operand, width)` each, and says for each where it
    /// starts and whether to add. Where one op writes disjoint runs that fill a value, none of them adds.
    fn column_targets(
        &mut self,
        label: &'static str,
        operands: &[(Columns, usize)],
        writes: &[Option<Write>],
    ) -> Result<Vec<Option<(u64, bool)>>> {
        let mut targets = vec![None; operands.len()];
        for (place, &(columns, _)) in operands.iter().enumerate() {
            if writes[place].is_none() || targets[place].is_some() {
                continue;
            }
            let same: Vec<usize> =
                (place..operands.len()).filter(|&other| operands[other].0.value == columns.value).collect();
            let disjoint = same.iter().all(|&a| {
                same.iter().all(|&b| {
                    let (left, right) = (operands[a], operands[b]);
                    a == b
                        || left.0.start + left.1 <= right.0.start
                        || right.0.start + right.1 <= left.0.start
                })
            });
            if !disjoint {
                let reason =
                    "reads the same columns twice, which this device does not differentiate".to_owned();
                return Err(Error::Unsupported { op: label, reason });
            }
            let base = self.cotangent(columns.value)?;
            let covered: usize = same.iter().map(|&other| operands[other].1).sum();
            let whole = covered == self.shape(columns.value).width;
            let fresh = writes[place] == Some(Write::Set);
            if fresh && !whole {
                let bytes = self.cotangent_bytes(columns.value);
                self.tape.zero(label, base, bytes);
            }
            for other in same {
                let at = base + (operands[other].0.start * SCALAR) as u64;
                targets[other] = Some((at, !(fresh && whole)));
            }
        }
        Ok(targets)
    }
}

fn unplanned(what: &str) -> Error {
    super::device::refused(format!("the plan has no place for {what} that the program needs"))
}

/// The code of a visibility in the attention kernels.
fn visible_code(visible: Visible) -> usize {
    match visible {
        Visible::All => 0,
        Visible::Causal => 1,
        Visible::Masked(_) => 2,
    }
}
