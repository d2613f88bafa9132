//! Moves keep what they must not lose: longest paths, and no cycle.

use super::super::graph::Paths;
use super::super::start::dispatch;
use super::*;
use crate::generate::{Size, Task, generate};
use crate::{Alternative, FlexibleShop, Instance, JobShop, Operation};

fn generated(seed: u64) -> JobShop {
    match generate(Task::L2d, Size { jobs: 9, machines: 5 }, seed, 0).unwrap() {
        Instance::Job(shop) => shop,
        _ => panic!("a job shop"),
    }
}

/// Jobs that come back to a machine, some of them at once, and operations that take no time.
fn returning(seed: u64) -> JobShop {
    let mut stream = Key::new(seed, "returning").open();
    let mut operation = || Operation { machine: stream.below(3) as u32, time: stream.below(4) as u32 };
    let routes: Vec<Vec<_>> = (0..5).map(|_| (0..6).map(|_| operation()).collect()).collect();
    JobShop::new(3, &routes).unwrap()
}

/// The same shop with some operations that other machines can run as well.
fn with_choices(shop: &JobShop, seed: u64) -> FlexibleShop {
    let mut stream = Key::new(seed, "choices").open();
    let machines = shop.machines() as u64;
    let job = |job| {
        let choices = |one: &Operation| {
            let mut list = vec![Alternative { machine: one.machine, time: one.time }];
            for _ in 0..stream.below(3) {
                let machine = stream.below(machines) as u32;
                if list.iter().all(|known| known.machine != machine) {
                    list.push(Alternative { machine, time: one.time + stream.below(4) as u32 });
                }
            }
            list
        };
        shop.route(job).iter().map(choices).collect::<Vec<_>>()
    };
    let jobs: Vec<_> = (0..shop.jobs()).map(job).collect();
    FlexibleShop::new(shop.machines(), &jobs).unwrap()
}

/// Job shops, and the same with a choice of machines.
fn shops() -> impl Iterator<Item = (u64, Shop)> {
    let shops = (0..4).map(|seed| (seed, generated(seed))).chain((0..40).map(|seed| (seed, returning(seed))));
    shops.flat_map(|(seed, shop)| {
        let plain = Shop::from(&FlexibleShop::from_job_shop(&shop).unwrap());
        [(seed, plain), (seed, Shop::from(&with_choices(&shop, seed)))]
    })
}

/// The makespan of orders, computed by other means.
fn judged(shop: &Shop, search: &Blocks<'_>) -> u32 {
    let mut paths = Paths::default();
    assert!(paths.compute(shop, &search.best()), "the orders contradict the routes");
    paths.makespan
}

/// The same with times before which operations do not start, and tails after some.
fn dated() -> impl Iterator<Item = (u64, Shop, Vec<u32>)> {
    shops().map(|(seed, mut shop)| {
        let mut stream = Key::new(seed, "dated").open();
        shop.earliest.iter_mut().for_each(|earliest| *earliest = stream.below(30) as u32);
        let tails =
            (0..shop.operations()).map(|_| stream.below(3) as u32 * stream.below(25) as u32).collect();
        (seed, shop, tails)
    })
}

/// The makespan of the best orders with times and tails, by recursion over what comes before.
fn judged_with_tails(shop: &Shop, search: &Blocks<'_>, tails: &[u32]) -> u32 {
    let best = search.best();
    let mut at: Vec<Option<u32>> = vec![None; shop.operations()];
    let machine_before = |one: u32| {
        let list = best.lists.iter().find(|list| list.contains(&one)).unwrap();
        list.iter().position(|&other| other == one).unwrap().checked_sub(1).map(|place| list[place])
    };
    fn end(
        shop: &Shop,
        best: &Sequences,
        at: &mut [Option<u32>],
        one: u32,
        before: &dyn Fn(u32) -> Option<u32>,
    ) -> u32 {
        if let Some(known) = at[one as usize] {
            return known;
        }
        let mut start = shop.earliest[one as usize];
        if shop.job_before[one as usize] != crate::optimum::disjunctive::shop::NONE {
            let previous = end(shop, best, at, shop.job_before[one as usize], before);
            start = start.max(previous + shop.rests[one as usize]);
        }
        if let Some(previous) = before(one) {
            start = start.max(end(shop, best, at, previous, before));
        }
        let end = start + shop.choices[best.choice[one as usize] as usize].time;
        at[one as usize] = Some(end);
        end
    }
    let ends = (0..shop.operations() as u32)
        .map(|one| end(shop, &best, &mut at, one, &machine_before) + tails[one as usize]);
    ends.max().unwrap()
}

/// All of these.
fn all() -> impl Iterator<Item = (u64, Shop, Vec<u32>)> {
    let plain = shops().map(|(seed, shop)| {
        let tails = vec![0; shop.operations()];
        (seed, shop, tails)
    });
    plain.chain(dated())
}

#[test]
fn times_and_tails_count_as_long_as_they_are() {
    for (seed, shop, tails) in dated() {
        let mut search = Blocks::new(&shop, &dispatch(&shop, &vec![0; shop.operations()]), seed, 0);
        search.set_tails(&tails);
        assert_eq!(judged_with_tails(&shop, &search, &tails), search.best_makespan());
        let first = search.best_makespan();
        search.run(600, 0);
        assert_eq!(judged_with_tails(&shop, &search, &tails), search.best_makespan(), "seed {seed}");
        assert!(search.best_makespan() <= first);
        // Without tails the same orders are as long as their operations.
        let none = vec![0; tails.len()];
        search.set_tails(&none);
        assert_eq!(judged(&shop, &search), search.best_makespan(), "seed {seed}");
        search.run(600, 0);
        search.set_tails(&tails);
        assert_eq!(judged_with_tails(&shop, &search, &tails), search.best_makespan(), "seed {seed}");
    }
}

#[test]
fn every_move_keeps_the_longest_paths() {
    for (seed, shop, tails) in all() {
        let mut search = Blocks::new(&shop, &dispatch(&shop, &vec![0; shop.operations()]), seed, 0);
        search.set_tails(&tails);
        let first = search.best_makespan();
        for _ in 0..400 {
            search.run(1, 0);
            // Computed afresh, all at once.
            let (end, out, makespan) =
                (search.paths.end.clone(), search.paths.out.clone(), search.now.makespan);
            search.now.sort(&search.routes);
            search.paths.compute_all(&search.routes, &mut search.now);
            assert_eq!((&end, &out, makespan), (&search.paths.end, &search.paths.out, search.now.makespan));
        }
        assert_eq!(judged_with_tails(&shop, &search, &tails), search.best_makespan());
        assert!(search.best_makespan() <= first);
    }
}

#[test]
fn insertion_and_new_starts_are_schedules() {
    for (seed, shop) in shops() {
        let mut search = Blocks::new(&shop, &dispatch(&shop, &vec![0; shop.operations()]), seed, 0);
        for noise in [0, 8] {
            search.best = insert_all(&shop, &search.routes, None, noise, &mut search.stream);
            assert_eq!(judged(&shop, &search), search.best.makespan);
        }
        // By insertion, scattered and between two members, in turn.
        for _ in 0..12 {
            search.turn_to_elite();
            search.best.clone_from(&search.now);
            assert_eq!(judged(&shop, &search), search.best.makespan);
            (0..5).for_each(|_| _ = search.step());
        }
    }
}

/// What a move is estimated to come to, and the operations that change places.
fn estimated(search: &mut Blocks<'_>, one: Move) -> (u32, Vec<u32>) {
    match one {
        Move::Shift(one) => estimated_shift(search, one),
        Move::Reassign(one) => (search.through(one), vec![one.one]),
    }
}

fn estimated_shift(search: &mut Blocks<'_>, one: Shift) -> (u32, Vec<u32>) {
    let mut between: Vec<u32> = search.crossed(one).collect();
    if one.forward {
        between.insert(0, one.first)
    } else {
        between.push(one.last)
    }
    search.critical.clone_from(&between);
    search.lay_out(0, between.len() - 1);
    let left = search.paths.end[search.now.before[one.first as usize] as usize];
    let right = search.paths.out[search.now.after[one.last as usize] as usize];
    let (block, last) = (&mut search.block, between.len() - 1);
    let estimate = if one.forward {
        block.forward(0, last, (left, right), u32::MAX)
    } else {
        block.backward(0, last, (left, right), u32::MAX)
    };
    (estimate.unwrap(), between)
}

#[test]
fn no_path_through_what_moves_is_longer_than_estimated() {
    let (mut exact, mut reassigned) = (0, 0);
    for (seed, shop, tails) in all() {
        let mut search = Blocks::new(&shop, &dispatch(&shop, &vec![0; shop.operations()]), seed, 0);
        search.set_tails(&tails);
        for _ in 0..40 {
            search.find_critical_path();
            let Some(chosen) = search.choose() else { break };
            let (estimate, moved) = estimated(&mut search, chosen);
            reassigned += u32::from(matches!(chosen, Move::Reassign(_)));
            search.make(chosen);
            let through = |one: u32| {
                let one = one as usize;
                search.paths.end[one] + search.paths.out[one] - search.now.time[one]
            };
            let longest = moved.into_iter().map(through).max().unwrap();
            assert!(
                longest <= estimate,
                "seed {seed}: {longest} after a move that was estimated at {estimate}"
            );
            exact += u32::from(longest == estimate);
        }
    }
    assert!(exact > 1000 && reassigned > 200, "{exact} exact, {reassigned} to other machines");
}
