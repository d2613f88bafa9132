//! The members of a population on the CPU, and the loop over members and blocks.

use super::Real;
use super::block::{Block, Extent, Inputs, Workspace};
use super::buffer::Buffer;
use super::cuts::Cuts;
use super::kernels::scale;
use super::step::step;
use crate::engine::{CotangentFn, DynEngine, Engine, Span, check_members, check_runs, check_silent};
use crate::graph::{Graph, Index, IndexSource, Mask, Value};
use crate::ops::Weights;
use crate::optimiser::Optimiser;
use crate::plan::Plan;
use crate::{Error, Result};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Rows of the tallest value in a block: enough for products to run at full speed, few enough for the cache.
pub(super) const BLOCK_ROWS: usize = 256;

/// A population on the CPU.
#[derive(Debug)]
pub struct Cpu<F> {
    graph: Graph,
    training: Plan,
    forward: Plan,
    /// Made on first use: not every program can run row by row.
    stepping: Option<Plan>,
    inputs: Inputs<F>,
    members: Vec<Member<F>>,
    items: usize,
    /// How items are cut into blocks: alike for all members, or one for each.
    cuts: Vec<Cuts>,
    /// Items that will be asked for nothing, `[member][item]`; empty where none were named.
    silent: Vec<Vec<bool>>,
    /// Those that no thread is using; there are never more than threads.
    pool: Mutex<Vec<ThreadBuffers<F>>>,
}

#[derive(Debug)]
struct Member<F> {
    parameters: Buffer<F>,
    /// How often the parameters have changed.
    changes: u64,
    gradient: Buffer<F>,
    moments: Vec<Vec<F>>,
    steps: u64,
    outputs: Vec<Vec<F>>,
    /// Keys and values of the rows so far; empty until the first row is run.
    cache: Workspace<F>,
}

impl Cpu<f32> {
    /// A population whose parameters are zero, with no items yet, compiled in this crate.
    #[must_use]
    pub fn boxed(graph: &Graph, outputs: &[Value], members: usize) -> Box<DynEngine> {
        Box::new(Self::new(graph, outputs, members))
    }
}

impl<F: Real> Cpu<F> {
    /// A population whose parameters are zero, with no items yet.
    #[must_use]
    pub fn new(graph: &Graph, outputs: &[Value], members: usize) -> Self {
        let length = graph.layout().len();
        let member = || Member {
            parameters: Buffer::zeros(length),
            changes: 0,
            gradient: Buffer::zeros(length),
            moments: Vec::new(),
            steps: 0,
            outputs: vec![Vec::new(); outputs.len()],
            cache: Workspace::default(),
        };
        Self {
            training: Plan::training(graph, outputs),
            forward: Plan::forward_only(graph, outputs),
            stepping: None,
            inputs: Inputs {
                scalars: vec![Vec::new(); graph.inputs().len()],
                indices: vec![Vec::new(); graph.index_sources().len()],
                masks: vec![Vec::new(); graph.masks().len()],
            },
            graph: graph.clone(),
            members: (0..members).map(|_| member()).collect(),
            items: 0,
            cuts: vec![Cuts::default()],
            silent: Vec::new(),
            pool: Mutex::new(Vec::new()),
        }
    }

    /// Items that a block has room for.
    fn block_items(&self) -> usize {
        BLOCK_ROWS / self.graph.tallest().max(1)
    }

    fn make_room(&mut self, items: usize) {
        self.items = items;
        self.silent.clear();
        for member in &mut self.members {
            for (kept, &output) in member.outputs.iter_mut().zip(self.forward.outputs()) {
                kept.resize(items * self.graph.shape(output).size(), F::ZERO);
            }
        }
    }

    /// Runs `work` on every member in parallel, each with a buffers that has room for blocks of `plan`.
    fn each_member(
        &mut self,
        training: bool,
        work: impl Fn((usize, &Cuts), &mut Member<F>, &mut ThreadBuffers<F>, &Shared<'_, F>) + Sync,
    ) {
        let Self { graph, inputs, members, items, cuts, silent, pool, .. } = self;
        let plan = if training { &self.training } else { &self.forward };
        let shared = Shared { graph, plan, inputs, items: *items, silent };
        let cuts = &*cuts;
        let pool = &*pool;
        let free = || pool.lock().unwrap_or_else(PoisonError::into_inner);
        members.par_iter_mut().enumerate().for_each(|(index, member)| {
            let mut buffers = free().pop().unwrap_or_default();
            let cuts = cuts.get(index).unwrap_or(&cuts[0]);
            for workspace in buffers.workspaces.iter_mut().take(if cuts.halves() { 2 } else { 1 }) {
                workspace.reserve(graph, plan, cuts.largest());
            }
            buffers.weights.lay_out(graph, plan, &member.parameters, (index, member.changes));
            work((index, cuts), member, &mut buffers, &shared);
            free().push(buffers);
        });
    }
}

/// The memory that one member is worked on with. Its items are cut into two halves that two threads may take; where
/// the cut lies depends on the items alone, so results do not depend on the threads.
#[derive(Debug, Default)]
struct ThreadBuffers<F> {
    weights: Weights<F>,
    workspaces: [Workspace<F>; 2],
    /// The second half's gradient.
    gradient: Vec<F>,
}

/// The outputs of a run of items.
struct Kept<'a, F> {
    items: Range<usize>,
    /// `[items, size]` of each output.
    outputs: Vec<&'a mut [F]>,
}

impl<'a, F> Kept<'a, F> {
    fn whole(items: usize, outputs: &'a mut [Vec<F>]) -> Self {
        Self { items: 0..items, outputs: outputs.iter_mut().map(Vec::as_mut_slice).collect() }
    }

    /// The items before `middle`, and those from it on.
    fn split(self, middle: usize) -> (Self, Self) {
        let (count, before) = (self.items.len().max(1), middle - self.items.start);
        let halves = self.outputs.into_iter().map(|all| {
            let size = all.len() / count;
            all.split_at_mut(before * size)
        });
        let (first, second) = halves.unzip();
        (
            Self { items: self.items.start..middle, outputs: first },
            Self { items: middle..self.items.end, outputs: second },
        )
    }
}

/// What the members of a run have in common.
struct Shared<'a, F> {
    graph: &'a Graph,
    plan: &'a Plan,
    inputs: &'a Inputs<F>,
    items: usize,
    silent: &'a [Vec<bool>],
}

impl<F: Real> Shared<'_, F> {
    /// Scalars per item of each output.
    fn sizes(&self) -> impl Iterator<Item = (Value, usize)> {
        self.plan.outputs().iter().map(|&output| (output, self.graph.shape(output).size()))
    }

    /// Copies a block's outputs, all rows or one, to where the caller reads them.
    fn keep(&self, block: &Block<'_, F>, extent: &Extent, kept: &mut Kept<'_, F>) {
        let first = kept.items.start;
        for ((value, size), kept) in self.sizes().zip(&mut kept.outputs) {
            let width = self.graph.shape(value).width;
            let rows = extent.row.map_or(0..size, |row| row * width..(row + 1) * width);
            for (item, from) in extent.items.clone().zip(block.value(value).chunks_exact(size)) {
                let to = &mut kept[(item - first) * size..(item - first + 1) * size];
                to[rows.clone()].copy_from_slice(&from[rows.clone()]);
            }
        }
    }

    /// Runs some items of a member forward and, where asked, backward; what is asked for is added to the gradient.
    fn run(
        &self,
        (member, cuts): (usize, &Cuts),
        weights: (&[F], &Weights<F>),
        workspace: &mut Workspace<F>,
        mut kept: Kept<'_, F>,
        mut asked: Option<(&CotangentFn<'_, F>, &mut [F])>,
    ) {
        let Shared { graph, plan, inputs, .. } = self;
        let silent = self.silent.get(member).filter(|_| asked.is_some());
        for items in cuts.blocks(kept.items.clone()) {
            // Whole blocks only: what is left then adds up in the order in which it always does.
            if silent.is_some_and(|silent| !silent[items.clone()].contains(&false)) {
                continue;
            }
            let extent = Extent { member, items: items.clone(), total: self.items, row: None };
            let mut block = Block::new(graph, plan, inputs, weights, extent.clone(), workspace);
            block.forward();
            self.keep(&block, &extent, &mut kept);
            let Some((surrogate, gradient)) = &mut asked else { continue };
            let first = kept.items.start;
            let seen: Vec<&[F]> = self
                .sizes()
                .zip(&kept.outputs)
                .map(|((_, size), kept)| &kept[(items.start - first) * size..(items.end - first) * size])
                .collect();
            let mut cotangents: Vec<&mut [F]> = self.sizes().map(|(output, _)| block.asked(output)).collect();
            surrogate(Span { member, items }, &seen, &mut cotangents);
            block.backward(gradient);
        }
    }

    /// Runs both halves of a member's items, side by side where a thread is free.
    fn run_halves(
        &self,
        of: (usize, &Cuts),
        member: &mut Member<F>,
        buffers: &mut ThreadBuffers<F>,
        surrogate: Option<&CotangentFn<'_, F>>,
    ) {
        let Member { parameters, gradient, outputs, .. } = member;
        let ThreadBuffers { weights, workspaces: [left, right], gradient: other } = buffers;
        let weights = (&**parameters, &*weights);
        if surrogate.is_some() {
            gradient.fill(F::ZERO);
        }
        let whole = Kept::whole(self.items, outputs);
        if !of.1.halves() {
            let asked = surrogate.map(|surrogate| (surrogate, &mut **gradient));
            return self.run(of, weights, left, whole, asked);
        }
        other.clear();
        other.resize(if surrogate.is_some() { gradient.len() } else { 0 }, F::ZERO);
        let (first, second) = whole.split(of.1.middle());
        let mine = surrogate.map(|surrogate| (surrogate, &mut **gradient));
        let others = surrogate.map(|surrogate| (surrogate, other.as_mut_slice()));
        rayon::join(
            || self.run(of, weights, left, first, mine),
            || self.run(of, weights, right, second, others),
        );
        if surrogate.is_some() {
            scale(other, F::ONE, gradient, true);
        }
    }
}

impl<F: Real> Engine for Cpu<F> {
    type Scalar = F;

    fn members(&self) -> usize {
        self.members.len()
    }

    fn items(&self) -> usize {
        self.items
    }

    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn set_items(&mut self, items: usize) -> Result<()> {
        self.make_room(items);
        self.cuts = vec![Cuts::even(items, self.block_items())];
        Ok(())
    }

    fn resizes_freely(&self) -> bool {
        true
    }

    fn set_runs(&mut self, ends: &[Vec<usize>]) -> Result<()> {
        let items = check_runs(self.members.len(), ends)?;
        self.make_room(items);
        self.cuts = ends.iter().map(|ends| Cuts::between(ends, self.block_items())).collect();
        Ok(())
    }

    fn load_scalars(&mut self, input: Value, data: &[F]) -> Result<()> {
        let size = self.graph.shape(input).size();
        let slot = self.graph.inputs().iter().position(|named| named.what == input);
        let Some(slot) = slot else {
            let reason = "the value is computed, not an input".to_owned();
            return Err(Error::Unsupported { op: "load_scalars", reason });
        };
        self.silent.clear();
        let name = &self.graph.inputs()[slot].name;
        load(&mut self.inputs.scalars[slot], data, name, self.members.len() * self.items * size)
    }

    fn load_indices(&mut self, index: Index, data: &[i32]) -> Result<()> {
        let IndexSource::Input { name, rows, bound } = &self.graph.index_sources()[index.position()] else {
            let reason = "constant indices are part of the program".to_owned();
            return Err(Error::Unsupported { op: "load_indices", reason });
        };
        if let Some(position) = data.iter().position(|&entry| i64::from(entry) >= *bound as i64) {
            let name = name.clone();
            return Err(Error::IndexRange { name, position, got: data[position], bound: *bound });
        }
        self.silent.clear();
        let expected = self.members.len() * self.items * rows;
        load(&mut self.inputs.indices[index.position()], data, name, expected)
    }

    fn load_mask(&mut self, mask: Mask, data: &[u8]) -> Result<()> {
        self.silent.clear();
        let named = &self.graph.masks()[mask.position()];
        let expected = self.members.len() * self.items * named.what.size();
        load(&mut self.inputs.masks[mask.position()], data, &named.name, expected)
    }

    fn set_parameters(&mut self, member: usize, flat: &[F]) -> Result<()> {
        check_length("parameters", self.graph.layout().len(), flat.len())?;
        self.members[member].parameters.copy_from_slice(flat);
        self.members[member].changes += 1;
        Ok(())
    }

    fn parameters(&self, member: usize) -> Result<Vec<F>> {
        Ok(self.members[member].parameters.to_vec())
    }

    fn forward(&mut self) -> Result<()> {
        self.check_loaded(self.forward.forward())?;
        self.each_member(false, |of, member, buffers, shared| shared.run_halves(of, member, buffers, None));
        Ok(())
    }

    fn forward_row(&mut self, row: usize) -> Result<()> {
        if self.stepping.is_none() {
            self.stepping = Some(Plan::stepping(&self.graph, self.forward.outputs())?);
        }
        self.check_loaded(self.forward.forward())?;
        let Self { graph, inputs, members, items, stepping, .. } = self;
        let Some(plan) = stepping else { return Ok(()) };
        let shared = Shared { graph, plan, inputs, items: *items, silent: &[] };
        members.par_iter_mut().enumerate().for_each(|(index, member)| {
            let extent =
                Extent { member: index, items: 0..shared.items, total: shared.items, row: Some(row) };
            member.cache.reserve(shared.graph, shared.plan, shared.items);
            let Member { parameters, cache, outputs, .. } = member;
            let plain = Weights::default();
            let weights = (&**parameters, &plain);
            let mut block = Block::new(shared.graph, shared.plan, inputs, weights, extent.clone(), cache);
            block.forward();
            shared.keep(&block, &extent, &mut Kept::whole(shared.items, outputs));
        });
        Ok(())
    }

    fn leave_out(&mut self, silent: &[Vec<bool>]) -> Result<()> {
        check_silent(self.members.len(), self.items, silent)?;
        self.silent = silent.to_vec();
        Ok(())
    }

    fn pull_back(&mut self, surrogate: &CotangentFn<'_, F>) -> Result<()> {
        self.check_loaded(self.training.forward())?;
        self.each_member(true, |of, member, buffers, shared| {
            shared.run_halves(of, member, buffers, Some(surrogate));
        });
        Ok(())
    }

    fn output(&self, member: usize, output: usize) -> &[F] {
        &self.members[member].outputs[output]
    }

    fn gradient(&self, member: usize) -> Result<Vec<F>> {
        Ok(self.members[member].gradient.to_vec())
    }

    fn step(&mut self, optimiser: &Optimiser, rates: &[f64]) -> Result<Vec<f64>> {
        check_members("learning rates", self.members.len(), rates.len())?;
        let length = self.graph.layout().len();
        let stepped = self.members.par_iter_mut().zip(rates).map(|(member, &rate)| {
            let Member { parameters, changes, gradient, moments, steps, .. } = member;
            *changes += 1;
            moments.resize_with(optimiser.moments(), || vec![F::ZERO; length]);
            step(optimiser, rate, parameters, gradient, moments, steps)
        });
        Ok(stepped.collect())
    }

    fn state(&self, member: usize) -> Result<(u64, Vec<Vec<F>>)> {
        Ok((self.members[member].steps, self.members[member].moments.clone()))
    }

    fn set_state(&mut self, member: usize, steps: u64, moments: &[Vec<F>]) -> Result<()> {
        for moment in moments {
            check_length("moments", self.graph.layout().len(), moment.len())?;
        }
        self.members[member].steps = steps;
        self.members[member].moments = moments.to_vec();
        Ok(())
    }
}

impl<F: Real> Cpu<F> {
    /// Refuses to run ops whose inputs were not loaded for the present number of items.
    fn check_loaded(&self, ops: &[usize]) -> Result<()> {
        let count = self.members.len() * self.items;
        for &position in ops {
            let op = &self.graph.ops()[position];
            for operand in op.operands() {
                if let Some(slot) = self.graph.inputs().iter().position(|input| input.what == operand) {
                    let expected = count * self.graph.shape(operand).size();
                    check_length(&self.graph.inputs()[slot].name, expected, self.inputs.scalars[slot].len())?;
                }
            }
            if let Some(index) = op.index()
                && let IndexSource::Input { name, rows, .. } = &self.graph.index_sources()[index.position()]
            {
                check_length(name, count * rows, self.inputs.indices[index.position()].len())?;
            }
            if let Some(mask) = op.mask() {
                let named = &self.graph.masks()[mask.position()];
                check_length(
                    &named.name,
                    count * named.what.size(),
                    self.inputs.masks[mask.position()].len(),
                )?;
            }
        }
        Ok(())
    }
}

fn load<T: Copy>(to: &mut Vec<T>, data: &[T], name: &str, expected: usize) -> Result<()> {
    check_length(name, expected, data.len())?;
    to.clear();
    to.extend_from_slice(data);
    Ok(())
}

fn check_length(name: &str, expected: usize, got: usize) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::InputLength { name: name.to_owned(), expected, got }) }
}
