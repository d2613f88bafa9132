//! Pointer policies over constructions, on any engine.
//!
//! Each iteration draws its instances from those to learn from, every group of lanes one; validation decodes greedily
//! on all that are held out. Members may be paid differently for the same schedules.

use super::neural::{keep, put_back};
use super::{Games, Loss, Play, Player, Seen, Wanted};
use crate::Error;
use niwaki_nn::{Checkpoint, Engine, Graph, Layout, Optimiser, Span, Value, initialise};
use niwaki_policies::{Built, Draw, PointerPolicy, PointerShape, Sampler};
use niwaki_stream::Key;
use niwaki_tasks::{Construction, Payment};
use rayon::prelude::*;
use std::sync::Arc;

/// A population of pointer policies on one engine.
pub struct Pointer<E> {
    policy: PointerPolicy,
    task: Arc<dyn Construction>,
    /// One per member, as are the payments.
    seeds: Vec<u64>,
    payments: Vec<Payment>,
    engine: E,
    /// The policies that the run began with, where a penalty asks for them.
    reference: Option<E>,
    /// Draws whole groups where the device leaves that to its caller.
    sampler: Option<Sampler<E>>,
    /// One trajectory per instance.
    single: Single<E>,
    built: Built,
    uniforms: Vec<f64>,
    make: Make<E>,
}

/// Makes an engine for a program and its outputs.
pub(super) type Make<E> = Box<dyn Fn(&Graph, &[Value]) -> niwaki_nn::Result<E>>;

/// What plays one trajectory per instance, with the parameters of the group's engine.
struct Single<E> {
    policy: PointerPolicy,
    engine: E,
    sampler: Option<Sampler<E>>,
}

/// A sampler, made where there is none yet.
fn sampler<'a, E: Engine<Scalar = f32>>(
    place: &'a mut Option<Sampler<E>>,
    policy: &PointerPolicy,
    make: &Make<E>,
) -> Result<&'a mut Sampler<E>, Error> {
    match place {
        Some(sampler) => Ok(sampler),
        None => Ok(place.insert(Sampler::new(policy, policy.shape.group, make)?)),
    }
}

impl<E: Engine<Scalar = f32>> Pointer<E> {
    /// A population with weights from its seeds.
    ///
    /// # Errors
    /// If the device fails.
    pub fn new(
        policy: PointerPolicy,
        task: Arc<dyn Construction>,
        seeds: Vec<u64>,
        payments: Vec<Payment>,
        reference: bool,
        make: Make<E>,
    ) -> Result<Self, Error> {
        let own = || make(&policy.graph, &policy.outputs());
        let (mut playing, mut reference) = (own()?, reference.then(own).transpose()?);
        let weights: Vec<Vec<f32>> =
            seeds.par_iter().map(|&seed| initialise(policy.graph.layout(), seed)).collect();
        for (member, weights) in weights.iter().enumerate() {
            playing.set_parameters(member, weights)?;
            if let Some(reference) = &mut reference {
                reference.set_parameters(member, weights)?;
            }
        }
        let alone = PointerShape { group: 1, ..policy.shape }.policy()?;
        let engine = make(&alone.graph, &alone.outputs())?;
        let single = Single { policy: alone, engine, sampler: None };
        let (engine, built, uniforms) = (playing, Built::default(), Vec::new());
        Ok(Self {
            policy,
            task,
            seeds,
            payments,
            engine,
            reference,
            sampler: None,
            single,
            built,
            uniforms,
            make,
        })
    }

    /// Which instances a play is about, `[member, instance]`.
    fn instances(&self, play: Play, count: usize) -> Vec<u32> {
        let (training, validation) = (self.task.training(), self.task.validation());
        let draw = |&seed: &u64| {
            // Not the purpose "instances", which draws the pool itself.
            let key = Key::new(seed, if play.trial { "trial instances" } else { "rollout instances" });
            (0..count).map(move |group| {
                let lane = (play.first / self.policy.shape.group + group) as u64;
                let mut stream = key.iteration(play.iteration as u64).lane(lane).open();
                if play.trial {
                    (training + stream.below(validation as u64) as usize) as u32
                } else {
                    stream.below(training as u64) as u32
                }
            })
        };
        self.seeds.iter().flat_map(draw).collect()
    }

    /// What a member's trajectories earned, for as many instances as were built.
    fn pay(&self, member: usize, instances: &[u32], rows: usize, to: &mut [f64]) {
        let (lanes, bounds) = (to.len(), self.task.bounds());
        let outcomes = &self.built.outcome[member * lanes..(member + 1) * lanes];
        let instances = &instances[member * lanes / rows..(member + 1) * lanes / rows];
        for (lane, (to, &outcome)) in to.iter_mut().zip(outcomes).enumerate() {
            let optimum = bounds[instances[lane / rows] as usize].upper;
            *to = self.payments[member].pay(outcome, optimum);
        }
    }

    fn built(&self, games: &Games) -> Result<Built, Error> {
        let task = self.task.as_ref();
        Ok(Built::replay(task, &games.instances, self.policy.shape.group, &games.actions)?)
    }
}

impl<E: Engine<Scalar = f32>> Player for Pointer<E> {
    type Scalar = f32;

    fn members(&self) -> usize {
        self.seeds.len()
    }

    fn play(&mut self, play: Play, lanes: usize, games: &mut Games) -> Result<(), Error> {
        let (group, horizon, members) = (self.policy.shape.group, self.task.horizon(), self.seeds.len());
        games.instances = self.instances(play, lanes / group);
        let Self { policy, task, seeds, engine, built, make, uniforms, .. } = self;
        super::uniforms(seeds, play, lanes, horizon, uniforms);
        let how = if play.greedy { Draw::Greedy } else { Draw::Sampled(uniforms) };
        if !policy.construct(engine, task.as_ref(), &games.instances, how, built)? {
            let sampler = sampler(&mut self.sampler, policy, make)?;
            sampler.draw(engine, task.as_ref(), &games.instances, how, built)?;
            policy.load(engine, built)?;
        }
        (games.lanes, games.horizon, games.vocab) = (lanes, horizon, self.task.candidates());
        std::mem::swap(&mut games.actions, &mut self.built.actions);
        games.open.clear();
        games.reward.resize(members * lanes, 0.0);
        for (member, to) in games.reward.chunks_exact_mut(lanes).enumerate() {
            self.pay(member, &games.instances, group, to);
        }
        Ok(())
    }

    fn likeliest(&mut self, _play: Play, _lanes: usize, games: &mut Games) -> Result<Vec<f64>, Error> {
        let (first, count) = (self.task.training() as u32, self.task.validation());
        let all: Vec<u32> = (0..self.seeds.len()).flat_map(|_| first..first + count as u32).collect();
        let Self { task, engine, single, built, make, .. } = self;
        let Single { policy, engine: alone, sampler: place } = single;
        alone.copy_parameters(engine)?;
        if !policy.construct(alone, task.as_ref(), &all, Draw::Greedy, built)? {
            sampler(place, policy, make)?.draw(alone, task.as_ref(), &all, Draw::Greedy, built)?;
        }
        games.reward.resize(count, 0.0);
        let means = (0..self.seeds.len()).map(|member| {
            self.pay(member, &all, 1, &mut games.reward);
            games.reward.iter().sum::<f64>() / count as f64
        });
        Ok(means.collect())
    }

    fn load(&mut self, games: &Games) -> Result<(), Error> {
        let built = self.built(games)?;
        Ok(self.policy.load(&mut self.engine, &built)?)
    }

    fn score(&mut self) -> Result<(), Error> {
        Ok(self.engine.forward()?)
    }

    fn pull_back(&mut self, loss: &Loss<'_, f32>) -> Result<(), Error> {
        let group = self.policy.shape.group;
        let surrogate = |span: Span, seen: &[&[f32]], wanted: &mut [&mut [f32]]| {
            let [log_prob, entropy] = wanted else { return };
            let shown = Seen { log_prob: seen[0], entropy: seen[1], value: &[] };
            // An item is a whole group of lanes.
            let lanes = span.items.start * group..span.items.end * group;
            let span = Span { member: span.member, items: lanes };
            loss(span, shown, Wanted { log_prob, entropy, value: &mut [] });
        };
        Ok(self.engine.pull_back(&surrogate)?)
    }

    fn seen(&self, member: usize) -> Seen<'_, f32> {
        let output = |place: usize| self.engine.output(member, place);
        Seen { log_prob: output(0), entropy: output(1), value: &[] }
    }

    fn reference(&mut self, games: &Games) -> Result<Vec<f32>, Error> {
        let built = self.built(games)?;
        let Some(reference) = &mut self.reference else { return Err(Error::Mixed) };
        self.policy.load(reference, &built)?;
        reference.forward()?;
        Ok((0..self.seeds.len()).flat_map(|member| reference.output(member, 0).to_vec()).collect())
    }

    fn step(&mut self, optimiser: &Optimiser, rates: &[f64]) -> Result<Vec<f64>, Error> {
        Ok(self.engine.step(optimiser, rates)?)
    }

    fn keep(&self, member: usize) -> Result<Checkpoint, Error> {
        keep(&self.engine, member)
    }

    fn put_back(&mut self, member: usize, kept: &Checkpoint) -> Result<(), Error> {
        put_back(&mut self.engine, member, kept)
    }

    fn layout(&self) -> &Layout {
        self.policy.graph.layout()
    }
}
