//! All of it together: impossible constraints named, special solvers where they apply, rules and annealing elsewhere.

use super::anneal::anneal;
use super::bounds::{self, Heads};
use super::construct::best_of_rules;
use super::list::{Flat, Pass};
use super::{Shop, Verification, verify};
use crate::optimum;
use crate::{Error, Limits, Result, Schedule};

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
    if let (None, None, Some(instance)) = (past.schedule, past.fixed_until, shop.as_instance()) {
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
    let flat = Flat::new(shop, fixed);
    let heads = Heads::new(&flat);
    heads.check(shop)?;
    let bounds = bounds::sums(&flat, &heads);
    let (mut list, mut pass) = best_of_rules(&flat);
    if let Some(schedule) = past.schedule {
        let given = flat.list_of(schedule);
        let mut given_pass = Pass::default();
        flat.run(&given, &mut given_pass);
        if given_pass.cost < pass.cost {
            (list, pass) = (given, given_pass);
        }
    }
    watch(&Progress { violation: pass.cost[0], values: &pass.cost[1..] });
    let enough: Vec<u64> = std::iter::once(0).chain(bounds.iter().copied()).collect();
    if pass.cost > enough && !limits.time.is_zero() {
        let mut told = |cost: &[u64]| watch(&Progress { violation: cost[0], values: &cost[1..] });
        list = anneal(&flat, &list, &enough, limits, threads, &mut told);
        flat.run(&list, &mut pass);
    }
    let schedule = flat.schedule(&list, &pass);
    let verdict = verify(shop, &schedule).map_err(|fault| {
        Error::Schedule(format!(
            "found no schedule that keeps every hard constraint; in the nearest one {fault}"
        ))
    })?;
    Ok(Answer { schedule, verdict, bounds })
}
