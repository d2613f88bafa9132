//! First schedules.

use super::graph::{Paths, Sequences};
use super::shop::{Choice, NONE, Shop};
use crate::{Placed, Schedule};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Start, then what decides ties: work remaining, turned around, end, operation, choice.
type Rank = (u32, u32, u32, u32, u32);

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

/// Of what waits: work remaining, turned around, time there, operation, choice.
type Waiting = (u32, u32, u32, u32);

/// What waits for one machine. What has gone to another machine is still in there, and passed over.
#[derive(Clone, Default)]
struct Queue {
    /// Ready by when the machine is free.
    now: BinaryHeap<Reverse<Waiting>>,
    /// Ready later than that, and when.
    later: BinaryHeap<Reverse<(u32, Waiting)>>,
}

impl Queue {
    /// What goes next on the machine, if that is free from a time on.
    fn best(&mut self, free: u32, gone: &[bool]) -> Option<Rank> {
        while let Some(&Reverse((ready, waiting))) = self.later.peek() {
            if gone[waiting.2 as usize] {
                self.later.pop();
            } else if ready <= free {
                self.later.pop();
                self.now.push(Reverse(waiting));
            } else {
                break;
            }
        }
        while self.now.peek().is_some_and(|Reverse(top)| gone[top.2 as usize]) {
            self.now.pop();
        }
        let now = self.now.peek().map(|&Reverse((rest, length, operation, choice))| {
            (free, rest, free + length, operation, choice)
        });
        now.or_else(|| {
            let &Reverse((ready, (rest, length, operation, choice))) = self.later.peek()?;
            Some((ready, rest, ready + length, operation, choice))
        })
    }
}

/// A non-delay schedule: the operation that can start first goes next, most work remaining deciding ties.
///
/// Each machine keeps what waits for it in order, so that a step costs the logarithm of the operations.
pub(crate) fn dispatch(shop: &Shop, tails: &[u32]) -> Sequences {
    let count = shop.operations();
    let mut sequences = Sequences { lists: vec![Vec::new(); shop.machines], choice: vec![0; count] };
    let mut free = vec![0_u32; shop.machines];
    let mut gone = vec![false; count];
    let mut queues = vec![Queue::default(); shop.machines];
    let enter = |queues: &mut [Queue], operation: u32, ready: u32| {
        for choice in shop.choices_of(operation as usize) {
            let Choice { machine, time: length } = shop.choices[choice];
            let rest = u32::MAX - tails[operation as usize] - length;
            queues[machine as usize].later.push(Reverse((ready, (rest, length, operation, choice as u32))));
        }
    };
    for one in (0..count as u32).filter(|&one| shop.job_before[one as usize] == NONE) {
        enter(&mut queues, one, shop.earliest[one as usize]);
    }
    // For each machine its best, or what was its best before it became later.
    let mut next: BinaryHeap<Reverse<(Rank, u32)>> = BinaryHeap::new();
    let mut known: Vec<Option<Rank>> = vec![None; shop.machines];
    let post = |next: &mut BinaryHeap<_>, known: &mut [Option<Rank>], best: Option<Rank>, machine: u32| {
        let known = &mut known[machine as usize];
        if let Some(rank) = best.filter(|&rank| known.is_none_or(|known| rank < known)) {
            *known = Some(rank);
            next.push(Reverse((rank, machine)));
        }
    };
    for (machine, queue) in (0..).zip(&mut queues) {
        post(&mut next, &mut known, queue.best(0, &gone), machine);
    }
    while let Some(Reverse((rank, machine))) = next.pop() {
        let index = machine as usize;
        if known[index] != Some(rank) {
            continue;
        }
        known[index] = None;
        let best = queues[index].best(free[index], &gone);
        if best != Some(rank) {
            post(&mut next, &mut known, best, machine);
            continue;
        }
        let (_, _, end, operation, choice) = rank;
        gone[operation as usize] = true;
        free[index] = end;
        sequences.lists[index].push(operation);
        sequences.choice[operation as usize] = choice;
        post(&mut next, &mut known, queues[index].best(end, &gone), machine);
        let after = shop.job_after[operation as usize];
        if after != NONE {
            let ready = (end + shop.rests[after as usize]).max(shop.earliest[after as usize]);
            enter(&mut queues, after, ready);
            for choice in shop.choices_of(after as usize) {
                let machine = shop.choices[choice].machine;
                let best = queues[machine as usize].best(free[machine as usize], &gone);
                post(&mut next, &mut known, best, machine);
            }
        }
    }
    sequences
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

    /// The same by a look at everything that is ready, before every step.
    fn dispatch_slowly(shop: &Shop, tails: &[u32]) -> Sequences {
        let count = shop.operations();
        let mut sequences = Sequences { lists: vec![Vec::new(); shop.machines], choice: vec![0; count] };
        let mut free = vec![0; shop.machines];
        let first = |&one: &u32| shop.job_before[one as usize] == NONE;
        let at = |one: u32| (one, shop.earliest[one as usize]);
        let mut ready: Vec<(u32, u32)> = (0..count as u32).filter(first).map(at).collect();
        while !ready.is_empty() {
            let mut ranks: Vec<(Rank, usize)> = Vec::new();
            for (slot, &(operation, time)) in ready.iter().enumerate() {
                for choice in shop.choices_of(operation as usize) {
                    let Choice { machine, time: length } = shop.choices[choice];
                    let start = time.max(free[machine as usize]);
                    let rest = u32::MAX - tails[operation as usize] - length;
                    ranks.push(((start, rest, start + length, operation, choice as u32), slot));
                }
            }
            let ((_, _, end, operation, choice), slot) = ranks.into_iter().min().unwrap();
            let machine = shop.choices[choice as usize].machine as usize;
            free[machine] = end;
            sequences.lists[machine].push(operation);
            sequences.choice[operation as usize] = choice;
            match shop.job_after[operation as usize] {
                NONE => drop(ready.swap_remove(slot)),
                next => {
                    let earliest = shop.earliest[next as usize];
                    ready[slot] = (next, earliest.max(end + shop.rests[next as usize]));
                }
            }
        }
        sequences
    }

    #[test]
    fn the_queues_of_machines_give_what_a_look_at_everything_gives() {
        for seed in 0..200 {
            let mut stream = niwaki_stream::Key::new(seed, "tests/dispatch").open();
            let machines = 1 + stream.below(5);
            let mut draw = || -> Vec<Vec<Alternative>> {
                let choices = |stream: &mut niwaki_stream::Stream| {
                    let mut on: Vec<u32> = (0..machines as u32).filter(|_| stream.below(3) == 0).collect();
                    on.extend(on.is_empty().then(|| stream.below(machines) as u32));
                    let time = |machine| Alternative { machine, time: stream.below(4) as u32 };
                    on.into_iter().map(time).collect::<Vec<_>>()
                };
                (0..=stream.below(4)).map(|_| choices(&mut stream)).collect()
            };
            let jobs: Vec<_> = (0..12).map(|_| draw()).collect();
            let mut shop = Shop::from(&FlexibleShop::new(machines as usize, &jobs).unwrap());
            if seed % 2 == 1 {
                shop.earliest.iter_mut().for_each(|earliest| *earliest = stream.below(20) as u32);
            }
            let tails = crate::optimum::disjunctive::relaxation::Relaxation::new(&shop).tails;
            let (fast, slow) = (dispatch(&shop, &tails), dispatch_slowly(&shop, &tails));
            assert_eq!((fast.lists, fast.choice), (slow.lists, slow.choice), "seed {seed}");
        }
    }

    #[test]
    fn a_hundred_thousand_operations_are_dispatched() {
        // One machine of two: a look at everything before every step would be five thousand million looks.
        let jobs: Vec<_> =
            (0..100_000).map(|job| vec![vec![Alternative { machine: job % 2, time: 1 + job % 7 }]]).collect();
        let shop = Shop::from(&FlexibleShop::new(2, &jobs).unwrap());
        let sequences = dispatch(&shop, &vec![0; 100_000]);
        assert_eq!(sequences.lists.iter().map(Vec::len).collect::<Vec<_>>(), [50_000, 50_000]);
    }
}
