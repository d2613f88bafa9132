//! The view of a process that builds a solution by choosing one of a set of candidates per step.
//!
//! Owns what a set policy may know of a task: sizes, the candidates' features, which are open, the state in numbers,
//! how a finished construction turned out. Instances are numbered: those to learn from first, then those to be judged on.

use crate::{Error, Outcome};
use niwaki_shop::construct::JobOrder;
use niwaki_shop::{Bounds, Schedule};
use std::fmt;

/// One of `candidates` is chosen at each of `horizon` steps; instances differ in the candidates' features.
///
/// Paper: `sec:setting`
pub trait Construction: fmt::Debug + Send + Sync {
    /// Candidates of an instance.
    fn candidates(&self) -> usize;

    /// Steps of a construction: every candidate is chosen once.
    fn horizon(&self) -> usize {
        self.candidates()
    }

    /// Numbers that describe one candidate.
    fn features(&self) -> usize;

    /// Numbers that describe the state before a step.
    fn context(&self) -> usize;

    /// The instances' numbers and optima.
    fn numbers(&self) -> &Numbers;

    /// Instances to learn from: numbers `0..training`.
    fn training(&self) -> usize {
        self.numbers().training
    }

    /// Instances to be judged on: the numbers after those.
    fn validation(&self) -> usize {
        self.numbers().bounds.len() - self.numbers().training
    }

    /// What is known of each instance's optimum; the best known makespan counts as C*.
    fn bounds(&self) -> &[Bounds] {
        &self.numbers().bounds
    }

    /// Writes an instance's features.
    ///
    /// Shapes: `to [candidates, features]`
    fn describe(&self, instance: usize, to: &mut [f32]);

    /// The instances as lines of stations, where every candidate passes all stations in one order and the context is
    /// what a [`Stations`] says: a device can then build schedules by itself.
    fn stations(&self) -> Option<&Stations> {
        None
    }

    /// The instances as routes of operations, where candidates are those and the context is what a [`Routes`] says.
    fn routes(&self) -> Option<&Routes> {
        None
    }

    /// Empty constructions, one lane for each instance named.
    ///
    /// # Errors
    /// If there is no such instance.
    fn begin(&self, instances: &[u32]) -> Result<Box<dyn Building>, Error>;
}

/// How many instances are learned from, and what is known of the optimum of each.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// Instances to learn from; they come first.
    pub training: usize,
    /// `[instance]`
    pub bounds: Vec<Bounds>,
}

/// Instances as lines of stations; the state in numbers is when each station is done over `whole`, then how long after
/// the station before it over `unit`, and a schedule's makespan is when the last one is.
#[derive(Clone, Debug, Default)]
pub struct Stations {
    /// Stations.
    pub count: usize,
    /// `[instance, candidate, station]`
    pub times: Vec<i32>,
    /// `[instance]`
    pub whole: Vec<f32>,
    /// `[instance]`
    pub unit: Vec<f32>,
}

/// Instances as routes of operations, which start when their job and their machine are free, decided in some order; the
/// state in numbers is how long each machine, then each job, is still busy once something can start again, over `unit`,
/// then the machine that is decided.
#[derive(Clone, Debug)]
pub struct Routes {
    /// Machines.
    pub machines: usize,
    /// Jobs.
    pub jobs: usize,
    /// What is decided next.
    pub order: JobOrder,
    /// Machine, time and job of each operation, job after job: `[instance, candidate, 3]`
    pub steps: Vec<i32>,
    /// Where each job's operations begin, and the end: `[instance, job + 1]`
    pub starts: Vec<i32>,
    /// `[instance]`
    pub unit: Vec<f32>,
}

/// Lanes under construction.
pub trait Building: Send + Sync {
    /// Writes a lane's state.
    ///
    /// Shapes: `to [context]`
    fn context(&self, lane: usize, to: &mut [f32]);

    /// Writes which candidates a lane may choose, 1 or 0; none once it is complete.
    ///
    /// Shapes: `to [candidates]`
    fn open(&self, lane: usize, to: &mut [u8]);

    /// Takes one choice in every lane.
    ///
    /// # Errors
    /// If there is not one choice per lane, or one is closed.
    fn choose(&mut self, choices: &[i32]) -> Result<(), Error>;

    /// How a complete lane turned out.
    fn outcome(&self, lane: usize) -> Outcome;

    /// What a lane has scheduled so far.
    fn schedule(&self, lane: usize) -> Schedule;
}
