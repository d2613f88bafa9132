//! The heterogeneous graph network of Song and others (2022), "Flexible job-shop scheduling via graph neural network and
//! deep reinforcement learning".
//!
//! Two rounds, each of which renews machines and then operations; embeddings are `width` wide. Machines attend to the operations at
//! their arcs and to themselves ([`Arcs`]), through a sigmoid. Operations are renewed by five perceptrons with ELU,
//! `in → hidden → hidden → width`: `MLP₀(ELU([MLP₁(Σ machines at the arcs), MLP₂(next in the job), MLP₃(previous), MLP₄(itself)]))`;
//! a neighbour that is not there is a zero vector, on which its perceptron still runs. The actor is a perceptron with tanh
//! on `[operation, machine, mean operation, mean machine]` of every pair, the critic one on the two means.
//!
//! Inputs are z-scores of this state alone: of each operation and machine feature over the shop's own operations and machines,
//! and of times over all pairs of operation and machine, zeros where there is no arc included (sample deviation, plus 1e-5).
//! Song's code scales times over the whole batch while it trains, and over the arcs of one instance while it is tested; here
//! training and test agree and no lane depends on its neighbours.
//!
//! Song's file has 204,250 parameters at 10 × 5, of which 16 are never read: a vector per round that scores arcs, in whose
//! place the code reads the one that scores operations. Those are left out. The first layer of the actor is
//! three matrices here, one for each part that it is a sum of.
//!
//! Paper: `app:sched-driftdial`

use crate::graph::{GraphInputs, GraphOutputs, GraphPolicy, Show, Shown, Widths};
use niwaki_nn::{Activation, Arcs, Graph, Init, Param, Pooling, Result, Shape, Value};
use niwaki_tasks::graph::MACHINE;
use niwaki_tasks::{GraphLanes, GraphSizes, GraphTask};

/// Rounds of renewal.
const ROUNDS: usize = 2;
/// What keeps a z-score finite.
const EPSILON: f64 = 1e-5;

/// The sizes of the network; Song's are a width of 8 and 128 inside perceptrons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HgnnShape {
    /// Rows and choices of a state.
    pub sizes: GraphSizes,
    /// Width of the embeddings.
    pub width: usize,
    /// Width inside the perceptrons of operations; actor and critic have half of it.
    pub hidden: usize,
    /// Whether there is a critic.
    pub critic: bool,
}

impl HgnnShape {
    /// The policy.
    ///
    /// # Errors
    /// If the sizes do not fit together.
    pub fn policy(self) -> Result<GraphPolicy> {
        let widths = Widths { operations: self.sizes.features, machines: MACHINE, pairs: 0 };
        GraphPolicy::new(self.sizes, widths, Show { lane: show, alone: 16 }, |graph, inputs| {
            self.network(graph, inputs)
        })
    }

    fn network(self, graph: &mut Graph, inputs: &GraphInputs) -> Result<GraphOutputs> {
        let (mut operations, mut machines) = (inputs.operations, inputs.machines);
        for round in 0..ROUNDS {
            let name = |part: &str| format!("rounds.{round}.{part}");
            machines = self.renew_machines(graph, &name, inputs, operations, machines)?;
            operations = self.renew_operations(graph, &name, inputs, operations, machines)?;
        }
        let GraphSizes { operations: each, machines: on, .. } = self.sizes;
        let means = [
            graph.pool(operations, each, Some(inputs.own_operations), Pooling::Mean)?,
            graph.pool(machines, on, Some(inputs.own_machines), Pooling::Mean)?,
        ];
        let state = graph.concat(&means)?;
        let logits = self.act(graph, inputs, operations, machines, state)?;
        let value = if self.critic { Some(self.judge(graph, state)?) } else { None };
        Ok(GraphOutputs { logits, value })
    }

    fn renew_machines(
        self,
        graph: &mut Graph,
        name: &dyn Fn(&str) -> String,
        inputs: &GraphInputs,
        operations: Value,
        machines: Value,
    ) -> Result<Value> {
        let width = self.width;
        let mut vector = |part: &str, fans: usize| graph.param(&name(part), &[width], xavier(fans));
        let along = vector("times", 1 + width)?;
        let (source, target) = (vector("source", 2 * width)?, vector("target", 2 * width)?);
        let mut project = |part: &str, from: Value| {
            let fan_in = graph.shape(from).width;
            let weight = graph.param(&name(part), &[fan_in, width], xavier(fan_in + width))?;
            graph.linear(from, weight, None, Activation::None)
        };
        let operations = project("operations.weight", operations)?;
        let machines = project("machines.weight", machines)?;
        let (times, present) = (inputs.times, inputs.arcs);
        let arcs = Arcs { operations, machines, times, along, source, target, present };
        let attended = graph.attend_arcs(arcs)?;
        Ok(graph.activate(attended, Activation::Sigmoid))
    }

    fn renew_operations(
        self,
        graph: &mut Graph,
        name: &dyn Fn(&str) -> String,
        inputs: &GraphInputs,
        operations: Value,
        machines: Value,
    ) -> Result<Value> {
        let [gathered, after, before] = graph.around(operations, machines, inputs.arcs, inputs.neighbours)?;
        let mut parts = Vec::new();
        for (part, from) in [("arcs", gathered), ("after", after), ("before", before), ("self", operations)] {
            parts.push(self.perceive(graph, &name(part), from)?);
        }
        let all = graph.concat(&parts)?;
        let all = graph.activate(all, Activation::Elu);
        self.perceive(graph, &name("join"), all)
    }

    /// A perceptron of operations.
    fn perceive(self, graph: &mut Graph, name: &str, from: Value) -> Result<Value> {
        let inner = layer(graph, &format!("{name}.0"), from, self.hidden, Activation::Elu)?;
        let inner = layer(graph, &format!("{name}.1"), inner, self.hidden, Activation::Elu)?;
        layer(graph, &format!("{name}.2"), inner, self.width, Activation::None)
    }

    /// The logits of every pair.
    fn act(
        self,
        graph: &mut Graph,
        inputs: &GraphInputs,
        operations: Value,
        machines: Value,
        state: Value,
    ) -> Result<Value> {
        let (hidden, fan_in) = (self.inner(), 4 * self.width);
        let bias = graph.param("actor.0.bias", &[hidden], Init::Linear { fan_in })?;
        let mut part = |name: &str, from: Value, bias: Option<Param>| {
            let shape = [graph.shape(from).width, hidden];
            let weight = graph.param(&format!("actor.0.{name}.weight"), &shape, Init::Linear { fan_in })?;
            graph.linear(from, weight, bias, Activation::None)
        };
        let parts = [
            part("operation", operations, None)?,
            part("machine", machines, None)?,
            part("state", state, Some(bias))?,
        ];
        let pairs = graph.pairs(parts[0], parts[1], parts[2], inputs.next, inputs.open)?;
        let inner = layer(graph, "actor.1", pairs, hidden, Activation::Tanh)?;
        let logits = layer(graph, "actor.2", inner, 1, Activation::None)?;
        let Shape { rows: states, .. } = graph.shape(state);
        graph.reshape(logits, states)
    }

    /// The critic's estimates.
    fn judge(self, graph: &mut Graph, state: Value) -> Result<Value> {
        let inner = layer(graph, "critic.0", state, self.inner(), Activation::Tanh)?;
        let inner = layer(graph, "critic.1", inner, self.inner(), Activation::Tanh)?;
        layer(graph, "critic.2", inner, 1, Activation::None)
    }

    /// The width inside actor and critic.
    fn inner(self) -> usize {
        self.hidden.div_ceil(2)
    }
}

/// Glorot's normal with a gain of √2, of a parameter whose fans sum to this.
pub(crate) fn xavier(fans: usize) -> Init {
    Init::Normal { deviation: 2.0 / (fans as f64).sqrt() }
}

/// A linear layer with a bias.
pub(crate) fn layer(
    graph: &mut Graph,
    name: &str,
    from: Value,
    to: usize,
    activation: Activation,
) -> Result<Value> {
    let fan_in = graph.shape(from).width;
    let weight = graph.param(&format!("{name}.weight"), &[fan_in, to], Init::Linear { fan_in })?;
    let bias = graph.param(&format!("{name}.bias"), &[to], Init::Linear { fan_in })?;
    graph.linear(from, weight, Some(bias), activation)
}

/// What a lane shows, as z-scores. Nodes are never deleted: a finished operation stays in the graph to the end.
fn show(task: &GraphTask, lanes: &GraphLanes, lane: usize, to: &mut Shown<'_>) {
    let GraphSizes { machines, features, .. } = task.sizes();
    let (operations, arcs) = (lanes.operations(lane), lanes.able(lane));
    let (own, on) = (operations.len() / features, lanes.machines(lane).count());
    z_scores(operations.chunks_exact(features), to.operations);
    z_scores(lanes.machines(lane), to.machines);
    // Columns of machines that the shop does not have belong to other shops.
    let times = lanes.arcs(lane).chunks_exact(machines);
    let own_times = times.clone().flat_map(|row| &row[..on]).copied();
    let Scale { mean, factor } = Scale::of(own_times);
    for (to, row) in to.times.chunks_exact_mut(machines).zip(times) {
        to.iter_mut().zip(&row[..on]).for_each(|(to, time)| *to = ((time - mean) * factor) as f32);
    }
    to.arcs[..arcs.len()].copy_from_slice(arcs);
    to.own_operations[..own].fill(1);
    to.own_machines[..on].fill(1);
    to.neighbours[..own].copy_from_slice(task.neighbours(lanes.instance(lane)));
}

/// How numbers become z-scores: `(x − mean) / (deviation + 1e-5)` with the sample's deviation; a single one is at its mean.
struct Scale {
    mean: f64,
    factor: f64,
}

impl Scale {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let (count, sum) =
            values.clone().fold((0.0_f64, 0.0), |(count, sum), value| (count + 1.0, sum + value));
        let mean = sum / count;
        let spread = values.map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        Self { mean, factor: 1.0 / (spread.sqrt() + EPSILON) }
    }
}

/// Writes the z-scores of each column of some rows.
fn z_scores<R: AsRef<[f64]>>(rows: impl Iterator<Item = R> + Clone, to: &mut [f32]) {
    let Some(width) = rows.clone().next().map(|row| row.as_ref().len()) else { return };
    for column in 0..width {
        let values = rows.clone().map(|row| row.as_ref()[column]);
        let Scale { mean, factor } = Scale::of(values.clone());
        for (to, value) in to.iter_mut().skip(column).step_by(width).zip(values) {
            *to = ((value - mean) * factor) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn songs_network_has_204_250_parameters_of_which_16_are_never_read() {
        // Machines: (6 + 3) · 8 + 3 · 8 = 96 and (8 + 8) · 8 + 3 · 8 = 152. A perceptron of operations has in · 128 + 128 +
        // 128² + 128 + 128 · 8 + 8: 18,696 with 8 inputs, 18,440 with 6, 21,768 with 32; rounds 18,696 + 3 · 18,440 + 21,768 =
        // 95,784 and 4 · 18,696 + 21,768 = 96,552. Actor 32 · 64 + 64 + 64² + 64 + 64 + 1 = 6,337, critic 16 · 64 + 64 + 64² +
        // 64 + 64 + 1 = 5,313. In all 204,234; Song's file has a vector of 8 more in each round.
        let sizes = GraphSizes { jobs: 10, machines: 5, operations: 50, features: 6 };
        let shape = HgnnShape { sizes, width: 8, hidden: 128, critic: true };
        let policy = shape.policy().unwrap();
        assert_eq!(policy.graph.layout().parameters(), 204_250 - 16);
        let without = HgnnShape { critic: false, ..shape }.policy().unwrap();
        assert_eq!(without.graph.layout().parameters(), 204_234 - 5_313);
    }

    #[test]
    fn first_weights_spread_as_songs() {
        // √2 · √(2 / 14) for operations in the first round, √2 · √(2 / 16) = 0.5 for vectors, √2 · √(2 / 9) for times.
        for (fans, expected) in [(14, 0.5345), (16, 0.5), (9, 0.6667)] {
            let Init::Normal { deviation } = xavier(fans) else { panic!("a normal") };
            assert!((deviation - expected).abs() < 1e-4);
        }
    }

    #[test]
    fn scores_of_two_columns() {
        // 1 and 3: mean 2, sample deviation √2. A column without spread, and a single row, are zero.
        let scores = |rows: &[[f64; 2]]| {
            let mut came = vec![0.0; 2 * rows.len()];
            z_scores(rows.iter(), &mut came);
            came
        };
        let score = (1.0 / (2.0_f64.sqrt() + 1e-5)) as f32;
        assert_eq!(scores(&[[1.0, 5.0], [3.0, 5.0]]), [-score, 0.0, score, 0.0]);
        assert_eq!(scores(&[[4.0, 2.0]]), [0.0, 0.0]);
    }
}
