//! Instances: small ones of every kind for enumeration, and the paper's shapes.

use niwaki_shop::{
    Alternative, FlexibleShop, FlowShop, JobShop, LaggedJob, Operation, SingleMachine, TwoMachineLags, Window,
};
use niwaki_stream::{Key, Stream};
use proptest::collection::vec;
use proptest::prelude::*;

pub(crate) fn flow(jobs: usize, machines: usize) -> impl Strategy<Value = FlowShop> {
    (1..=jobs, 1..=machines).prop_flat_map(|(jobs, machines)| {
        vec(0..12_u32, jobs * machines).prop_map(move |times| FlowShop::new(jobs, machines, times).unwrap())
    })
}

pub(crate) fn job() -> impl Strategy<Value = JobShop> {
    let operation = (0..3_u32, 0..9_u32).prop_map(|(machine, time)| Operation { machine, time });
    vec(vec(operation, 1..=3), 1..=3).prop_map(|routes| JobShop::new(3, &routes).unwrap())
}

fn jobs(machines: u32) -> impl Strategy<Value = Vec<Vec<Vec<Alternative>>>> {
    let alternatives =
        (1..1_u32 << machines, vec(0..9_u32, machines as usize)).prop_map(move |(set, times)| {
            (0..machines)
                .filter(|machine| set >> machine & 1 == 1)
                .map(|machine| Alternative { machine, time: times[machine as usize] })
                .collect::<Vec<_>>()
        });
    vec(vec(alternatives, 1..=2), 1..=3)
}

pub(crate) fn flexible(machines: u32) -> impl Strategy<Value = FlexibleShop> {
    jobs(machines).prop_map(move |jobs| FlexibleShop::new(machines as usize, &jobs).unwrap())
}

pub(crate) fn resting(machines: u32) -> impl Strategy<Value = FlexibleShop> {
    (jobs(machines), vec((0..6_u32, 0..4_u32, any::<bool>()), 6)).prop_map(move |(jobs, draws)| {
        let mut draws = draws.into_iter().cycle();
        let windows: Vec<Vec<Window>> = jobs
            .iter()
            .map(|job| {
                let window = |op: usize, (min, more, bounded): (u32, u32, bool)| {
                    if op == 0 { Window::FREE } else { Window { min, max: bounded.then_some(min + more) } }
                };
                (0..job.len()).map(|op| window(op, draws.next().unwrap())).collect()
            })
            .collect();
        FlexibleShop::new(machines as usize, &jobs).unwrap().with_windows(&windows).unwrap()
    })
}

pub(crate) fn lags(jobs: usize) -> impl Strategy<Value = TwoMachineLags> {
    let job = (0..12_u32, 0..12_u32, 0..12_u32);
    vec(job.prop_map(|(first, lag, second)| LaggedJob { first, lag, second, due: None }), 1..=jobs)
        .prop_map(|jobs| TwoMachineLags::new(jobs).unwrap())
}

pub(crate) fn single(jobs: usize) -> impl Strategy<Value = SingleMachine> {
    vec((0..12_u32, 0..40_u32), 1..=jobs)
        .prop_map(|jobs| jobs.into_iter().unzip())
        .prop_map(|(times, due)| SingleMachine::new(times, due).unwrap())
}

fn between(stream: &mut Stream, low: u32, high: u32) -> u32 {
    low + stream.below(u64::from(high - low) + 1) as u32
}

/// Times 1 to 20, and 10 to 40 on bottlenecks.
pub(crate) fn paper_flow(seed: u64, jobs: usize, machines: usize, bottlenecks: &[usize]) -> FlowShop {
    let mut stream = Key::new(seed, "law/flow").open();
    let mut draw = |cell: usize| {
        let (low, high) = if bottlenecks.contains(&(cell % machines)) { (10, 40) } else { (1, 20) };
        between(&mut stream, low, high)
    };
    FlowShop::new(jobs, machines, (0..jobs * machines).map(&mut draw).collect()).unwrap()
}

/// Random routes over all machines, machine 0 the bottleneck.
pub(crate) fn paper_job(seed: u64, jobs: usize, machines: u32) -> JobShop {
    let mut stream = Key::new(seed, "law/job").open();
    let routes: Vec<Vec<Operation>> = (0..jobs)
        .map(|_| {
            let mut route: Vec<u32> = (0..machines).collect();
            stream.shuffle(&mut route);
            let mut step = |machine| {
                let (low, high) = if machine == 0 { (10, 40) } else { (1, 20) };
                Operation { machine, time: between(&mut stream, low, high) }
            };
            route.into_iter().map(&mut step).collect()
        })
        .collect();
    JobShop::new(machines as usize, &routes).unwrap()
}

/// Song et al.'s distribution (SD1): mean time 1 to 20, each alternative within a fifth of it.
pub(crate) fn song(seed: u64, jobs: usize, machines: u32) -> FlexibleShop {
    let mut stream = Key::new(seed, "law/song").open();
    let mut operation = || {
        let count = between(&mut stream, 1, machines) as usize;
        let mut set: Vec<u32> = (0..machines).collect();
        stream.shuffle(&mut set);
        set.truncate(count);
        let mean = f64::from(between(&mut stream, 1, 20));
        let (low, high) = ((0.8 * mean).round().max(1.0) as u32, (1.2 * mean).round().max(1.0) as u32);
        set.into_iter()
            .map(|machine| Alternative { machine, time: between(&mut stream, low, high) })
            .collect()
    };
    let jobs: Vec<Vec<Vec<Alternative>>> =
        (0..jobs).map(|job| (0..4 + job % 3).map(|_| operation()).collect()).collect();
    FlexibleShop::new(machines as usize, &jobs).unwrap()
}
