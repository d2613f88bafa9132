//! Which lanes a network need not be asked about: those with one way to go, and those in a state that another lane is in.

use niwaki_tasks::GraphLanes;
use std::collections::HashMap;

/// The first lane that is in the same state as each; `None` for a lane with at most one way to go.
pub(super) fn first_alike(building: &GraphLanes) -> Vec<Option<usize>> {
    let mut seen: HashMap<(&[u32], &[u32]), Vec<usize>> = HashMap::new();
    let mut first = |lane: usize| {
        let near = seen.entry((building.ready(lane), building.free(lane))).or_default();
        let first = near.iter().copied().find(|&first| building.alike(first, lane));
        first.unwrap_or_else(|| {
            near.push(lane);
            lane
        })
    };
    (0..building.count()).map(|lane| building.open(lane).nth(1).map(|_| first(lane))).collect()
}
