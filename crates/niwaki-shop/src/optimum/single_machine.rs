//! One machine with due dates: as few late jobs as possible.

use super::dispatch::accepted;
use super::result::Optimum;
use crate::{Instance, Placed, Schedule, SingleMachine};
use std::collections::BinaryHeap;

/// A schedule with the fewest late jobs, without idle time; its makespan, the sum of all times, is always proven.
///
/// When all jobs can be on time the order is Jackson's (earliest due date first).
///
/// Paper: app:sched-boundary
#[must_use]
pub fn solve(shop: &SingleMachine) -> Optimum {
    let mut clock = 0;
    let place = |job: u32| {
        let start = clock;
        clock += shop.times()[job as usize];
        Placed { job, op: 0, machine: 0, start, end: clock }
    };
    let schedule = Schedule { operations: fewest_late(shop).into_iter().map(place).collect() };
    debug_assert!(accepted(|| Instance::Single(shop.clone()), &schedule), "the checker refuses the optimum");
    Optimum::new(schedule.makespan(), schedule)
}

/// An order with the fewest late jobs: those on time by due date, then the late ones.
///
/// Method: Moore (1968), in Hodgson's form: add jobs by due date; whenever the last one would be late, give up the
/// longest so far.
#[must_use]
pub fn fewest_late(shop: &SingleMachine) -> Vec<u32> {
    let mut jobs: Vec<u32> = (0..shop.jobs() as u32).collect();
    jobs.sort_by_key(|&job| shop.due()[job as usize]);
    let mut on_time: BinaryHeap<(u32, u32)> = BinaryHeap::new();
    let mut late = vec![false; jobs.len()];
    let mut clock = 0;
    for &job in &jobs {
        let (time, due) = (shop.times()[job as usize], shop.due()[job as usize]);
        clock += time;
        on_time.push((time, job));
        if clock > due
            && let Some((longest, given_up)) = on_time.pop()
        {
            clock -= longest;
            late[given_up as usize] = true;
        }
    }
    let (last, first): (Vec<u32>, Vec<u32>) = jobs.into_iter().partition(|&job| late[job as usize]);
    [first, last].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_jobs_by_hand() {
        // Times 4, 2, 3, due 4, 5, 6. By due date: 0 ends 4, on time; 1 ends 6 > 5: give up the longest, 0; clock 2.
        // 2 ends 5, on time. So 1, 2 on time and 0 late.
        let shop = SingleMachine::new(vec![4, 2, 3], vec![4, 5, 6]).unwrap();
        assert_eq!(fewest_late(&shop), [1, 2, 0]);
        assert_eq!(solve(&shop).upper, 9);
    }
}
