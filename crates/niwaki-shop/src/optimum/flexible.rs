//! The flexible job shop's optimum, with or without resting windows.

use super::disjunctive::{self, Shop};
use super::dispatch::accepted;
use super::result::{Bounds, Limits, Optimum, Watch};
use crate::general::{self, Maxima, Past, Progress};
use crate::{FlexibleShop, Instance, Schedule, verify};

/// The shortest schedule of a flexible shop, proven or as far as time allows.
///
/// Minimum rests are kept; maxima are soft, so they do not bound the makespan. This is C* of the graded reward.
///
/// Method: as for the job shop, with the loads that machines must share as bounds and cuts.
///
/// Paper: app:sched-driftdial
#[must_use]
pub fn solve(shop: &FlexibleShop, limits: Limits, watch: Watch<'_>) -> Optimum {
    solve_from(shop, None, limits, watch)
}

/// The same from a schedule at hand, where it is better than the search's own first one.
#[must_use]
pub fn solve_from(
    shop: &FlexibleShop,
    given: Option<&Schedule>,
    limits: Limits,
    watch: Watch<'_>,
) -> Optimum {
    search(&Instance::Flexible(shop.clone()), given, limits, watch)
}

/// A schedule after so many moves of the local search from it, as short or shorter: the same for the same seed, on any machine.
/// Nothing where it is no schedule of the shop. Maxima of rests are not looked at.
#[must_use]
pub fn improve(shop: &FlexibleShop, given: &Schedule, moves: u64, seed: u64) -> Option<Schedule> {
    let improved = disjunctive::improve(&Shop::from(shop), given, moves, seed)?;
    debug_assert!(
        accepted(|| Instance::Flexible(shop.clone()), &improved) && improved.makespan() <= given.makespan(),
        "the checker refuses the schedule"
    );
    Some(improved)
}

/// The shortest schedule without any violation: maximum rests are kept as well. For small shops.
///
/// Such a schedule always exists (one job after the other), and it is among those where the search starts.
///
/// Paper: app:sched-driftdial
#[must_use]
pub fn solve_within_windows(shop: &FlexibleShop, limits: Limits, watch: Watch<'_>) -> Optimum {
    let optimum = search_as(&Instance::Flexible(shop.clone()), Maxima::Hard, None, limits, watch);
    debug_assert!(optimum.schedule.violation(shop) == 0, "the checker refuses the schedule");
    optimum
}

/// The search of general shops, for one of the kinds of job shop.
pub(super) fn search(
    instance: &Instance,
    given: Option<&Schedule>,
    limits: Limits,
    watch: Watch<'_>,
) -> Optimum {
    let given = given.filter(|given| verify(instance, given).is_ok());
    search_as(instance, Maxima::Soft, given, limits, watch)
}

fn search_as(
    instance: &Instance,
    maxima: Maxima,
    given: Option<&Schedule>,
    limits: Limits,
    watch: Watch<'_>,
) -> Optimum {
    let mut told = |progress: &Progress<'_>| {
        if progress.violation == 0 {
            watch(Bounds { lower: progress.bounds[0] as u32, upper: progress.values[0] as u32 });
        }
    };
    let past = Past { schedule: given, fixed_until: None };
    let found = general::Shop::for_makespan(instance, maxima)
        .and_then(|shop| general::solve(&shop, limits, past, &mut told));
    let found = match found {
        Ok(found) => found,
        // One job after the other keeps whatever such a shop asks for.
        Err(fault) => unreachable!("a {} without a schedule: {fault}", instance.kind()),
    };
    debug_assert!(accepted(|| instance.clone(), &found.schedule), "the checker refuses the schedule");
    Optimum::new(found.bounds[0].min(found.verdict.values[0]) as u32, found.schedule)
}
