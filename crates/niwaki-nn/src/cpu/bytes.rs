//! What a population on the CPU takes of memory, known from its program before any of it is taken.

use super::cuts::Cuts;
use super::engine::BLOCK_ROWS;
use super::{Cpu, Real};
use crate::graph::{Graph, IndexSource, Value};
use crate::ops::OnCpu;
use crate::plan::Plan;

/// How a population is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Its members.
    pub members: usize,
    /// Items of each.
    pub items: usize,
    /// Numbers that the optimiser keeps for each parameter.
    pub moments: usize,
    /// Whether it is run row by row, which keeps all rows of all items.
    pub steps: bool,
}

impl<F: Real> Cpu<F> {
    /// What such a population takes, in bytes: parameters and what goes with them, inputs, outputs, and the memory in which blocks
    /// of items run.
    #[must_use]
    pub fn bytes(graph: &Graph, outputs: &[Value], used: Use) -> u128 {
        let Use { members, items, moments, steps } = used;
        let wide = |size: usize| size as u128;
        let threads = wide(rayon::current_num_threads().min(members));
        let length = wide(graph.layout().len());
        let per_item = |sizes: &mut dyn Iterator<Item = usize>| sizes.map(wide).sum::<u128>();
        let scalars = per_item(&mut graph.inputs().iter().map(|input| graph.shape(input.what).size()))
            + per_item(&mut outputs.iter().map(|&output| graph.shape(output).size()));
        let rows = |source: &IndexSource| match source {
            IndexSource::Input { rows, .. } => *rows,
            IndexSource::Constant(_) => 0,
        };
        let indices = per_item(&mut graph.index_sources().iter().map(rows));
        let masks = per_item(&mut graph.masks().iter().map(|mask| mask.what.size()));
        let cuts = Cuts::even(items, BLOCK_ROWS / graph.tallest().max(1));
        let halves = if cuts.halves() { 2 } else { 1 };
        let arena = Plan::training(graph, outputs).arena().max(Plan::forward_only(graph, outputs).arena());
        let scratch = graph.ops().iter().map(|op| op.scratch(graph)).max().unwrap_or(0);
        let block = wide(arena) * wide(cuts.largest()) + wide(scratch);
        let stepping = if steps { Plan::stepping(graph, outputs).map_or(0, |plan| plan.arena()) } else { 0 };
        // Parameters, their gradient and the optimiser's; of each thread the weights as its products take them, and the gradient of
        // its second half.
        let kept = length * (wide(members) * (2 + wide(moments)) + 2 * threads);
        let each_item = wide(stepping) + scalars;
        let numbers = kept + threads * halves * block + wide(members) * wide(items) * each_item;
        numbers * size_of::<F>() as u128 + wide(members) * wide(items) * (4 * indices + masks)
    }
}
