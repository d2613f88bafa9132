//! All of it together: impossible constraints named, special solvers where they apply, exact search over small shops, rules
//! and annealing elsewhere.

use super::anneal::anneal;
use super::bounds::{self, Heads};
use super::branch;
use super::construct::best_of_rules;
use super::list::{Flat, List, Pass};
use super::proof::Proof;
use super::{Shop, Verification, verify};
use crate::optimum;
use crate::{Error, Instance, Limits, Result, Schedule};
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

/// Schedules a general shop: exactly where a special solver knows it, otherwise as well as time allows.
///
/// # Errors
/// If a deadline or window can be kept by no schedule, or if none was found that keeps them all; both by name.
pub fn solve(
    shop: &Shop,
    limits: Limits,
    threads: usize,
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
    if let Some(instance) = special(shop, limits, past) {
        let mut told = |bounds: optimum::Bounds| {
            watch(&Progress { violation: 0, values: &[u64::from(bounds.upper)] });
        };
        let found = optimum::solve(&instance, limits, &mut told);
        let factor: u64 = shop.objective().sums[0].terms.iter().map(|&(factor, _)| u64::from(factor)).sum();
        let verdict = verify(shop, &found.schedule)?;
        return Ok(Answer {
            schedule: found.schedule,
            verdict,
            bounds: vec![factor * u64::from(found.lower)],
        });
    }
    let began = Instant::now();
    let flat = Flat::new(shop, fixed);
    let heads = Heads::new(&flat);
    heads.check(shop)?;
    let bounds::Floors { sums, setup_time } = bounds::floors(&flat, &heads);
    let mut proof = Proof::new(&flat, sums, setup_time);
    let (mut list, mut pass) = best_of_rules(&flat, limits, began);
    if let Some(schedule) = past.schedule {
        take_if_better(&flat, flat.list_of(schedule), &mut list, &mut pass);
    }
    watch(&Progress { violation: pass.cost[0], values: &pass.cost[1..] });
    let mut complete = false;
    if !limits.time.is_zero() {
        if flat.count() <= branch::OPERATIONS {
            let is_late = || limits.is_stopped() || began.elapsed() >= limits.time;
            while let Some(better) = proof.work((&list, &pass.cost), CONFLICTS, is_late) {
                take_if_better(&flat, better, &mut list, &mut pass);
                watch(&Progress { violation: pass.cost[0], values: &pass.cost[1..] });
            }
        }
        if !proof.is_reached_by(&pass.cost) {
            let exact = branch::search(&flat, &pass.cost, limits, began);
            complete = exact.as_ref().is_some_and(|exact| exact.complete);
            if !complete || exact.as_ref().is_none_or(|exact| exact.better.is_none()) && pass.cost[0] > 0 {
                let mut told = |cost: &[u64]| watch(&Progress { violation: cost[0], values: &cost[1..] });
                let left = limits.within(limits.time.saturating_sub(began.elapsed()));
                // No schedule keeps everything: the nearest one is looked for only to say what it breaks.
                let left = if complete { left.within(left.time.min(NEAREST)) } else { left };
                let annealed = anneal(&flat, &list, &mut proof, left, threads, &mut told);
                take_if_better(&flat, annealed, &mut list, &mut pass);
            }
            if let Some(better) = exact.and_then(|exact| exact.better) {
                take_if_better(&flat, better, &mut list, &mut pass);
            }
        }
    }
    let schedule = flat.schedule(&list, &pass);
    let verdict = verify(shop, &schedule).map_err(|fault| {
        let known = if complete { "there is no schedule" } else { "found no schedule" };
        Error::Schedule(format!("{known} that keeps every hard constraint; in the nearest one {fault}"))
    })?;
    let bounds = if complete { verdict.values.clone() } else { proof.bounds };
    Ok(Answer { schedule, verdict, bounds })
}

/// The special problem that a shop is searched as, on one thread: where routes, choices and waits are all that binds it and the
/// makespan all that counts, and where nothing is known before and no rounds are counted.
#[must_use]
pub fn special(shop: &Shop, limits: Limits, past: Past<'_>) -> Option<Instance> {
    let is_fresh = past.schedule.is_none() && past.fixed_until.is_none() && limits.rounds.is_none();
    is_fresh.then(|| shop.as_instance()).flatten()
}

fn take_if_better(flat: &Flat<'_>, other: List, list: &mut List, pass: &mut Pass) {
    let mut other_pass = Pass::default();
    flat.run(&other, &mut other_pass);
    if other_pass.cost < pass.cost {
        (*list, *pass) = (other, other_pass);
    }
}
