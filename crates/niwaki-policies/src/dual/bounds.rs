//! What a lane shows of its bounds (see [`niwaki_shop::construct::Outlook`]), behind the numbers of `show.rs`.
//!
//! All are measured in the largest bound as it stands. Of an unplaced operation: when it could start as far as its job goes, and how
//! far its job's least end stays behind that bound. Of a machine: how far its own bound stays behind, and its work left. Of an
//! open pair, once it is chosen: by how much the largest bound grows; by how much three norms of all bounds exceed those of the
//! best open pair; where the machine's own bound stands and by how much it grew; where the job would end. Where nothing is to be
//! decided, pairs show nothing.

use crate::graph::{Shown, Widths};
use niwaki_shop::construct::{Prospect, Sight, View};
use niwaki_tasks::graph::PLACED;
use niwaki_tasks::{GraphLanes, GraphTask};
use std::cell::Cell;

/// Numbers of an operation, a machine and a pair.
pub(super) const WIDTHS: Widths = Widths { operations: 2, machines: 2, pairs: 7 };

/// The powers of the norms: from a mean of all bounds to little more than the largest.
const POWERS: [i32; 3] = [1, 8, 20];

/// How much of a bound's distance to the largest is one.
const FAR: f32 = 0.2;

thread_local! {
    /// The memory of this thread's last view.
    static SIGHT: Cell<Sight> = Cell::default();
}

/// Writes the numbers of a state into rows of these widths, at their ends.
pub(super) fn show(task: &GraphTask, lanes: &GraphLanes, lane: usize, wide: Widths, to: &mut Shown<'_>) {
    let outlook = task.outlook(lanes.instance(lane));
    let mut view = outlook.look_again(lanes.standing(lane), SIGHT.take());
    show_what_is_left(task, lanes, lane, &view, wide, to);
    show_choices(task, lanes, lane, &mut view, wide, to);
    SIGHT.set(view.close());
}

/// What all is measured in: the largest bound as it stands.
fn measure(view: &View<'_>) -> f32 {
    view.prospect().latest().max(1.0)
}

/// How far a bound stays behind the largest.
fn behind(bound: f32, latest: f32) -> f32 {
    (bound / latest - 1.0) / FAR
}

/// The numbers of operations and machines.
fn show_what_is_left(
    task: &GraphTask,
    lanes: &GraphLanes,
    lane: usize,
    view: &View<'_>,
    wide: Widths,
    to: &mut Shown<'_>,
) {
    let (latest, columns) = (measure(view), task.sizes().features);
    let (operations, times) = (lanes.operations(lane), task.times(lanes.instance(lane)));
    let mut work = vec![0.0; lanes.shop(lane).machines()];
    for (operation, row) in to.operations.chunks_exact_mut(wide.operations).enumerate().take(times.len()) {
        if operations[operation * columns + PLACED] > 0.0 {
            continue;
        }
        let (arrival, tail) = view.arrival_and_tail(operation);
        let own = &mut row[wide.operations - WIDTHS.operations..];
        own.copy_from_slice(&[arrival / latest, behind(arrival + times[operation].least + tail, latest)]);
        for (machine, share) in view.shares(operation) {
            work[machine] += share;
        }
    }
    for (machine, row) in to.machines.chunks_exact_mut(wide.machines).enumerate().take(work.len()) {
        if to.own_machines[machine] == 1 {
            let own = &mut row[wide.machines - WIDTHS.machines..];
            own.copy_from_slice(&[behind(view.prospect().machines[machine], latest), work[machine] / latest]);
        }
    }
}

/// The numbers of open pairs, where there are several.
fn show_choices(
    task: &GraphTask,
    lanes: &GraphLanes,
    lane: usize,
    view: &mut View<'_>,
    wide: Widths,
    to: &mut Shown<'_>,
) {
    let (latest, machines, bounds) =
        (measure(view), task.sizes().machines, view.prospect().machines.len() + 1);
    let next: Vec<Option<usize>> = lanes.next(lane).collect();
    let open: Vec<(usize, usize)> =
        lanes.open(lane).filter_map(|pair| Some((pair, next[pair / machines]?))).collect();
    if open.len() < 2 {
        return;
    }
    let mut least = [f32::INFINITY; POWERS.len()];
    for &(pair, operation) in &open {
        let machine = pair % machines;
        let before = view.prospect().machines[machine];
        let after: &Prospect = view.after(operation, machine);
        let norms = POWERS.map(|power| after.norm(power));
        least = std::array::from_fn(|which| least[which].min(norms[which]));
        let (then, own) = (after.latest(), after.machines[machine]);
        let job = view.job_end(operation, machine);
        to.pairs[(pair + 1) * wide.pairs - WIDTHS.pairs..(pair + 1) * wide.pairs].copy_from_slice(&[
            grown(then - latest, latest),
            norms[0],
            norms[1],
            norms[2],
            behind(own, latest),
            grown(own - before, latest),
            behind(job, latest),
        ]);
    }
    for &(pair, _) in &open {
        let norms = &mut to.pairs[(pair + 1) * wide.pairs - WIDTHS.pairs + 1..][..POWERS.len()];
        for ((norm, least), power) in norms.iter_mut().zip(least).zip(POWERS) {
            // A norm of power one adds all bounds up.
            let scale = if power == 1 { bounds as f32 } else { 1.0 };
            *norm = grown((*norm - least) / scale, latest);
        }
    }
}

/// A growth in hundredths of a whole, on a scale that small ones and large ones both show on.
fn grown(by: f32, whole: f32) -> f32 {
    (100.0 * by.max(0.0) / whole).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;
    use niwaki_shop::{Alternative, Bounds, FlexibleShop, Instance};

    #[test]
    fn two_jobs_on_two_machines() {
        // Job 0: machine 0 for 3, machine 1 for 1. Job 1: machine 0 for 2, machine 1 for 5. Without a choice of machines.
        let on = |machine, time| vec![Alternative { machine, time }];
        let jobs = [vec![on(0, 3), on(1, 1)], vec![on(0, 2), on(1, 5)]];
        let shop = Instance::Flexible(FlexibleShop::new(2, &jobs).unwrap());
        let bounds = vec![Bounds { lower: 1, upper: 1 }];
        let task = GraphTask::new(vec![shop], bounds, 1, GraphTask::ORDERS[2].1).unwrap();
        let lanes = task.begin(&[0]).unwrap();
        let wide = WIDTHS;
        let (mut operations, mut machines, mut pairs) = ([0.0; 4 * 2], [0.0; 2 * 2], [0.0; 4 * 7]);
        let mut to = Shown {
            operations: &mut operations,
            machines: &mut machines,
            times: &mut [],
            pairs: &mut pairs,
            arcs: &mut [],
            own_operations: &mut [1; 4],
            own_machines: &mut [1; 2],
            neighbours: &mut [],
            next: &mut [],
            open: &mut [],
        };
        show(&task, &lanes, 0, wide, &mut to);
        // Machine 0 has heads 0, 0, times 3, 2, tails 1, 5: job 1 until 2 and to 7, job 0 until 5 and to 6, so 7. Machine 1 has
        // heads 3 and 2, times 1 and 5 and no tails: until 8. That is the largest; the jobs alone end at 4 and 7.
        let near = |came: &[f32], expected: &[f32]| {
            assert!(
                came.iter().zip(expected).all(|(came, expected)| (came - expected).abs() < 1e-5),
                "{came:?}"
            );
        };
        near(&operations, &[0.0, -2.5, 3.0 / 8.0, -2.5, 0.0, -0.625, 2.0 / 8.0, -0.625]);
        near(&machines, &[-0.625, 5.0 / 8.0, 0.0, 6.0 / 8.0]);
        // Job 0 first: machine 0 until 5 and to 10, machine 1 heads 3 and 5: until 10. Job 1 first: machine 0 until 5 and to 6, but
        // free at 2 with job 1 to 7 on machine 1; machine 1 heads 5 and 2: until 8. Jobs end at 10 and at 7.
        let first = [10.0 + 10.0 + 10.0, 6.0 + 8.0 + 7.0];
        let log = |growth: f32| (100.0 * growth / 8.0).ln_1p();
        near(&pairs[..1], &[log(2.0)]);
        near(&pairs[1..2], &[log((first[0] - first[1]) / 3.0)]);
        near(&pairs[4..7], &[(10.0 / 8.0 - 1.0) / FAR, log(3.0), (4.0 / 8.0 - 1.0) / FAR]);
        near(&pairs[14..16], &[0.0, 0.0]);
        near(&pairs[18..21], &[(6.0 / 8.0 - 1.0) / FAR, 0.0, (7.0 / 8.0 - 1.0) / FAR]);
        assert!(pairs[7..14].iter().chain(&pairs[21..]).all(|&number| number == 0.0), "closed");
    }
}
