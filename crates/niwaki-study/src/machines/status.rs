//! How far a plan is, in one place: counts, who works on what, failures with their reasons, and the time that is left.

use super::split::Split;
use super::standing::{Standing, State};
use crate::Error;
use niwaki_store::{Ending, Leases};
use serde::Serialize;

/// How many units that are done say how fast the work is: each is a record to be read, over a network perhaps.
const SAMPLE: usize = 64;

/// How far a plan is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// The plan.
    pub plan: String,
    /// Its units.
    pub units: usize,
    /// Those that are done.
    pub done: usize,
    /// Those that a worker has.
    pub running: Vec<Running>,
    /// Those that could be begun.
    pub ready: usize,
    /// Those that wait for others.
    pub waiting: usize,
    /// Those that failed or were given up, each with the last reason.
    pub failed: Vec<Failed>,
    /// Those that wait for one that was given up.
    pub blocked: usize,
    /// Run-iterations of the plan.
    pub run_iterations: u64,
    /// Those that are done.
    pub run_iterations_done: u64,
    /// Seconds until all is done, if as many go on working as now and as fast as the last units that were done.
    pub seconds_left: Option<f64>,
}

/// A unit that a worker has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Running {
    /// The unit.
    pub unit: usize,
    /// In words.
    pub words: String,
    /// Which attempt it is.
    pub attempt: u32,
    /// Who.
    pub holder: String,
    /// Run-iterations done.
    pub done: u64,
    /// Of so many.
    pub of: u64,
}

/// A unit that failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failed {
    /// The unit.
    pub unit: usize,
    /// In words.
    pub words: String,
    /// How often.
    pub failures: u32,
    /// Why, the last time.
    pub reason: String,
    /// Whether nobody tries it again.
    pub given_up: bool,
}

impl Status {
    /// Looks at the leases of a plan. A unit is given up when so many `attempts` at it failed.
    ///
    /// # Errors
    /// If the store refuses.
    pub fn of(split: &Split, leases: &Leases, attempts: u32) -> Result<Self, Error> {
        let Standing { states, survey } = Standing::of(split, leases, attempts)?;
        let mut status = Self {
            plan: split.id.clone(),
            units: split.units.len(),
            done: 0,
            running: Vec::new(),
            ready: 0,
            waiting: 0,
            failed: Vec::new(),
            blocked: 0,
            run_iterations: split.units.iter().map(|unit| unit.run_iterations).sum(),
            run_iterations_done: 0,
            seconds_left: None,
        };
        let (mut steps, mut seconds) = (0, 0.0);
        let done = |state: &State| matches!(state, State::Done(_));
        let unread = states.iter().filter(|state| done(state)).count().saturating_sub(SAMPLE);
        for (number, (state, unit)) in states.iter().zip(&split.units).enumerate() {
            match *state {
                State::Done(attempt) => {
                    status.done += 1;
                    status.run_iterations_done += unit.run_iterations;
                    if status.done > unread
                        && let Some(ended) = leases.ended(number, attempt, Ending::Done)?
                    {
                        (steps, seconds) = (steps + ended.steps, seconds + ended.seconds);
                    }
                }
                State::Running(attempt) => {
                    if let Some(said) = leases.attempt(number, attempt)? {
                        let done = said.steps.min(unit.run_iterations);
                        status.run_iterations_done += done;
                        status.running.push(Running {
                            unit: number,
                            words: split.words(number),
                            attempt,
                            holder: said.holder,
                            done,
                            of: unit.run_iterations,
                        });
                    }
                }
                State::Ready(_) => status.ready += 1,
                State::Waiting => status.waiting += 1,
                State::Blocked => status.blocked += 1,
                State::GivenUp(_) => {}
            }
            let given_up = matches!(state, State::GivenUp(_));
            let silent = given_up && survey.ending(number, survey.last(number)).is_none();
            let failures = survey.failures(number) + u32::from(silent);
            if failures > 0 && !matches!(state, State::Done(_)) {
                let reason = reason(leases, &survey, number)?;
                status.failed.push(Failed {
                    unit: number,
                    words: split.words(number),
                    failures,
                    reason,
                    given_up,
                });
            }
        }
        let left = status.run_iterations.saturating_sub(status.run_iterations_done);
        if steps > 0 && seconds > 0.0 {
            status.seconds_left =
                Some(left as f64 * seconds / steps as f64 / status.running.len().max(1) as f64);
        }
        Ok(status)
    }
}

/// Why the last attempt at a unit that counts against it failed.
pub(super) fn reason(leases: &Leases, survey: &niwaki_store::Survey, number: usize) -> Result<String, Error> {
    for attempt in (1..=survey.last(number)).rev() {
        match survey.ending(number, attempt) {
            Some(Ending::Failed) => {
                let ended = leases.ended(number, attempt, Ending::Failed)?;
                return Ok(ended
                    .and_then(|ended| ended.reason)
                    .unwrap_or_else(|| "it did not say why".to_owned()));
            }
            Some(_) => {}
            None => {
                let holder = leases.attempt(number, attempt)?.map(|said| said.holder).unwrap_or_default();
                return Ok(format!("{holder} went silent in attempt {attempt}"));
            }
        }
    }
    Ok("it did not say why".to_owned())
}
