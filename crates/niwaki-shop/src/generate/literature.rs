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

/// SD1 (Song and others, 2022): 0.8·m to 1.2·m operations per job, each with a mean time of 1 to 20 and a time on each
/// of its machines within a fifth of that mean.
pub(super) fn sd1(stream: &mut Stream, size: Size) -> Result<FlexibleShop> {
    let m = size.machines;
    let (least, most) = ((m * 4 / 5).max(1) as u32, (m * 6 / 5).max(1) as u32);
    let jobs: Vec<_> = (0..size.jobs)
        .map(|_| (0..between(stream, least, most)).map(|_| song_operation(stream, m)).collect())
        .collect();
    FlexibleShop::new(m, &jobs)
}

/// One operation of Song's distribution.
pub(super) fn song_operation(stream: &mut Stream, machines: usize) -> Vec<crate::Alternative> {
    let mean = between(stream, 1, 20);
    // Rounded 0.8 and 1.2 times the mean, within 1 to 20.
    let (low, high) = (((8 * mean + 5) / 10).max(1), ((12 * mean + 5) / 10).min(20));
    alternatives(stream, machines, |stream| between(stream, low, high))
}

/// SD2 (DANIEL; Wang and others, 2023): m operations per job, times uniform 1 to 99 on each machine alone.
pub(super) fn sd2(stream: &mut Stream, size: Size) -> Result<FlexibleShop> {
    let operation =
        |stream: &mut Stream| alternatives(stream, size.machines, |stream| between(stream, 1, 99));
    let jobs: Vec<_> =
        (0..size.jobs).map(|_| (0..size.machines).map(|_| operation(stream)).collect()).collect();
    FlexibleShop::new(size.machines, &jobs)
}
