//! How a plan stands: what is done, in work, to be done, waiting, or given up.

use super::split::Split;
use crate::Error;
use niwaki_store::{Ending, Leases, Survey};

/// How a unit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is done, since that attempt.
    Done(u32),
    /// A worker has it.
    Running(u32),
    /// It is to be done: this would be the attempt.
    Ready(u32),
    /// Units before it are not done.
    Waiting,
    /// It failed as often as is allowed, the last time in that attempt.
    GivenUp(u32),
    /// A unit before it was given up.
    Blocked,
}

/// How every unit of a plan stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Unit by unit.
    pub states: Vec<State>,
    /// What was found.
    pub survey: Survey,
}

impl Standing {
    /// Looks at the leases of a plan. A unit is given up when so many `attempts` at it failed.
    ///
    /// # Errors
    /// If the store refuses.
    pub fn of(split: &Split, leases: &Leases, attempts: u32) -> Result<Self, Error> {
        let survey = leases.survey()?;
        let mut states: Vec<State> = Vec::with_capacity(split.units.len());
        let mut now = None;
        for (number, unit) in split.units.iter().enumerate() {
            let before = &states[unit.before()];
            let last = survey.last(number);
            let state = if let Some(attempt) = survey.done(number) {
                State::Done(attempt)
            } else if before.iter().any(|state| matches!(state, State::GivenUp(_) | State::Blocked)) {
                State::Blocked
            } else if !before.iter().all(|state| matches!(state, State::Done(_))) {
                State::Waiting
            } else if last == 0 {
                State::Ready(1)
            } else {
                let silent = match survey.ending(number, last) {
                    Some(_) => false,
                    None => {
                        // The clock is asked only where a worker may be silent.
                        let now = match now {
                            Some(now) => now,
                            None => *now.insert(leases.now()?),
                        };
                        leases.silent(number, last, now)?.is_some()
                    }
                };
                let failures = survey.failures(number) + u32::from(silent);
                match survey.ending(number, last) {
                    None if !silent => State::Running(last),
                    Some(Ending::Stopped) => State::Ready(last + 1),
                    _ if failures >= attempts => State::GivenUp(last),
                    _ => State::Ready(last + 1),
                }
            };
            states.push(state);
        }
        Ok(Self { states, survey })
    }

    /// How many units stand so.
    #[must_use]
    pub fn count(&self, stands: impl Fn(State) -> bool) -> usize {
        self.states.iter().filter(|state| stands(**state)).count()
    }

    /// Whether nothing is left to do or to wait for.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.states.iter().all(|state| matches!(state, State::Done(_) | State::GivenUp(_) | State::Blocked))
    }

    /// Units that were given up, each with its last attempt.
    pub fn given_up(&self) -> impl Iterator<Item = (usize, u32)> {
        self.states.iter().enumerate().filter_map(|(number, state)| match state {
            State::GivenUp(attempt) => Some((number, *attempt)),
            _ => None,
        })
    }
}
