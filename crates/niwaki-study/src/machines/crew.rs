//! A process that claims units of a plan, one after the other, beside any number of others.

use super::depot::records;
use super::split::Split;
use super::standing::{Standing, State};
use super::worker::{Worked, Worker};
use crate::Error;
use niwaki_store::{Ending, Lease, Leases, Store};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a look at the leases serves.
const FRESH: Duration = Duration::from_secs(2);

/// What units are claimed by.
#[derive(Clone, Debug)]
pub struct Terms {
    /// How this process calls itself.
    pub holder: String,
    /// How long a lease lasts without being renewed.
    pub patience: Duration,
    /// How often a unit may fail before it is given up.
    pub attempts: u32,
    /// Where runs train if the store is not a folder.
    pub scratch: PathBuf,
}

/// What a crew tells on the way.
#[derive(Debug)]
pub enum Told<'a> {
    /// A unit was claimed.
    Begins {
        /// The unit.
        number: usize,
        /// Which attempt it is.
        attempt: u32,
    },
    /// Run-iterations that were just done.
    Steps(u64),
    /// A unit is done.
    Done {
        /// The unit.
        number: usize,
        /// What came of it.
        worked: Worked,
    },
    /// A unit failed.
    Failed {
        /// The unit.
        number: usize,
        /// Which attempt it was.
        attempt: u32,
        /// Why.
        error: &'a Error,
    },
    /// There is nothing to do until others are done.
    Waits,
}

/// A process at work on a plan.
pub struct Crew<'a> {
    split: &'a Split,
    worker: Worker<'a>,
    leases: Leases,
    terms: Terms,
    held: Mutex<Option<Arc<Lease>>>,
}

/// The leases of a plan.
#[must_use]
pub fn leases(split: &Split, store: Arc<dyn Store>, terms: &Terms) -> Leases {
    let under = format!("{}/units", records(&split.id));
    Leases::new(store, &under, terms.holder.clone(), terms.patience)
}

impl<'a> Crew<'a> {
    /// A process that works on a plan whose results are in a store.
    #[must_use]
    pub fn new(split: &'a Split, store: Arc<dyn Store>, terms: Terms) -> Self {
        let leases = leases(split, store.clone(), &terms);
        let worker = Worker::new(split, store, &terms.scratch);
        Self { split, worker, leases, terms, held: Mutex::default() }
    }

    /// How the plan stands.
    ///
    /// # Errors
    /// If the store refuses.
    pub fn standing(&self) -> Result<Standing, Error> {
        Standing::of(self.split, &self.leases, self.terms.attempts)
    }

    /// Works on one unit, even where others may: a scheduler said so.
    ///
    /// # Errors
    /// As [`Worker::work`]; before anything is begun where the unit cannot be worked on yet.
    pub fn one(&self, number: usize, told: &(dyn Fn(Told<'_>) + Sync)) -> Result<Worked, Error> {
        self.worker.check(number)?;
        loop {
            let attempt = self.leases.survey()?.last(number) + 1;
            if let Some(lease) = self.leases.begin(number, attempt)? {
                return self.hold(number, lease, told);
            }
        }
    }

    /// Works on units until every one of the plan is done or given up.
    ///
    /// # Errors
    /// If the store refuses; a unit's failure is told and counted.
    pub fn all(&self, told: &(dyn Fn(Told<'_>) + Sync)) -> Result<Standing, Error> {
        loop {
            let standing = self.standing()?;
            if standing.is_over() {
                return Ok(standing);
            }
            let (looked, mut worked) = (Instant::now(), false);
            for (number, state) in standing.states.iter().enumerate() {
                let State::Ready(attempt) = *state else { continue };
                // Others may have begun that very attempt since: then it is theirs.
                if let Some(lease) = self.leases.begin(number, attempt)? {
                    worked = true;
                    // A failure was told and counted; the next unit may be luckier.
                    let _ = self.hold(number, lease, told);
                }
                if looked.elapsed() > FRESH {
                    break;
                }
            }
            if !worked {
                told(Told::Waits);
                std::thread::sleep((self.terms.patience / 8).clamp(Duration::from_millis(100), FRESH));
            }
        }
    }

    /// Says of the unit in hand that it was asked to stop, so that the next process need not wait for the lease to end.
    pub fn stop(&self) {
        if let Some(lease) = &*self.held.lock().unwrap_or_else(PoisonError::into_inner) {
            // A store that refuses now leaves a lease that ends by itself.
            let _ = lease.end(Ending::Stopped, None);
        }
    }

    fn hold(&self, number: usize, lease: Lease, told: &(dyn Fn(Told<'_>) + Sync)) -> Result<Worked, Error> {
        let lease = Arc::new(lease);
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(lease.clone());
        let attempt = lease.attempt;
        told(Told::Begins { number, attempt });
        let step = |steps: u64| {
            lease.step(steps);
            told(Told::Steps(steps));
        };
        let worked = self.worker.work(number, attempt, &step);
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = None;
        match &worked {
            Ok(worked) => {
                lease.end(Ending::Done, None)?;
                told(Told::Done { number, worked: *worked });
            }
            Err(error) => {
                lease.end(Ending::Failed, Some(error.to_string()))?;
                told(Told::Failed { number, attempt, error });
            }
        }
        worked
    }
}
