//! What the policies over graphs have in common: their inputs and outputs, how they sample and how they are scored.
//!
//! An item is one trajectory, and all its states stand in it one after the other: rows are `[state, operation]`,
//! `[state, machine]` and `[state, job]`, choices are pairs of job and machine. Sampling runs the same network for one
//! state of every trajectory; on the CPU a drawn log-probability has the bits that scoring gives it. A policy says how it
//! scales what a lane shows, and what its network is. Nothing here knows rewards or advantages.

use crate::policy::{Draw, DrawRequest, Heads, Item, MakeEngine, Policy};
use crate::token::{by_chance, likeliest};
use crate::{Error, Rollout};
use niwaki_nn::engine::check_members;
use niwaki_nn::{Engine, Graph, Index, Mask, Value, log_softmax};
use niwaki_tasks::graph::MACHINE;
use niwaki_tasks::{GraphLanes, GraphSizes, GraphTask};
use rayon::prelude::*;

/// What a network over graphs reads, for so many states of an item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphInputs {
    /// `[states · operations, features]`
    pub(crate) operations: Value,
    /// `[states · machines, 3]`
    pub(crate) machines: Value,
    /// `[states · operations, machines]`
    pub(crate) times: Value,
    /// Where there is an arc, `[states · operations, machines]`.
    pub(crate) arcs: Mask,
    /// Which operations and machines the shop has, `[states · operations, 1]` and `[states · machines, 1]`.
    pub(crate) own_operations: Mask,
    pub(crate) own_machines: Mask,
    /// Which neighbours an operation has in its job, `[states · operations]`.
    pub(crate) neighbours: Index,
    /// Each job's next operation, `[states · jobs]`.
    pub(crate) next: Index,
    /// Which pairs are open, `[states, pairs]`.
    open: Mask,
}

impl GraphInputs {
    fn declare(graph: &mut Graph, sizes: GraphSizes, states: usize) -> Self {
        let GraphSizes { jobs, machines, operations, features } = sizes;
        Self {
            operations: graph.scalars("operations", states * operations, features),
            machines: graph.scalars("machines", states * machines, MACHINE),
            times: graph.scalars("times", states * operations, machines),
            arcs: graph.mask("arcs", states * operations, machines),
            own_operations: graph.mask("own operations", states * operations, 1),
            own_machines: graph.mask("own machines", states * machines, 1),
            neighbours: graph.indices("neighbours", states * operations, 4),
            next: graph.indices("next", states * jobs, operations),
            open: graph.mask("open", states, sizes.pairs()),
        }
    }

    fn load<E: Engine<Scalar = f32>>(&self, engine: &mut E, states: &States) -> niwaki_nn::Result<()> {
        engine.load_scalars(self.operations, &states.operations)?;
        engine.load_scalars(self.machines, &states.machines)?;
        engine.load_scalars(self.times, &states.times)?;
        engine.load_mask(self.arcs, &states.arcs)?;
        engine.load_mask(self.own_operations, &states.own_operations)?;
        engine.load_mask(self.own_machines, &states.own_machines)?;
        engine.load_indices(self.neighbours, &states.neighbours)?;
        engine.load_indices(self.next, &states.next)?;
        engine.load_mask(self.open, &states.open)
    }
}

/// What a network says of each state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphOutputs {
    /// `[states, pairs]`
    pub(crate) logits: Value,
    /// `[states, 1]`
    pub(crate) value: Option<Value>,
}

/// How a policy scales what a lane shows, for its own operations and machines: `[operation, feature]`, `[machine, 3]` and
/// `[operation, machine]`, the last with the machines of the largest shop as columns.
pub(crate) type Scaling = fn(&GraphLanes, usize, features: usize, machines: usize) -> Scaled;

/// A state's numbers as a network reads them.
pub(crate) struct Scaled {
    pub(crate) operations: Vec<f32>,
    pub(crate) machines: Vec<f32>,
    pub(crate) times: Vec<f32>,
}

/// States one after the other, each with the rows of the largest shop.
#[derive(Clone, Debug, Default, PartialEq)]
struct States {
    operations: Vec<f32>,
    machines: Vec<f32>,
    times: Vec<f32>,
    arcs: Vec<u8>,
    own_operations: Vec<u8>,
    own_machines: Vec<u8>,
    neighbours: Vec<i32>,
    next: Vec<i32>,
    open: Vec<u8>,
}

/// Appends some entries and fills up with others, to so many in all.
fn fill<T: Copy>(to: &mut Vec<T>, some: impl IntoIterator<Item = T>, rest: T, size: usize) {
    let end = to.len() + size;
    to.extend(some);
    to.resize(end, rest);
}

impl States {
    /// Appends what a lane shows; a complete lane shows nothing.
    fn push(&mut self, policy: &GraphPolicy, task: &GraphTask, lanes: &GraphLanes, lane: usize) {
        let GraphSizes { jobs, machines, operations, features } = policy.sizes;
        if lanes.done(lane) {
            fill(&mut self.operations, [], 0.0, operations * features);
            fill(&mut self.machines, [], 0.0, machines * MACHINE);
            fill(&mut self.times, [], 0.0, operations * machines);
            fill(&mut self.arcs, [], 0, operations * machines);
            fill(&mut self.own_operations, [], 0, operations);
            fill(&mut self.own_machines, [], 0, machines);
            fill(&mut self.neighbours, [], 0, operations);
            fill(&mut self.next, [], -1, jobs);
            fill(&mut self.open, [], 0, policy.sizes.pairs());
            return;
        }
        let seen = (policy.scaling)(lanes, lane, features, machines);
        let (own, on) = (seen.operations.len() / features, seen.machines.len() / MACHINE);
        fill(&mut self.operations, seen.operations, 0.0, operations * features);
        fill(&mut self.machines, seen.machines, 0.0, machines * MACHINE);
        fill(&mut self.times, seen.times, 0.0, operations * machines);
        fill(&mut self.arcs, lanes.able(lane).iter().copied(), 0, operations * machines);
        fill(&mut self.own_operations, std::iter::repeat_n(1, own), 0, operations);
        fill(&mut self.own_machines, std::iter::repeat_n(1, on), 0, machines);
        let neighbours = task.neighbours(lanes.instance(lane)).iter().copied();
        fill(&mut self.neighbours, neighbours, 0, operations);
        let next = lanes.next(lane).map(|next| next.map_or(-1, |next| next as i32));
        fill(&mut self.next, next, -1, jobs);
        let first = self.open.len();
        fill(&mut self.open, [], 0, policy.sizes.pairs());
        lanes.open(lane).for_each(|pair| self.open[first + pair] = 1);
    }

    /// The last state of every trajectory, or all states: one trajectory after the other.
    fn gather(trajectories: &[Self], last: bool, sizes: GraphSizes) -> Self {
        let GraphSizes { jobs, machines, operations, features } = sizes;
        fn join<T: Copy>(from: &[States], of: impl Fn(&States) -> &[T], last: Option<usize>) -> Vec<T> {
            let part = |states| {
                let all = of(states);
                &all[last.map_or(0, |size| all.len() - size)..]
            };
            from.iter().flat_map(part).copied().collect()
        }
        let size = |size: usize| last.then_some(size);
        Self {
            operations: join(trajectories, |one| &one.operations, size(operations * features)),
            machines: join(trajectories, |one| &one.machines, size(machines * MACHINE)),
            times: join(trajectories, |one| &one.times, size(operations * machines)),
            arcs: join(trajectories, |one| &one.arcs, size(operations * machines)),
            own_operations: join(trajectories, |one| &one.own_operations, size(operations)),
            own_machines: join(trajectories, |one| &one.own_machines, size(machines)),
            neighbours: join(trajectories, |one| &one.neighbours, size(operations)),
            next: join(trajectories, |one| &one.next, size(jobs)),
            open: join(trajectories, |one| &one.open, size(sizes.pairs())),
        }
    }
}

/// A policy over graphs: the program that scores trajectories, that of one state, and the handles to them.
#[derive(Clone, Debug)]
pub struct GraphPolicy {
    /// Rows and choices of a state.
    pub sizes: GraphSizes,
    /// The program; its rows are all states of a trajectory.
    pub graph: Graph,
    inputs: GraphInputs,
    actions: Index,
    heads: Heads,
    /// The same network over one state.
    step: Graph,
    step_inputs: GraphInputs,
    step_logits: Value,
    scaling: Scaling,
}

impl GraphPolicy {
    /// A policy of a network, which is asked for twice: for all states of a trajectory, and for one.
    pub(crate) fn new(
        sizes: GraphSizes,
        scaling: Scaling,
        network: impl Fn(&mut Graph, &GraphInputs) -> niwaki_nn::Result<GraphOutputs>,
    ) -> niwaki_nn::Result<Self> {
        let states = sizes.operations;
        let mut graph = Graph::new();
        let inputs = GraphInputs::declare(&mut graph, sizes, states);
        let GraphOutputs { logits, value } = network(&mut graph, &inputs)?;
        let actions = graph.indices("actions", states, sizes.pairs());
        let (log_prob, entropy) = graph.pick_log_prob(logits, actions, Some(inputs.open))?;
        let mut step = Graph::sharing(graph.layout());
        let step_inputs = GraphInputs::declare(&mut step, sizes, 1);
        let step_logits = network(&mut step, &step_inputs)?.logits;
        let heads = Heads { log_prob, entropy, logits: None, value };
        Ok(Self { sizes, graph, inputs, actions, heads, step, step_inputs, step_logits, scaling })
    }

    /// Loads trajectories with what was seen in them.
    fn load_seen<E: Engine<Scalar = f32>>(
        &self,
        engine: &mut E,
        seen: &[States],
        actions: &[i32],
    ) -> niwaki_nn::Result<()> {
        engine.set_items(seen.len() / engine.members())?;
        self.inputs.load(engine, &States::gather(seen, false, self.sizes))?;
        engine.load_indices(self.actions, actions)
    }

    /// What a lane shows before its next step, kept behind what it showed before.
    fn look(&self, task: &GraphTask, lanes: &GraphLanes, seen: &mut [States]) {
        let each = seen.par_iter_mut().enumerate().with_min_len(8);
        each.for_each(|(lane, seen)| seen.push(self, task, lanes, lane));
    }
}

/// What drawing keeps from one rollout to the next: the engine of one state.
#[derive(Debug)]
pub struct GraphScratch<E>(Option<E>);

impl<E> Default for GraphScratch<E> {
    fn default() -> Self {
        Self(None)
    }
}

impl Policy for GraphPolicy {
    type View = GraphTask;
    type Scratch<E: Engine<Scalar = f32>> = GraphScratch<E>;

    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn heads(&self) -> Heads {
        self.heads
    }

    fn item(&self) -> Item {
        Item::Trajectories(1)
    }

    fn horizon(&self) -> usize {
        self.sizes.operations
    }

    fn single(&self) -> Result<Self, Error> {
        Ok(self.clone())
    }

    fn draw<E: Engine<Scalar = f32>>(
        &self,
        engine: &mut E,
        scratch: &mut GraphScratch<E>,
        make: &MakeEngine<E>,
        task: &GraphTask,
        request: DrawRequest<'_>,
        rollout: &mut Rollout,
    ) -> Result<(), Error> {
        let DrawRequest { lanes, instances, how } = request;
        let (all, horizon, pairs) = (engine.members() * lanes, self.horizon(), self.sizes.pairs());
        check_members("instances", all, instances.len())?;
        if let Draw::Sampled(uniforms) = how {
            check_members("uniforms", all * horizon, uniforms.len())?;
        }
        let step_engine = match &mut scratch.0 {
            Some(engine) => engine,
            none => none.insert(make(&self.step, &[self.step_logits])?),
        };
        step_engine.copy_parameters(engine)?;
        step_engine.set_items(lanes)?;
        let mut building = task.begin(instances)?;
        let mut seen = vec![States::default(); all];
        let (mut actions, mut log_prob) = (vec![-1; all * horizon], vec![0.0; all * horizon]);
        for step in 0..horizon {
            self.look(task, &building, &mut seen);
            let now = States::gather(&seen, true, self.sizes);
            self.step_inputs.load(step_engine, &now)?;
            step_engine.forward()?;
            let logits: Vec<&[f32]> = (0..step_engine.members())
                .flat_map(|member| step_engine.output(member, 0).chunks(pairs))
                .collect();
            let choose = |(lane, (logits, open)): (usize, (&&[f32], &[u8]))| {
                if building.done(lane) {
                    return (-1, 0.0);
                }
                let mut log_probs = vec![0.0; pairs];
                log_softmax(logits, Some(open), &mut log_probs);
                let action = match how {
                    Draw::Sampled(uniforms) => by_chance(&log_probs, uniforms[lane * horizon + step]),
                    Draw::Greedy => likeliest(&log_probs),
                };
                (action as i32, log_probs[action])
            };
            let states = logits.par_iter().zip(now.open.par_chunks(pairs)).enumerate();
            let chosen: Vec<(i32, f32)> = states.with_min_len(64).map(choose).collect();
            for (lane, &(action, log)) in chosen.iter().enumerate() {
                actions[lane * horizon + step] = action;
                log_prob[lane * horizon + step] = log;
            }
            building.choose(&chosen.iter().map(|(action, _)| *action).collect::<Vec<_>>())?;
        }
        self.load_seen(engine, &seen, &actions)?;
        rollout.choices = pairs;
        rollout.actions = actions;
        rollout.log_prob = log_prob;
        rollout.cut(lanes, horizon, None);
        rollout.outcome.clear();
        rollout.outcome.extend((0..all).map(|lane| building.outcome(lane)));
        rollout.instances.clear();
        rollout.instances.extend_from_slice(instances);
        Ok(())
    }

    fn load<E: Engine<Scalar = f32>>(
        &self,
        engine: &mut E,
        task: &GraphTask,
        rollout: &Rollout,
    ) -> Result<(), Error> {
        let (actions, horizon) = (rollout.padded_actions(), self.horizon());
        let mut building = task.begin(&rollout.instances)?;
        check_members("choices", rollout.instances.len() * horizon, actions.len())?;
        let mut seen = vec![States::default(); rollout.instances.len()];
        for step in 0..horizon {
            self.look(task, &building, &mut seen);
            let choices: Vec<i32> = actions.iter().skip(step).step_by(horizon).copied().collect();
            building.choose(&choices)?;
        }
        Ok(self.load_seen(engine, &seen, &actions)?)
    }
}
