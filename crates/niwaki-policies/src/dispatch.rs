//! The best schedule that a policy over graphs finds for one instance.
//!
//! The ways are those of `decoding.rs`, with open pairs as choices. The least violation wins, then the least makespan, then the one that was tried first. This file must not know training.

use crate::Error;
use crate::decoding::{Beam, Choice, Decoded, Decoding};
use crate::graph::{GraphPolicy, GraphScratch};
use crate::policy::{MakeEngine, Policy};
use niwaki_nn::Engine;
use niwaki_tasks::{GraphLanes, GraphTask, Outcome};

/// Schedules that are built together.
const BATCH: usize = 128;

/// Dispatches the first instance of a task with such parameters; `make` makes an engine with one member, `tick` is
/// told of the steps of constructions as they are taken, in all `(1 + starts + samples + beam) · operations`.
///
/// # Errors
/// If a log-probability is no number, or the device fails.
pub fn dispatch<E: Engine<Scalar = f32>>(
    policy: &GraphPolicy,
    parameters: &[f32],
    make: &MakeEngine<E>,
    task: &GraphTask,
    how: Decoding,
    tick: &mut dyn FnMut(usize),
) -> Result<Decoded, Error> {
    let first = task.begin(&[0])?;
    let mut ways = how.ways(first.open(0).map(|start| start as i32));
    let mut search = Search { policy, parameters, make, task, scratch: GraphScratch::default(), tick };
    let mut best = Decoded::nothing();
    for batch in ways.chunks_mut(BATCH) {
        search.roll(batch, &mut best)?;
    }
    if how.beam > 0 {
        search.beam(how.beam, &mut best)?;
    }
    Ok(best)
}

/// What all ways share.
struct Search<'a, E> {
    policy: &'a GraphPolicy,
    parameters: &'a [f32],
    make: &'a MakeEngine<E>,
    task: &'a GraphTask,
    scratch: GraphScratch<E>,
    tick: &'a mut dyn FnMut(usize),
}

impl<E: Engine<Scalar = f32>> Search<'_, E> {
    /// Makes ready for so many lanes.
    fn begin(&mut self, lanes: usize) -> Result<(), Error> {
        let engine = self.policy.begin(&mut self.scratch, self.make, lanes)?;
        Ok(engine.set_parameters(0, self.parameters)?)
    }

    /// Log-probabilities of every lane's next pairs, `[lane, pair]`.
    fn look(&mut self, building: &GraphLanes) -> Result<Vec<f32>, Error> {
        let log_probs = self.policy.next_log_probs(&mut self.scratch, self.task, building)?;
        // A lane that is complete has no open pair, and one that is not has a likeliest one.
        if log_probs.iter().any(|log_prob| log_prob.is_nan()) {
            return Err(Error::NoNumber);
        }
        Ok(log_probs)
    }

    /// Builds one schedule for each way.
    fn roll(&mut self, ways: &mut [(&'static str, Choice)], best: &mut Decoded) -> Result<(), Error> {
        self.begin(ways.len())?;
        let mut building = self.task.begin(&vec![0; ways.len()])?;
        for step in 0..self.policy.horizon() {
            let log_probs = self.look(&building)?;
            let lanes = log_probs.chunks_exact(self.policy.sizes.pairs()).zip(ways.iter_mut());
            let choices: Vec<i32> = lanes.map(|(log_probs, (_, way))| way.take(step, log_probs)).collect();
            building.choose(&choices)?;
            (self.tick)(ways.len());
        }
        (0..ways.len()).for_each(|lane| keep(best, &building, lane, ways[lane].0));
        Ok(())
    }

    /// Keeps the `width` likeliest beginnings at every step.
    fn beam(&mut self, width: usize, best: &mut Decoded) -> Result<(), Error> {
        self.begin(width)?;
        let (mut beam, pairs) = (Beam::new(width), self.policy.sizes.pairs());
        for step in 0..self.policy.horizon() {
            let building = self.rebuild(width, step, |lane, at| beam.row(lane)[at])?;
            let log_probs = self.look(&building)?;
            beam.lengthen(|lane| {
                let row = (0..).zip(&log_probs[lane * pairs..(lane + 1) * pairs]);
                row.filter(|(_, log_prob)| log_prob.is_finite()).map(|(pair, &log_prob)| (pair, log_prob))
            });
            (self.tick)(width);
        }
        let building = self.rebuild(beam.len(), self.policy.horizon(), |lane, at| beam.row(lane)[at])?;
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

/// Takes a complete lane where it is better than the best so far.
fn keep(best: &mut Decoded, building: &GraphLanes, lane: usize, way: &'static str) {
    let rank = |outcome: &Outcome| (outcome.violation, outcome.makespan);
    let (outcome, tried) = (building.outcome(lane), best.tried + 1);
    if rank(&outcome) < rank(&best.outcome) {
        *best = Decoded { schedule: building.schedule(lane), outcome, way, tried };
    }
    best.tried = tried;
}
