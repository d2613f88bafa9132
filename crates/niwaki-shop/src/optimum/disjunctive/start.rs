//! First schedules.

use super::graph::Sequences;
use super::shop::{Choice, NONE, Shop};
use crate::{Placed, Schedule};

/// Start, then what decides ties.
type Rank = (u32, u32, u32, u32);

/// A non-delay schedule: the operation that can start first goes next, most work remaining deciding ties.
pub(super) fn dispatch(shop: &Shop, tails: &[u32]) -> Sequences {
    let count = shop.operations();
    let mut sequences = Sequences { lists: vec![Vec::new(); shop.machines], choice: vec![0; count] };
    let mut free = vec![0_u32; shop.machines];
    let mut ready: Vec<(u32, u32)> =
        (0..count as u32).filter(|&one| shop.job_before[one as usize] == NONE).map(|one| (one, 0)).collect();
    while !ready.is_empty() {
        let mut best: Option<(Rank, usize, usize)> = None;
        for (slot, &(operation, time)) in ready.iter().enumerate() {
            for choice in shop.choices_of(operation as usize) {
                let Choice { machine, time: length } = shop.choices[choice];
                let start = time.max(free[machine as usize]);
                let rest = u32::MAX - tails[operation as usize] - length;
                let key = (start, rest, start + length, operation);
                if best.is_none_or(|(known, ..)| key < known) {
                    best = Some((key, slot, choice));
                }
            }
        }
        let Some(((start, ..), slot, choice)) = best else { break };
        let Choice { machine, time: length } = shop.choices[choice];
        let operation = ready[slot].0;
        free[machine as usize] = start + length;
        sequences.lists[machine as usize].push(operation);
        sequences.choice[operation as usize] = choice as u32;
        let next = shop.job_after[operation as usize];
        if next == NONE {
            ready.swap_remove(slot);
        } else {
            ready[slot] = (next, start + length + shop.rest(next as usize));
        }
    }
    sequences
}

/// One job after the other, each with its least rests: no rest can be too long.
pub(super) fn one_after_another(shop: &Shop) -> Schedule {
    let mut operations = Vec::with_capacity(shop.operations());
    let mut clock = 0;
    for job in 0..shop.jobs() {
        for (op, operation) in shop.job(job).enumerate() {
            let Some(fastest) = shop.alternatives(operation).iter().min_by_key(|choice| choice.time) else {
                continue;
            };
            let start = clock + shop.rest(operation);
            clock = start + fastest.time;
            operations.push(Placed {
                job: job as u32,
                op: op as u32,
                machine: fastest.machine,
                start,
                end: clock,
            });
        }
    }
    Schedule { operations }
}
