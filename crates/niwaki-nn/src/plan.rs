//! Turns a program into what an engine runs: which ops, in which order, where each buffer lies in the arena.
//!
//! The arena is laid out **per item**: a buffer of `size` scalars per item at `offset` lies, for a block of `n`
//! items (times members, on a device that runs them together), at `offset · n` and is `[item, rows, width]` there.
//! So one plan serves every number of items, and running it allocates nothing. Buffers whose lives do not overlap
//! share memory. This file must not know what an op computes, only what it reads, writes and keeps.

use crate::graph::{Graph, Value};
use crate::ops::{Layer, Operation, Rows, made_of, picked_by};
use crate::{Error, Result};

/// Buffers are multiples of this many scalars, so that each starts on a cache line.
const LINE: usize = 16;

/// A place in the arena, in scalars per item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First scalar.
    pub offset: usize,
    /// Scalars in use; the arena reserves the next multiple of 16.
    pub size: usize,
}

/// How a backward op gives an operand its cotangent.
///
/// Operands are written in the order of [`crate::Op::operands`]; one that is read twice is written twice. Where an op reads
/// only some columns, `Set` defines the whole buffer: columns that it does not read become zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// It is the first to do so: the buffer holds rubbish and is overwritten.
    Set,
    /// The buffer already holds a part: add to it.
    Add,
    /// The operand's cotangent *is* the output's, in the same buffer: nothing to do.
    Alias,
}

/// One op of the backward pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Backward {
    /// Position of the op in [`Graph::ops`].
    pub op: usize,
    /// For each of [`crate::Op::operands`], in order: how to write its cotangent, or `None` where none is wanted.
    pub writes: Vec<Option<Write>>,
}

/// The schedule and the memory of one program.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    outputs: Vec<Value>,
    forward: Vec<usize>,
    backward: Vec<Backward>,
    values: Vec<Option<Region>>,
    saved: Vec<Option<Region>>,
    cotangents: Vec<Option<Region>>,
    /// Outputs whose cotangents the caller supplies.
    asked: Vec<Value>,
    /// The only op that reads each value, in one place; none of an output.
    only_reader: Vec<Option<usize>>,
    arena: usize,
}

impl Plan {
    /// A plan that computes `outputs` and nothing else that they do not need.
    #[must_use]
    pub fn forward_only(graph: &Graph, outputs: &[Value]) -> Self {
        Planner::new(graph, outputs).finish(&[])
    }

    /// A plan that computes `outputs` and then pulls a cotangent on each of them back into the parameters.
    #[must_use]
    pub fn training(graph: &Graph, outputs: &[Value]) -> Self {
        let mut planner = Planner::new(graph, outputs);
        planner.derive_backward();
        planner.finish(&[])
    }

    /// A plan that computes `outputs` row by row: row `t` of every value, once rows `0..t` are there.
    ///
    /// Keys and values of attention stay in the arena from step to step: they are the cache. Running all rows of
    /// this plan one after the other gives what [`Plan::forward_only`] gives at once.
    ///
    /// # Errors
    /// If some op mixes rows other than by causal attention.
    pub fn stepping(graph: &Graph, outputs: &[Value]) -> Result<Self> {
        let planner = Planner::new(graph, outputs);
        let mut cache = Vec::new();
        for &position in &planner.forward {
            let op = &graph.ops()[position];
            match op.rows() {
                Rows::Apart => {}
                Rows::UpTo(values) => cache.extend(values),
                Rows::Mixed => {
                    let reason = "mixes rows, so it cannot run row by row".to_owned();
                    return Err(Error::Unsupported { op: op.name(), reason });
                }
            }
        }
        Ok(planner.finish(&cache))
    }

    /// The values that it computes for the caller.
    #[must_use]
    pub fn outputs(&self) -> &[Value] {
        &self.outputs
    }

    /// Positions in [`Graph::ops`], in the order in which they run.
    #[must_use]
    pub fn forward(&self) -> &[usize] {
        &self.forward
    }

    /// The backward pass, in the order in which it runs; empty unless the plan is for training. Before it, the
    /// caller has filled the cotangents of all outputs.
    #[must_use]
    pub fn backward(&self) -> &[Backward] {
        &self.backward
    }

    /// Where a value lies; `None` for inputs, which lie in buffers of their own, and for values not computed.
    #[must_use]
    pub fn value(&self, value: Value) -> Option<Region> {
        self.values[value.position()]
    }

    /// Where the op at a position saves what its backward pass needs; `None` where it saves nothing.
    #[must_use]
    pub fn saved(&self, op: usize) -> Option<Region> {
        self.saved[op]
    }

    /// Where the cotangent of a value lies; `None` where there is none (it counts as zero).
    #[must_use]
    pub fn cotangent(&self, value: Value) -> Option<Region> {
        self.cotangents[value.position()]
    }

    /// Where the caller writes the cotangent of an output; `None` where nothing flows back from it.
    #[must_use]
    pub fn asked(&self, output: Value) -> Option<Region> {
        if self.asked.contains(&output) { self.cotangent(output) } else { None }
    }

    /// The op that reads a value, where there is one, it does so in one place, and the caller does not.
    pub(crate) fn only_reader(&self, value: Value) -> Option<usize> {
        self.only_reader[value.position()]
    }

    /// Scalars of the arena per item.
    #[must_use]
    pub fn arena(&self) -> usize {
        self.arena
    }
}

/// A buffer's life in ticks, both ends included. Forward ops tick first, then the caller once, then backward ops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub(crate) size: usize,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

struct Planner<'a> {
    graph: &'a Graph,
    outputs: Vec<Value>,
    forward: Vec<usize>,
    backward: Vec<Backward>,
    /// For each value, the value whose cotangent's buffer it shares, where it has one.
    cotangent_of: Vec<Option<Value>>,
    cotangent_life: Vec<Option<Life>>,
}

impl<'a> Planner<'a> {
    fn new(graph: &'a Graph, outputs: &[Value]) -> Self {
        let mut needed = vec![false; graph.values()];
        outputs.iter().for_each(|output| needed[output.position()] = true);
        let mut forward = Vec::new();
        for (position, op) in graph.ops().iter().enumerate().rev() {
            if op.outputs().iter().any(|output| needed[output.position()]) {
                op.operands().iter().for_each(|operand| needed[operand.position()] = true);
                forward.push(position);
            }
        }
        forward.reverse();
        let none = vec![None; graph.values()];
        Self {
            graph,
            outputs: outputs.to_vec(),
            forward,
            backward: Vec::new(),
            cotangent_of: none,
            cotangent_life: vec![None; graph.values()],
        }
    }

    /// The tick at which the caller reads outputs and writes their cotangents.
    fn caller(&self) -> usize {
        self.forward.len()
    }

    /// Everything that an op computes leads back to a parameter, except where all it reads is input.
    fn differentiable(&self) -> Vec<bool> {
        let mut varies = vec![false; self.graph.values()];
        for &position in &self.forward {
            let op = &self.graph.ops()[position];
            let reads = op.reads();
            let any =
                !reads.params.is_empty() || reads.values.iter().any(|operand| varies[operand.position()]);
            op.outputs().iter().for_each(|output| varies[output.position()] = any);
        }
        varies
    }

    fn derive_backward(&mut self) {
        let varies = self.differentiable();
        let caller = self.caller();
        for &output in &self.outputs {
            if varies[output.position()] && !self.graph.is_shown(output) {
                self.cotangent_of[output.position()] = Some(output);
                let size = self.graph.shape(output).size();
                self.cotangent_life[output.position()] = Some(Life { size, first: caller, last: caller });
            }
        }
        for &position in self.forward.iter().rev() {
            let op = &self.graph.ops()[position];
            let roots: Vec<Value> =
                op.outputs().iter().filter_map(|output| self.cotangent_of[output.position()]).collect();
            if roots.is_empty() {
                continue;
            }
            let tick = caller + 1 + self.backward.len();
            let operands = op.operands();
            let mut writes = Vec::with_capacity(operands.len());
            for (place, &operand) in operands.iter().enumerate() {
                if !varies[operand.position()] {
                    writes.push(None);
                    continue;
                }
                let write = match self.cotangent_of[operand.position()] {
                    Some(_) => Write::Add,
                    None if op.passes_through(place) => Write::Alias,
                    None => Write::Set,
                };
                let root = match write {
                    Write::Add => self.cotangent_of[operand.position()].unwrap_or(operand),
                    Write::Alias => roots[0],
                    Write::Set => operand,
                };
                self.cotangent_of[operand.position()] = Some(root);
                let size = self.graph.shape(operand).size();
                let life = &mut self.cotangent_life[root.position()];
                life.get_or_insert(Life { size, first: tick, last: tick }).last = tick;
                writes.push(Some(write));
            }
            for root in roots {
                if let Some(life) = &mut self.cotangent_life[root.position()] {
                    life.last = tick;
                }
            }
            self.backward.push(Backward { op: position, writes });
        }
    }

    /// Where a device may make an op's operands within that op, what they are made of is read until then, in both passes, and
    /// its cotangent written from then on.
    fn join_makers(&mut self, value_life: &mut [Option<Life>]) {
        let caller = self.caller();
        for (tick, &position) in self.forward.iter().enumerate() {
            let Some(made_of) = made_of(self.graph, &self.outputs, &self.graph.ops()[position]) else {
                continue;
            };
            let life = &mut value_life[made_of.position()];
            extend(life, tick);
            let Some(index) = self.backward.iter().position(|step| step.op == position) else { continue };
            let tick = caller + 1 + index;
            extend(life, tick);
            let root = self.cotangent_of[made_of.position()].unwrap_or(made_of);
            begin(&mut self.cotangent_life[root.position()], tick);
        }
    }

    /// Where a device may pick from an op's results within that op, what is picked is written from then on, and its
    /// cotangents read until then.
    fn join_picks(&mut self, value_life: &mut [Option<Life>], saved_life: &mut [Option<Life>]) {
        let caller = self.caller();
        for (tick, &position) in self.forward.iter().enumerate() {
            let of = &self.graph.ops()[position];
            let Some((next, pick)) = picked_by(self.graph, &self.outputs, of) else { continue };
            let picked = [pick.log_prob, pick.entropy];
            begin(&mut saved_life[next], tick);
            picked.iter().for_each(|value| begin(&mut value_life[value.position()], tick));
            let Some(index) = self.backward.iter().position(|step| step.op == position) else { continue };
            let tick = caller + 1 + index;
            extend(&mut saved_life[next], tick);
            for root in picked.into_iter().filter_map(|value| self.cotangent_of[value.position()]) {
                extend(&mut self.cotangent_life[root.position()], tick);
            }
        }
    }

    /// Where a device may do a decoder's layer in fewer kernels than ops, some of what the layer's ops make is made one op before, and
    /// some of it read until the layer's backward pass ends.
    fn join_layers(&self, value_life: &mut [Option<Life>]) {
        if self.backward.is_empty() {
            return;
        }
        let caller = self.caller();
        for layer in Layer::all(self.graph, &self.outputs) {
            for (value, maker) in layer.made_early() {
                if let Some(tick) = self.forward.iter().position(|&position| position == maker) {
                    begin(&mut value_life[value.position()], tick);
                }
            }
            let (values, reader) = layer.read_late();
            if let Some(index) = self.backward.iter().position(|step| step.op == reader) {
                values.iter().for_each(|value| extend(&mut value_life[value.position()], caller + 1 + index));
            }
        }
    }

    fn only_readers(&self) -> Vec<Option<usize>> {
        let mut readers = vec![Vec::new(); self.graph.values()];
        for &position in &self.forward {
            let operands = self.graph.ops()[position].operands();
            operands.iter().for_each(|operand| readers[operand.position()].push(position));
        }
        self.outputs.iter().for_each(|output| readers[output.position()].clear());
        readers.iter().map(|readers| if let [only] = readers[..] { Some(only) } else { None }).collect()
    }

    fn finish(mut self, pinned: &[Value]) -> Plan {
        let graph = self.graph;
        let caller = self.caller();
        let end = caller + 1 + self.backward.len();
        let mut value_life: Vec<Option<Life>> = vec![None; graph.values()];
        for (tick, &position) in self.forward.iter().enumerate() {
            let op = &graph.ops()[position];
            for output in op.outputs() {
                let size = graph.shape(output).size();
                value_life[output.position()] = Some(Life { size, first: tick, last: tick });
            }
            for operand in op.operands() {
                extend(&mut value_life[operand.position()], tick);
            }
        }
        for &output in &self.outputs {
            extend(&mut value_life[output.position()], caller);
        }
        for &value in pinned {
            if let Some(life) = &mut value_life[value.position()] {
                (life.first, life.last) = (0, end);
            }
        }
        let mut saved_life: Vec<Option<Life>> = vec![None; graph.ops().len()];
        for (index, Backward { op: position, .. }) in self.backward.iter().enumerate() {
            let op = &graph.ops()[*position];
            let tick = caller + 1 + index;
            for value in op.kept() {
                extend(&mut value_life[value.position()], tick);
            }
            let size = op.saved(graph);
            let first = self.forward.iter().position(|other| other == position).unwrap_or(0);
            saved_life[*position] = (size > 0).then_some(Life { size, first, last: tick });
        }
        self.join_makers(&mut value_life);
        self.join_layers(&mut value_life);
        self.join_picks(&mut value_life, &mut saved_life);
        let lives: Vec<Option<Life>> =
            value_life.iter().chain(&saved_life).chain(&self.cotangent_life).copied().collect();
        let (regions, arena) = place(&lives);
        let (values, rest) = regions.split_at(graph.values());
        let (saved, roots) = rest.split_at(graph.ops().len());
        let cotangents =
            self.cotangent_of.iter().map(|root| root.and_then(|root| roots[root.position()])).collect();
        let asked = self.outputs.iter().copied().filter(|&output| !graph.is_shown(output)).collect();
        Plan {
            asked,
            only_reader: self.only_readers(),
            outputs: self.outputs,
            forward: self.forward,
            backward: self.backward,
            values: values.to_vec(),
            saved: saved.to_vec(),
            cotangents,
            arena,
        }
    }
}

fn begin(life: &mut Option<Life>, tick: usize) {
    if let Some(life) = life {
        life.first = life.first.min(tick);
    }
}

fn extend(life: &mut Option<Life>, tick: usize) {
    if let Some(life) = life {
        life.last = life.last.max(tick);
    }
}

/// Gives each buffer an offset, largest first, each at the lowest place that no overlapping life holds.
pub(crate) fn place(lives: &[Option<Life>]) -> (Vec<Option<Region>>, usize) {
    let mut order: Vec<usize> = (0..lives.len()).filter(|&index| lives[index].is_some()).collect();
    order.sort_by_key(|&index| lives[index].map(|life| (std::cmp::Reverse(life.size), life.first, index)));
    let mut regions: Vec<Option<Region>> = vec![None; lives.len()];
    let mut placed: Vec<(usize, usize, Life)> = Vec::new();
    let mut arena = 0;
    for index in order {
        let Some(life) = lives[index] else { continue };
        let room = life.size.next_multiple_of(LINE);
        let mut offset = 0;
        // `placed` stands in order of offset, so one sweep finds the first gap that is wide enough.
        for &(start, stop, other) in &placed {
            let overlaps = life.first <= other.last && other.first <= life.last;
            if overlaps && start < offset + room {
                offset = offset.max(stop);
            }
        }
        let at = placed.partition_point(|&(start, ..)| start <= offset);
        placed.insert(at, (offset, offset + room, life));
        arena = arena.max(offset + room);
        regions[index] = Some(Region { offset, size: life.size });
    }
    (regions, arena)
}
