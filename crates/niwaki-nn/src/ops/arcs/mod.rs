//! Attention of machines to the operations at their arcs, with a number at each arc and a machine's view of itself.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;

use super::around::states;
use super::{Operation, Reads, Rows};
use crate::Result;
use crate::graph::{Graph, Mask, Shape, Value, expect};
use crate::layout::Param;

/// The operands of [`AttendArcs`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arcs {
    /// `[states · operations, width]`.
    pub operations: Value,
    /// `[states · machines, width]`.
    pub machines: Value,
    /// `[states · operations, machines]`: the number at each arc.
    pub times: Value,
    /// `[width]`: what a time adds to its operation, times itself.
    pub along: Param,
    /// `[width]`: the score of an operation at an arc.
    pub source: Param,
    /// `[width]`: the score of a machine.
    pub target: Param,
    /// `[states · operations, machines]`: where there is an arc.
    pub present: Mask,
}

/// Graph attention with numbers at the arcs and a loop at each machine, for every state of an item. With `v_om =
/// operations[o] + times[o, m] · along` and `d_m = machines[m]`:
///
/// `e_om = leaky(source · v_om + target · d_m)` for arcs, `e_mm = leaky(2 target · d_m)`, `α_·m` their softmax over the arcs
/// of `m` and its loop, `output[m] = Σ_o α_om v_om + α_mm d_m`. `leaky(z)` is `z` above zero and `0.2 z` below.
///
/// Backward, with `t_om = d output[m] · v_om`, `t_mm = d output[m] · d_m` and `x = α (t − Σ α t) leaky'`: `d v_om = α_om d
/// output[m] + x_om source`, `d d_m = α_mm d output[m] + (Σ_o x_om + 2 x_mm) target`, `d source = Σ x_om v_om`, `d target = Σ_m
/// (Σ_o x_om + 2 x_mm) d_m`; `v` passes on to operations, times and `along`. Saved: nothing, all is recomputed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttendArcs {
    /// The operands.
    pub arcs: Arcs,
    /// `[states · machines, width]`.
    pub output: Value,
}

impl Graph {
    /// Adds [`AttendArcs`].
    ///
    /// # Errors
    /// If operations or machines are not equally many in each state, widths differ, or times and arcs are not between them.
    pub fn attend_arcs(&mut self, arcs: Arcs) -> Result<Value> {
        let (op, Shape { rows, width }) = ("arcs", self.shape(arcs.operations));
        let each = self.shape(arcs.times).width;
        states(op, self.shape(arcs.machines).rows, each, rows)?;
        expect(op, "machines' width", width, self.shape(arcs.machines).width)?;
        self.same(op, arcs.times, Shape { rows, width: each })?;
        self.masked(op, arcs.present, Shape { rows, width: each })?;
        for (axis, param) in [("along", arcs.along), ("source", arcs.source), ("target", arcs.target)] {
            expect(op, axis, width, self.layout().slice(param).len())?;
        }
        let output = self.like(arcs.machines);
        self.push(AttendArcs { arcs, output });
        Ok(output)
    }
}

/// Rows of each part in one state.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    operations: usize,
    machines: usize,
    width: usize,
}

impl AttendArcs {
    fn sizes(&self, graph: &Graph) -> Sizes {
        let machines = graph.shape(self.arcs.times).width;
        let Shape { rows, width } = graph.shape(self.arcs.machines);
        Sizes { operations: graph.shape(self.arcs.operations).rows / (rows / machines), machines, width }
    }
}

impl Operation for AttendArcs {
    fn name(&self) -> &'static str {
        "arcs"
    }

    fn reads(&self) -> Reads {
        let Arcs { operations, machines, times, along, source, target, present } = self.arcs;
        let values = Reads::values([operations, machines, times]);
        Reads { params: vec![along, source, target], mask: Some(present), ..values }
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.output]
    }

    fn kept(&self) -> Vec<Value> {
        vec![self.arcs.operations, self.arcs.machines, self.arcs.times]
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

#[cfg(test)]
impl super::Law for AttendArcs {
    fn check() {
        use super::law::{check, leaf, param};
        let mut graph = Graph::new();
        let (operations, machines) =
            (leaf(&mut graph, "operations", 8, 4), leaf(&mut graph, "machines", 6, 4));
        let [along, source, target] = ["along", "source", "target"].map(|name| param(&mut graph, name, &[4]));
        let (times, present) = (graph.scalars("times", 8, 3), graph.mask("present", 8, 3));
        let arcs = Arcs { operations, machines, times, along, source, target, present };
        let once = graph.attend_arcs(arcs).unwrap();
        let again = graph.attend_arcs(Arcs { machines: once, ..arcs }).unwrap();
        check("arcs", &graph, &[again, operations]);

        // Times that lead back to a parameter, and one value in two parts: one operation and one machine in each state.
        let mut graph = Graph::new();
        let (both, times) = (leaf(&mut graph, "both", 3, 4), leaf(&mut graph, "times", 3, 1));
        let [along, source, target] = ["along", "source", "target"].map(|name| param(&mut graph, name, &[4]));
        let present = graph.mask("present", 3, 1);
        let arcs = Arcs { operations: both, machines: both, times, along, source, target, present };
        let output = graph.attend_arcs(arcs).unwrap();
        check("arcs, one value", &graph, &[output]);
        let wide = graph.scalars("wide", 3, 5);
        assert!(graph.attend_arcs(Arcs { machines: wide, ..arcs }).is_err());
    }
}
