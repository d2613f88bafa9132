//! One door for all problems.

use super::result::{Limits, Optimum, Watch};
use super::{flexible, flow_shop, job_shop, single_machine, two_machine};
use crate::{Instance, Schedule, verify};

/// The shortest schedule of any problem, proven or as far as time allows.
#[must_use]
pub fn solve(instance: &Instance, limits: Limits, watch: Watch<'_>) -> Optimum {
    match instance {
        Instance::Flow(shop) => flow_shop::solve(shop, limits, watch),
        Instance::Job(shop) => job_shop::solve(shop, limits, watch),
        Instance::Flexible(shop) => flexible::solve(shop, limits, watch),
        Instance::Lags(shop) => two_machine::solve(shop),
        Instance::Single(shop) => single_machine::solve(shop),
    }
}

/// The same from a schedule of the instance at hand; the result is no worse than it.
#[must_use]
pub fn solve_from(instance: &Instance, given: &Schedule, limits: Limits, watch: Watch<'_>) -> Optimum {
    let found = match instance {
        Instance::Job(shop) => job_shop::solve_from(shop, Some(given), limits, watch),
        Instance::Flexible(shop) => flexible::solve_from(shop, Some(given), limits, watch),
        other => solve(other, limits, watch),
    };
    let kept = verify(instance, given).is_ok_and(|verdict| verdict.makespan < found.upper);
    if kept { Optimum::new(found.lower, given.clone()) } else { found }
}

/// Whether the independent checker accepts a schedule; for debug assertions at every solver's end.
pub(super) fn accepted(instance: impl FnOnce() -> Instance, schedule: &Schedule) -> bool {
    verify(&instance(), schedule).is_ok()
}
