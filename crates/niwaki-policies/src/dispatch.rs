//! The best schedule that a policy over graphs finds for one instance.
//!
//! The ways are those of `decoding.rs`, with open pairs as choices. The least violation wins, then the least makespan, then the one that was tried first. This file must not know training.

use crate::Error;
use crate::decoding::{Beam, Choice, Decoded, Decoding};
use crate::graph::{GraphPolicy, GraphScratch};
use crate::policy::MakeEngine;
use niwaki_nn::Engine;
use niwaki_tasks::{GraphLanes, GraphSizes, GraphTask, Outcome};
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Schedules that are built together.
const BATCH: usize = 128;

/// Most threads that take steps side by side where they wait for a device, which they do awake; elsewhere as many as there are.
const THREADS: usize = 16;

/// Schedules that are worth a thread.
const ENOUGH: usize = 6;

/// A policy with its parameters on a device, which schedules one shop after the other.
#[derive(Debug)]
pub struct Dispatcher<E> {
    policy: GraphPolicy,
    /// One for each thread that builds schedules: while one waits, for the device or for a few steps that are taken one by one, others go on.
    scratches: Vec<GraphScratch<E>>,
}

impl<E: Engine<Scalar = f32> + Send> Dispatcher<E> {
    /// A policy with such parameters, for about so many schedules side by side; `make` makes an engine with one member.
    ///
    /// # Errors
    /// If there are not as many parameters as the policy has, or the device fails.
    pub fn new(
        policy: GraphPolicy,
        parameters: &[f32],
        lanes: usize,
        make: &MakeEngine<E>,
    ) -> Result<Self, Error> {
        let mut scratches = vec![policy.ready(parameters, make)?];
        let most = if scratches[0].waits() { THREADS } else { usize::MAX }.min(rayon::current_num_threads());
        while scratches.len() < most.min(lanes / ENOUGH) {
            scratches.push(policy.ready(parameters, make)?);
        }
        Ok(Self { policy, scratches })
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
    /// If the shop is of other sizes, a log-probability is no number, or the device fails.
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
        let Self { policy, scratches } = self;
        let mut search = Search { policy, scratches, task, steps: first.longest(), tick };
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

/// Ways that one thread builds, with its engine.
type Group<'a, E> = (&'a mut [(&'static str, Choice)], &'a mut GraphScratch<E>);

/// What all ways share.
struct Search<'a, E> {
    policy: &'a GraphPolicy,
    scratches: &'a mut [GraphScratch<E>],
    task: &'a GraphTask,
    /// Of a whole construction.
    steps: usize,
    tick: &'a mut (dyn FnMut(usize) + Send),
}

impl<E: Engine<Scalar = f32> + Send> Search<'_, E> {
    /// Builds one schedule for each way.
    fn roll(&mut self, ways: &mut [(&'static str, Choice)], best: &mut Decoded) -> Result<(), Error> {
        let Self { policy, scratches, task, steps, tick } = self;
        let (policy, task, steps, count) = (*policy, *task, *steps, ways.len());
        let most = count.div_ceil(scratches.len());
        let groups: Vec<_> = ways.chunks_mut(most).zip(scratches.iter_mut()).enumerate().collect();
        let tick = Mutex::new(tick);
        let build = |(place, (ways, scratch)): (usize, Group<'_, E>)| {
            // The other groups are about as far as the first.
            let tell = || tick.lock().unwrap_or_else(PoisonError::into_inner)(count);
            scratch.move_here()?;
            build(policy, scratch, task, steps, ways, &mut || {
                if place == 0 {
                    tell()
                }
            })
        };
        let built: Vec<Result<GraphLanes, Error>> =
            groups.into_par_iter().with_max_len(1).map(build).collect();
        let mut names = ways.iter().map(|(name, _)| *name);
        for building in built {
            let building = building?;
            for (lane, name) in (0..building.count()).zip(&mut names) {
                keep(best, &building, lane, name);
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
            let log_probs = look(policy, &mut self.scratches[0], task, &building)?;
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

/// Builds one schedule for each way on the calling thread; `tick` is called at every step.
fn build<E: Engine<Scalar = f32>>(
    policy: &GraphPolicy,
    scratch: &mut GraphScratch<E>,
    task: &GraphTask,
    steps: usize,
    ways: &mut [(&'static str, Choice)],
    tick: &mut dyn FnMut(),
) -> Result<GraphLanes, Error> {
    policy.resize(scratch, ways.len())?;
    let mut building = task.begin(&vec![0; ways.len()])?;
    for step in 0..steps {
        let log_probs = look(policy, scratch, task, &building)?;
        let lanes = log_probs.chunks_exact(policy.sizes.pairs()).zip(ways.iter_mut());
        let choices: Vec<i32> = lanes.map(|(log_probs, (_, way))| way.take(step, log_probs)).collect();
        building.choose(&choices)?;
        tick();
    }
    Ok(building)
}

/// Log-probabilities of every lane's next pairs, `[lane, pair]`.
fn look<E: Engine<Scalar = f32>>(
    policy: &GraphPolicy,
    scratch: &mut GraphScratch<E>,
    task: &GraphTask,
    building: &GraphLanes,
) -> Result<Vec<f32>, Error> {
    let log_probs = policy.next_log_probs(scratch, task, building)?;
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
