//! What the policies over graphs have in common: their inputs and outputs, how they sample and how they are scored.
//!
//! An item is one trajectory, and all its states stand in it one after the other: rows are `[state, operation]`,
//! `[state, machine]` and `[state, job]`, choices are pairs of job and machine. Sampling runs the same network for one
//! state of every trajectory; on the CPU a drawn log-probability has the bits that scoring gives it. A policy says how it
//! scales what a lane shows, and what its network is. Nothing here knows rewards or advantages. `ahead` is one step of a
//! network's, `states` holds what was shown.

mod ahead;
mod alike;
mod states;

use crate::policy::{Draw, DrawRequest, Heads, Item, MakeEngine, Policy};
use crate::{Error, Rollout};
use niwaki_nn::engine::check_members;
use niwaki_nn::{DynEngine, Graph, Index, Load, Mask, Value, initialise, log_softmax};
use niwaki_stream::{by_log_chance, likeliest};
use niwaki_tasks::{GraphLanes, GraphSizes, GraphTask};
use rayon::prelude::*;
use states::States;
use std::ops::Range;
use std::sync::Arc;

pub(crate) use ahead::Asked;
pub(crate) use states::Shown;

/// What a network over graphs reads, for so many states of an item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphInputs {
    /// `[states · operations, width]`
    pub(crate) operations: Value,
    /// `[states · machines, width]`
    pub(crate) machines: Value,
    /// `[states · operations, machines]`
    pub(crate) times: Value,
    /// `[states · pairs, width]`, where the network asks for numbers of pairs.
    pub(crate) pairs: Option<Value>,
    /// Where there is an arc, `[states · operations, machines]`.
    pub(crate) arcs: Mask,
    /// Which operations and machines count, `[states · operations, 1]` and `[states · machines, 1]`.
    pub(crate) own_operations: Mask,
    pub(crate) own_machines: Mask,
    /// Which neighbours an operation has in its job, negative for one that does not count: `[states · operations]`.
    pub(crate) neighbours: Index,
    /// Each job's next operation, `[states · jobs]`.
    pub(crate) next: Index,
    /// Which pairs are open, `[states, pairs]`.
    pub(crate) open: Mask,
}

impl GraphInputs {
    fn declare(graph: &mut Graph, sizes: GraphSizes, widths: Widths, states: usize) -> Self {
        let GraphSizes { jobs, machines, operations, .. } = sizes;
        Self {
            operations: graph.scalars("operations", states * operations, widths.operations),
            machines: graph.scalars("machines", states * machines, widths.machines),
            times: graph.scalars("times", states * operations, machines),
            pairs: (widths.pairs > 0).then(|| graph.scalars("pairs", states * sizes.pairs(), widths.pairs)),
            arcs: graph.mask("arcs", states * operations, machines),
            own_operations: graph.mask("own operations", states * operations, 1),
            own_machines: graph.mask("own machines", states * machines, 1),
            neighbours: graph.indices("neighbours", states * operations, 4),
            next: graph.indices("next", states * jobs, operations),
            open: graph.mask("open", states, sizes.pairs()),
        }
    }

    fn load(&self, engine: &mut DynEngine, states: &States) -> niwaki_nn::Result<()> {
        let mut all = vec![
            Load::Scalars(self.operations, &states.operations),
            Load::Scalars(self.machines, &states.machines),
            Load::Scalars(self.times, &states.times),
            Load::Mask(self.arcs, &states.arcs),
            Load::Mask(self.own_operations, &states.own_operations),
            Load::Mask(self.own_machines, &states.own_machines),
            Load::Indices(self.neighbours, &states.neighbours),
            Load::Indices(self.next, &states.next),
            Load::Mask(self.open, &states.open),
        ];
        all.extend(self.pairs.map(|pairs| Load::Scalars(pairs, &states.pairs)));
        engine.load(&all)
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

/// Numbers that a network reads of each operation, machine and pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Widths {
    pub(crate) operations: usize,
    pub(crate) machines: usize,
    pub(crate) pairs: usize,
}

/// How a policy shows lanes to its network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Show {
    /// Fills what is zero before of a lane that is not complete, but for what is next and open.
    pub(crate) lane: fn(&GraphTask, &GraphLanes, usize, &mut Shown<'_>),
    /// Lanes that one thread shows at least: fewer are not worth another's awakening.
    pub(crate) alone: usize,
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
    widths: Widths,
    show: Show,
    /// Where in the parameters what a member starts from stands; the rest is drawn.
    start: Arc<[(Range<usize>, Vec<f32>)]>,
}

impl GraphPolicy {
    /// A policy of a network, which is asked for twice: for all states of a trajectory, and for one.
    pub(crate) fn new(
        sizes: GraphSizes,
        widths: Widths,
        show: Show,
        network: impl Fn(&mut Graph, &GraphInputs) -> niwaki_nn::Result<GraphOutputs>,
    ) -> niwaki_nn::Result<Self> {
        let states = sizes.operations;
        let mut graph = Graph::new();
        let inputs = GraphInputs::declare(&mut graph, sizes, widths, states);
        let GraphOutputs { logits, value } = network(&mut graph, &inputs)?;
        let actions = graph.indices("actions", states, sizes.pairs());
        let (log_prob, entropy) = graph.pick_log_prob(logits, actions, Some(inputs.open))?;
        let mut step = Graph::sharing(graph.layout());
        let step_inputs = GraphInputs::declare(&mut step, sizes, widths, 1);
        let step_logits = network(&mut step, &step_inputs)?.logits;
        let heads = Heads { log_prob, entropy, logits: None, value };
        let start = Arc::from([]);
        Ok(Self { sizes, graph, inputs, actions, heads, step, step_inputs, step_logits, widths, show, start })
    }

    /// The same policy, whose members start from these parameters; those not named are drawn.
    ///
    /// # Panics
    /// If a range is not inside the parameters, or not as long as what stands in it.
    #[must_use]
    pub fn starting_from(self, known: Vec<(Range<usize>, Vec<f32>)>) -> Self {
        let length = self.graph.layout().len();
        let fits =
            |(range, values): &(Range<usize>, Vec<f32>)| range.end <= length && range.len() == values.len();
        assert!(known.iter().all(fits), "parameters to start from");
        Self { start: known.into(), ..self }
    }

    /// Loads trajectories with what was seen in them.
    fn load_seen(&self, engine: &mut DynEngine, seen: &States, actions: &[i32]) -> niwaki_nn::Result<()> {
        engine.set_items(actions.len() / self.horizon() / engine.members())?;
        self.inputs.load(engine, seen)?;
        engine.load_indices(self.actions, actions)
    }

    /// The engine that looks at states, one of so many lanes of each member.
    fn begin<'a>(
        &self,
        scratch: &'a mut GraphScratch,
        make: &MakeEngine,
        lanes: usize,
    ) -> Result<&'a mut DynEngine, Error> {
        let step = match &mut scratch.engine {
            Some(engine) => engine,
            none => none.insert(make(&self.step, &[self.step_logits])?),
        };
        step.set_items(lanes)?;
        Ok(step.as_mut())
    }

    /// An engine that looks at states, with parameters.
    pub(crate) fn ready(&self, parameters: &[f32], make: &MakeEngine) -> Result<GraphScratch, Error> {
        let mut engine = make(&self.step, &[self.step_logits])?;
        engine.set_parameters(0, parameters)?;
        Ok(GraphScratch { engine: Some(engine), ..GraphScratch::default() })
    }

    /// Sets the number of lanes of the engine that looks at states.
    pub(crate) fn resize(&self, scratch: &mut GraphScratch, lanes: usize) -> Result<(), Error> {
        let Some(engine) = &mut scratch.engine else { return Err(Error::Unready) };
        Ok(engine.set_items(lanes)?)
    }

    /// What some lanes show before their next steps; an empty place shows nothing.
    fn look(
        &self,
        task: &GraphTask,
        lanes: &GraphLanes,
        which: &[Option<usize>],
        now: &mut States,
        kept: bool,
    ) {
        let mut shown = now.each(which.len(), self.sizes, self.widths);
        let each = shown.par_iter_mut().zip(which).with_min_len(self.show.alone);
        each.for_each(|(shown, &lane)| {
            shown.clear();
            if let Some(lane) = lane {
                self.show_lane(task, lanes, lane, shown, kept);
            }
        });
    }

    /// What a lane shows, over nothing; a complete one shows nothing, and unless that is kept one with a single open pair no more than that: its
    /// log-probability is zero whatever the network says.
    fn show_lane(
        &self,
        task: &GraphTask,
        lanes: &GraphLanes,
        lane: usize,
        shown: &mut Shown<'_>,
        kept: bool,
    ) {
        if lanes.done(lane) {
            return;
        }
        if !kept && let (Some(pair), None) = (lanes.open(lane).next(), lanes.open(lane).nth(1)) {
            shown.open[pair] = 1;
            return;
        }
        (self.show.lane)(task, lanes, lane, shown);
        for (to, operation) in shown.next.iter_mut().zip(lanes.next(lane)) {
            *to = operation.map_or(-1, |operation| operation as i32);
        }
        lanes.open(lane).for_each(|pair| shown.open[pair] = 1);
    }
}

/// What drawing keeps from one rollout to the next: the engine of one state, and what the last trajectories showed, so that
/// parts of them are loaded without playing them again.
#[derive(Debug)]
pub struct GraphScratch {
    engine: Option<Box<DynEngine>>,
    /// `[member, lane, horizon]`, as are the actions, which are −1 behind an end.
    seen: States,
    actions: Vec<i32>,
    /// `[member, lane]`
    instances: Vec<u32>,
    /// Whether what was seen has been asked for.
    kept: bool,
    /// One state of every trajectory.
    now: States,
    /// Some of the trajectories.
    part: States,
}

impl GraphScratch {
    /// Whether its engine works while the calling thread waits, so that several of them, each with a thread of its own, gain something.
    pub(crate) fn waits(&self) -> bool {
        self.engine.as_ref().is_some_and(|engine| !engine.resizes_freely())
    }

    /// Goes with the calling thread.
    pub(crate) fn move_here(&self) -> Result<(), Error> {
        self.engine.as_ref().map_or(Ok(()), |engine| Ok(engine.move_here()?))
    }
}

impl Default for GraphScratch {
    fn default() -> Self {
        let (seen, now, part) = (States::default(), States::default(), States::default());
        Self { engine: None, seen, actions: Vec::new(), instances: Vec::new(), kept: false, now, part }
    }
}

impl Policy for GraphPolicy {
    type View = GraphTask;
    type Scratch = GraphScratch;

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

    fn initial_parameters(&self, seed: u64) -> Vec<f32> {
        let mut drawn = initialise(self.graph.layout(), seed);
        for (range, values) in &*self.start {
            drawn[range.clone()].copy_from_slice(values);
        }
        drawn
    }

    fn single(&self) -> Result<Self, Error> {
        Ok(self.clone())
    }

    fn draw(
        &self,
        engine: &mut DynEngine,
        scratch: &mut GraphScratch,
        make: &MakeEngine,
        task: &GraphTask,
        request: DrawRequest<'_>,
        rollout: &mut Rollout,
    ) -> Result<(), Error> {
        let DrawRequest { lanes, instances, how, score } = request;
        let (all, horizon, pairs) = (engine.members() * lanes, self.horizon(), self.sizes.pairs());
        check_members("instances", all, instances.len())?;
        if let Draw::Sampled(uniforms) = how {
            check_members("uniforms", all * horizon, uniforms.len())?;
        }
        self.begin(scratch, make, lanes)?.copy_parameters(engine)?;
        let mut building = task.begin(instances)?;
        scratch.kept = score;
        scratch.instances.clear();
        scratch.instances.extend_from_slice(instances);
        scratch.actions.clear();
        scratch.actions.resize(all * horizon, -1);
        let (mut log_prob, mut estimated) = (vec![0.0; all * horizon], vec![0.0; all * horizon]);
        // Where nobody asks what was seen, nothing is looked at once all are complete.
        let steps = if score { horizon } else { building.longest() };
        let every: Vec<Option<usize>> = (0..all).map(Some).collect();
        for step in 0..steps {
            self.ask(scratch, task, &building, &every, score)?;
            let logits = self.hear(scratch)?;
            let choose = |log_probs: &mut Vec<f32>, (lane, (logits, open)): (usize, (&&[f32], &[u8]))| {
                if building.done(lane) {
                    return (-1, 0.0, 0.0);
                }
                log_probs.resize(pairs, 0.0);
                log_softmax(logits, Some(open), log_probs);
                let action = match how {
                    Draw::Sampled(uniforms) => by_log_chance(log_probs, uniforms[lane * horizon + step]),
                    Draw::Greedy => likeliest(log_probs),
                };
                let optimum = task.numbers().bounds[building.instance(lane)].upper.max(1);
                let estimated = building.estimate(lane) / f64::from(optimum);
                (action as i32, log_probs[action], estimated as f32)
            };
            let states = logits.logits.par_iter().zip(logits.open.par_chunks(pairs)).enumerate();
            let chosen: Vec<(i32, f32, f32)> = states.with_min_len(64).map_init(Vec::new, choose).collect();
            let GraphScratch { actions, seen, now, .. } = &mut *scratch;
            if score {
                seen.keep(now, all, step, horizon);
            }
            for (lane, &(action, log, ahead)) in chosen.iter().enumerate() {
                actions[lane * horizon + step] = action;
                log_prob[lane * horizon + step] = log;
                estimated[lane * horizon + step] = ahead;
            }
            building.choose(&chosen.iter().map(|(action, ..)| *action).collect::<Vec<_>>())?;
        }
        if score {
            self.load_seen(engine, &scratch.seen, &scratch.actions)?;
        }
        rollout.choices = pairs;
        rollout.actions.clone_from(&scratch.actions);
        rollout.log_prob = log_prob;
        rollout.estimated = estimated;
        rollout.cut(lanes, horizon, None);
        rollout.outcome.clear();
        rollout.outcome.extend((0..all).map(|lane| building.outcome(lane)));
        rollout.instances.clear();
        rollout.instances.extend_from_slice(instances);
        Ok(())
    }

    fn load_part(
        &self,
        engine: &mut DynEngine,
        scratch: &mut GraphScratch,
        task: &GraphTask,
        rollout: &Rollout,
        lanes: &[Vec<usize>],
    ) -> Result<(), Error> {
        let (each, horizon) = (rollout.shape.lanes(), self.horizon());
        let GraphScratch { seen, actions, instances, kept, part, .. } = scratch;
        if !*kept || *instances != rollout.instances || *actions != *rollout.padded_actions() {
            return self.load(engine, task, &rollout.part(lanes));
        }
        let chosen = lanes
            .iter()
            .enumerate()
            .flat_map(|(member, lanes)| lanes.iter().map(move |lane| member * each + lane));
        let chosen: Vec<usize> = chosen.collect();
        let chosen_actions: Vec<i32> =
            chosen.iter().flat_map(|lane| &actions[lane * horizon..(lane + 1) * horizon]).copied().collect();
        if chosen.iter().copied().eq(0..rollout.instances.len()) {
            return Ok(self.load_seen(engine, seen, &chosen_actions)?);
        }
        part.take(seen, rollout.instances.len(), &chosen);
        Ok(self.load_seen(engine, part, &chosen_actions)?)
    }

    fn load(&self, engine: &mut DynEngine, task: &GraphTask, rollout: &Rollout) -> Result<(), Error> {
        let (actions, horizon) = (rollout.padded_actions(), self.horizon());
        let mut building = task.begin(&rollout.instances)?;
        check_members("choices", rollout.instances.len() * horizon, actions.len())?;
        let (mut now, mut seen) = (States::default(), States::default());
        let every: Vec<Option<usize>> = (0..building.count()).map(Some).collect();
        for step in 0..horizon {
            self.look(task, &building, &every, &mut now, true);
            seen.keep(&now, rollout.instances.len(), step, horizon);
            let choices: Vec<i32> = actions.iter().skip(step).step_by(horizon).copied().collect();
            building.choose(&choices)?;
        }
        Ok(self.load_seen(engine, &seen, &actions)?)
    }
}
