//! The first layer of a perceptron on every pair of job and machine, from its three parts.

use super::{OnCpu, Operation, Reads, Rows};
use crate::cpu::kernels::add_scaled;
use crate::cpu::{Block, Real};
use crate::graph::{Graph, Index, Mask, Shape, Value, expect};
use crate::plan::Backward;
use crate::{Error, Result};
use niwaki_simd::vectorised;

/// `output[s, j, m] = tanh(operations[s, next[s, j]] + machines[s, m] + state[s])` for every state `s` of an item, job `j`
/// and machine `m`; rows of the result are pairs `j · machines + m`, state after state. The operation's part is zero where
/// `next < 0`, and all of a pair that is not open.
///
/// A linear layer on `[operation, machine, state]` is the sum of three on the parts, each computed once. Backward, with
/// `dz = d output · (1 − output²)`: each part gets the sum of `dz` over the pairs that it stands in. Saved: nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pairs {
    /// `[states · operations, width]`.
    pub operations: Value,
    /// `[states · machines, width]`.
    pub machines: Value,
    /// `[states, width]`.
    pub state: Value,
    /// Each job's next operation among those of its state, `[states · jobs]`.
    pub next: Index,
    /// Which pairs are open, `[states, jobs · machines]`.
    pub open: Mask,
    /// `[states · jobs · machines, width]`.
    pub output: Value,
}

/// Rows of each part in one state.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    states: usize,
    operations: usize,
    machines: usize,
    jobs: usize,
    width: usize,
}

impl Graph {
    /// Adds [`Pairs`].
    ///
    /// # Errors
    /// If the parts differ in width, are not equally many for each state, jobs may have operations that are not there, or the
    /// mask is not of the pairs.
    pub fn pairs(
        &mut self,
        operations: Value,
        machines: Value,
        state: Value,
        next: Index,
        open: Mask,
    ) -> Result<Value> {
        let Shape { rows: states, width } = self.shape(state);
        let jobs = self.index_rows(next);
        for (what, rows) in [
            ("operations", self.shape(operations).rows),
            ("machines", self.shape(machines).rows),
            ("jobs", jobs),
        ] {
            if states == 0 || !rows.is_multiple_of(states) {
                let reason = format!("{rows} {what} are not equally many in each of {states} states");
                return Err(Error::Unsupported { op: "pairs", reason });
            }
        }
        expect("pairs", "operations' width", width, self.shape(operations).width)?;
        expect("pairs", "machines' width", width, self.shape(machines).width)?;
        self.bounded("pairs", next, self.shape(operations).rows / states)?;
        let pairs = jobs * self.shape(machines).rows / states;
        self.masked("pairs", open, Shape { rows: states, width: pairs / states })?;
        let output = self.value(pairs, width);
        self.push(Pairs { operations, machines, state, next, open, output });
        Ok(output)
    }
}

impl Pairs {
    fn sizes(&self, graph: &Graph) -> Sizes {
        let Shape { rows: states, width } = graph.shape(self.state);
        Sizes {
            states,
            operations: graph.shape(self.operations).rows / states,
            machines: graph.shape(self.machines).rows / states,
            jobs: graph.index_rows(self.next) / states,
            width,
        }
    }
}

impl Pairs {
    /// The rows of the operations that open pairs read.
    pub(crate) fn operations_read<F: Real>(&self, block: &Block<'_, F>) -> Vec<u32> {
        let Sizes { operations, machines, jobs, .. } = self.sizes(block.graph);
        let next = block.index(self.next);
        let open = block.mask(self.open).chunks_exact(machines).enumerate();
        let jobs_open = open.filter(|(_, open)| open.iter().any(|&open| open != 0)).map(|(row, _)| row);
        let read =
            |row: usize| next(row).try_into().ok().map(|at: u32| (row / jobs * operations) as u32 + at);
        jobs_open.filter_map(read).collect()
    }

    /// The rows of the machines that open pairs read.
    pub(crate) fn machines_read<F: Real>(&self, block: &Block<'_, F>) -> Vec<u32> {
        let Sizes { machines, jobs, .. } = self.sizes(block.graph);
        let mut read = Vec::new();
        for (state, open) in block.mask(self.open).chunks_exact(jobs * machines).enumerate() {
            let on = |machine: &usize| open.iter().skip(*machine).step_by(machines).any(|&open| open != 0);
            read.extend((0..machines).filter(on).map(|machine| (state * machines + machine) as u32));
        }
        read
    }
}

impl Operation for Pairs {
    fn name(&self) -> &'static str {
        "pairs"
    }

    fn reads(&self) -> Reads {
        let values = Reads::values([self.operations, self.machines, self.state]);
        Reads { index: Some(self.next), mask: Some(self.open), ..values }
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.output]
    }

    fn kept(&self) -> Vec<Value> {
        vec![self.output]
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

impl OnCpu for Pairs {
    fn scratch(&self, _: &Graph) -> usize {
        0
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, _: usize) {
        let Sizes { states, operations, machines, jobs, width } = self.sizes(block.graph);
        let (next, open) = (block.index(self.next), block.mask(self.open));
        let (of, on) = (block.value(self.operations), block.value(self.machines));
        let within = block.value(self.state);
        let out = block.result(self.output);
        for (pair, out) in out.chunks_exact_mut(width).enumerate() {
            if open[pair] == 0 {
                out.fill(F::ZERO);
                continue;
            }
            let (row, machine) = (pair / machines, pair % machines);
            let state = row / jobs;
            let operation = usize::try_from(next(row)).ok();
            let first = operation.map_or(&[][..], |at| &of[(state * operations + at) * width..][..width]);
            let second = &on[(state * machines + machine) * width..][..width];
            meet(first, second, &within[state * width..][..width], out);
        }
        debug_assert_eq!(out.len(), states * block.items() * jobs * machines * width, "rows of pairs");
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        let Sizes { operations, machines, jobs, width, .. } = self.sizes(block.graph);
        let (next, open) = (block.index(self.next), block.mask(self.open));
        let (y, d) = (block.value(self.output), block.cotangent(self.output));
        slope(d, y);
        for (place, part) in [self.operations, self.machines, self.state].into_iter().enumerate() {
            let Some(into) = block.zeroed(part, &step.writes, place) else { continue };
            for (pair, d) in d.chunks_exact(width).enumerate().filter(|(pair, _)| open[*pair] != 0) {
                let (row, machine) = (pair / machines, pair % machines);
                let state = row / jobs;
                let to = match place {
                    0 => match usize::try_from(next(row)) {
                        Ok(at) => state * operations + at,
                        Err(_) => continue,
                    },
                    1 => state * machines + machine,
                    _ => state,
                };
                add_scaled(&mut into[to * width..][..width], F::ONE, d);
            }
        }
    }
}

vectorised! {
    /// `out = tanh(first + second + third)`; `first` may be absent.
    fn meet<F: Real>(first: &[F], second: &[F], third: &[F], out: &mut [F]) {
        for ((out, &second), &third) in out.iter_mut().zip(second).zip(third) {
            *out = second + third;
        }
        for (out, &first) in out.iter_mut().zip(first) {
            *out += first;
        }
        for out in out {
            *out = out.tangent();
        }
    }

    /// `d *= 1 − y²`.
    fn slope<F: Real>(d: &mut [F], y: &[F]) {
        for (d, &y) in d.iter_mut().zip(y) {
            *d *= F::ONE - y * y;
        }
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::{Pairs, Sizes};
    use crate::Result;
    use crate::cuda::check::{Case, grown};
    use crate::cuda::kernels::{ENTRIES, File, Unit};
    use crate::cuda::lower::{Block, Fused, Kind, Lowering, Program, Stage};
    use crate::cuda::tape::arguments;
    use crate::graph::{Graph, Value};
    use crate::ops::OnCuda;
    use crate::plan::{Backward, Write};

    const KERNELS: &File = &File {
        name: "pairs",
        source: &[ENTRIES, include_str!("pairs.cu")],
        constants: &[],
        kernels: &[("pairs_forward", 0), ("pairs_backward", 0)],
    };

    const UNIT: Unit = Unit::plain(KERNELS);

    impl OnCuda for Pairs {
        const CASES: &'static [Case] = &[("pairs", |g| {
            // Three states of five operations, two machines and four jobs.
            let operations = grown(g, "operations", 15, 20)?;
            let machines = grown(g, "machines", 6, 20)?;
            let state = grown(g, "state", 3, 20)?;
            let (next, open) = (g.indices("next", 12, 5), g.mask("open", 3, 8));
            let pairs = g.pairs(operations, machines, state, next, open)?;
            // One value in two parts: cotangents must add up.
            let (none, one) = (g.indices("other", 3, 1), g.mask("one", 3, 1));
            Ok(vec![pairs, g.pairs(state, state, state, none, one)?, machines])
        })];

        fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
            Vec::new()
        }

        fn units(&self, _: &Program<'_>) -> Result<Vec<Unit>> {
            Ok(vec![UNIT])
        }

        fn lower(&self, to: &mut Lowering<'_>, _: usize) -> Result<()> {
            let Sizes { operations, machines, jobs, width, .. } = self.sizes(to.tools.graph);
            let rows = to.all_rows(self.output);
            let arguments = arguments![
                to.base(self.operations)?,
                to.base(self.machines)?,
                to.base(self.state)?,
                to.integers(self.next),
                to.mask(Some(self.open)),
                to.base(self.output)?,
                operations,
                machines,
                jobs,
                rows,
                width
            ];
            to.per_entry("pairs", (UNIT, "pairs_forward"), rows, width, arguments)
        }

        fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
            let Sizes { operations, machines, jobs, width, .. } = self.sizes(to.tools.graph);
            for (place, part) in [self.operations, self.machines, self.state].into_iter().enumerate() {
                let Some(write) = step.writes[place] else { continue };
                let rows = to.all_rows(part);
                let arguments = arguments![
                    place,
                    to.base(self.output)?,
                    to.cotangent(self.output)?,
                    to.integers(self.next),
                    to.mask(Some(self.open)),
                    to.cotangent(part)?,
                    write == Write::Add,
                    operations,
                    machines,
                    jobs,
                    rows,
                    width
                ];
                to.per_entry("pairs'", (UNIT, "pairs_backward"), rows, width, arguments)?;
            }
            Ok(())
        }
    }

    impl Fused for Pairs {
        fn stages(&self, block: &Block<'_>) -> Result<Vec<Stage>> {
            let Sizes { states, operations, machines, jobs, width } = self.sizes(block.graph());
            let parts = [self.operations, self.machines, self.state];
            let [of, on, state] = parts.map(|part| block.value(part));
            let stage = Stage::new(Kind::Pairs).with(&[of?, on?, state?, block.index(self.next)?]);
            let stage = stage.with(&[block.mask(Some(self.open))?, block.value(self.output)?, width]);
            Ok(vec![stage.with(&[operations, machines, jobs, states])])
        }
    }
}

#[cfg(test)]
impl super::Law for Pairs {
    fn check() {
        use super::law::{check, leaf};
        let mut graph = Graph::new();
        let (operations, machines) =
            (leaf(&mut graph, "operations", 6, 3), leaf(&mut graph, "machines", 4, 3));
        let state = leaf(&mut graph, "state", 2, 3);
        let (next, open) = (graph.indices("next", 4, 3), graph.mask("open", 2, 4));
        let pairs = graph.pairs(operations, machines, state, next, open).unwrap();
        let (other, one) = (graph.indices("other", 2, 1), graph.mask("one", 2, 1));
        let same = graph.pairs(state, state, state, other, one).unwrap();
        check("pairs", &graph, &[pairs, same, machines]);
        let odd = graph.indices("odd", 3, 3);
        assert!(graph.pairs(operations, machines, state, odd, open).is_err(), "three jobs in two states");
        let beyond = graph.indices("beyond", 4, 4);
        let refused = graph.pairs(operations, machines, state, beyond, open).is_err();
        assert!(refused, "three operations each, not four");
        assert!(graph.pairs(operations, machines, state, next, one).is_err(), "four pairs, not one");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cpu, Engine};

    #[test]
    fn two_jobs_on_one_machine() {
        // One state of three operations and one machine. Job 0 comes to the last operation, job 1 to none, and job 2 is not open.
        let mut graph = Graph::new();
        let [operations, machines, state] =
            [("o", 3), ("m", 1), ("s", 1)].map(|(name, rows)| graph.scalars(name, rows, 1));
        let (next, open) = (graph.indices("next", 3, 3), graph.mask("open", 1, 3));
        let pairs = graph.pairs(operations, machines, state, next, open).unwrap();
        let mut engine = Cpu::<f64>::new(&graph, &[pairs], 1);
        engine.set_items(1).unwrap();
        engine.load_scalars(operations, &[0.1, 0.2, 0.3]).unwrap();
        engine.load_scalars(machines, &[0.5]).unwrap();
        engine.load_scalars(state, &[-0.6]).unwrap();
        engine.load_indices(next, &[2, -1, 0]).unwrap();
        engine.load_mask(open, &[1, 1, 0]).unwrap();
        engine.forward().unwrap();
        let expected = [0.2_f64.tanh(), (-0.1_f64).tanh(), 0.0];
        assert!(
            engine.output(0, 0).iter().zip(expected).all(|(came, expected)| (came - expected).abs() < 1e-15)
        );
    }
}
