//! First schedules.

use super::graph::{Paths, Sequences};
use super::shop::{Choice, NONE, Shop};
use crate::{Placed, Schedule};

/// Start, then what decides ties.
type Rank = (u32, u32, u32, u32);

/// The better of dispatching and a schedule of the shop at hand; dispatching where that is none of its schedules.
pub(super) fn better(shop: &Shop, tails: &[u32], given: Option<&Schedule>) -> Sequences {
    let own = dispatch(shop, tails);
    let Some(given) = given.and_then(|given| sequences_of(shop, given)) else { return own };
    let makespan = |sequences: &Sequences| {
        let mut paths = Paths::default();
        paths.compute(shop, sequences);
        paths.makespan
    };
    if makespan(&given) < makespan(&own) { given } else { own }
}

/// A schedule's order on every machine; nothing where it does not hold each operation once, on a machine that can run it, or where
/// the orders contradict the routes.
pub(super) fn sequences_of(shop: &Shop, schedule: &Schedule) -> Option<Sequences> {
    let count = shop.operations();
    let mut sequences = Sequences { lists: vec![Vec::new(); shop.machines], choice: vec![u32::MAX; count] };
    let mut placed: Vec<&Placed> = schedule.operations.iter().collect();
    // What takes no time goes before what starts with it.
    placed.sort_by_key(|placed| (placed.start, placed.end, placed.job, placed.op));
    for placed in placed {
        let route = (placed.job as usize) < shop.jobs();
        let operation = route.then(|| shop.job(placed.job as usize).nth(placed.op as usize)).flatten()?;
        let choice =
            shop.choices_of(operation).find(|&choice| shop.choices[choice].machine == placed.machine)?;
        if std::mem::replace(&mut sequences.choice[operation], choice as u32) != u32::MAX {
            return None;
        }
        sequences.lists[placed.machine as usize].push(operation as u32);
    }
    (!sequences.choice.contains(&u32::MAX) && Paths::default().compute(shop, &sequences)).then_some(sequences)
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimum::{Limits, flexible, solve_from};
    use crate::{Alternative, FlexibleShop, Instance};
    use std::time::Duration;

    /// Two jobs of one operation each, on machine 0 for 3 or on machine 1 for 5.
    fn shop() -> FlexibleShop {
        let both = vec![Alternative { machine: 0, time: 3 }, Alternative { machine: 1, time: 5 }];
        FlexibleShop::new(2, &[vec![both.clone()], vec![both]]).unwrap()
    }

    fn placed(job: u32, machine: u32, start: u32, end: u32) -> Placed {
        Placed { job, op: 0, machine, start, end }
    }

    #[test]
    fn a_search_without_time_begins_with_the_better_schedule() {
        // One on each machine ends at 5, both on machine 0 at 6.
        let (shop, none) = (shop(), Limits::new(Duration::ZERO, 0));
        let apart = Schedule { operations: vec![placed(0, 0, 0, 3), placed(1, 1, 0, 5)] };
        let after = Schedule { operations: vec![placed(0, 0, 0, 3), placed(1, 0, 3, 6)] };
        let own = flexible::solve(&shop, none, &mut |_| {}).upper;
        for given in [&apart, &after] {
            let found = flexible::solve_from(&shop, Some(given), none, &mut |_| {});
            assert_eq!(found.upper, own.min(given.makespan()));
        }
        let from = solve_from(&Instance::Flexible(shop.clone()), &apart, none, &mut |_| {});
        assert_eq!(from.upper, 5);
        // A schedule of another shop is passed over.
        let shop = Shop::from(&shop);
        for wrong in [
            vec![placed(0, 0, 0, 3)],
            vec![placed(0, 0, 0, 3), placed(0, 1, 0, 5)],
            vec![placed(0, 0, 0, 3), placed(7, 1, 0, 5)],
            vec![placed(0, 0, 0, 3), placed(1, 2, 0, 5)],
        ] {
            assert!(sequences_of(&shop, &Schedule { operations: wrong }).is_none());
        }
        assert_eq!(sequences_of(&shop, &after).unwrap().lists, [vec![0, 1], vec![]]);
    }
}
