//! The best schedule that a trained pointer finds for one instance.
//!
//! The construction with the fewest late jobs wins, then the one with the least makespan, then the one
//! that was tried first. This file must not know training.

use super::program::PointerPolicy;
use super::sampler::Sampler;
use crate::Error;
use crate::decoding::{Beam, Choice, Decoded, Decoding};
use crate::policy::MakeEngine;
use niwaki_nn::DynEngine;
use niwaki_tasks::{Building, Construction};

/// Constructions that are decoded together.
const BATCH: usize = 256;

/// Decodes an instance of a task with the parameters of the first member of an engine; `make` makes an engine with one
/// member for a program and its outputs, `tick` is told of the steps of constructions as they are taken, in all
/// `(1 + starts + samples + beam) · horizon`.
///
/// # Errors
/// If there is no such instance, or the device fails.
pub fn decode(
    policy: &PointerPolicy,
    parameters: &DynEngine,
    task: &dyn Construction,
    instance: u32,
    how: Decoding,
    make: &MakeEngine,
    tick: &mut dyn FnMut(usize),
) -> Result<Decoded, Error> {
    let mut features = vec![0.0; task.candidates() * task.features()];
    // Refuses an instance that does not exist before its features are read.
    let first = task.begin(&[instance])?;
    task.describe(instance as usize, &mut features);
    let mut open = vec![0; task.candidates()];
    first.open(0, &mut open);
    let starts = (0..).zip(&open).filter(|(_, open)| **open == 1);
    let mut ways = how.ways(starts.map(|(start, _)| start));
    let mut search = Search { policy, parameters, task, instance, features, make, tick };
    let mut best = Decoded::nothing();
    let mut keep = |found: Decoded| {
        let tried = best.tried + found.tried;
        let rank = |decoded: &Decoded| (decoded.outcome.late, decoded.outcome.makespan);
        if rank(&found) < rank(&best) {
            best = found;
        }
        best.tried = tried;
    };
    for batch in ways.chunks_mut(BATCH) {
        search.roll(batch, &mut keep)?;
    }
    if how.beam > 0 {
        search.beam(how.beam, &mut keep)?;
    }
    Ok(best)
}

/// What all ways share.
struct Search<'a> {
    policy: &'a PointerPolicy,
    parameters: &'a DynEngine,
    task: &'a dyn Construction,
    instance: u32,
    features: Vec<f32>,
    make: &'a MakeEngine,
    tick: &'a mut dyn FnMut(usize),
}

impl Search<'_> {
    /// A sampler of so many rows that has encoded the instance.
    fn sampler(&self, rows: usize) -> Result<Sampler, Error> {
        let mut sampler = Sampler::new(self.policy, rows, self.make)?;
        sampler.encode(self.parameters, &self.features, 1)?;
        Ok(sampler)
    }

    /// Log-probabilities of every lane's next choices, `[lane, candidate]`, and which are open.
    fn look(
        &self,
        sampler: &mut Sampler,
        building: &dyn Building,
        last: &[i32],
    ) -> Result<(Vec<f32>, Vec<u8>), Error> {
        let (width, candidates) = (self.task.context(), self.task.candidates());
        let (mut context, mut open) = (vec![0.0; last.len() * width], vec![0; last.len() * candidates]);
        for lane in 0..last.len() {
            building.context(lane, &mut context[lane * width..(lane + 1) * width]);
            building.open(lane, &mut open[lane * candidates..(lane + 1) * candidates]);
        }
        Ok((sampler.look_ahead(last, &context, &open)?, open))
    }

    /// Builds one construction for each way.
    fn roll(
        &mut self,
        ways: &mut [(&'static str, Choice)],
        keep: &mut dyn FnMut(Decoded),
    ) -> Result<(), Error> {
        let mut sampler = self.sampler(ways.len())?;
        let mut building = self.task.begin(&vec![self.instance; ways.len()])?;
        let mut choices = vec![self.task.candidates() as i32; ways.len()];
        for step in 0..self.task.horizon() {
            let (log_probs, _) = self.look(&mut sampler, building.as_ref(), &choices)?;
            let lanes = log_probs.chunks_exact(self.task.candidates());
            for ((choice, (_, way)), log_probs) in choices.iter_mut().zip(ways.iter_mut()).zip(lanes) {
                *choice = way.take(step, log_probs);
            }
            building.choose(&choices)?;
            (self.tick)(ways.len());
        }
        for (lane, (way, _)) in ways.iter().enumerate() {
            keep(finished(building.as_ref(), lane, way));
        }
        Ok(())
    }

    /// Keeps the `width` likeliest beginnings at every step. The process is a tree, so no two of them are the same state.
    fn beam(&mut self, width: usize, keep: &mut dyn FnMut(Decoded)) -> Result<(), Error> {
        let (candidates, horizon) = (self.task.candidates(), self.task.horizon());
        let mut sampler = self.sampler(width)?;
        let mut beam = Beam::new(width);
        for step in 0..horizon {
            let building = self.rebuild(width, step, |lane, at| beam.row(lane)[at])?;
            let last: Vec<i32> =
                (0..width).map(|lane| beam.row(lane).last().copied().unwrap_or(candidates as i32)).collect();
            let (log_probs, open) = self.look(&mut sampler, building.as_ref(), &last)?;
            beam.lengthen(|lane| {
                let row = lane * candidates..(lane + 1) * candidates;
                let choices = (0..).zip(&log_probs[row.clone()]).zip(&open[row]);
                choices.filter(|(_, open)| **open == 1).map(|((choice, &log_prob), _)| (choice, log_prob))
            });
            (self.tick)(width);
        }
        let building = self.rebuild(beam.len(), horizon, |lane, at| beam.row(lane)[at])?;
        for lane in 0..beam.len() {
            keep(finished(building.as_ref(), lane, "beam"));
        }
        Ok(())
    }

    /// Lanes that have taken given choices.
    fn rebuild(
        &self,
        lanes: usize,
        steps: usize,
        choice: impl Fn(usize, usize) -> i32,
    ) -> Result<Box<dyn Building>, Error> {
        let mut building = self.task.begin(&vec![self.instance; lanes])?;
        for step in 0..steps {
            let choices: Vec<i32> = (0..lanes).map(|lane| choice(lane, step)).collect();
            building.choose(&choices)?;
        }
        Ok(building)
    }
}

fn finished(building: &dyn Building, lane: usize, way: &'static str) -> Decoded {
    Decoded { schedule: building.schedule(lane), outcome: building.outcome(lane), way, tried: 1 }
}
