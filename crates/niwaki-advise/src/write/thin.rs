//! Which trajectories keep their steps where a budget does not hold all of them.
//!
//! Whole groups are kept or left out, each by a draw of its own that follows from its name and the iteration, so that ranks which
//! share a group agree on it, and the same data is thinned alike again. Every trajectory is kept with one chance p, known
//! beforehand: the budget over the steps that are there. A kept one then counts 1/p times, and every sum has the mean that it
//! would have had without thinning.

use crate::keys::spread;
use crate::measure::mixed;
use crate::trajectory::Chunk;

/// Told apart from the fold of a group, which follows from its name too.
const DRAWN: u64 = 0x7468_696e_6e65_6421;

/// The chance with which steps are kept, and for each trajectory whether its own are.
pub(super) fn kept(chunk: &Chunk, budget: Option<u64>) -> (f64, Vec<bool>) {
    let (steps, lanes) = (chunk.steps() as u64, chunk.lanes.len());
    let Some(budget) = budget.filter(|&budget| budget < steps) else { return (1.0, vec![true; lanes]) };
    let chance = budget.max(1) as f64 / steps as f64;
    let each = chunk.lanes.iter().zip(chunk.offsets.windows(2)).enumerate();
    let kept = each.map(|(at, (lane, row))| {
        // A trajectory without a group is one of its own, told apart by what it holds and by its place.
        let own = || {
            let values = chunk.old[row[0]..row[1]].iter().chain(&chunk.new[row[0]..row[1]]);
            values.fold(at as u64, |key, value| mixed(key ^ value.to_bits()))
        };
        let key = lane.group.map_or_else(own, spread);
        uniform(mixed(key ^ mixed(DRAWN ^ lane.iteration as u64))) < chance || row[0] == row[1]
    });
    (chance, kept.collect())
}

/// A key's first 53 bits as a number in [0, 1).
fn uniform(key: u64) -> f64 {
    (key >> 11) as f64 * (-53.0_f64).exp2()
}
