//! The two-machine flow shop with lags: Johnson's rule with lags is optimal.

use super::dispatch::accepted;
use super::result::Optimum;
use crate::heuristics::johnson_with_lags;
use crate::{Instance, Schedule, TwoMachineLags};

/// The shortest common order of a two-machine flow shop with lags. Always proven.
///
/// Method: Mitten (1959): Johnson's rule on (first + lag, lag + second).
///
/// Paper: app:sched-boundary
#[must_use]
pub fn solve(shop: &TwoMachineLags) -> Optimum {
    let schedule = Schedule::of_lagged_order(shop, &johnson_with_lags(shop));
    debug_assert!(accepted(|| Instance::Lags(shop.clone()), &schedule), "the checker refuses the optimum");
    Optimum::new(schedule.makespan(), schedule)
}
