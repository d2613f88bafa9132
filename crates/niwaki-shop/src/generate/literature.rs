//! Distributions of the learning literature.

use super::Size;
use super::draw::{alternatives, between, order};
use crate::{FlexibleShop, JobShop, Operation, Result};
use niwaki_stream::Stream;

/// L2D (Zhang and others, 2020): every job visits every machine in a random order, times uniform 1 to 99.
pub(super) fn l2d(stream: &mut Stream, size: Size) -> Result<JobShop> {
    let route = |stream: &mut Stream| -> Vec<Operation> {
        let machines = order(stream, size.machines);
        machines.into_iter().map(|machine| Operation { machine, time: between(stream, 1, 99) }).collect()
    };
    let routes: Vec<_> = (0..size.jobs).map(|_| route(stream)).collect();
    JobShop::new(size.machines, &routes)
}

/// L2D's job shops of several sizes, from half of `size` to all of it.
pub(super) fn l2d_mixed(stream: &mut Stream, size: Size) -> Result<JobShop> {
    let size = from_half(stream, size);
    l2d(stream, size)
}

/// Some size, each part from half of it to all.
fn from_half(stream: &mut Stream, most: Size) -> Size {
    let mut some = |most: usize| between(stream, most.div_ceil(2) as u32, most as u32) as usize;
    let jobs = some(most.jobs);
    Size { jobs, machines: some(most.machines) }
}

/// SD1 (Song and others, 2022): 0.8·m to 1.2·m operations per job, each with a mean time of 1 to 20 and a time on each
/// of its machines within a fifth of that mean.
pub(super) fn sd1(stream: &mut Stream, size: Size) -> Result<FlexibleShop> {
    let m = size.machines;
    let (least, most) = lengths(m);
    let jobs: Vec<_> = (0..size.jobs)
        .map(|_| (0..between(stream, least, most)).map(|_| song_operation(stream, m)).collect())
        .collect();
    FlexibleShop::new(m, &jobs)
}

/// SD1 on condition that the jobs have as many operations in all as they have on average, 50 where 10 × 5: lengths are
/// drawn together until they do. Lanes of such shops are equally long, with SD1's spread between their jobs.
///
/// Paper: app:sched-driftdial
pub(super) fn sd1_even(stream: &mut Stream, size: Size) -> Result<FlexibleShop> {
    let (least, most) = lengths(size.machines);
    let total = (size.jobs as u64 * u64::from(least + most) / 2) as u32;
    let mut drawn = vec![0; size.jobs];
    // About one draw in √(2π · jobs) · deviation succeeds.
    while drawn.iter().sum::<u32>() != total {
        drawn.iter_mut().for_each(|length| *length = between(stream, least, most));
    }
    let jobs: Vec<_> = drawn
        .into_iter()
        .map(|length| (0..length).map(|_| song_operation(stream, size.machines)).collect())
        .collect();
    FlexibleShop::new(size.machines, &jobs)
}

/// The fewest and the most operations of one of Song's jobs.
fn lengths(machines: usize) -> (u32, u32) {
    ((machines * 4 / 5).max(1) as u32, (machines * 6 / 5).max(1) as u32)
}

/// One operation of Song's distribution.
pub(super) fn song_operation(stream: &mut Stream, machines: usize) -> Vec<crate::Alternative> {
    let mean = between(stream, 1, 20);
    // Rounded 0.8 and 1.2 times the mean, within 1 to 20.
    let (low, high) = (((8 * mean + 5) / 10).max(1), ((12 * mean + 5) / 10).min(20));
    alternatives(stream, machines, |stream| between(stream, low, high))
}

/// Flexible shops of several kinds and sizes, from half of `size` to all of it, to learn one dispatcher for many benchmarks from. One kind
/// in five each: Song's; those with few machines per operation, and those with many, on all of which an operation takes the same time (as
/// Hurink's); DANIEL's; ordinary job shops.
pub(super) fn mixed(stream: &mut Stream, size: Size) -> Result<FlexibleShop> {
    let size = from_half(stream, size);
    let (jobs, m) = (size.jobs, size.machines);
    let kind = stream.below(5);
    if kind == 4 {
        return FlexibleShop::from_job_shop(&l2d(stream, size)?);
    }
    let (least, most) = lengths(m);
    let same = |stream: &mut Stream, least: usize, most: usize| {
        let (time, count) = (between(stream, 1, 99), between(stream, least as u32, most as u32) as usize);
        let machines = order(stream, m).into_iter().take(count);
        machines.map(|machine| crate::Alternative { machine, time }).collect::<Vec<_>>()
    };
    let job = |stream: &mut Stream| -> Vec<Vec<crate::Alternative>> {
        let operations = 0..between(stream, least, most);
        operations
            .map(|_| match kind {
                0 => song_operation(stream, m),
                1 => same(stream, 1, m.min(3)),
                2 => same(stream, m.div_ceil(3), m),
                _ => alternatives(stream, m, |stream| between(stream, 1, 99)),
            })
            .collect()
    };
    let all: Vec<_> = (0..jobs).map(|_| job(stream)).collect();
    FlexibleShop::new(m, &all)
}

/// SD2 (DANIEL; Wang and others, 2023): m operations per job, times uniform 1 to 99 on each machine alone.
pub(super) fn sd2(stream: &mut Stream, size: Size) -> Result<FlexibleShop> {
    let operation =
        |stream: &mut Stream| alternatives(stream, size.machines, |stream| between(stream, 1, 99));
    let jobs: Vec<_> =
        (0..size.jobs).map(|_| (0..size.machines).map(|_| operation(stream)).collect()).collect();
    FlexibleShop::new(size.machines, &jobs)
}
