//! Instances of every kind, small enough for enumeration.

use niwaki_shop::{
    Alternative, FlexibleShop, FlowShop, JobShop, LaggedJob, Operation, SingleMachine, TwoMachineLags, Window,
};
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
