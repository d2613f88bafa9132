//! The job shop's optimum.

use super::flexible::search;
use super::result::{Limits, Optimum, Watch};
use crate::{Instance, JobShop, Schedule};

/// The shortest schedule of a job shop, proven or as far as time allows.
///
/// Method: dispatching, tabu search, Jackson's preemptive bound, and an exact search that learns clauses over the
/// disjunctive graph with edge finding.
#[must_use]
pub fn solve(shop: &JobShop, limits: Limits, watch: Watch<'_>) -> Optimum {
    solve_from(shop, None, limits, watch)
}

/// The same from a schedule at hand, where it is better than the search's own first one.
#[must_use]
pub fn solve_from(shop: &JobShop, given: Option<&Schedule>, limits: Limits, watch: Watch<'_>) -> Optimum {
    search(&Instance::Job(shop.clone()), given, limits, watch)
}
