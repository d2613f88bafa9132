//! Jackson's preemptive schedule of what waits for one machine: always the available operation with the longest tail.
//!
//! Those with tails of at least some length run as if they were alone, so that one pass by heads says for all lengths side by side when they end.

use niwaki_simd::vectorised;

/// An unplaced operation on a machine that can run it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) head: f32,
    pub(super) share: f32,
    /// Of its tail among those that wait for the machine, from the shortest on.
    pub(super) rank: u32,
    pub(super) slot: u32,
    /// What came before it with no shorter tail has ended then: it does not run earlier.
    pub(super) runs: f32,
}

/// Ranks that are looked at together.
pub(super) const LANES: usize = 16;

vectorised! {
    /// When Jackson's preemptive schedule of what waits for a machine, by heads, has passed the last tail.
    pub(super) fn preemptive(order: &mut [Waiting], tails: &[f32], ends: &mut Vec<[f32; LANES]>) -> f32 {
        ends.clear();
        ends.resize(tails.len().div_ceil(LANES), [f32::NEG_INFINITY; LANES]);
        for Waiting { head, share, rank, runs, .. } in order {
            let (head, share, rank) = (*head, *share, *rank);
            let (whole, rest) = (rank as usize / LANES, rank as usize % LANES);
            for ends in &mut ends[..whole] {
                for end in ends {
                    *end = if *end > head { *end } else { head } + share;
                }
            }
            // Up to the rank itself.
            let last = &mut ends[whole];
            *runs = last[rest];
            for (lane, end) in last.iter_mut().enumerate() {
                let after = if *end > head { *end } else { head } + share;
                *end = if lane <= rest { after } else { *end };
            }
        }
        ends.as_flattened().iter().zip(tails).map(|(end, tail)| end + tail).fold(0.0, f32::max)
    }
}

/// Sorts slots by their heads, fast where few are out of order.
pub(super) fn insertion_sort(order: &mut [Waiting]) {
    for at in 1..order.len() {
        let slot = order[at];
        let mut to = at;
        while to > 0 && order[to - 1].head > slot.head {
            order[to] = order[to - 1];
            to -= 1;
        }
        order[to] = slot;
    }
}
