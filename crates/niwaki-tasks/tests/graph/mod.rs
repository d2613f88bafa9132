//! Laws of graphs: features kept up to date are those computed from the schedule so far, and views of one process agree.

use niwaki_shop::construct::JobOrder;
use niwaki_shop::{Alternative, Bounds, FlexibleShop, Instance, JobShop, Operation, Window, verify};
use niwaki_stream::{Key, Stream};
use niwaki_tasks::{GraphLanes, GraphTask, Reading, construct};
use proptest::prelude::*;

use super::below;

/// A shop of its own size, with or without windows; some operations have no length.
fn flexible(stream: &mut Stream, windows: bool) -> FlexibleShop {
    let (jobs, machines) = (1 + below(stream, 5) as usize, 1 + below(stream, 4));
    let operation = |stream: &mut Stream| {
        let mut able: Vec<u32> = (0..machines).collect();
        stream.shuffle(&mut able);
        able.truncate(1 + below(stream, machines) as usize);
        able.into_iter().map(|machine| Alternative { machine, time: below(stream, 9) }).collect::<Vec<_>>()
    };
    let all: Vec<Vec<_>> =
        (0..jobs).map(|_| (0..=below(stream, 4)).map(|_| operation(stream)).collect()).collect();
    let shop = FlexibleShop::new(machines as usize, &all).unwrap();
    if !windows {
        return shop;
    }
    let window = |place: usize, stream: &mut Stream| {
        if place == 0 {
            return Window::FREE;
        }
        let min = below(stream, 4);
        Window { min, max: (below(stream, 3) > 0).then(|| min + below(stream, 5)) }
    };
    let windows: Vec<Vec<Window>> =
        all.iter().map(|job| (0..job.len()).map(|place| window(place, stream)).collect()).collect();
    shop.with_windows(&windows).unwrap()
}

fn graph(shops: &[FlexibleShop], order: JobOrder) -> GraphTask {
    let bounds = vec![Bounds { lower: 1, upper: 1 }; shops.len()];
    GraphTask::new(shops.iter().cloned().map(Instance::Flexible).collect(), bounds, 1, order).unwrap()
}

/// Features of a lane from nothing but its shop and its schedule so far, by the words of the module's table.
fn from_scratch(shop: &FlexibleShop, lanes: &GraphLanes, lane: usize, width: usize) -> Vec<f64> {
    let schedule = lanes.schedule(lane);
    let slacks =
        (0..shop.operations()).filter_map(|at| shop.window(at).max.map(|most| most - shop.window(at).min));
    let loosest = slacks.max().unwrap_or(0);
    let mut rows = Vec::new();
    for job in 0..shop.jobs() {
        let placed: Vec<_> = schedule.operations.iter().filter(|here| here.job as usize == job).collect();
        let first = rows.len();
        let mut end = 0.0;
        for (place, operation) in shop.job(job).enumerate() {
            let here = placed.iter().find(|here| here.op as usize == place);
            let choices = shop.alternatives(operation);
            let mean =
                choices.iter().map(|choice| f64::from(choice.time)).sum::<f64>() / choices.len() as f64;
            let window = shop.window(operation);
            let start = here.map_or(end + f64::from(window.min), |here| f64::from(here.start));
            let time = here.map_or(mean, |here| f64::from(here.end - here.start));
            end = start + time;
            let arcs = if here.is_some() { 1.0 } else { choices.len() as f64 };
            let left = (shop.job(job).len() - placed.len()) as f64;
            let slack = window.max.map_or(loosest, |most| most - window.min);
            let row = [
                f64::from(u8::from(here.is_some())),
                arcs,
                time,
                left,
                0.0,
                start,
                f64::from(window.min),
                f64::from(slack),
            ];
            rows.push(row);
        }
        rows[first..].iter_mut().for_each(|row| row[4] = end);
    }
    rows.iter().flat_map(|row| row[..width].to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn kept_up_to_date_they_are_those_from_scratch(seed in any::<u64>(), windows in any::<bool>(), order in 0_usize..3) {
        let mut stream = Key::new(seed, "law").open();
        let shops: Vec<FlexibleShop> = (0..3).map(|_| flexible(&mut stream, windows)).collect();
        let task = graph(&shops, GraphTask::ORDERS[order].1);
        let sizes = task.sizes();
        let instances = [2, 0, 1, 0];
        let mut lanes = task.begin(&instances).unwrap();
        for _ in 0..sizes.operations {
            let mut choices = [-1; 4];
            for lane in 0..4 {
                let shop = &shops[instances[lane] as usize];
                prop_assert_eq!(lanes.operations(lane), from_scratch(shop, &lanes, lane, sizes.features));
                let schedule = lanes.schedule(lane);
                let flat = |here: &niwaki_shop::Placed| shop.job(here.job as usize).start + here.op as usize;
                // An arc is there where the operation is placed on the machine, or not placed and able.
                let mut reach = vec![0.0; shop.machines()];
                for operation in 0..shop.operations() {
                    let placed = schedule.operations.iter().find(|here| flat(here) == operation);
                    for (machine, reach) in (0..).zip(&mut reach) {
                        let time = shop.time(operation, machine)
                            .filter(|_| placed.is_none_or(|here| here.machine == machine));
                        let arc = operation * sizes.machines + machine as usize;
                        prop_assert_eq!(lanes.able(lane)[arc] == 1, time.is_some());
                        prop_assert_eq!(lanes.arcs(lane)[arc], time.map_or(0.0, f64::from));
                        *reach += f64::from(u8::from(time.is_some()));
                    }
                }
                for (machine, [arcs, free, busy]) in (0..).zip(lanes.machines(lane)) {
                    let here = schedule.operations.iter().filter(|here| here.machine == machine);
                    prop_assert_eq!(arcs, reach[machine as usize]);
                    prop_assert_eq!(free, here.map(|here| f64::from(here.end)).fold(0.0, f64::max));
                    prop_assert!((0.0..=1.0).contains(&busy));
                }
                let open: Vec<usize> = lanes.open(lane).collect();
                prop_assert_eq!(open.is_empty(), lanes.done(lane));
                for pair in &open {
                    let (job, machine) = (pair / sizes.machines, (pair % sizes.machines) as u32);
                    let next = lanes.next(lane).nth(job).flatten();
                    prop_assert!(next.is_some_and(|next| shop.time(next, machine).is_some()));
                }
                if !open.is_empty() {
                    choices[lane] = open[below(&mut stream, open.len() as u32) as usize] as i32;
                }
            }
            // What is closed in the last lane moves nobody.
            if !lanes.done(3) {
                let before = lanes.operations(0).to_vec();
                prop_assert!(lanes.choose(&[choices[0], choices[1], choices[2], -1]).is_err());
                prop_assert_eq!(lanes.operations(0), before);
            }
            lanes.choose(&choices).unwrap();
        }
        for (lane, &instance) in instances.iter().enumerate() {
            let verdict = verify(&Instance::Flexible(shops[instance as usize].clone()), &lanes.schedule(lane)).unwrap();
            prop_assert_eq!((lanes.outcome(lane).makespan, lanes.outcome(lane).violation), (verdict.makespan, verdict.violation));
        }
    }

    #[test]
    fn on_one_machine_the_canonical_and_the_free_order_are_one(seed in any::<u64>()) {
        let mut stream = Key::new(seed, "law").open();
        let on = |time| vec![Alternative { machine: 0, time }];
        let jobs: Vec<Vec<_>> = (0..4).map(|_| (0..=below(&mut stream, 3)).map(|_| on(below(&mut stream, 9))).collect()).collect();
        let shop = FlexibleShop::new(1, &jobs).unwrap();
        let tasks = [0, 1].map(|order| graph(std::slice::from_ref(&shop), GraphTask::ORDERS[order].1));
        let mut both = tasks.each_ref().map(|task| task.begin(&[0]).unwrap());
        while !both[0].done(0) {
            let open = both.each_ref().map(|lanes| lanes.open(0).collect::<Vec<_>>());
            prop_assert_eq!(&open[0], &open[1]);
            prop_assert_eq!(both[0].operations(0), both[1].operations(0));
            let pair = open[0][below(&mut stream, open[0].len() as u32) as usize] as i32;
            both.iter_mut().for_each(|lanes| lanes.choose(&[pair]).unwrap());
        }
        prop_assert!(both[1].done(0));
    }

    #[test]
    fn a_job_shop_is_a_flexible_shop_with_one_machine_per_operation(seed in any::<u64>(), active in any::<bool>()) {
        let mut stream = Key::new(seed, "law").open();
        let step = |stream: &mut Stream| Operation { machine: below(stream, 3), time: 1 + below(stream, 8) };
        let routes: Vec<Vec<_>> = (0..4).map(|_| (0..3).map(|_| step(&mut stream)).collect()).collect();
        let shop = Instance::Job(JobShop::new(3, &routes).unwrap());
        let order = GraphTask::ORDERS[if active { 2 } else { 0 }].1;
        let bounds = || vec![Bounds { lower: 1, upper: 1 }];
        let task = GraphTask::new(vec![shop.clone()], bounds(), 1, order).unwrap();
        let candidates = construct(vec![shop], bounds(), 1, Reading { order, hidden: false }).unwrap();
        let (mut graph, mut set) = (task.begin(&[0]).unwrap(), candidates.begin(&[0]).unwrap());
        let mut offered = vec![0; 12];
        for _ in 0..12 {
            set.open(0, &mut offered);
            let next: Vec<_> = graph.next(0).collect();
            let open: Vec<usize> = graph.open(0).collect();
            // The operations behind the open pairs are the open candidates.
            let operations: Vec<usize> = open.iter().filter_map(|pair| next[pair / 3]).collect();
            let expected: Vec<usize> = (0..12).filter(|&at| offered[at] == 1).collect();
            prop_assert_eq!(&operations, &expected);
            let at = below(&mut stream, open.len() as u32) as usize;
            graph.choose(&[open[at] as i32]).unwrap();
            set.choose(&[operations[at] as i32]).unwrap();
        }
        prop_assert_eq!(graph.schedule(0).makespan(), set.schedule(0).makespan());
    }
}
