//! The least time between two operations on one machine.

use super::LARGEST;
use crate::general::list::Flat;

/// The least time between two operations on one machine, by their families: others may lie in between, with their work and
/// their setups.
pub(super) struct Between {
    /// By families, none last.
    least: Vec<u32>,
    families: usize,
}

impl Between {
    pub(super) fn new(flat: &Flat<'_>, machine: usize) -> Self {
        let setups = flat.shop.setups();
        let families = setups.families.len();
        let family = |index: usize| (index < families).then_some(index as u32);
        let size = families + 1;
        let mut least = vec![0; size * size];
        // The shortest work of each family here.
        let mut work = vec![u32::MAX; size];
        for (one, modes) in flat.modes.iter().enumerate() {
            for mode in modes.iter().filter(|mode| mode.0 as usize == machine) {
                let of = flat.family(one as u32).map_or(families, |family| family as usize);
                work[of] = work[of].min(mode.1);
            }
        }
        for from in 0..size {
            for to in 0..size {
                least[from * size + to] = setups.time(machine, family(from), family(to));
            }
        }
        for via in 0..size {
            for from in 0..size {
                for to in 0..size {
                    let through = least[from * size + via]
                        .saturating_add(work[via])
                        .saturating_add(least[via * size + to]);
                    least[from * size + to] = least[from * size + to].min(through);
                }
            }
        }
        Self { least, families }
    }

    pub(super) fn least(&self, from: Option<u32>, to: Option<u32>) -> u32 {
        let index = |family: Option<u32>| family.map_or(self.families, |family| family as usize);
        self.least[index(from) * (self.families + 1) + index(to)].min(LARGEST as u32)
    }
}
