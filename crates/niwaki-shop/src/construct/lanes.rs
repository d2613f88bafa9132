//! What all lanes share.

use super::mask;
use crate::{Error, Result, Schedule};

/// Who chooses the slot that is filled next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A fixed rule: each partial schedule is built in exactly one way, and the process is a tree.
    Canonical,
    /// The action: partial schedules are built in many ways, and the process is a DAG.
    Free,
}

/// Which schedules are built, and who chooses the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Build {
    NonDelay(Order),
    /// Giffler and Thompson: the machine on which an operation can end earliest decides among the jobs that can start
    /// on it before that end.
    Active,
}

/// A batch of schedules under construction.
pub trait Lanes {
    /// Number of lanes.
    fn lanes(&self) -> usize;

    /// Number of actions, legal or not: the width of a mask in bits.
    fn actions(&self) -> usize;

    /// The most decisions that a lane takes.
    fn horizon(&self) -> usize;

    /// Starts every lane afresh on an instance of the pool: `instances[lane]`.
    ///
    /// # Errors
    /// If there is not one number per lane, or the pool has no such instance; nothing changes then.
    fn reset(&mut self, instances: &[u32]) -> Result<()>;

    /// The legal actions of a lane as bits, 64 to a word; none once the lane is done.
    fn legal(&self, lane: usize) -> &[u64];

    /// Takes one action in every lane: `actions[lane]`. Lanes that are done ignore theirs.
    ///
    /// # Errors
    /// If there is not one action per lane, or one is not legal; the lanes before it have moved then.
    fn step(&mut self, actions: &[u32]) -> Result<()> {
        if actions.len() != self.lanes() {
            return Err(Error::Choice(format!(
                "step: expected {} actions, one per lane, got {}",
                self.lanes(),
                actions.len()
            )));
        }
        for (lane, &action) in actions.iter().enumerate() {
            if self.done(lane) {
                continue;
            }
            if !mask::allows(self.legal(lane), action) {
                return Err(illegal(lane, action));
            }
            self.act(lane, action);
        }
        Ok(())
    }

    /// Takes a legal action in one lane that is not done; [`Self::step`] is the checked way.
    fn act(&mut self, lane: usize, action: u32);

    /// Whether a lane's schedule is complete.
    fn done(&self, lane: usize) -> bool;

    /// The makespan of what a lane has scheduled so far.
    fn makespan(&self, lane: usize) -> u32;

    /// What a lane has scheduled so far.
    fn schedule(&self, lane: usize) -> Schedule;

    /// Appends what fills each slot of a lane: equal for two lanes exactly if their partial solutions are equal.
    fn write_state(&self, lane: usize, state: &mut Vec<u32>);
}

/// Checks the numbers given to a reset.
pub(super) fn check_reset(instances: &[u32], lanes: usize, pool: usize) -> Result<()> {
    if instances.len() != lanes {
        return Err(Error::Choice(format!(
            "reset: expected {lanes} instances, one per lane, got {}",
            instances.len()
        )));
    }
    match instances.iter().position(|&instance| instance as usize >= pool) {
        Some(lane) => Err(Error::Choice(format!(
            "reset: lane {lane}: expected an instance below {pool}, got {}",
            instances[lane]
        ))),
        None => Ok(()),
    }
}

/// The complaint about an action that is not legal.
#[cold]
fn illegal(lane: usize, action: u32) -> Error {
    Error::Choice(format!("step: lane {lane}: expected a legal action, got {action}"))
}

/// Refuses a pool without instances or with instances of different shapes.
pub(super) fn check_pool<T: PartialEq + std::fmt::Debug>(shapes: impl Iterator<Item = T>) -> Result<T> {
    let mut shapes = shapes.enumerate();
    let Some((_, first)) = shapes.next() else {
        return Err(Error::Choice("lanes: expected at least one instance, got none".into()));
    };
    match shapes.find(|(_, shape)| *shape != first) {
        Some((index, shape)) => Err(Error::Choice(format!(
            "lanes: expected instances of one shape (jobs, machines) = {first:?}, but instance {index} has {shape:?}"
        ))),
        None => Ok(first),
    }
}
