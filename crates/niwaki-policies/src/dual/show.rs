//! What a lane shows of its operations, machines and pairs, with what is over left out.
//!
//! Of an operation that has not ended: placed; the earliest end, by least times from the job's last placed operation; least time,
//! spread and mean over its machines (of a placed one its time, none, its time); how long its job has waited if it is the next;
//! how long it still runs if it is in process; unplaced operations of its job and the sum of their mean times; the share of machines that can
//! run it. Of a machine that something unplaced can use: pairs open on it; unplaced operations that it can run, their least and
//! mean time on it; how long it has been idle, how long it is still busy, when it is free, whether it is busy. These are
//! z-scores over what is left (population deviation, plus 1e-8).
//!
//! Of an open pair, its time over: the shop's longest; the operation's longest; the longest of open pairs on this machine; of all
//! unplaced operations; of those on this machine; of all open pairs; the job's work left. Then, over the shop's longest time,
//! how long the job has waited and the machine been idle together, and how long after the earliest start of all open pairs this one
//! begins; and where its job would end, over where the last job would.

use super::bounds;
use crate::graph::{Shown, Widths};
use niwaki_tasks::graph::{LEFT, PLACED, START, TIME};
use niwaki_tasks::{GraphLanes, GraphTask};

/// Numbers of an operation, a machine and a pair.
const OPERATION: usize = 10;
const MACHINE: usize = 8;
const PAIR: usize = 10;

/// How many there are, with those of `bounds.rs` behind them where they are asked for.
pub(super) const fn widths(bounds: bool) -> Widths {
    let more = if bounds { bounds::WIDTHS } else { Widths { operations: 0, machines: 0, pairs: 0 } };
    Widths {
        operations: OPERATION + more.operations,
        machines: MACHINE + more.machines,
        pairs: PAIR + more.pairs,
    }
}

/// What keeps a z-score finite.
const EPSILON: f32 = 1e-8;

/// Fills a state, with bounds where they are asked for.
pub(super) fn show<const BOUNDS: bool>(
    task: &GraphTask,
    lanes: &GraphLanes,
    lane: usize,
    to: &mut Shown<'_>,
) {
    let wide = const { widths(BOUNDS) };
    let (shop, sizes, instance) = (lanes.shop(lane), task.sizes(), lanes.instance(lane));
    let (machines, columns) = (sizes.machines, sizes.features);
    let (ready, free) = (lanes.ready(lane), lanes.free(lane));
    let (operations, able, arcs) = (lanes.operations(lane), lanes.able(lane), lanes.arcs(lane));
    let column = |operation: usize, column: usize| operations[operation * columns + column] as f32;
    let start = |pair: usize| ready[pair / machines].max(free[pair % machines]);
    let now = lanes.open(lane).map(start).min().unwrap_or(0) as f32;
    // Time is measured in the longest time of all, which never changes.
    let (times, longest) = (task.times(instance), task.longest(instance).max(1.0));
    let (mut latest, mut most_left) = (0.0_f32, 0.0_f32);
    // Of unplaced operations on each machine: how many, least, sum and longest of times.
    let mut on = vec![[0.0, f32::INFINITY, 0.0, 0.0]; shop.machines()];
    // Of each job: waiting, work left by mean times, and by least times behind its next operation.
    let mut jobs = vec![[0.0_f32; 3]; shop.jobs()];
    for (job, own) in jobs.iter_mut().enumerate() {
        let route = shop.job(job);
        let left = if route.is_empty() { 0.0 } else { column(route.start, LEFT) };
        let placed = route.len() - left as usize;
        own[0] = if left > 0.0 { (now - ready[job] as f32).max(0.0) } else { 0.0 };
        own[1] = times[route.clone()][placed..].iter().map(|times| times.mean).sum();
        own[2] = times[route.clone()].iter().skip(placed + 1).map(|times| times.least).sum();
        let mut end = if left > 0.0 { ready[job] as f32 } else { 0.0 };
        for (index, operation) in route.clone().enumerate() {
            let times = times[operation];
            let row = &mut to.operations[operation * wide.operations..][..OPERATION];
            if column(operation, PLACED) > 0.0 {
                let (begun, time) = (column(operation, START), column(operation, TIME));
                if begun + time <= now {
                    continue;
                }
                row.copy_from_slice(&[
                    1.0,
                    begun + time,
                    time,
                    0.0,
                    time,
                    0.0,
                    begun + time - now,
                    left,
                    own[1],
                    1.0 / shop.machines() as f32,
                ]);
                latest = latest.max(begun + time);
            } else {
                end = if index == placed { end.max(now) } else { end } + times.least;
                let count = shop.alternatives(operation).len() as f32;
                let waiting = if index == placed { own[0] } else { 0.0 };
                row.copy_from_slice(&[
                    0.0,
                    end,
                    times.least,
                    times.longest - times.least,
                    times.mean,
                    waiting,
                    0.0,
                    left,
                    own[1],
                    count / shop.machines() as f32,
                ]);
                latest = latest.max(end);
                most_left = most_left.max(times.longest);
                for choice in shop.alternatives(operation) {
                    let on = &mut on[choice.machine as usize];
                    let time = choice.time as f32;
                    *on = [on[0] + 1.0, on[1].min(time), on[2] + time, on[3].max(time)];
                }
            }
            to.own_operations[operation] = 1;
            let neighbours = task.neighbours(instance)[operation];
            // What comes before is left out once it has ended.
            let before = index > 0 && to.own_operations[operation - 1] == 1;
            to.neighbours[operation] = if before { neighbours } else { neighbours & !GraphTask::BEFORE };
            let places = operation * machines..(operation + 1) * machines;
            to.arcs[places.clone()].copy_from_slice(&able[places.clone()]);
            for (to, &time) in to.times[places.clone()].iter_mut().zip(&arcs[places]) {
                *to = time as f32 / longest;
            }
        }
    }
    // Open pairs on each machine, and the longest of them; of all, the longest.
    let (mut open, mut most_open) = (vec![[0.0_f32; 2]; shop.machines()], 0.0_f32);
    let next: Vec<Option<usize>> = lanes.next(lane).collect();
    let time = |pair: usize| {
        let arc = |operation| arcs[operation * machines + pair % machines] as f32;
        next[pair / machines].map_or(0.0, arc)
    };
    for pair in lanes.open(lane) {
        let (time, open) = (time(pair), &mut open[pair % machines]);
        *open = [open[0] + 1.0, open[1].max(time)];
        most_open = most_open.max(time);
    }
    for (machine, row) in to.machines.chunks_exact_mut(wide.machines).take(shop.machines()).enumerate() {
        let ([count, least, sum, _], free) = (on[machine], free[machine] as f32);
        if count == 0.0 {
            continue;
        }
        to.own_machines[machine] = 1;
        let (idle, busy) = ((now - free).max(0.0), (free - now).max(0.0));
        let is_busy = f32::from(u8::from(busy > 0.0));
        row[..MACHINE].copy_from_slice(&[
            open[machine][0],
            count,
            least,
            sum / count,
            idle,
            busy,
            free,
            is_busy,
        ]);
    }
    z_scores::<OPERATION>(to.operations, wide.operations, to.own_operations);
    z_scores::<MACHINE>(to.machines, wide.machines, to.own_machines);
    for pair in lanes.open(lane) {
        let (job, machine) = (pair / machines, pair % machines);
        let Some(operation) = next[job] else { continue };
        let (time, begins, [waited, left, behind]) = (time(pair), start(pair) as f32, jobs[job]);
        let idle = (now - free[machine] as f32).max(0.0);
        to.pairs[pair * wide.pairs..][..PAIR].copy_from_slice(&[
            time / longest,
            over(time, times[operation].longest),
            over(time, open[machine][1]),
            over(time, most_left),
            over(time, on[machine][3]),
            over(time, most_open),
            over(time, left),
            (waited + idle) / longest,
            (begins - now) / longest,
            over(begins + time + behind, latest),
        ]);
    }
    if BOUNDS {
        bounds::show(task, lanes, lane, wide, to);
    }
}

/// A share; none of nothing.
fn over(part: f32, whole: f32) -> f32 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Turns the first columns of the rows that count into z-scores; those of the others are zero.
fn z_scores<const COLUMNS: usize>(rows: &mut [f32], width: usize, count: &[u8]) {
    let number = count.iter().filter(|own| **own == 1).count().max(1) as f32;
    let (mut mean, mut square) = ([0.0_f32; COLUMNS], [0.0_f32; COLUMNS]);
    let mut each = |with: &mut dyn FnMut(&mut [f32; COLUMNS])| {
        let rows = rows.chunks_exact_mut(width).filter_map(|row| row.first_chunk_mut());
        rows.zip(count).filter(|(_, own)| **own == 1).for_each(|(row, _)| with(row));
    };
    each(&mut |row| (0..COLUMNS).for_each(|column| mean[column] += row[column] / number));
    each(&mut |row| {
        (0..COLUMNS).for_each(|column| square[column] += (row[column] - mean[column]).powi(2) / number);
    });
    let deviation = square.map(|square| square.sqrt() + EPSILON);
    each(&mut |row| {
        (0..COLUMNS).for_each(|column| row[column] = (row[column] - mean[column]) / deviation[column]);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use niwaki_shop::{Alternative, Bounds, FlexibleShop, Instance};

    /// Job 0: machine 0 for 2 or machine 1 for 4, then machine 1 for 3. Job 1: machine 0 for 1, then 5 or 1. In the free order.
    fn two_by_two() -> GraphTask {
        let on = |machine, time| Alternative { machine, time };
        let jobs =
            [vec![vec![on(0, 2), on(1, 4)], vec![on(1, 3)]], vec![vec![on(0, 1)], vec![on(0, 5), on(1, 1)]]];
        let shop = Instance::Flexible(FlexibleShop::new(2, &jobs).unwrap());
        GraphTask::new(vec![shop], vec![Bounds { lower: 1, upper: 1 }], 1, GraphTask::ORDERS[1].1).unwrap()
    }

    #[derive(Default)]
    struct Kept {
        operations: Vec<f32>,
        pairs: Vec<f32>,
        arcs: Vec<u8>,
        own: [Vec<u8>; 2],
        neighbours: Vec<i32>,
    }

    fn shown(task: &GraphTask, lanes: &GraphLanes) -> Kept {
        let mut kept = Kept {
            operations: vec![0.0; 4 * OPERATION],
            pairs: vec![0.0; 4 * PAIR],
            arcs: vec![0; 8],
            own: [vec![0; 4], vec![0; 2]],
            neighbours: vec![0; 4],
        };
        let [own_operations, own_machines] = &mut kept.own;
        let mut to = Shown {
            operations: &mut kept.operations,
            machines: &mut [0.0; 2 * MACHINE],
            times: &mut [0.0; 8],
            pairs: &mut kept.pairs,
            arcs: &mut kept.arcs,
            own_operations,
            own_machines,
            neighbours: &mut kept.neighbours,
            next: &mut [],
            open: &mut [],
        };
        show::<false>(task, lanes, 0, &mut to);
        kept
    }

    fn near(came: &[f32], expected: [f32; PAIR]) {
        assert!(came.iter().zip(expected).all(|(came, expected)| (came - expected).abs() < 1e-6), "{came:?}");
    }

    #[test]
    fn two_jobs_and_two_machines_step_by_step() {
        let task = two_by_two();
        let mut lanes = task.begin(&[0]).unwrap();
        let first = shown(&task, &lanes);
        assert_eq!((&first.own[0][..], &first.own[1][..]), (&[1; 4][..], &[1; 2][..]));
        assert_eq!(first.neighbours, task.neighbours(0));
        // Job 0 on machine 0 takes 2. The longest time is 5, its own 4; open are 2 and 1 on machine 0, and 4 on machine 1;
        // unplaced on machine 0 are 2, 1 and 5. Its job has 3 + 3 left by means, and would end at 2 + 3, as the last.
        near(&first.pairs[..PAIR], [0.4, 0.5, 1.0, 0.4, 0.4, 0.5, 2.0 / 6.0, 0.0, 0.0, 1.0]);
        // On machine 1 it takes 4 and the job would end at 7 instead of 5; unplaced there are 4, 3 and 1.
        near(&first.pairs[PAIR..2 * PAIR], [0.8, 1.0, 1.0, 0.8, 1.0, 1.0, 4.0 / 6.0, 0.0, 0.0, 1.4]);
        // Job 1 cannot run on machine 1 yet.
        assert_eq!(first.pairs[3 * PAIR..], [0.0; PAIR]);
        // Placed has no spread; left is 2 everywhere; ends are 2, 5, 1 and 2: their mean is 2.5, their variance 2.25.
        let ends: Vec<f32> = first.operations.chunks_exact(OPERATION).map(|row| row[1]).collect();
        for (came, expected) in ends.iter().zip([-1.0 / 3.0, 5.0 / 3.0, -1.0, -1.0 / 3.0]) {
            assert!((came - expected).abs() < 1e-6, "{ends:?}");
        }
        assert!(first.operations.chunks_exact(OPERATION).all(|row| row[0] == 0.0 && row[7] == 0.0));

        // Job 1 on machine 0 until 1, job 0 on machine 1 until 4: at 1 only job 1 can go on, on machine 0 for 5. Its first
        // operation is over and gone, with its place in the job.
        lanes.choose(&[2]).unwrap();
        lanes.choose(&[1]).unwrap();
        let later = shown(&task, &lanes);
        assert_eq!((&later.own[0][..], &later.own[1][..]), (&[1, 1, 0, 1][..], &[1; 2][..]));
        assert_eq!(later.operations[2 * OPERATION..3 * OPERATION], [0.0; OPERATION]);
        assert_eq!(later.arcs, [0, 1, 0, 1, 0, 0, 1, 1]);
        assert_eq!(later.neighbours, [GraphTask::AFTER, GraphTask::BEFORE, 0, 0]);
        // 3 are left by means; the job would end at 1 + 5, the last at 4 + 3.
        near(
            &later.pairs[2 * PAIR..3 * PAIR],
            [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 5.0 / 3.0, 0.0, 0.0, 6.0 / 7.0],
        );
    }
}
