//! Fused forward passes: small items in one kernel (a "megakernel"). A block of threads has an item, all whose values are in shared memory, and
//! goes through all ops.
//!
//! What is looked at one step at a time, a few items of some dozen rows, is over before its kernels have been launched one by one. Where
//! every op of a program knows how a block does it ([`Fused`]), the pass is one launch, and outputs go to the host from there.

use super::{Addresses, Combine, Lowering, SCALAR, Tools};
use crate::Result;
use crate::cuda::blas::Precision;
use crate::cuda::device::refused;
use crate::cuda::kernels::{File, PRODUCTS, SHARED_LIMIT, Unit};
use crate::cuda::tape::{Arguments, Tape};
use crate::graph::{Graph, Index, IndexSource, Mask, Shape, Value};
use crate::layout::Param;
use crate::ops::{Activate, Activation, Op, Operation};
use crate::plan::{Life, place};
use std::ops::Range;

const KERNELS: &File = &File {
    name: "fused",
    source: &[
        PRODUCTS,
        include_str!("../../ops/arcs/leaky.cu"),
        include_str!("../../ops/neighbours.cu"),
        include_str!("../kernels/fused.cu"),
    ],
    constants: &["TENSOR_SPLIT"],
    kernels: &[("fused_forward", SHARED_LIMIT)],
};

/// Threads of a block.
const THREADS: u32 = 512;

/// Words of a program, which travels with the launch: at most 4 KB. The first are items of a member, stages, and scalars of a member's
/// parameters.
const WORDS: usize = 500;

/// What stands for nothing where a place is expected.
const NOTHING: usize = 0xffff;

/// The kernel, where a block knows every op of a program.
pub(super) fn unit(graph: &Graph, precision: Precision) -> Option<Unit> {
    let known = graph.ops().iter().all(|op| op.fused().is_some());
    known.then(|| Unit::sized(KERNELS, &[u8::from(precision == Precision::F32)]))
}

/// Scalars from one row to the next: an odd multiple of eight, so that eight rows lie in different banks.
fn pitch(width: usize) -> usize {
    (width + 7) / 16 * 16 + 8
}

/// An op that a block of threads does for one item.
pub(crate) trait Fused {
    /// What the block does, one stage beside the other: none reads what another writes.
    ///
    /// # Errors
    /// If a value has no place.
    fn stages(&self, block: &Block<'_>) -> Result<Vec<Stage>>;
}

/// What the kernel does at a stage.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Load = 0,
    Store = 1,
    Linear = 2,
    Combine = 3,
    Reshape = 4,
    Arcs = 5,
    Surround = 6,
    Gather = 7,
    Shift = 8,
    Pairs = 9,
    Pool = 10,
}

/// A stage: what the kernel does, and with what.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    kind: Kind,
    words: Vec<u64>,
    /// Whether its numbers fit their words.
    fits: bool,
    /// Scalars of [`Block::room`] that it uses.
    room: usize,
}

impl Stage {
    /// A stage without arguments.
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, words: Vec::new(), fits: true, room: 0 }
    }

    /// Adds addresses.
    #[must_use]
    pub(crate) fn at(mut self, addresses: &[u64]) -> Self {
        self.words.extend(addresses);
        self
    }

    /// Adds up to four places or sizes as one word.
    #[must_use]
    pub(crate) fn with(mut self, numbers: &[usize]) -> Self {
        self.fits &= numbers.iter().all(|&number| number <= NOTHING);
        self.words.push(numbers.iter().rev().fold(0, |word, &number| word << 16 | number as u64 & 0xffff));
        self
    }

    /// Lets it use so many scalars of [`Block::room`].
    #[must_use]
    pub(crate) fn using(self, room: usize) -> Self {
        Self { room, ..self }
    }

    /// `out = activation(factor · a)`, `a + b` or `a · b` for all entries of a shape, where `out` has rows of `width` and begins at a column.
    pub(crate) fn combining(
        kind: Combine,
        [a, b]: [usize; 2],
        (out, ending): (usize, usize),
        shape: Shape,
        (width, column): (usize, usize),
        factor: f64,
    ) -> Self {
        Self::new(Kind::Combine)
            .with(&[a, b, out, kind as usize | ending << 8])
            .with(&[shape.rows, shape.width, width, column])
            .at(&[u64::from((factor as f32).to_bits())])
    }

    /// Its words, the first of which says what it is, how many they are and whether it waits for the block.
    fn words(self, waits: bool) -> impl Iterator<Item = u64> {
        let head = self.kind as u64 | (self.words.len() as u64 + 1) << 8 | u64::from(waits) << 16;
        std::iter::once(head).chain(self.words)
    }
}

/// Where a block finds what ops read and write: scalars from the start of its shared memory.
pub(crate) struct Block<'a> {
    lowering: &'a Lowering<'a>,
    values: Vec<Option<Range<usize>>>,
    indices: Vec<Option<Range<usize>>>,
    masks: Vec<Option<Range<usize>>>,
    /// For values that only one activation reads, done by the op that makes them: that activation.
    ends: Vec<Option<Activate>>,
    /// Where ops find room for a moment.
    pub(crate) room: usize,
}

impl<'a> Block<'a> {
    fn new(lowering: &'a Lowering<'a>) -> Self {
        let Tools { graph, plan, .. } = lowering.tools;
        let mut ends: Vec<Option<Activate>> = vec![None; graph.values()];
        for pair in plan.forward().windows(2) {
            let (Op::Add(_) | Op::Surround(_), Op::Activate(activate)) =
                (&graph.ops()[pair[0]], &graph.ops()[pair[1]])
            else {
                continue;
            };
            let reads = graph.ops()[pair[0]].outputs() == [activate.input];
            if reads && plan.only_reader(activate.input) == Some(pair[1]) {
                ends[activate.input.position()] = Some(*activate);
            }
        }
        // Inputs are there from the beginning; all else from the op that makes it; each to the last op that reads it.
        let (values, indices) = (graph.values(), graph.index_sources().len());
        let mut lives: Vec<Option<Life>> = vec![None; values + indices + graph.masks().len()];
        let mut lives_on = |which: usize, size: usize, is_input: bool, tick: usize| {
            let first = if is_input { 0 } else { tick };
            lives[which].get_or_insert(Life { size, first, last: tick }).last = tick;
        };
        let room = |value: Value| graph.shape(value).rows * pitch(graph.shape(value).width);
        let is_input = |value: Value| lowering.addresses.inputs[value.position()] != 0;
        for (tick, &position) in plan.forward().iter().enumerate() {
            let op = &graph.ops()[position];
            if is_end(&ends, op) {
                continue;
            }
            let reads = op.reads();
            let made = op.outputs().into_iter().filter(|&made| lowering.is_planned(made));
            let made = made.map(|made| ends[made.position()].map_or(made, |end| end.output));
            for value in reads.values.into_iter().chain(made) {
                lives_on(value.position(), room(value), is_input(value), tick);
            }
            if let Some(index) = reads.index {
                lives_on(values + index.position(), graph.index_rows(index), true, tick);
            }
            if let Some(mask) = reads.mask {
                let size = graph.masks()[mask.position()].what.size().div_ceil(SCALAR);
                lives_on(values + indices + mask.position(), size, true, tick);
            }
        }
        for &output in plan.outputs() {
            lives_on(output.position(), room(output), is_input(output), plan.forward().len());
        }
        let (places, room) = place(&lives);
        let mut places = places.into_iter().map(|place| place.map(|at| at.offset..at.offset + at.size));
        Self {
            lowering,
            values: places.by_ref().take(values).collect(),
            indices: places.by_ref().take(indices).collect(),
            masks: places.collect(),
            ends,
            room,
        }
    }

    /// The program's graph.
    pub(crate) fn graph(&self) -> &Graph {
        self.lowering.tools.graph
    }

    /// The shape of a value.
    pub(crate) fn shape(&self, value: Value) -> Shape {
        self.graph().shape(value)
    }

    /// Where a value lies.
    ///
    /// # Errors
    /// If it has no place.
    pub(crate) fn value(&self, value: Value) -> Result<usize> {
        start(&self.values[value.position()], "a value")
    }

    /// The same, or what stands for nothing.
    ///
    /// # Errors
    /// If it has no place.
    pub(crate) fn maybe(&self, value: Option<Value>) -> Result<usize> {
        value.map_or(Ok(NOTHING), |value| self.value(value))
    }

    /// Where an op's result goes, and the code of the activation that it goes through on the way.
    ///
    /// # Errors
    /// If it has no place.
    pub(crate) fn result(&self, value: Value) -> Result<(usize, usize)> {
        match &self.ends[value.position()] {
            Some(end) => Ok((self.value(end.output)?, end.activation.code())),
            None => Ok((self.value(value)?, Activation::None.code())),
        }
    }

    /// Whether a result has a place: one that nobody reads has none.
    pub(crate) fn is_read(&self, value: Value) -> bool {
        self.lowering.is_planned(value)
    }

    /// Where integers lie.
    ///
    /// # Errors
    /// If they have no place.
    pub(crate) fn index(&self, index: Index) -> Result<usize> {
        start(&self.indices[index.position()], "integers")
    }

    /// Where a mask lies, or what stands for nothing.
    ///
    /// # Errors
    /// If it has no place.
    pub(crate) fn mask(&self, mask: Option<Mask>) -> Result<usize> {
        mask.map_or(Ok(NOTHING), |mask| start(&self.masks[mask.position()], "a mask"))
    }

    /// `factor · a`, `a + b` or `a · b` as an op's result.
    ///
    /// # Errors
    /// If a value has no place.
    pub(crate) fn combined(
        &self,
        kind: Combine,
        parts: [Value; 2],
        output: Value,
        factor: f64,
    ) -> Result<Vec<Stage>> {
        let [a, b] = parts.map(|part| self.value(part));
        let shape = self.shape(output);
        let width = (shape.width, 0);
        Ok(vec![Stage::combining(kind, [a?, b?], self.result(output)?, shape, width, factor)])
    }

    /// The first member's parameter.
    pub(crate) fn param(&self, param: Param) -> u64 {
        self.lowering.param(param)
    }

    /// What brings an item's inputs here.
    fn loads(&self) -> Vec<(Stage, Range<usize>)> {
        let (graph, addresses) = (self.graph(), &self.lowering.addresses);
        let mut loads = Vec::new();
        let mut load = |at: u64, place: &Option<Range<usize>>, [rows, width, kind]: [usize; 3]| {
            if let Some(place) = place {
                let stage = Stage::new(Kind::Load).at(&[at]).with(&[place.start, rows, width, kind]);
                loads.push((stage, place.clone()));
            }
        };
        for input in graph.inputs() {
            let (Shape { rows, width }, at) = (graph.shape(input.what), input.what.position());
            load(addresses.inputs[at], &self.values[at], [rows, width, 0]);
        }
        let indices = graph.index_sources().iter().map(IndexSource::rows);
        for ((rows, place), &at) in indices.zip(&self.indices).zip(&addresses.indices) {
            load(at, place, [rows, 1, 1]);
        }
        for ((mask, place), &at) in graph.masks().iter().zip(&self.masks).zip(&addresses.masks) {
            load(at, place, [mask.what.rows, mask.what.width, 2]);
        }
        loads
    }

    /// What an op reads and writes here.
    fn touched(&self, op: &Op) -> [Vec<Range<usize>>; 2] {
        let reads = op.reads();
        let places = |values: Vec<Value>| {
            values.into_iter().filter_map(|value| self.values[value.position()].clone()).collect::<Vec<_>>()
        };
        let mut read = places(reads.values);
        read.extend(reads.index.and_then(|index| self.indices[index.position()].clone()));
        read.extend(reads.mask.and_then(|mask| self.masks[mask.position()].clone()));
        let end = |value: Value| self.ends[value.position()].map_or(value, |end| end.output);
        [read, places(op.outputs().into_iter().map(end).collect())]
    }
}

/// Whether an op is an activation that the op before it does.
fn is_end(ends: &[Option<Activate>], op: &Op) -> bool {
    matches!(op, Op::Activate(activate) if ends.iter().flatten().any(|end| end == activate))
}

fn start(place: &Option<Range<usize>>, what: &str) -> Result<usize> {
    place.as_ref().map(|place| place.start).ok_or_else(|| refused(format!("{what} has no place in a block")))
}

impl<'a> Lowering<'a> {
    /// The forward pass in one kernel, whose outputs go to the host; `None` where an op knows no such way, items are too many or too large,
    /// or nobody says where outputs go.
    ///
    /// # Errors
    /// If the kernel is not loaded.
    pub(crate) fn fused_forward(tools: Tools<'a>, addresses: &Addresses) -> Result<Option<Tape>> {
        let Tools { graph, plan, .. } = tools;
        let items = addresses.members * addresses.items;
        let Some(unit) = unit(graph, tools.precision) else { return Ok(None) };
        let few = (1..=tools.multiprocessors).contains(&items);
        if !few || addresses.outputs.len() != plan.outputs().len() || tools.halves.contains(&true) {
            return Ok(None);
        }
        let mut lowering = Self::new(tools, addresses, None);
        let (words, shared) = {
            let block = Block::new(&lowering);
            let mut writer = Writer::new(block.room);
            for (load, place) in block.loads() {
                writer.write(vec![load], [Vec::new(), vec![place]]);
            }
            for &position in plan.forward() {
                let op = &graph.ops()[position];
                if is_end(&block.ends, op) {
                    continue;
                }
                let Some(fused) = op.fused() else { return Ok(None) };
                writer.write(fused.stages(&block)?, block.touched(op));
            }
            for (&output, &to) in plan.outputs().iter().zip(&addresses.outputs) {
                let (Shape { rows, width }, from) = (graph.shape(output), block.value(output)?);
                let (store, read) = (Stage::new(Kind::Store).at(&[to]), from..from + rows * pitch(width));
                writer.write(vec![store.with(&[from, rows, width])], [vec![read], Vec::new()]);
            }
            match writer.finish(addresses.items, lowering.length()) {
                Some((words, scalars)) if scalars * SCALAR <= tools.shared => (words, scalars * SCALAR),
                _ => return Ok(None),
            }
        };
        let arguments = Arguments::one(words);
        lowering.launch(
            "fused",
            (unit, "fused_forward"),
            (items, 1, 1),
            THREADS,
            shared as u32,
            arguments,
        )?;
        Ok(Some(lowering.tape))
    }
}

/// Writes stages down, and finds out which of them wait for the block.
struct Writer {
    words: Vec<u64>,
    stages: usize,
    fits: bool,
    /// Where room for a moment begins, and how much of it is used.
    room: usize,
    used: usize,
    /// What was read and written since the last stage that waited.
    read: Vec<Range<usize>>,
    written: Vec<Range<usize>>,
}

impl Writer {
    fn new(room: usize) -> Self {
        let (read, written) = (Vec::new(), Vec::new());
        Self { words: Vec::new(), stages: 0, fits: true, room, used: 0, read, written }
    }

    /// Adds an op's stages, which read and write some of the shared memory.
    fn write(&mut self, stages: Vec<Stage>, [reads, mut writes]: [Vec<Range<usize>>; 2]) {
        let used = stages.iter().map(|stage| stage.room).max().unwrap_or(0);
        if used > 0 {
            writes.push(self.room..self.room + used);
            self.used = self.used.max(used);
        }
        let meet = |one: &[Range<usize>], other: &[Range<usize>]| {
            one.iter().any(|one| other.iter().any(|other| one.start < other.end && other.start < one.end))
        };
        let mut waits =
            meet(&reads, &self.written) || meet(&writes, &self.written) || meet(&writes, &self.read);
        if waits {
            self.read.clear();
            self.written.clear();
        }
        self.read.extend(reads);
        self.written.extend(writes);
        for stage in stages {
            self.fits &= stage.fits;
            self.words.extend(stage.words(std::mem::take(&mut waits)));
            self.stages += 1;
        }
    }

    /// The whole program and the scalars of shared memory that it takes, if it fits.
    fn finish(self, items: usize, length: usize) -> Option<(Vec<u64>, usize)> {
        let mut words = vec![items as u64, self.stages as u64, length as u64];
        words.extend(self.words);
        let fits = self.fits && words.len() <= WORDS;
        words.resize(WORDS, 0);
        fits.then_some((words, self.room + self.used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(place: Range<usize>) -> Vec<Range<usize>> {
        vec![place]
    }

    #[test]
    fn a_stage_waits_for_what_it_reads_and_for_readers_of_what_it_overwrites() {
        let mut writer = Writer::new(100);
        let stage = || vec![Stage::new(Kind::Shift).at(&[7]).with(&[3, 4, 5])];
        writer.write(stage(), [at(0..4), at(4..8)]);
        // Beside the first: it reads what was there before.
        writer.write(stage(), [at(0..4), at(8..12)]);
        // It reads what the first wrote.
        writer.write(stage(), [at(4..8), at(12..16)]);
        // It writes where nobody has read since; then where the one before last read; then room for a moment, twice.
        writer.write(stage(), [vec![], at(0..4)]);
        writer.write(stage(), [vec![], at(6..7)]);
        let moment = || vec![Stage::new(Kind::Arcs).using(20)];
        writer.write(moment(), [vec![], vec![]]);
        writer.write(moment(), [vec![], vec![]]);
        let (words, scalars) = writer.finish(5, 64).unwrap();
        assert_eq!((words.len(), &words[..3], scalars), (WORDS, &[5, 7, 64][..], 120));
        assert_eq!(words[3..6], [8 | 3 << 8, 7, 3 | 4 << 16 | 5 << 32]);
        let (mut next, mut waits) = (3, Vec::new());
        for _ in 0..words[1] {
            waits.push(words[next] >> 16 == 1);
            next += (words[next] >> 8 & 0xff) as usize;
        }
        assert_eq!(waits, [false, false, true, false, true, false, true]);
    }

    #[test]
    fn what_does_not_fit_is_left_to_many_kernels() {
        let mut writer = Writer::new(0);
        writer.write(vec![Stage::new(Kind::Shift).with(&[70_000])], [vec![], vec![]]);
        assert!(writer.finish(1, 64).is_none());
        let mut writer = Writer::new(0);
        (0..WORDS).for_each(|_| writer.write(vec![Stage::new(Kind::Shift)], [vec![], vec![]]));
        assert!(writer.finish(1, 64).is_none());
    }

    #[test]
    fn rows_lie_in_different_banks() {
        for width in 1..200 {
            let pitch = pitch(width);
            assert!(pitch >= width.next_multiple_of(8) && pitch % 16 == 8 && pitch < width + 16, "{width}");
        }
    }
}
