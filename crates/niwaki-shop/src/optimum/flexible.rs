//! The flexible job shop's optimum, with or without resting windows.

use super::disjunctive::{self, Shop};
use super::dispatch::accepted;
use super::result::{Limits, Optimum, Watch};
use crate::{FlexibleShop, Instance, Schedule};

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
    let optimum = disjunctive::solve(&Shop::from(shop), given, limits, watch);
    debug_assert!(
        accepted(|| Instance::Flexible(shop.clone()), &optimum.schedule),
        "the checker refuses the schedule"
    );
    optimum
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
/// Such a schedule always exists (one job after the other), and it is where the search starts; the rest is left to
/// the exact search.
///
/// Paper: app:sched-driftdial
#[must_use]
pub fn solve_within_windows(shop: &FlexibleShop, limits: Limits, watch: Watch<'_>) -> Optimum {
    let optimum = disjunctive::solve_within_windows(&Shop::from(shop), limits, watch);
    debug_assert!(
        accepted(|| Instance::Flexible(shop.clone()), &optimum.schedule)
            && optimum.schedule.violation(shop) == 0,
        "the checker refuses the schedule"
    );
    optimum
}
