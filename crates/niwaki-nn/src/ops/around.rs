//! What stands around the operations of a shop: the machines at their arcs, and their neighbours in their jobs.

use super::{OnCpu, Operation, Reads, Rows};
use crate::cpu::kernels::add_scaled;
use crate::cpu::{Block, Real};
use crate::graph::{Graph, Index, Mask, Shape, Value, expect};
use crate::plan::Backward;
use crate::{Error, Result};

/// Bits of `neighbours`.
pub(super) const BEFORE: i32 = 1;
pub(super) const AFTER: i32 = 2;

/// Three values around each operation `o` of every state of an item: `gathered[o] = Σ_m machines[m]` over its arcs,
/// `after[o] = operations[o + 1]` and `before[o] = operations[o − 1]`, each zero where there is none.
///
/// `neighbours[o]` says as bits whether there is one before (1) and one after (2); none where it is negative, and never one
/// of another state. Backward: shifts the other way, and `d machines[m] += Σ_o d gathered[o]` over its arcs. Saved: nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Around {
    /// `[states · operations, width]`.
    pub operations: Value,
    /// `[states · machines, machine width]`.
    pub machines: Value,
    /// `[states · operations, machines]`.
    pub arcs: Mask,
    /// `[states · operations]`.
    pub neighbours: Index,
    /// `[states · operations, machine width]`.
    pub gathered: Value,
    /// `[states · operations, width]`.
    pub after: Value,
    /// `[states · operations, width]`.
    pub before: Value,
}

impl Graph {
    /// Adds [`Around`]; returns what was gathered, what comes after and what came before.
    ///
    /// # Errors
    /// If operations or machines are not equally many in each state, or arcs or neighbours are not of the operations.
    pub fn around(
        &mut self,
        operations: Value,
        machines: Value,
        arcs: Mask,
        neighbours: Index,
    ) -> Result<[Value; 3]> {
        let (Shape { rows, .. }, each) = (self.shape(operations), self.masks()[arcs.position()].what.width);
        states("around", self.shape(machines).rows, each, rows)?;
        self.masked("around", arcs, Shape { rows, width: each })?;
        expect("around", "neighbours", rows, self.index_rows(neighbours))?;
        let gathered = self.value(rows, self.shape(machines).width);
        let (after, before) = (self.like(operations), self.like(operations));
        self.push(Around { operations, machines, arcs, neighbours, gathered, after, before });
        Ok([gathered, after, before])
    }
}

/// The states of an item that has so many machines, `each` of them in one state, and whose operations must be equally many
/// in every state.
pub(super) fn states(op: &'static str, machines: usize, each: usize, operations: usize) -> Result<usize> {
    let states = machines.checked_div(each).unwrap_or(0);
    if states == 0 || states * each != machines || !operations.is_multiple_of(states) {
        let reason =
            format!("{machines} machines, {each} in each state, and {operations} operations make no states");
        return Err(Error::Unsupported { op, reason });
    }
    Ok(states)
}

/// Rows of each part in one state.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    operations: usize,
    machines: usize,
}

impl Around {
    fn sizes(&self, graph: &Graph) -> Sizes {
        let machines = graph.masks()[self.arcs.position()].what.width;
        let states = graph.shape(self.machines).rows / machines;
        Sizes { operations: graph.shape(self.operations).rows / states, machines }
    }
}

impl Operation for Around {
    fn name(&self) -> &'static str {
        "around"
    }

    fn reads(&self) -> Reads {
        let values = Reads::values([self.operations, self.machines]);
        Reads { index: Some(self.neighbours), mask: Some(self.arcs), ..values }
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.gathered, self.after, self.before]
    }

    fn kept(&self) -> Vec<Value> {
        Vec::new()
    }

    fn saved(&self, _: &Graph) -> usize {
        0
    }

    fn rows(&self) -> Rows {
        Rows::Mixed
    }

    fn passes_through(&self, _: usize) -> bool {
        false
    }
}

/// The row after a row, or before it, where its bits say that there is one and it is one of the same state.
pub(super) fn beside(row: usize, bits: i32, which: i32, operations: usize) -> Option<usize> {
    beside_in(row / operations * operations, row, bits, which, operations)
}

/// The same for a row of the state that starts at a row.
pub(super) fn beside_in(first: usize, row: usize, bits: i32, which: i32, operations: usize) -> Option<usize> {
    let there = bits >= 0 && bits & which != 0;
    match which {
        BEFORE => (there && row > first).then(|| row - 1),
        _ => (there && row + 1 < first + operations).then(|| row + 1),
    }
}

/// The machines at the arcs of an operation's row, as rows.
pub(super) fn reached(
    arcs: &[u8],
    row: usize,
    operations: usize,
    machines: usize,
) -> impl Iterator<Item = usize> + '_ {
    let first = row / operations * machines;
    let arcs = arcs[row * machines..(row + 1) * machines].iter().enumerate();
    arcs.filter(|(_, arc)| **arc != 0).map(move |(machine, _)| first + machine)
}

impl OnCpu for Around {
    fn scratch(&self, _: &Graph) -> usize {
        0
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, _: usize) {
        let Sizes { operations, machines } = self.sizes(block.graph);
        let (mask, neighbours) = (block.mask(self.arcs), block.index(self.neighbours));
        let width = block.graph.shape(self.machines).width;
        let from = block.value(self.machines);
        for (row, out) in block.result(self.gathered).chunks_exact_mut(width).enumerate() {
            out.fill(F::ZERO);
            for machine in reached(mask, row, operations, machines) {
                add_scaled(out, F::ONE, &from[machine * width..][..width]);
            }
        }
        let width = block.graph.shape(self.operations).width;
        let from = block.value(self.operations);
        for (which, output) in [(AFTER, self.after), (BEFORE, self.before)] {
            for (row, out) in block.result(output).chunks_exact_mut(width).enumerate() {
                match beside(row, neighbours(row), which, operations) {
                    Some(other) => out.copy_from_slice(&from[other * width..][..width]),
                    None => out.fill(F::ZERO),
                }
            }
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        let Sizes { operations, machines } = self.sizes(block.graph);
        let (mask, neighbours) = (block.mask(self.arcs), block.index(self.neighbours));
        if let Some(into) = block.zeroed(self.operations, &step.writes, 0) {
            let width = block.graph.shape(self.operations).width;
            for (which, output) in [(AFTER, self.after), (BEFORE, self.before)] {
                // An output that nobody reads has no cotangent.
                for (row, d) in block.pulled(output).chunks_exact(width).enumerate() {
                    if let Some(other) = beside(row, neighbours(row), which, operations) {
                        add_scaled(&mut into[other * width..][..width], F::ONE, d);
                    }
                }
            }
        }
        if let Some(into) = block.zeroed(self.machines, &step.writes, 1) {
            let width = block.graph.shape(self.machines).width;
            for (row, d) in block.pulled(self.gathered).chunks_exact(width).enumerate() {
                for machine in reached(mask, row, operations, machines) {
                    add_scaled(&mut into[machine * width..][..width], F::ONE, d);
                }
            }
        }
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::{Around, Sizes};
    use crate::Result;
    use crate::cuda::check::{Case, grown};
    use crate::cuda::kernels::{ENTRIES, File, Unit};
    use crate::cuda::lower::{Block, Fused, Kind, Lowering, Program, Stage};
    use crate::cuda::tape::arguments;
    use crate::graph::{Graph, Shape, Value};
    use crate::ops::OnCuda;
    use crate::plan::{Backward, Write};

    const KERNELS: &File = &File {
        name: "around",
        source: &[ENTRIES, include_str!("neighbours.cu"), include_str!("around.cu")],
        constants: &[],
        kernels: &[
            ("around_gather", 0),
            ("around_shift", 0),
            ("around_scatter", 0),
            ("around_shift_back", 0),
        ],
    };

    const UNIT: Unit = Unit::plain(KERNELS);

    impl OnCuda for Around {
        const CASES: &'static [Case] = &[("around", |g| {
            // Three states of five operations and two machines.
            let operations = grown(g, "operations", 15, 10)?;
            let machines = grown(g, "machines", 6, 7)?;
            let arcs = g.mask("arcs", 15, 2);
            let neighbours = g.indices("neighbours", 15, 4);
            let [gathered, after, before] = g.around(operations, machines, arcs, neighbours)?;
            // Once more, with results that nobody reads: cotangents must add up.
            let [again, _, _] = g.around(before, machines, arcs, neighbours)?;
            Ok(vec![gathered, after, before, again, operations])
        })];

        fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
            Vec::new()
        }

        fn units(&self, _: &Program<'_>) -> Result<Vec<Unit>> {
            Ok(vec![UNIT])
        }

        fn lower(&self, to: &mut Lowering<'_>, _: usize) -> Result<()> {
            let Sizes { operations, machines } = self.sizes(to.tools.graph);
            let rows = to.all_rows(self.operations);
            if to.is_planned(self.gathered) {
                let width = to.shape(self.machines).width;
                let (from, out) = (to.base(self.machines)?, to.base(self.gathered)?);
                let arguments =
                    arguments![from, to.mask(Some(self.arcs)), out, operations, machines, rows, width];
                to.per_entry("around", (UNIT, "around_gather"), rows, width, arguments)?;
            }
            let width = to.shape(self.operations).width;
            for (after, output) in [(true, self.after), (false, self.before)] {
                if to.is_planned(output) {
                    let (from, out) = (to.base(self.operations)?, to.base(output)?);
                    let neighbours = to.integers(self.neighbours);
                    let arguments = arguments![after, from, neighbours, out, operations, rows, width];
                    to.per_entry("around", (UNIT, "around_shift"), rows, width, arguments)?;
                }
            }
            Ok(())
        }

        fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
            let Sizes { operations, machines } = self.sizes(to.tools.graph);
            if let Some(write) = step.writes[0] {
                let (rows, width) = (to.all_rows(self.operations), to.shape(self.operations).width);
                let arguments = arguments![
                    to.maybe_cotangent(self.after),
                    to.maybe_cotangent(self.before),
                    to.integers(self.neighbours),
                    to.cotangent(self.operations)?,
                    write == Write::Add,
                    operations,
                    rows,
                    width
                ];
                to.per_entry("around'", (UNIT, "around_shift_back"), rows, width, arguments)?;
            }
            if let Some(write) = step.writes[1] {
                let (rows, width) = (to.all_rows(self.machines), to.shape(self.machines).width);
                let arguments = arguments![
                    to.maybe_cotangent(self.gathered),
                    to.mask(Some(self.arcs)),
                    to.cotangent(self.machines)?,
                    write == Write::Add,
                    operations,
                    machines,
                    rows,
                    width
                ];
                to.per_entry("around'", (UNIT, "around_scatter"), rows, width, arguments)?;
            }
            Ok(())
        }
    }

    impl Fused for Around {
        fn stages(&self, block: &Block<'_>) -> Result<Vec<Stage>> {
            let Sizes { operations, machines } = self.sizes(block.graph());
            let (Shape { rows, width }, on) =
                (block.shape(self.operations), block.shape(self.machines).width);
            let mut stages = Vec::new();
            if block.is_read(self.gathered) {
                let (from, arcs) = (block.value(self.machines)?, block.mask(Some(self.arcs))?);
                let stage = Stage::new(Kind::Gather).with(&[from, arcs, block.value(self.gathered)?]);
                stages.push(stage.with(&[operations, machines, rows / operations, on]));
            }
            for (which, output) in [(2, self.after), (1, self.before)] {
                if block.is_read(output) {
                    let (from, neighbours) = (block.value(self.operations)?, block.index(self.neighbours)?);
                    let stage =
                        Stage::new(Kind::Shift).with(&[from, neighbours, block.value(output)?, which]);
                    stages.push(stage.with(&[operations, rows, width]));
                }
            }
            Ok(stages)
        }
    }
}

#[cfg(test)]
impl super::Law for Around {
    fn check() {
        use super::law::{check, leaf};
        let mut graph = Graph::new();
        let (operations, machines) =
            (leaf(&mut graph, "operations", 8, 3), leaf(&mut graph, "machines", 6, 2));
        let (arcs, neighbours) = (graph.mask("arcs", 8, 3), graph.indices("neighbours", 8, 4));
        let [gathered, after, before] = graph.around(operations, machines, arcs, neighbours).unwrap();
        let [again, _, _] = graph.around(before, machines, arcs, neighbours).unwrap();
        check("around", &graph, &[gathered, after, before, again, operations]);
        let odd = graph.mask("odd", 8, 4);
        assert!(
            graph.around(operations, machines, odd, neighbours).is_err(),
            "four machines do not divide six"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cpu, Engine};

    #[test]
    fn two_jobs_of_two_operations() {
        // One state with operations 1, 2 of a job and 3, 4 of another, machines 10 and 20; the second has no arc to 1.
        let mut graph = Graph::new();
        let (operations, machines) = (graph.scalars("o", 4, 1), graph.scalars("m", 2, 1));
        let (arcs, neighbours) = (graph.mask("arcs", 4, 2), graph.indices("neighbours", 4, 4));
        let outputs = graph.around(operations, machines, arcs, neighbours).unwrap();
        let mut engine = Cpu::<f64>::new(&graph, &outputs, 1);
        engine.set_items(1).unwrap();
        engine.load_scalars(operations, &[1.0, 2.0, 3.0, 4.0]).unwrap();
        engine.load_scalars(machines, &[10.0, 20.0]).unwrap();
        engine.load_mask(arcs, &[1, 0, 1, 1, 0, 1, 0, 0]).unwrap();
        engine.load_indices(neighbours, &[AFTER, BEFORE, AFTER, BEFORE]).unwrap();
        engine.forward().unwrap();
        assert_eq!(engine.output(0, 0), [10.0, 30.0, 20.0, 0.0]);
        assert_eq!(engine.output(0, 1), [2.0, 0.0, 4.0, 0.0]);
        assert_eq!(engine.output(0, 2), [0.0, 1.0, 0.0, 3.0]);
    }
}
