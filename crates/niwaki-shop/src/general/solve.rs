//! All of it together: impossible constraints named, exact search over small shops, local searches and proofs elsewhere.

use super::bounds::{self, Heads};
use super::branch;
use super::construct::best_of_rules;
use super::core::Core;
use super::list::Flat;
use super::proof::Proof;
use super::search::{Known, search};
use super::{Shop, Verification, verify};
use crate::{Error, Limits, Result, Schedule};
use std::time::{Duration, Instant};

/// How long the schedule is looked for that comes nearest to what no schedule keeps.
const NEAREST: Duration = Duration::from_millis(500);

/// Conflicts for which a proof is looked for in a small shop before every list is.
const CONFLICTS: u64 = 2000;

/// What is known before the search.
#[derive(Clone, Copy, Debug, Default)]
pub struct Past<'a> {
    /// A schedule to start from.
    pub schedule: Option<&'a Schedule>,
    /// What has started in it before this time stays where it is, and all else comes later.
    pub fixed_until: Option<u32>,
}

/// How far a search has come: the best sums so far, and the part of hard constraints that is still broken.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Time by which hard constraints are broken, in all; 0 once a schedule keeps them.
    pub violation: u64,
    /// The sums of the objective.
    pub values: &'a [u64],
    /// No schedule has a smaller value of that sum.
    pub bounds: &'a [u64],
}

/// A schedule that has passed the checker, and what is known about it.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The schedule.
    pub schedule: Schedule,
    /// What the checker found out about it.
    pub verdict: Verification,
    /// No schedule has a smaller value of that sum.
    pub bounds: Vec<u64>,
}

impl Answer {
    /// Whether no schedule is better: every sum is proven, the most important first.
    #[must_use]
    pub fn proven(&self) -> bool {
        self.verdict.values == self.bounds
    }
}

/// Schedules a general shop as well as time allows.
///
/// # Errors
/// If a deadline or window can be kept by no schedule, or if none was found that keeps them all; both by name.
pub fn solve(
    shop: &Shop,
    limits: Limits,
    past: Past<'_>,
    watch: &mut dyn FnMut(&Progress<'_>),
) -> Result<Answer> {
    let fixed = match (past.schedule, past.fixed_until) {
        (Some(schedule), Some(until)) => Some((schedule, until)),
        (None, Some(_)) => {
            return Err(Error::Choice(
                "a time up to which all is fixed needs the schedule that has it".into(),
            ));
        }
        (_, None) => None,
    };
    let began = Instant::now();
    let flat = Flat::new(shop, fixed);
    let heads = Heads::new(&flat);
    heads.check(shop)?;
    let bounds::Floors { sums, setup_time } = bounds::floors(&flat, &heads);
    let core = Core::of(&flat);
    let core = core.as_ref();
    let mut proof = Proof::new(&flat, core, sums, setup_time);
    let mut known = first(&flat, core, (limits, began));
    if let Some(schedule) = past.schedule {
        known.take_if_better(Known::new(&flat, flat.list_of(schedule)));
    }
    known.show(&proof.bounds, watch);
    let mut complete = false;
    if !limits.time.is_zero() && !proof.is_reached_by(known.cost()) {
        let mut exact = None;
        // A job shop's search proves small ones as well, as long as there is a schedule that keeps every date.
        if flat.count() <= branch::OPERATIONS && (core.is_none() || known.cost()[0] > 0) {
            let is_late = || limits.is_stopped() || began.elapsed() >= limits.time;
            while let Some(better) = proof.work((&known.list, known.cost()), &mut { CONFLICTS }, is_late) {
                known.take_if_better(Known::new(&flat, better));
                known.show(&proof.bounds, watch);
            }
            if !proof.is_reached_by(known.cost()) {
                exact = branch::search(&flat, known.cost(), limits, began);
                complete = exact.as_ref().is_some_and(|exact| exact.complete);
            }
        }
        let better = exact.and_then(|exact| exact.better);
        // What breaks dates least is looked for even where nothing keeps them all, only to say what it breaks.
        let nearest = complete && better.is_none() && known.cost()[0] > 0;
        if !proof.is_reached_by(known.cost()) && (!complete || nearest) {
            let time = if nearest { limits.time.min(began.elapsed() + NEAREST) } else { limits.time };
            known = search(&flat, core, known, &mut proof, (limits.within(time), began), watch);
        }
        if let Some(better) = better {
            known.take_if_better(Known::new(&flat, better));
        }
    }
    let Known { list, pass } = known;
    let schedule = flat.schedule(&list, &pass);
    let verdict = verify(shop, &schedule).map_err(|fault| {
        let known = if complete { "there is no schedule" } else { "found no schedule" };
        Error::Schedule(format!("{known} that keeps every hard constraint; in the nearest one {fault}"))
    })?;
    let bounds = if complete { verdict.values.clone() } else { proof.bounds };
    Ok(Answer { schedule, verdict, bounds })
}

/// A first list: by dispatching in a job shop, by the best rule elsewhere and where that breaks dates.
fn first(flat: &Flat<'_>, core: Option<&Core>, (limits, began): (Limits, Instant)) -> Known {
    match core.map(|core| Known::new(flat, core.first(flat))) {
        Some(known) if known.cost()[0] == 0 => known,
        of_core => {
            let (list, pass) = best_of_rules(flat, limits, began);
            let mut known = Known { list, pass };
            of_core.into_iter().for_each(|other| known.take_if_better(other));
            known
        }
    }
}
