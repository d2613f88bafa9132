//! The player of every neural policy, on any engine.
//!
//! A policy says what its program is and what one item of it holds; the environment says what is played and what that
//! earns. What remains is here: engines, uniforms, and the way from a program's rows to the steps of trajectories.

use super::{Cotangents, Environment, Loss, Player, RolloutRequest, Scores, first_rewards};
use crate::Error;
use niwaki_nn::{Checkpoint, DynEngine, Layout, Optimiser, Span, Storage};
use niwaki_policies::{Draw, DrawRequest, Heads, Item, MakeEngine, Policy, Rollout, RolloutShape};
use niwaki_stream::Key;
use rayon::prelude::*;
use std::ops::Range;

/// A population of neural policies on one engine.
pub struct Neural<P: Policy, T> {
    policy: P,
    environment: T,
    seeds: Vec<u64>,
    engine: Box<DynEngine>,
    /// The policies that the run began with, where a penalty asks for them.
    reference: Option<Box<DynEngine>>,
    scratch: P::Scratch,
    /// Plays every held-out instance once, where there are several instances.
    single: Option<Single<P>>,
    /// The shape of what is loaded.
    shape: RolloutShape,
    /// What the last pass said of each member, where trajectories do not fill the program's rows: log-probabilities,
    /// entropies and values.
    packed: Vec<[Vec<f32>; 3]>,
    uniforms: Vec<f64>,
    make: Box<MakeEngine>,
}

/// The same policies over one trajectory per instance.
struct Single<P: Policy> {
    policy: P,
    engine: Box<DynEngine>,
    scratch: P::Scratch,
}

impl<P: Policy, T: Environment<View = P::View>> Neural<P, T> {
    /// A population with parameters from its seeds, as the optimiser keeps them; with `reference` the first policies are kept.
    ///
    /// # Errors
    /// If the device fails.
    pub fn new(
        policy: P,
        environment: T,
        seeds: Vec<u64>,
        reference: bool,
        storage: Storage,
        make: Box<MakeEngine>,
    ) -> Result<Self, Error> {
        let own = || make(policy.graph(), &policy.heads().outputs());
        let (mut engine, mut reference) = (own()?, reference.then(own).transpose()?);
        // A few at a time: a pretrained model's parameters are gigabytes.
        let some = rayon::current_num_threads();
        for (first, seeds) in (0..).step_by(some).zip(seeds.chunks(some)) {
            let start = |&seed: &u64| {
                let mut parameters = policy.initial_parameters(seed);
                parameters.iter_mut().for_each(|parameter| *parameter = storage.kept(*parameter));
                parameters
            };
            let parameters: Vec<Vec<f32>> = seeds.par_iter().map(start).collect();
            for (member, parameters) in (first..).zip(&parameters) {
                engine.set_parameters(member, parameters)?;
                if let Some(reference) = &mut reference {
                    reference.set_parameters(member, parameters)?;
                }
            }
        }
        let single = match environment.held_out() {
            Some(_) => {
                let policy = policy.single()?;
                let engine = make(policy.graph(), &policy.heads().outputs())?;
                Some(Single { policy, engine, scratch: P::Scratch::default() })
            }
            None => None,
        };
        Ok(Self {
            policy,
            environment,
            seeds,
            engine,
            reference,
            scratch: P::Scratch::default(),
            single,
            shape: RolloutShape::default(),
            packed: Vec::new(),
            uniforms: Vec::new(),
            make,
        })
    }

    /// Keeps what the last pass said of trajectories that do not fill the program's rows.
    fn pack(&mut self) {
        let Self { policy, engine, shape, packed, .. } = self;
        packed.clear();
        if !shape.is_uniform() || policy.item() == Item::Step {
            let heads = policy.heads();
            let scores = |member| packed_scores(engine.as_ref(), heads, policy.item(), shape, member);
            packed.extend((0..engine.members()).map(scores));
        }
    }

    /// The way of items that are whole trajectories: a block of items is a block of lanes.
    fn pull_back_trajectories(&mut self, each: usize, loss: &Loss<'_, f32>) -> Result<(), Error> {
        let Self { policy, engine, shape, .. } = self;
        let heads = policy.heads();
        let surrogate = |span: Span, outputs: &[&[f32]], wanted: &mut [&mut [f32]]| {
            let lanes = span.items.start * each..span.items.end * each;
            let (scores, wanted) = (scores_of(outputs, heads), cotangents_of(wanted, heads));
            let span = Span { member: span.member, items: lanes.clone() };
            if shape.is_uniform() {
                loss(span, scores, wanted);
            } else {
                pull_ragged(shape, span, scores, wanted, loss);
            }
        };
        Ok(engine.pull_back(&surrogate)?)
    }

    /// The way of items that are single steps: a block of items may cut a trajectory, so all cotangents are made from a
    /// pass of their own before the first block asks for them.
    fn pull_back_steps(&mut self, loss: &Loss<'_, f32>) -> Result<(), Error> {
        self.engine.forward()?;
        let Self { policy, engine, shape, .. } = self;
        let (heads, lanes) = (policy.heads(), 0..shape.lanes());
        let scores = |member| packed_scores(engine.as_ref(), heads, Item::Step, shape, member);
        let scores: Vec<[Vec<f32>; 3]> = (0..engine.members()).map(scores).collect();
        let one = |(member, scores): (usize, &[Vec<f32>; 3])| {
            let mut wanted = scores.each_ref().map(|scores| vec![0.0; scores.len()]);
            let [log_prob, entropy, value] = &mut wanted;
            let span = Span { member, items: lanes.clone() };
            loss(span, borrowed(scores), Cotangents { log_prob, entropy, value });
            wanted
        };
        let whole: Vec<[Vec<f32>; 3]> = scores.par_iter().enumerate().map(one).collect();
        let surrogate = |span: Span, _: &[&[f32]], wanted: &mut [&mut [f32]]| {
            let Cotangents { log_prob, entropy, value } = cotangents_of(wanted, heads);
            for (to, from) in [log_prob, entropy, value].into_iter().zip(&whole[span.member]) {
                for (to, item) in to.iter_mut().zip(span.items.clone()) {
                    // Idle items lie behind the last step.
                    *to = from.get(item).copied().unwrap_or(0.0);
                }
            }
        };
        Ok(self.engine.pull_back(&surrogate)?)
    }
}

impl<P: Policy, T: Environment<View = P::View>> Player for Neural<P, T> {
    type Scalar = f32;

    fn members(&self) -> usize {
        self.seeds.len()
    }

    fn roll_out(
        &mut self,
        request: RolloutRequest,
        lanes: usize,
        rollout: &mut Rollout,
    ) -> Result<(), Error> {
        let Self { policy, environment, seeds, engine, scratch, make, uniforms, .. } = self;
        fill_uniforms(seeds, request, lanes, policy.horizon(), uniforms);
        let group = match policy.item() {
            Item::Trajectories(group) => group,
            Item::Step => 1,
        };
        let groups = request.first / group..request.first / group + lanes / group;
        let instances: Vec<u32> =
            seeds.iter().flat_map(|&seed| environment.instances(seed, request, groups.clone())).collect();
        let how = if request.greedy { Draw::Greedy } else { Draw::Sampled(uniforms) };
        let drawn = DrawRequest { lanes, instances: &instances, how, score: request.scored };
        policy.draw(engine.as_mut(), scratch, make, environment.view(), drawn, rollout)?;
        environment.fill_rewards(rollout);
        self.shape.clone_from(&rollout.shape);
        Ok(())
    }

    fn greedy_reward(
        &mut self,
        request: RolloutRequest,
        lanes: usize,
        rollout: &mut Rollout,
    ) -> Result<Vec<f64>, Error> {
        let Self { environment, seeds, engine, single, make, .. } = self;
        let (Some(single), Some(held_out)) = (single, environment.held_out()) else {
            self.roll_out(request, lanes, rollout)?;
            return Ok(first_rewards(rollout));
        };
        let count = held_out.len();
        let instances: Vec<u32> = seeds.iter().flat_map(|_| held_out.clone()).collect();
        let Single { policy, engine: alone, scratch } = single;
        alone.copy_parameters(engine.as_ref())?;
        let drawn = DrawRequest { lanes: count, instances: &instances, how: Draw::Greedy, score: false };
        policy.draw(alone.as_mut(), scratch, make, environment.view(), drawn, rollout)?;
        environment.fill_rewards(rollout);
        let mean = |member: usize| rollout.reward_of(member).iter().sum::<f64>() / count as f64;
        Ok((0..seeds.len()).map(mean).collect())
    }

    fn gaps(&self, rollout: &Rollout) -> Vec<f64> {
        self.environment.gaps(rollout)
    }

    fn improve(&self, iteration: usize, moves: u64, rollout: &mut Rollout) -> Result<(), Error> {
        let seed = |lane: usize| {
            let lanes = rollout.shape.lanes();
            let key = Key::new(self.seeds[lane / lanes], "improvement").iteration(iteration as u64);
            key.lane((lane % lanes) as u64).open().bits()
        };
        let seeds: Vec<u64> = (0..rollout.instances.len()).map(seed).collect();
        self.environment.improve(moves, &seeds, rollout)
    }

    fn load(&mut self, rollout: &Rollout) -> Result<(), Error> {
        self.policy.load(self.engine.as_mut(), self.environment.view(), rollout)?;
        self.shape.clone_from(&rollout.shape);
        Ok(())
    }

    fn load_part(&mut self, rollout: &Rollout, lanes: &[Vec<usize>]) -> Result<(), Error> {
        let Self { policy, environment, engine, scratch, .. } = self;
        policy.load_part(engine.as_mut(), scratch, environment.view(), rollout, lanes)?;
        self.shape = rollout.shape.part(lanes);
        Ok(())
    }

    fn score(&mut self) -> Result<(), Error> {
        self.engine.forward()?;
        self.pack();
        Ok(())
    }

    fn leave_out(&mut self, silent: &[Vec<bool>]) -> Result<(), Error> {
        // An item that is one step lies between others of its trajectory.
        let Item::Trajectories(each) = self.policy.item() else { return Ok(()) };
        let items = |lanes: &Vec<bool>| lanes.chunks(each).map(|lanes| !lanes.contains(&false)).collect();
        Ok(self.engine.leave_out(&silent.iter().map(items).collect::<Vec<_>>())?)
    }

    fn pull_back(&mut self, loss: &Loss<'_, f32>) -> Result<(), Error> {
        match self.policy.item() {
            Item::Trajectories(each) => self.pull_back_trajectories(each, loss)?,
            Item::Step => self.pull_back_steps(loss)?,
        }
        self.pack();
        Ok(())
    }

    fn scores(&self, member: usize) -> Scores<'_, f32> {
        if let Some(packed) = self.packed.get(member) {
            return borrowed(packed);
        }
        let output = |place: usize| self.engine.output(member, place);
        let value = self.policy.heads().value_output().map_or(&[][..], output);
        Scores { log_prob: output(0), entropy: output(1), value }
    }

    fn reference(&mut self, rollout: &Rollout) -> Result<Vec<f32>, Error> {
        let Self { policy, environment, reference, .. } = self;
        let Some(reference) = reference else { return Err(Error::Mixed) };
        policy.load(reference.as_mut(), environment.view(), rollout)?;
        reference.forward()?;
        let steps = |member: usize| {
            let rows = reference.output(member, 0);
            steps_of(policy.item(), &rollout.shape, member, rows)
        };
        Ok((0..reference.members()).flat_map(steps).collect())
    }

    fn step(&mut self, optimiser: &Optimiser, rates: &[f64]) -> Result<Vec<f64>, Error> {
        Ok(self.engine.step(optimiser, rates)?)
    }

    fn exact_returns(&mut self) -> Result<Option<Vec<f64>>, Error> {
        let Self { policy, environment, engine, scratch, make, .. } = self;
        Ok(policy.exact_returns(engine.as_ref(), scratch, make, environment.view())?)
    }

    fn tables(&mut self) -> Result<Option<Vec<Vec<f64>>>, Error> {
        let Self { policy, engine, scratch, make, .. } = self;
        Ok(policy.tables(engine.as_ref(), scratch, make)?)
    }

    fn layout(&self) -> &Layout {
        self.policy.graph().layout()
    }

    fn checkpoint(&self, member: usize) -> Result<Checkpoint, Error> {
        let (steps, moments) = self.engine.state(member)?;
        let state = serde_json::Value::Null;
        Ok(Checkpoint { parameters: self.engine.parameters(member)?, moments, steps, state })
    }

    fn set_checkpoint(&mut self, member: usize, checkpoint: &Checkpoint) -> Result<(), Error> {
        self.engine.set_parameters(member, &checkpoint.parameters)?;
        Ok(self.engine.set_state(member, checkpoint.steps, &checkpoint.moments)?)
    }
}

/// The steps of a member's trajectories among the rows of an output.
fn steps_of(item: Item, shape: &RolloutShape, member: usize, rows: &[f32]) -> Vec<f32> {
    match item {
        Item::Trajectories(_) => shape.pack(member, 0..shape.lanes(), rows),
        Item::Step => rows[..shape.member(member).len()].to_vec(),
    }
}

/// Log-probabilities, entropies and values of a member's steps.
fn packed_scores(
    engine: &DynEngine,
    heads: Heads,
    item: Item,
    shape: &RolloutShape,
    member: usize,
) -> [Vec<f32>; 3] {
    [Some(0), Some(1), heads.value_output()].map(|output| {
        output.map_or_else(Vec::new, |output| steps_of(item, shape, member, engine.output(member, output)))
    })
}

fn borrowed([log_prob, entropy, value]: &[Vec<f32>; 3]) -> Scores<'_, f32> {
    Scores { log_prob, entropy, value }
}

/// What an engine's outputs say.
fn scores_of<'a>(outputs: &[&'a [f32]], heads: Heads) -> Scores<'a, f32> {
    let value = heads.value_output().map_or(&[][..], |output| outputs[output]);
    Scores { log_prob: outputs[0], entropy: outputs[1], value }
}

/// Where an engine wants the cotangents.
fn cotangents_of<'a>(wanted: &'a mut [&mut [f32]], heads: Heads) -> Cotangents<'a, f32> {
    let mut wanted = wanted.iter_mut().map(|wanted| &mut **wanted);
    let (log_prob, entropy) = (wanted.next().unwrap_or_default(), wanted.next().unwrap_or_default());
    // Log-prob and entropy are the first two outputs.
    let value = heads.value_output().and_then(|output| wanted.nth(output - 2)).unwrap_or_default();
    Cotangents { log_prob, entropy, value }
}

/// Asks the loss about trajectories that do not fill the rows of a block. Rows behind an end get no cotangent.
fn pull_ragged(
    shape: &RolloutShape,
    span: Span,
    scores: Scores<'_, f32>,
    wanted: Cotangents<'_, f32>,
    loss: &Loss<'_, f32>,
) {
    let (member, lanes): (usize, Range<usize>) = (span.member, span.items.clone());
    let packed =
        [scores.log_prob, scores.entropy, scores.value].map(|rows| shape.pack(member, lanes.clone(), rows));
    let mut cotangents = packed.each_ref().map(|steps| vec![0.0; steps.len()]);
    let [log_prob, entropy, value] = &mut cotangents;
    loss(span, borrowed(&packed), Cotangents { log_prob, entropy, value });
    for (to, from) in [wanted.log_prob, wanted.entropy, wanted.value].into_iter().zip(&cotangents) {
        shape.pad(member, lanes.clone(), from, 0.0, to);
    }
}

/// Fills the uniforms of some lanes of every member, `[member, lane, horizon]`; none where nothing is drawn.
fn fill_uniforms(
    seeds: &[u64],
    request: RolloutRequest,
    lanes: usize,
    horizon: usize,
    uniforms: &mut Vec<f64>,
) {
    uniforms.resize(if request.greedy { 0 } else { seeds.len() * lanes * horizon }, 0.0);
    uniforms.par_chunks_mut(horizon).enumerate().with_min_len(64).for_each(|(lane, uniforms)| {
        let key = Key::new(seeds[lane / lanes], request.purpose).iteration(request.iteration as u64);
        let mut stream = key.lane((request.first + lane % lanes) as u64).open();
        uniforms.iter_mut().for_each(|uniform| *uniform = stream.uniform());
    });
}
