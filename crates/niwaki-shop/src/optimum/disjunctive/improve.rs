//! The local search alone.

use super::blocks::Blocks;
use super::graph::Paths;
use super::relaxation::Relaxation;
use super::shop::Shop;
use super::start::sequences_of;
use crate::Schedule;

/// So many moves of the local search from a schedule; nothing where that is none of the shop's. No clock is looked at.
pub(in crate::optimum) fn improve(shop: &Shop, given: &Schedule, moves: u64, seed: u64) -> Option<Schedule> {
    let start = sequences_of(shop, given)?;
    let mut local = Blocks::new(shop, &start, seed, 0);
    local.descend(moves, Relaxation::new(shop).lower);
    let best = local.best();
    let mut paths = Paths::default();
    paths.compute(shop, &best);
    Some(paths.schedule(shop, &best))
}
