//! The best schedule that a policy over graphs finds for one instance.
//!
//! The ways are those of `decoding.rs`, with open pairs as choices. The least violation wins, then the least makespan, then the one that was tried first. This file must not know training.

use crate::Error;
use crate::decoding::{Beam, Choice, Decoded, Decoding};
use crate::graph::{Asked, GraphPolicy, GraphScratch};
use crate::policy::MakeEngine;
use niwaki_tasks::{GraphLanes, GraphSizes, GraphTask, Outcome};
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Schedules that are built together.
const BATCH: usize = 128;

/// Most threads that take steps side by side where they wait for a device, which they do awake; elsewhere as many as there are.
const THREADS: usize = 16;

/// Schedules that are worth a thread.
const ENOUGH: usize = 6;

/// Groups of a thread that would wait for a device (double buffering): while one is looked at there, it shows another.
const IN_TURN: usize = 2;

/// A policy with its parameters on a device, which schedules one shop after the other.
#[derive(Debug)]
pub struct Dispatcher {
    policy: GraphPolicy,
    /// Some for each thread that builds schedules.
    scratches: Vec<GraphScratch>,
    /// How many.
    in_turn: usize,
}

impl Dispatcher {
    /// A policy with such parameters, for about so many schedules side by side; `make` makes an engine with one member.
    ///
    /// # Errors
    /// If there are not as many parameters as the policy has, or the device fails.
    pub fn new(
        policy: GraphPolicy,
        parameters: &[f32],
        lanes: usize,
        make: &MakeEngine,
    ) -> Result<Self, Error> {
        let mut scratches = vec![policy.ready(parameters, make)?];
        let (most, in_turn) = if scratches[0].waits() { (THREADS, IN_TURN) } else { (usize::MAX, 1) };
        let threads = most.min(rayon::current_num_threads()).min(lanes / ENOUGH).max(1);
        while scratches.len() < (threads * in_turn).min(lanes.max(1)) {
            scratches.push(policy.ready(parameters, make)?);
        }
        Ok(Self { policy, scratches, in_turn })
    }

    /// The sizes that it has room for.
    #[must_use]
    pub const fn sizes(&self) -> GraphSizes {
        self.policy.sizes
    }

    /// Dispatches the first instance of a task, whose shop is of these sizes or has fewer operations; `tick` is told of the steps of constructions as they are taken, in all
    /// `(1 + starts + samples + beam) · operations`.
    ///
    /// # Errors
    /// If the shop is of other sizes, a log-probability is not a number, or the device fails.
    pub fn dispatch(
        &mut self,
        task: &GraphTask,
        how: Decoding,
        tick: &mut (dyn FnMut(usize) + Send),
    ) -> Result<Decoded, Error> {
        let (own, shop) = (self.sizes(), task.sizes());
        if shop.operations > own.operations || (GraphSizes { operations: own.operations, ..shop }) != own {
            return Err(Error::Unready);
        }
        let first = task.begin(&[0])?;
        let mut ways = how.ways(first.open(0).map(|start| start as i32));
        let Self { policy, scratches, in_turn } = self;
        let mut search = Search { policy, scratches, in_turn: *in_turn, task, steps: first.longest(), tick };
        let mut best = Decoded::nothing();
        for batch in ways.chunks_mut(BATCH) {
            search.roll(batch, &mut best)?;
        }
        if how.beam > 0 {
            search.beam(how.beam, &mut best)?;
        }
        Ok(best)
    }
}

/// Ways that are built together, with their engine.
struct Group<'a> {
    ways: &'a mut [(&'static str, Choice)],
    scratch: &'a mut GraphScratch,
}

/// What all ways share.
struct Search<'a> {
    policy: &'a GraphPolicy,
    scratches: &'a mut [GraphScratch],
    /// Groups of a thread.
    in_turn: usize,
    task: &'a GraphTask,
    /// Of a whole construction.
    steps: usize,
    tick: &'a mut (dyn FnMut(usize) + Send),
}

impl Search<'_> {
    /// Builds one schedule for each way.
    fn roll(&mut self, ways: &mut [(&'static str, Choice)], best: &mut Decoded) -> Result<(), Error> {
        let Self { policy, scratches, in_turn, task, steps, tick } = self;
        let (policy, task, steps, count) = (*policy, *task, *steps, ways.len());
        let most = count.div_ceil(scratches.len());
        let groups = ways.chunks_mut(most).zip(scratches.iter_mut());
        let mut groups: Vec<_> = groups.map(|(ways, scratch)| Group { ways, scratch }).collect();
        let tick = Mutex::new(tick);
        let build = |(place, groups): (usize, &mut [Group<'_>])| {
            // The other threads are about as far as the first.
            let tell = || tick.lock().unwrap_or_else(PoisonError::into_inner)(count);
            build(policy, groups, task, steps, &mut || {
                if place == 0 {
                    tell()
                }
            })
        };
        let threads = groups.par_chunks_mut(*in_turn).enumerate();
        let built: Vec<Result<Vec<GraphLanes>, Error>> = threads.with_max_len(1).map(build).collect();
        let mut names = ways.iter().map(|(name, _)| *name);
        for building in built {
            for building in building? {
                for (lane, name) in (0..building.count()).zip(&mut names) {
                    keep(best, &building, lane, name);
                }
            }
        }
        Ok(())
    }

    /// Keeps the `width` likeliest beginnings at every step.
    fn beam(&mut self, width: usize, best: &mut Decoded) -> Result<(), Error> {
        let (policy, task) = (self.policy, self.task);
        policy.resize(&mut self.scratches[0], width)?;
        let (mut beam, pairs) = (Beam::new(width), self.policy.sizes.pairs());
        for step in 0..self.steps {
            let building = self.rebuild(width, step, |lane, at| beam.row(lane)[at])?;
            let asked = policy.ask_next(&mut self.scratches[0], task, &building)?;
            let log_probs = hear(policy, &self.scratches[0], &building, asked)?;
            beam.lengthen(|lane| {
                let row = (0..).zip(&log_probs[lane * pairs..(lane + 1) * pairs]);
                row.filter(|(_, log_prob)| log_prob.is_finite()).map(|(pair, &log_prob)| (pair, log_prob))
            });
            (self.tick)(width);
        }
        let building = self.rebuild(beam.len(), self.steps, |lane, at| beam.row(lane)[at])?;
        (0..beam.len()).for_each(|lane| keep(best, &building, lane, "beam"));
        Ok(())
    }

    /// Lanes that have taken given pairs.
    fn rebuild(
        &self,
        lanes: usize,
        steps: usize,
        choice: impl Fn(usize, usize) -> i32,
    ) -> Result<GraphLanes, Error> {
        let mut building = self.task.begin(&vec![0; lanes])?;
        for step in 0..steps {
            let choices: Vec<i32> = (0..lanes).map(|lane| choice(lane, step)).collect();
            building.choose(&choices)?;
        }
        Ok(building)
    }
}

/// Builds one schedule for each way of some groups on the calling thread, which shows one group while others are looked at; `tick` is called
/// at every step.
fn build(
    policy: &GraphPolicy,
    groups: &mut [Group<'_>],
    task: &GraphTask,
    steps: usize,
    tick: &mut dyn FnMut(),
) -> Result<Vec<GraphLanes>, Error> {
    let mut built: Vec<(GraphLanes, Option<Asked>)> = Vec::new();
    for Group { ways, scratch } in groups.iter_mut() {
        scratch.move_here()?;
        policy.resize(scratch, ways.len())?;
        built.push((task.begin(&vec![0; ways.len()])?, None));
    }
    for step in 0..=steps {
        for (Group { ways, scratch }, (building, asked)) in groups.iter_mut().zip(&mut built) {
            if let Some(asked) = asked.take() {
                let log_probs = hear(policy, scratch, building, asked)?;
                let lanes = log_probs.chunks_exact(policy.sizes.pairs()).zip(ways.iter_mut());
                let take = |(log_probs, (_, way)): (&[f32], &mut (_, Choice))| way.take(step - 1, log_probs);
                building.choose(&lanes.map(take).collect::<Vec<i32>>())?;
            }
            if step < steps {
                *asked = Some(policy.ask_next(scratch, task, building)?);
            }
        }
        if step > 0 {
            tick();
        }
    }
    Ok(built.into_iter().map(|(building, _)| building).collect())
}

/// Log-probabilities of every lane's next pairs, `[lane, pair]`, as they were asked for.
fn hear(
    policy: &GraphPolicy,
    scratch: &GraphScratch,
    building: &GraphLanes,
    asked: Asked,
) -> Result<Vec<f32>, Error> {
    let log_probs = policy.hear_next(scratch, building, asked)?;
    // A lane that is complete has no open pair, and one that is not has a likeliest one.
    if log_probs.iter().any(|log_prob| log_prob.is_nan()) { Err(Error::NoNumber) } else { Ok(log_probs) }
}

/// Takes a complete lane where it is better than the best so far.
fn keep(best: &mut Decoded, building: &GraphLanes, lane: usize, way: &'static str) {
    let rank = |outcome: &Outcome| (outcome.violation, outcome.makespan);
    let (outcome, tried) = (building.outcome(lane), best.tried + 1);
    if rank(&outcome) < rank(&best.outcome) {
        *best = Decoded { schedule: building.schedule(lane), outcome, way, tried };
    }
    best.tried = tried;
}
