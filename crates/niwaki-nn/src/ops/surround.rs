//! The sum of what stands around the operations of a shop.

use super::around::{AFTER, BEFORE, beside, beside_in, reached, states};
use super::{OnCpu, Operation, Reads, Rows};
use crate::Result;
use crate::cpu::kernels::add_scaled;
use crate::cpu::{Block, Real};
use crate::graph::{Graph, Index, Mask, Shape, Value, expect};
use crate::plan::Backward;
use niwaki_simd::vectorised;

/// `output[o] = own[o] + after[o + 1] + before[o − 1] + Σ_m machines[m]` over its arcs, for each operation `o` of every state of an
/// item, where `after` and `before` are the two halves of `beside`; a neighbour that is not there adds nothing.
///
/// `neighbours[o]` says as bits whether there is one before (1) and one after (2), never one of another state. An operation whose
/// bits are negative does not count: its row is zero. A linear layer on `[machines, next, previous, itself]` is this sum of four on the
/// parts, each computed once. Backward: shifts the other way, and `d machines[m] += Σ_o d output[o]` over its arcs. Saved: nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surround {
    /// `[states · operations, width]`.
    pub own: Value,
    /// `[states · operations, 2 · width]`.
    pub beside: Value,
    /// `[states · machines, width]`.
    pub machines: Value,
    /// `[states · operations, machines]`.
    pub arcs: Mask,
    /// `[states · operations]`.
    pub neighbours: Index,
    /// `[states · operations, width]`.
    pub output: Value,
}

impl Graph {
    /// Adds [`Surround`].
    ///
    /// # Errors
    /// If the parts do not fit in width, operations or machines are not equally many in each state, or arcs or neighbours are
    /// not of the operations.
    pub fn surround(
        &mut self,
        own: Value,
        beside: Value,
        machines: Value,
        arcs: Mask,
        neighbours: Index,
    ) -> Result<Value> {
        let (Shape { rows, width }, each) = (self.shape(own), self.masks()[arcs.position()].what.width);
        states("surround", self.shape(machines).rows, each, rows)?;
        self.masked("surround", arcs, Shape { rows, width: each })?;
        expect("surround", "neighbours", rows, self.index_rows(neighbours))?;
        expect("surround", "rows beside", rows, self.shape(beside).rows)?;
        expect("surround", "width beside", 2 * width, self.shape(beside).width)?;
        expect("surround", "machines' width", width, self.shape(machines).width)?;
        let output = self.like(own);
        self.push(Surround { own, beside, machines, arcs, neighbours, output });
        Ok(output)
    }
}

/// Sizes of a state.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    operations: usize,
    machines: usize,
    width: usize,
}

impl Surround {
    fn sizes(&self, graph: &Graph) -> Sizes {
        let machines = graph.masks()[self.arcs.position()].what.width;
        let states = graph.shape(self.machines).rows / machines;
        let Shape { rows, width } = graph.shape(self.own);
        Sizes { operations: rows / states, machines, width }
    }
}

impl Surround {
    /// The rows of the operations' own part that are read.
    pub(crate) fn own_read<F: Real>(&self, block: &Block<'_, F>) -> Vec<u32> {
        let neighbours = block.index(self.neighbours);
        let rows = block.graph.shape(self.own).rows * block.items();
        (0..rows).filter(|&row| neighbours(row) >= 0).map(|row| row as u32).collect()
    }

    /// The rows of what stands beside operations that are read: of what an operation gives the one before it, and of what it gives the one
    /// after it.
    pub(crate) fn beside_read<F: Real>(&self, block: &Block<'_, F>) -> [Vec<u32>; 2] {
        let operations = self.sizes(block.graph).operations;
        let neighbours = block.index(self.neighbours);
        let rows = block.graph.shape(self.own).rows * block.items();
        let (mut after, mut before) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        for first in (0..rows).step_by(operations.max(1)) {
            for row in first..first + operations {
                let beside = |which| beside_in(first, row, neighbours(row), which, operations);
                after.extend(beside(AFTER).map(|row| row as u32));
                before.extend(beside(BEFORE).map(|row| row as u32));
            }
        }
        [after, before]
    }
}

impl Operation for Surround {
    fn name(&self) -> &'static str {
        "surround"
    }

    fn reads(&self) -> Reads {
        let values = Reads::values([self.own, self.beside, self.machines]);
        Reads { index: Some(self.neighbours), mask: Some(self.arcs), ..values }
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.output]
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

impl OnCpu for Surround {
    fn scratch(&self, _: &Graph) -> usize {
        0
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, _: usize) {
        let Sizes { operations, machines, width } = self.sizes(block.graph);
        let (mask, neighbours) = (block.mask(self.arcs), block.index(self.neighbours));
        let (own, around, on) = (block.value(self.own), block.value(self.beside), block.value(self.machines));
        let states = block.result(self.output).chunks_exact_mut(operations * width);
        for (state, (out, on)) in states.zip(on.chunks_exact(machines * width)).enumerate() {
            for (place, out) in out.chunks_exact_mut(width).enumerate() {
                let row = state * operations + place;
                let bits = neighbours(row);
                if bits < 0 {
                    out.fill(F::ZERO);
                    continue;
                }
                let near = |half: usize, there: bool, other: usize| {
                    if there { &around[(2 * other + half) * width..][..width] } else { &[][..] }
                };
                let after = near(0, bits & AFTER != 0 && place + 1 < operations, row + 1);
                let before = near(1, bits & BEFORE != 0 && place > 0, row.wrapping_sub(1));
                let arcs = &mask[row * machines..(row + 1) * machines];
                sum(&own[row * width..][..width], [after, before], on, arcs, out);
            }
        }
        let rows = block.graph.shape(self.output).rows * block.items();
        block.apart(self.output).look(rows, |row| neighbours(row) < 0);
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        let Sizes { operations, machines, width } = self.sizes(block.graph);
        let (mask, neighbours) = (block.mask(self.arcs), block.index(self.neighbours));
        let d = block.pulled(self.output);
        let rows = || d.chunks_exact(width).enumerate().filter(|(row, _)| neighbours(*row) >= 0);
        if let Some(into) = block.zeroed(self.own, &step.writes, 0) {
            rows().for_each(|(row, d)| add_scaled(&mut into[row * width..][..width], F::ONE, d));
        }
        if let Some(into) = block.zeroed(self.beside, &step.writes, 1) {
            for (row, d) in rows() {
                for (half, which) in [AFTER, BEFORE].into_iter().enumerate() {
                    if let Some(other) = beside(row, neighbours(row), which, operations) {
                        add_scaled(&mut into[(2 * other + half) * width..][..width], F::ONE, d);
                    }
                }
            }
        }
        if let Some(into) = block.zeroed(self.machines, &step.writes, 2) {
            for (row, d) in rows() {
                for machine in reached(mask, row, operations, machines) {
                    add_scaled(&mut into[machine * width..][..width], F::ONE, d);
                }
            }
        }
    }
}

/// Columns that are summed at a time.
const COLUMNS: usize = 64;

/// Adds some columns of what stands around an operation, from rows of a width.
#[inline(always)]
fn add_rows<F: Real>(
    near: [&[F]; 2],
    machines: &[F],
    arcs: &[u8],
    first: usize,
    width: usize,
    sums: &mut [F],
) {
    let at = first..first + sums.len();
    for row in near.into_iter().filter(|row| !row.is_empty()) {
        add_scaled(sums, F::ONE, &row[at.clone()]);
    }
    for (row, _) in machines.chunks_exact(width).zip(arcs).filter(|(_, arc)| **arc != 0) {
        add_scaled(sums, F::ONE, &row[at.clone()]);
    }
}

vectorised! {
    /// An operation's own row, those beside it where they are, and those of the machines at its arcs, in this order.
    fn sum<F: Real>(own: &[F], near: [&[F]; 2], machines: &[F], arcs: &[u8], out: &mut [F]) {
        // As many columns at a time as registers hold.
        let (parts, rest) = out.as_chunks_mut::<COLUMNS>();
        for (part, (out, &own_part)) in parts.iter_mut().zip(own.as_chunks::<COLUMNS>().0).enumerate() {
            let mut sums = own_part;
            add_rows(near, machines, arcs, part * COLUMNS, own.len(), &mut sums);
            *out = sums;
        }
        if !rest.is_empty() {
            let first = parts.len() * COLUMNS;
            rest.copy_from_slice(&own[first..]);
            add_rows(near, machines, arcs, first, own.len(), rest);
        }
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::{Sizes, Surround};
    use crate::Result;
    use crate::cuda::check::{Case, grown};
    use crate::cuda::kernels::{ENTRIES, File, Unit};
    use crate::cuda::lower::{Block, Fused, Kind, Lowering, Program, Stage};
    use crate::cuda::tape::arguments;
    use crate::graph::{Graph, Value};
    use crate::ops::OnCuda;
    use crate::plan::{Backward, Write};

    const KERNELS: &File = &File {
        name: "surround",
        source: &[ENTRIES, include_str!("neighbours.cu"), include_str!("surround.cu")],
        constants: &[],
        kernels: &[
            ("surround_forward", 0),
            ("surround_own", 0),
            ("surround_beside", 0),
            ("surround_machines", 0),
        ],
    };

    const UNIT: Unit = Unit::plain(KERNELS);

    impl OnCuda for Surround {
        const CASES: &'static [Case] = &[("surround", |g| {
            // Three states of five operations and two machines.
            let own = grown(g, "own", 15, 8)?;
            let beside = grown(g, "beside", 15, 16)?;
            let machines = grown(g, "machines", 6, 8)?;
            let arcs = g.mask("arcs", 15, 2);
            let neighbours = g.indices("neighbours", 15, 4);
            let first = g.surround(own, beside, machines, arcs, neighbours)?;
            // Once more: cotangents must add up.
            Ok(vec![first, g.surround(first, beside, machines, arcs, neighbours)?, own])
        })];

        fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
            Vec::new()
        }

        fn units(&self, _: &Program<'_>) -> Result<Vec<Unit>> {
            Ok(vec![UNIT])
        }

        fn lower(&self, to: &mut Lowering<'_>, _: usize) -> Result<()> {
            let Sizes { operations, machines, width } = self.sizes(to.tools.graph);
            let rows = to.all_rows(self.output);
            let arguments = arguments![
                to.base(self.own)?,
                to.base(self.beside)?,
                to.base(self.machines)?,
                to.mask(Some(self.arcs)),
                to.integers(self.neighbours),
                to.base(self.output)?,
                operations,
                machines,
                rows,
                width
            ];
            to.per_entry("surround", (UNIT, "surround_forward"), rows, width, arguments)
        }

        fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
            let Sizes { operations, machines, width } = self.sizes(to.tools.graph);
            let (d, neighbours) = (to.cotangent(self.output)?, to.integers(self.neighbours));
            if let Some(write) = step.writes[0] {
                let rows = to.all_rows(self.own);
                let into = to.cotangent(self.own)?;
                let arguments = arguments![d, neighbours, into, write == Write::Add, rows, width];
                to.per_entry("surround'", (UNIT, "surround_own"), rows, width, arguments)?;
            }
            if let Some(write) = step.writes[1] {
                let (rows, width) = (to.all_rows(self.beside), 2 * width);
                let into = to.cotangent(self.beside)?;
                let arguments = arguments![d, neighbours, into, write == Write::Add, operations, rows, width];
                to.per_entry("surround'", (UNIT, "surround_beside"), rows, width, arguments)?;
            }
            if let Some(write) = step.writes[2] {
                let rows = to.all_rows(self.machines);
                let arguments = arguments![
                    d,
                    to.mask(Some(self.arcs)),
                    neighbours,
                    to.cotangent(self.machines)?,
                    write == Write::Add,
                    operations,
                    machines,
                    rows,
                    width
                ];
                to.per_entry("surround'", (UNIT, "surround_machines"), rows, width, arguments)?;
            }
            Ok(())
        }
    }

    impl Fused for Surround {
        fn stages(&self, block: &Block<'_>) -> Result<Vec<Stage>> {
            let Sizes { operations, machines, width } = self.sizes(block.graph());
            let states = block.shape(self.output).rows / operations;
            let [own, beside, on] = [self.own, self.beside, self.machines].map(|part| block.value(part));
            let (out, ending) = block.result(self.output)?;
            let stage = Stage::new(Kind::Surround).with(&[own?, beside?, on?, block.mask(Some(self.arcs))?]);
            let stage = stage.with(&[block.index(self.neighbours)?, out, ending]);
            Ok(vec![stage.with(&[operations, machines, states, width])])
        }
    }
}

#[cfg(test)]
impl super::Law for Surround {
    fn check() {
        use super::law::{check, leaf};
        let mut graph = Graph::new();
        let (own, beside) = (leaf(&mut graph, "own", 8, 3), leaf(&mut graph, "beside", 8, 6));
        let machines = leaf(&mut graph, "machines", 6, 3);
        let (arcs, neighbours) = (graph.mask("arcs", 8, 3), graph.indices("neighbours", 8, 4));
        let first = graph.surround(own, beside, machines, arcs, neighbours).unwrap();
        let again = graph.surround(first, beside, machines, arcs, neighbours).unwrap();
        check("surround", &graph, &[first, again, own]);
        assert!(graph.surround(own, own, machines, arcs, neighbours).is_err(), "one half is missing");
        let odd = graph.mask("odd", 8, 4);
        assert!(
            graph.surround(own, beside, machines, odd, neighbours).is_err(),
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
        // One state with operations 1, 2 of a job and 3, 4 of another, machines 1000 and 2000. Beside, as the next 10 · o, as the one
        // before 100 · o. The second machine has no arc to the first operation, and the last operation is over.
        let mut graph = Graph::new();
        let (own, beside) = (graph.scalars("o", 4, 1), graph.scalars("b", 4, 2));
        let machines = graph.scalars("m", 2, 1);
        let (arcs, neighbours) = (graph.mask("arcs", 4, 2), graph.indices("neighbours", 4, 4));
        let sum = graph.surround(own, beside, machines, arcs, neighbours).unwrap();
        let mut engine = Cpu::<f64>::new(&graph, &[sum], 1);
        engine.set_items(1).unwrap();
        engine.load_scalars(own, &[1.0, 2.0, 3.0, 4.0]).unwrap();
        engine.load_scalars(beside, &[10.0, 100.0, 20.0, 200.0, 30.0, 300.0, 40.0, 400.0]).unwrap();
        engine.load_scalars(machines, &[1000.0, 2000.0]).unwrap();
        engine.load_mask(arcs, &[1, 0, 1, 1, 0, 1, 1, 1]).unwrap();
        engine.load_indices(neighbours, &[AFTER, BEFORE, AFTER, -1]).unwrap();
        engine.forward().unwrap();
        assert_eq!(engine.output(0, 0), [1021.0, 3102.0, 2043.0, 0.0]);
    }
}
