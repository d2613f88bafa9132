//! The paper's tasks. Where it names no distribution, the reading is said beside the number.

use super::Size;
use super::draw::{between, order};
use super::literature::song_operation;
use crate::{
    FlexibleShop, FlowShop, JobShop, LaggedJob, Operation, Result, SingleMachine, TwoMachineLags, Window,
};
use niwaki_stream::Stream;

/// A time on an ordinary machine or on a bottleneck.
fn time(stream: &mut Stream, bottleneck: bool) -> u32 {
    if bottleneck { between(stream, 10, 40) } else { between(stream, 1, 20) }
}

/// The flow shop with some bottlenecks: times 10 to 40 there and 1 to 20 elsewhere.
///
/// Paper: app:sched-win, app:sched-transformer
pub(super) fn flow_shop(
    stream: &mut Stream,
    size: Size,
    bottleneck: impl Fn(usize) -> bool,
) -> Result<FlowShop> {
    let cells = size.jobs * size.machines;
    let times = (0..cells).map(|cell| time(stream, bottleneck(cell % size.machines))).collect();
    FlowShop::new(size.jobs, size.machines, times)
}

/// The disjunctive job shop: own routes over all machines, the middle machine being the shared bottleneck.
///
/// Paper: app:sched-win
pub(super) fn job_shop(stream: &mut Stream, size: Size) -> Result<JobShop> {
    let bottleneck = size.machines as u32 / 2;
    let route = |stream: &mut Stream| -> Vec<Operation> {
        let machines = order(stream, size.machines);
        let step = |machine| Operation { machine, time: time(stream, machine == bottleneck) };
        machines.into_iter().map(step).collect()
    };
    let routes: Vec<_> = (0..size.jobs).map(|_| route(stream)).collect();
    JobShop::new(size.machines, &routes)
}

/// The flexible job shop of the drift dial: Song's times, and as many operations per job as machines, so that the
/// horizon of 10 × 5 is 50 in every instance.
///
/// Paper: app:sched-driftdial
pub(super) fn flexible_shop(stream: &mut Stream, size: Size) -> Result<FlexibleShop> {
    let job =
        |stream: &mut Stream| (0..size.machines).map(|_| song_operation(stream, size.machines)).collect();
    let jobs: Vec<_> = (0..size.jobs).map(|_| job(stream)).collect();
    FlexibleShop::new(size.machines, &jobs)
}

/// How much longer than its least a rest may be, at most. Calibrated as the paper did: with this slack a uniformly
/// random policy meets every window in about a fifth of its episodes, inside the pilot's band of 0.05 to 0.40.
const WINDOW_SLACK: (u32, u32) = (20, 30);

/// A flexible job shop with resting windows: rests of at least 1 to 10, at most that and a slack.
///
/// Paper: app:sched-driftdial
pub(super) fn resting_windows(stream: &mut Stream, shop: FlexibleShop) -> Result<FlexibleShop> {
    let mut window = |index: usize| {
        if index == 0 {
            return Window::FREE;
        }
        let min = between(stream, 1, 10);
        Window { min, max: Some(min + between(stream, WINDOW_SLACK.0, WINDOW_SLACK.1)) }
    };
    let windows: Vec<Vec<Window>> =
        (0..shop.jobs()).map(|job| (0..shop.job(job).len()).map(&mut window).collect()).collect();
    shop.with_windows(&windows)
}

/// The two-machine flow shop with lags: times 1 to 20, lags 0 to 40, and due dates that Mitten's order meets with up to
/// a tenth to spare.
///
/// Paper: app:sched-boundary
pub(super) fn lags(stream: &mut Stream, size: Size) -> Result<TwoMachineLags> {
    let mut jobs: Vec<LaggedJob> = (0..size.jobs)
        .map(|_| LaggedJob {
            first: between(stream, 1, 20),
            lag: between(stream, 0, 40),
            second: between(stream, 1, 20),
            due: None,
        })
        .collect();
    let shop = TwoMachineLags::new(jobs.clone())?;
    let order = crate::heuristics::johnson_with_lags(&shop);
    for here in crate::Schedule::of_lagged_order(&shop, &order).operations {
        if here.op == 1 {
            jobs[here.job as usize].due = Some(here.end + between(stream, 0, here.end / 10));
        }
    }
    TwoMachineLags::new(jobs)
}

/// Two orders and a tight deadline: one is lag-critical and misses its due date unless it runs first. With `both`, the
/// other has a due date too, that it meets when it runs second without waiting.
///
/// Paper: app:sched-boundary
pub(super) fn two_orders(stream: &mut Stream, both: bool) -> Result<TwoMachineLags> {
    let (first, second, lag) = (between(stream, 1, 20), between(stream, 1, 20), between(stream, 20, 40));
    let (other_first, other_second) = (between(stream, 2, 20), between(stream, 1, 20));
    // Behind the other it would start its lag `other_first` later: any slack below that makes a cliff.
    let due = Some(first + lag + second + between(stream, 0, other_first - 1));
    let critical = LaggedJob { first, lag, second, due };
    let due = both.then(|| first + lag + second + other_second + between(stream, 0, 10));
    let other = LaggedJob { first: other_first, lag: 0, second: other_second, due };
    let jobs = if stream.below(2) == 0 { vec![critical, other] } else { vec![other, critical] };
    TwoMachineLags::new(jobs)
}

/// The single machine: times 1 to 20, and due dates that some order meets with up to a tenth to spare.
///
/// Paper: app:sched-boundary
pub(super) fn single_machine(stream: &mut Stream, size: Size) -> Result<SingleMachine> {
    let times: Vec<u32> = (0..size.jobs).map(|_| between(stream, 1, 20)).collect();
    let mut due = vec![0; size.jobs];
    let mut now = 0;
    for job in order(stream, size.jobs) {
        now += times[job as usize];
        due[job as usize] = now + between(stream, 0, now / 10);
    }
    SingleMachine::new(times, due)
}
