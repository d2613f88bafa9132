//! Canonical order makes a tree and free order a DAG over the same schedules, by enumeration; random episodes pass the
//! checker.

use niwaki_shop::construct::{
    FlexibleLanes, JobLanes, JobOrder, Lanes, Order, SequenceLanes, count, nth, pick,
};
use niwaki_shop::{
    Alternative, FlexibleShop, FlowShop, Instance, JobShop, LaggedJob, Limits, Operation, SingleMachine,
    TwoMachineLags, Window, optimum, verify,
};
use niwaki_stream::{Key, Stream};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Every history's state, and the finished states.
struct Enumeration {
    histories: usize,
    /// How many histories lead to each state.
    states: BTreeMap<Vec<u32>, usize>,
    finished: BTreeSet<Vec<u32>>,
    /// The shortest makespan of all.
    least: u32,
}

/// Walks through every history of a one-lane process by replaying it.
fn enumerate(make: &dyn Fn() -> Box<dyn Lanes>) -> Enumeration {
    let mut found =
        Enumeration { histories: 0, states: BTreeMap::new(), finished: BTreeSet::new(), least: u32::MAX };
    let mut histories = vec![Vec::new()];
    while let Some(history) = histories.pop() {
        let mut lanes = make();
        history.iter().for_each(|&action| lanes.step(&[action]).unwrap());
        let mut state = Vec::new();
        lanes.write_state(0, &mut state);
        found.histories += 1;
        if lanes.done(0) {
            found.finished.insert(state.clone());
            found.least = found.least.min(lanes.makespan(0));
        }
        *found.states.entry(state).or_default() += 1;
        for n in 0..count(lanes.legal(0)) {
            let action = nth(lanes.legal(0), n).unwrap();
            histories.push(history.iter().copied().chain([action]).collect());
        }
    }
    found
}

/// `same`: whether free order builds exactly the schedules of the canonical one, rather than more.
fn canonical_is_a_tree_and_free_merges(same: bool, make: &dyn Fn(Order) -> Box<dyn Lanes>) {
    let tree = enumerate(&|| make(Order::Canonical));
    let dag = enumerate(&|| make(Order::Free));
    assert!(tree.states.values().all(|&paths| paths == 1), "a state was reached by two histories");
    assert_eq!(tree.histories, tree.states.len());
    assert!(dag.histories > dag.states.len(), "no histories merged");
    assert!(tree.finished.is_subset(&dag.finished), "free order misses a schedule");
    assert!(!same || tree.finished == dag.finished, "free order builds other schedules");
}

/// The proven optimum of a small instance.
fn optimum(instance: Instance) -> u32 {
    let limits = Limits::new(Duration::from_secs(60), 1);
    let found = optimum::solve(&instance, limits, &mut |_| {});
    assert!(found.proven);
    found.upper
}

fn draw(stream: &mut Stream, least: u32, most: u32) -> u32 {
    least + stream.below(u64::from(most - least + 1)) as u32
}

fn flow(stream: &mut Stream, jobs: usize, machines: usize) -> FlowShop {
    FlowShop::new(jobs, machines, (0..jobs * machines).map(|_| draw(stream, 1, 9)).collect()).unwrap()
}

fn job(stream: &mut Stream, jobs: usize, machines: u32, least: u32) -> JobShop {
    let route = |stream: &mut Stream| {
        let mut order: Vec<u32> = (0..machines).collect();
        stream.shuffle(&mut order);
        order
            .into_iter()
            .map(|machine| Operation { machine, time: draw(stream, least, 4) })
            .collect::<Vec<_>>()
    };
    let routes: Vec<_> = (0..jobs).map(|_| route(stream)).collect();
    JobShop::new(machines as usize, &routes).unwrap()
}

fn flexible(stream: &mut Stream, jobs: usize, operations: usize, machines: u32, least: u32) -> FlexibleShop {
    let choices = |stream: &mut Stream| {
        let mut order: Vec<u32> = (0..machines).collect();
        stream.shuffle(&mut order);
        order.truncate(draw(stream, 1, machines) as usize);
        order
            .into_iter()
            .map(|machine| Alternative { machine, time: draw(stream, least, 4) })
            .collect::<Vec<_>>()
    };
    let all: Vec<Vec<_>> = (0..jobs).map(|_| (0..operations).map(|_| choices(stream)).collect()).collect();
    FlexibleShop::new(machines as usize, &all).unwrap()
}

fn with_windows(stream: &mut Stream, shop: FlexibleShop) -> FlexibleShop {
    let windows: Vec<Vec<Window>> = (0..shop.jobs())
        .map(|job| {
            let mut window = |index: usize| {
                if index == 0 {
                    return Window::FREE;
                }
                let min = draw(stream, 0, 3);
                Window { min, max: Some(min + draw(stream, 0, 3)) }
            };
            (0..shop.job(job).len()).map(&mut window).collect()
        })
        .collect();
    shop.with_windows(&windows).unwrap()
}

#[test]
fn sequences() {
    let mut stream = Key::new(1, "law").open();
    let shop = flow(&mut stream, 4, 3);
    canonical_is_a_tree_and_free_merges(true, &|order| {
        Box::new(SequenceLanes::flow(std::slice::from_ref(&shop), 1, order).unwrap())
    });
    let lagged = TwoMachineLags::new(
        (0..4)
            .map(|_| LaggedJob { first: draw(&mut stream, 1, 5), lag: 3, second: 2, due: Some(9) })
            .collect(),
    )
    .unwrap();
    canonical_is_a_tree_and_free_merges(true, &|order| {
        Box::new(SequenceLanes::lagged(std::slice::from_ref(&lagged), 1, order).unwrap())
    });
    let single = SingleMachine::new(vec![3, 1, 2, 2], vec![5, 5, 5, 9]).unwrap();
    canonical_is_a_tree_and_free_merges(true, &|order| {
        Box::new(SequenceLanes::single(std::slice::from_ref(&single), 1, order).unwrap())
    });
}

#[test]
fn job_shops_even_with_operations_of_no_length() {
    for least in [0, 1] {
        for seed in 0..6 {
            let shop = job(&mut Key::new(seed, "law").open(), 3, 3, least);
            let lanes = |order| -> Box<dyn Lanes> {
                Box::new(JobLanes::new(std::slice::from_ref(&shop), 1, order).unwrap())
            };
            canonical_is_a_tree_and_free_merges(least > 0, &|order| lanes(JobOrder::NonDelay(order)));
            let orders = [JobOrder::NonDelay(Order::Canonical), JobOrder::Active, JobOrder::Machine];
            let [without_delay, active, machine] = orders.map(|order| enumerate(&|| lanes(order)));
            let list = enumerate(&|| lanes(JobOrder::List));
            assert!(list.histories > list.states.len(), "a list is no tree");
            for tree in [&without_delay, &active, &machine] {
                assert!(tree.states.values().all(|&paths| paths == 1));
                assert!(tree.finished.is_subset(&list.finished), "a list builds every order of the machines");
            }
            let optimum = optimum(Instance::Job(shop.clone()));
            assert_eq!(active.least, optimum, "some optimum is active");
            assert_eq!(list.least, optimum, "and on a list");
            // Three jobs on three machines have 3!³ orders of the machines; a list builds those without a cycle.
            assert!(list.finished.len() <= 216 && machine.finished.len() < list.finished.len());
            if least > 0 {
                assert!(
                    without_delay.finished.is_subset(&active.finished),
                    "every non-delay schedule is active"
                );
            }
        }
    }
}

#[test]
fn the_machine_that_finished_first_may_miss_the_optimum_and_may_wait() {
    // Of a hundred shops of three jobs and three machines, word for word: every one builds a schedule with delay, and
    // some have no optimum among theirs.
    let (mut waits, mut misses) = (0, 0);
    for seed in 0..100 {
        let shop = job(&mut Key::new(seed, "law").open(), 3, 3, 1);
        let lanes = |order| -> Box<dyn Lanes> {
            Box::new(JobLanes::new(std::slice::from_ref(&shop), 1, order).unwrap())
        };
        let machine = enumerate(&|| lanes(JobOrder::Machine));
        let without_delay = enumerate(&|| lanes(JobOrder::NonDelay(Order::Canonical)));
        waits += usize::from(!machine.finished.is_subset(&without_delay.finished));
        misses += usize::from(machine.least > optimum(Instance::Job(shop.clone())));
    }
    assert!(waits > 90 && misses > 0, "{waits} {misses}");
}

#[test]
fn flexible_shops_with_and_without_windows() {
    for least in [0, 1] {
        for seed in 0..4 {
            let mut stream = Key::new(seed, "law").open();
            let shop = flexible(&mut stream, 3, 2, 2, least);
            for shop in [shop.clone(), with_windows(&mut stream, shop)] {
                canonical_is_a_tree_and_free_merges(false, &|order| {
                    Box::new(FlexibleLanes::new(std::slice::from_ref(&shop), 1, order).unwrap())
                });
                let active =
                    enumerate(&|| Box::new(FlexibleLanes::active(std::slice::from_ref(&shop), 1).unwrap()));
                assert!(active.states.values().all(|&paths| paths == 1));
                assert_eq!(active.least, optimum(Instance::Flexible(shop)), "some optimum is active");
            }
        }
    }
}

/// Random episodes in all lanes; every schedule passes the checker with the lane's own makespan.
fn random_episodes(lanes: &mut dyn Lanes, instances: &[Instance], stream: &mut Stream) {
    let which: Vec<u32> = (0..lanes.lanes()).map(|_| stream.below(instances.len() as u64) as u32).collect();
    lanes.reset(&which).unwrap();
    let mut actions = vec![0; lanes.lanes()];
    for _ in 0..lanes.horizon() {
        for (lane, action) in actions.iter_mut().enumerate() {
            *action = pick(lanes.legal(lane), stream.bits()).unwrap_or(0);
        }
        lanes.step(&actions).unwrap();
    }
    for (lane, &instance) in which.iter().enumerate() {
        assert!(lanes.done(lane) && count(lanes.legal(lane)) == 0);
        let verdict = verify(&instances[instance as usize], &lanes.schedule(lane)).unwrap();
        assert_eq!(verdict.makespan, lanes.makespan(lane));
    }
}

#[test]
fn random_episodes_pass_the_checker() {
    let mut stream = Key::new(7, "law").open();
    for order in [Order::Canonical, Order::Free] {
        let pool: Vec<_> = (0..3).map(|_| flow(&mut stream, 9, 4)).collect();
        let instances: Vec<_> = pool.iter().cloned().map(Instance::Flow).collect();
        random_episodes(&mut SequenceLanes::flow(&pool, 33, order).unwrap(), &instances, &mut stream);

        let pool: Vec<_> = (0..3).map(|_| job(&mut stream, 7, 4, 0)).collect();
        let instances: Vec<_> = pool.iter().cloned().map(Instance::Job).collect();
        for order in [JobOrder::NonDelay(order), JobOrder::Active, JobOrder::Machine, JobOrder::List] {
            random_episodes(&mut JobLanes::new(&pool, 33, order).unwrap(), &instances, &mut stream);
        }

        for windowed in [false, true] {
            let mut make = || {
                let shop = flexible(&mut stream, 12, 3, 6, 0);
                if windowed { with_windows(&mut stream, shop) } else { shop }
            };
            let pool: Vec<_> = (0..3).map(|_| make()).collect();
            let instances: Vec<_> = pool.iter().cloned().map(Instance::Flexible).collect();
            random_episodes(&mut FlexibleLanes::active(&pool, 33).unwrap(), &instances, &mut stream);
            let mut lanes = FlexibleLanes::new(&pool, 33, order).unwrap();
            random_episodes(&mut lanes, &instances, &mut stream);
            for lane in 0..33 {
                let counts: Vec<_> = instances
                    .iter()
                    .filter_map(|instance| verify(instance, &lanes.schedule(lane)).ok())
                    .collect();
                assert!(counts.iter().any(|verdict| verdict.violation == lanes.violation(lane)));
            }
        }
    }
}

#[test]
fn shops_of_several_sizes_share_lanes_and_do_not_notice() {
    let mut stream = Key::new(5, "law").open();
    let pool = [
        flexible(&mut stream, 3, 2, 4, 0),
        flexible(&mut stream, 7, 5, 2, 0),
        flexible(&mut stream, 1, 3, 3, 0),
    ];
    for order in [Order::Canonical, Order::Free] {
        for active in [false, true] {
            let make = |pool: &[FlexibleShop], lanes| {
                if active {
                    FlexibleLanes::active(pool, lanes)
                } else {
                    FlexibleLanes::new(pool, lanes, order)
                }
            };
            let mut together = make(&pool, 3).unwrap();
            let mut alone: Vec<_> =
                pool.iter().map(|shop| make(std::slice::from_ref(shop), 1).unwrap()).collect();
            assert_eq!(together.sizes(), (7, 4));
            for _ in 0..together.horizon() {
                let mut actions = [0; 3];
                for (lane, alone) in alone.iter_mut().enumerate() {
                    let Some(action) = pick(alone.legal(0), stream.bits()) else { continue };
                    // Pairs are numbered by the machines of the largest shop.
                    let machines = pool[lane].machines() as u32;
                    let pairs = order == Order::Free && !active;
                    let number = |action: u32| {
                        if pairs { action / machines * 4 + action % machines } else { action }
                    };
                    let open = |lanes: &FlexibleLanes, lane| {
                        (0..count(lanes.legal(lane)))
                            .filter_map(|n| nth(lanes.legal(lane), n))
                            .collect::<Vec<_>>()
                    };
                    let expected: Vec<u32> = open(alone, 0).into_iter().map(number).collect();
                    assert_eq!(open(&together, lane), expected);
                    actions[lane] = number(action);
                    alone.step(&[action]).unwrap();
                }
                together.step(&actions).unwrap();
            }
            for (lane, alone) in alone.iter().enumerate() {
                assert!(together.done(lane) && alone.done(0));
                assert_eq!(together.schedule(lane), alone.schedule(0));
            }
        }
    }
}
