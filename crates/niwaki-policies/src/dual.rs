//! A dispatcher for quality, after DANIEL (Wang and others, 2023): operations look along their jobs, machines at what they could
//! run, and the actor sees numbers of the very pair that it judges.
//!
//! What is over leaves the graph: an operation that has ended, and a machine that nothing unplaced can use, count nowhere and their
//! rows are zero. Each of three rounds renews machines, then operations, with ELU:
//!
//! - machines attend to the operations at their arcs and to themselves ([`Arcs`]); what they were is added through a matrix;
//! - operations read `[Σ machines at the arcs, next in the job, previous, itself]` through one layer ([`Surround`]: the sum of four, each
//!   computed once).
//!
//! The actor is a perceptron with tanh whose first layer is the sum of three parts (operation, machine, mean of both over the
//! graph), and whose second one also reads the pair's own numbers. The critic, where there is one, reads the means.
//!
//! Beside DANIEL: attention between machines is by what they compete for rather than by sums over candidates, and pairs have
//! two more numbers (how long after the earliest start this one begins; where its job would end, over where the last one would).
//! `show.rs` has the features, and `bounds.rs` those that say what a choice makes of the bounds of what is left.

mod bounds;
mod show;

use crate::graph::{GraphInputs, GraphOutputs, GraphPolicy, Show};
use crate::hgnn::{layer, xavier};
use niwaki_nn::{Activation, Arcs, Graph, Init, Param, Pooling, Result, Value};
use niwaki_tasks::GraphSizes;

/// Rounds of renewal.
const ROUNDS: usize = 3;

/// The sizes of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DualShape {
    /// Rows and choices of a state.
    pub sizes: GraphSizes,
    /// Width of the embeddings.
    pub width: usize,
    /// Width inside actor and critic.
    pub hidden: usize,
    /// Whether there is a critic.
    pub critic: bool,
    /// Whether it sees bounds of what is left, and what each choice makes of them.
    pub bounds: bool,
}

impl DualShape {
    /// The policy.
    ///
    /// # Errors
    /// If the sizes do not fit together.
    pub fn policy(self) -> Result<GraphPolicy> {
        // Bounds take some 15 µs a lane, the rest takes 3.
        let show = if self.bounds {
            Show { lane: show::show::<true>, alone: 4 }
        } else {
            Show { lane: show::show::<false>, alone: 16 }
        };
        GraphPolicy::new(self.sizes, show::widths(self.bounds), show, |graph, inputs| {
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
        let value = if self.critic {
            let inner = layer(graph, "critic.0", state, self.hidden, Activation::Tanh)?;
            Some(layer(graph, "critic.1", inner, 1, Activation::None)?)
        } else {
            None
        };
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
        let kept = layer(graph, &name("kept"), machines, width, Activation::None)?;
        let mut project = |part: &str, from: Value| {
            let fan_in = graph.shape(from).width;
            let weight = graph.param(&name(part), &[fan_in, width], xavier(fan_in + width))?;
            graph.linear(from, weight, None, Activation::None)
        };
        let operations = project("source.weight", operations)?;
        let machines = project("target.weight", machines)?;
        let (times, present) = (inputs.times, inputs.arcs);
        let attended =
            graph.attend_arcs(Arcs { operations, machines, times, along, source, target, present })?;
        let sum = graph.add(attended, kept)?;
        Ok(graph.activate(sum, Activation::Elu))
    }

    fn renew_operations(
        self,
        graph: &mut Graph,
        name: &dyn Fn(&str) -> String,
        inputs: &GraphInputs,
        operations: Value,
        machines: Value,
    ) -> Result<Value> {
        let (width, own, on) = (self.width, graph.shape(operations).width, graph.shape(machines).width);
        let init = Init::Linear { fan_in: on + 3 * own };
        let mut weight = |part: &str, shape: [usize; 2]| graph.param(&name(part), &shape, init);
        let (itself, beside) =
            (weight("operations.weight", [own, width])?, weight("beside.weight", [own, 2 * width])?);
        let reach = weight("reach.weight", [on, width])?;
        let bias = graph.param(&name("operations.bias"), &[width], init)?;
        let own = graph.linear(operations, itself, Some(bias), Activation::None)?;
        let beside = graph.linear(operations, beside, None, Activation::None)?;
        let machines = graph.linear(machines, reach, None, Activation::None)?;
        let sum = graph.surround(own, beside, machines, inputs.arcs, inputs.neighbours)?;
        Ok(graph.activate(sum, Activation::Elu))
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
        let (hidden, fan_in) = (self.hidden, 4 * self.width);
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
        let own = [Some(pairs), inputs.pairs].into_iter().flatten().collect::<Vec<_>>();
        let own = graph.concat(&own)?;
        let inner = layer(graph, "actor.1", own, hidden, Activation::Tanh)?;
        let logits = layer(graph, "actor.2", inner, 1, Activation::None)?;
        let states = graph.shape(state).rows;
        graph.reshape(logits, states)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_has_its_number_of_parameters_whatever_the_shop() {
        // Width 32: a round has vectors 3 · 32, kept w · 32 + 32 and projections o · 32 + w · 32 of machines w and operations o
        // wide, and operations (32 + 3 o) · 32 + 32. First w = 8, o = 10: 96 + 288 + 576 + 2,016 = 2,976; then w = o = 32:
        // 96 + 1,056 + 2,048 + 4,128 = 7,328, twice. Actor 128 · 64 + 64, (64 + 10) · 64 + 64, 65: 13,121.
        for (jobs, machines) in [(10, 5), (4, 3)] {
            let sizes = GraphSizes { jobs, machines, operations: jobs * machines, features: 6 };
            let shape = DualShape { sizes, width: 32, hidden: 64, critic: false, bounds: false };
            assert_eq!(shape.policy().unwrap().graph.layout().parameters(), 2_976 + 2 * 7_328 + 13_121);
            // Critic 64 · 64 + 64 + 65.
            let judged = DualShape { critic: true, ..shape }.policy().unwrap();
            assert_eq!(judged.graph.layout().parameters(), 30_753 + 4_225);
        }
    }
}
