//! What no schedule can beat, measure by measure, and what no schedule can keep.
//!
//! Bounds relax: each operation starts as early as its predecessors, releases and the best of its machines allow, or one
//! machine alone runs what can run nowhere else, in pieces and without setups. Bounds of a sum add up those of its
//! measures.

use super::construct::{in_order, tails};
use super::list::Flat;
use super::{Measure, Shop};
use crate::optimum::one_machine::{Task, preemptive};
use crate::{Error, Result};
use std::collections::BTreeMap;

/// Earliest starts and ends that precedences, releases and calendars alone allow.
pub(super) struct Heads {
    start: Vec<u32>,
    end: Vec<u32>,
}

impl Heads {
    pub(super) fn new(flat: &Flat<'_>) -> Self {
        let count = flat.count();
        let mut heads = Self { start: vec![0; count], end: vec![0; count] };
        for one in in_order(flat) {
            let index = one as usize;
            if let Some(here) = flat.fixed[index] {
                (heads.start[index], heads.end[index]) = (here.start, here.end);
                continue;
            }
            let ready = flat.before[index].iter();
            let ready = ready.map(|link| heads.end[link.other as usize].saturating_add(link.min)).max();
            let from = flat.earliest[index].max(ready.unwrap_or(0));
            let operation = flat.shop.operation(index);
            let (mut start, mut end) = (u32::MAX, u32::MAX);
            for mode in &operation.modes {
                let machine = &flat.shop.machines()[mode.machine as usize];
                let span =
                    machine.calendar.place(from.max(machine.available), mode.time, operation.interruptible);
                (start, end) = (start.min(span.start), end.min(span.end));
            }
            (heads.start[index], heads.end[index]) = (start, end);
        }
        heads
    }

    /// The earliest end of each job.
    fn job_ends(&self, shop: &Shop) -> Vec<u32> {
        let end = |job| self.end[shop.of_job(job)].iter().copied().max().unwrap_or(0);
        (0..shop.jobs().len()).map(end).collect()
    }

    /// Names a deadline or a window that nothing can keep.
    ///
    /// # Errors
    /// The first one.
    pub(super) fn check(&self, shop: &Shop) -> Result<()> {
        for number in 0..shop.operations() {
            if let Some(latest) = shop.operation(number).latest.filter(|&latest| self.end[number] > latest) {
                return Err(Error::Instance(format!(
                    "{}: must be done by {}, but cannot end before {}",
                    shop.called(number),
                    shop.moment(latest),
                    shop.moment(self.end[number])
                )));
            }
        }
        for (job, end) in shop.jobs().iter().zip(self.job_ends(shop)) {
            if let Some(deadline) = job.deadline.filter(|&deadline| end > deadline) {
                return Err(Error::Instance(format!(
                    "job {}: its deadline is {}, but it cannot end before {}",
                    job.name,
                    shop.moment(deadline),
                    shop.moment(end)
                )));
            }
        }
        Ok(())
    }
}

/// What one machine must run because nothing else can.
struct Sole {
    operation: usize,
    head: u32,
    time: u32,
    /// The least time from its end to its job's end.
    tail: u32,
}

/// Lower bounds.
pub(super) struct Floors {
    /// Of every sum of the objective.
    pub(super) sums: Vec<u64>,
    /// Of the setup time of all machines.
    pub(super) setup_time: u64,
}

/// A lower bound of every sum of the objective.
pub(super) fn floors(flat: &Flat<'_>, heads: &Heads) -> Floors {
    let shop = flat.shop;
    let tails = tails(flat);
    let mut machines: Vec<Vec<Sole>> = (0..shop.machines().len()).map(|_| Vec::new()).collect();
    for (operation, modes) in flat.modes.iter().enumerate() {
        if let [(machine, time)] = modes[..] {
            let tail = tails[operation] - time;
            let head = heads.start[operation].max(shop.machines()[machine as usize].available);
            machines[machine as usize].push(Sole { operation, head, time, tail });
        }
    }
    let ends = heads.job_ends(shop);
    let setup_time = (0..machines.len()).map(|machine| setup_time(flat, machine, &machines[machine])).sum();
    let of = |measure| match measure {
        Measure::Makespan => makespan(shop, &ends, &machines, flat, heads, &tails),
        Measure::Tardiness => tardiness(flat, &ends, &machines),
        Measure::MaxTardiness => max_tardiness(flat, &ends, &machines),
        Measure::TardyJobs => jobs(shop, &ends, |late, weight| if late > 0 { weight } else { 0 }),
        Measure::FlowTime => {
            let pairs = shop.jobs().iter().zip(&ends);
            pairs.map(|(job, &end)| u64::from(job.weight) * u64::from(end.saturating_sub(job.release))).sum()
        }
        Measure::Earliness => 0,
        Measure::SetupTime => setup_time,
    };
    let sum = |sum: &super::Sum| sum.terms.iter().map(|&(factor, one)| u64::from(factor) * of(one)).sum();
    Floors { sums: shop.objective().sums.iter().map(sum).collect(), setup_time }
}

/// A sum over late jobs, each as early as it can be.
fn jobs(shop: &Shop, ends: &[u32], of: impl Fn(u64, u64) -> u64) -> u64 {
    let late = |(job, &end): (&super::Job, &u32)| of(job.late(end), u64::from(job.weight));
    shop.jobs().iter().zip(ends).map(late).sum()
}

fn makespan(
    shop: &Shop,
    ends: &[u32],
    machines: &[Vec<Sole>],
    flat: &Flat<'_>,
    heads: &Heads,
    tails: &[u32],
) -> u64 {
    let path = (0..flat.count()).map(|one| heads.start[one].saturating_add(tails[one])).max().unwrap_or(0);
    let mut bound = u64::from(path.max(ends.iter().copied().max().unwrap_or(0)));
    for list in machines {
        let task = |one: &Sole| Task { head: one.head, time: one.time, tail: one.tail };
        bound = bound.max(u64::from(preemptive(&mut list.iter().map(task).collect::<Vec<_>>())));
    }
    // Machines that share work: those of one operation, for all operations that run on no other.
    let mut groups: Vec<Vec<u32>> = flat
        .modes
        .iter()
        .map(|modes| {
            let mut group: Vec<u32> = modes.iter().map(|mode| mode.0).collect();
            group.sort_unstable();
            group
        })
        .collect();
    groups.sort();
    groups.dedup();
    for group in groups.iter().filter(|group| group.len() > 1).take(64) {
        let (mut work, mut head, mut tail) = (0_u64, u32::MAX, u32::MAX);
        for (one, modes) in flat.modes.iter().enumerate() {
            if modes.iter().all(|mode| group.binary_search(&mode.0).is_ok()) {
                let least = modes.iter().map(|mode| mode.1).min().unwrap_or(0);
                work += u64::from(least);
                (head, tail) = (head.min(heads.start[one]), tail.min(tails[one] - least));
            }
        }
        if work > 0 {
            let shared = work.div_ceil(group.len() as u64);
            bound = bound.max(shared + u64::from(head) + u64::from(tail));
        }
    }
    bound.min(u64::from(shop.horizon()))
}

/// The largest of: every job as early as it can be, and for each machine the ends of its work in pieces, shortest
/// remaining first, held against its due dates in order (Chu, 1992). The least weight counts for all there.
fn tardiness(flat: &Flat<'_>, ends: &[u32], machines: &[Vec<Sole>]) -> u64 {
    let mut bound = jobs(flat.shop, ends, |late, weight| late * weight);
    for list in machines {
        // One operation of each job with a due date: its last one here.
        let mut of_job: BTreeMap<u32, &Sole> = BTreeMap::new();
        for one in list {
            let known = of_job.entry(flat.job[one.operation]).or_insert(one);
            if known.tail > one.tail {
                *known = one;
            }
        }
        let (mut dues, mut tasks, mut weight) = (Vec::new(), Vec::new(), u64::MAX);
        for (job, one) in of_job {
            let job = &flat.shop.jobs()[job as usize];
            if let Some(due) = job.due_at() {
                dues.push(due - i64::from(one.tail));
                tasks.push((one.head, one.time));
                weight = weight.min(job.weight.into());
            }
        }
        dues.sort_unstable();
        let late =
            shortest_remaining(tasks).into_iter().zip(dues).map(|(end, due)| (i64::from(end) - due).max(0));
        let total: i64 = late.sum();
        if total > 0 {
            bound = bound.max(weight * total as u64);
        }
    }
    bound
}

/// When tasks `(head, time)` end on one machine, in pieces, shortest remaining first; sorted.
fn shortest_remaining(mut tasks: Vec<(u32, u32)>) -> Vec<u32> {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    tasks.sort_unstable();
    let (mut open, mut ends) = (BinaryHeap::new(), Vec::with_capacity(tasks.len()));
    let (mut now, mut next) = (0_u32, 0);
    while next < tasks.len() || !open.is_empty() {
        if open.is_empty() {
            now = now.max(tasks[next].0);
        }
        while next < tasks.len() && tasks[next].0 <= now {
            open.push(Reverse(tasks[next].1));
            next += 1;
        }
        let Some(Reverse(left)) = open.pop() else { break };
        let until = tasks.get(next).map_or(u32::MAX, |task| task.0);
        if now.saturating_add(left) <= until {
            now = now.saturating_add(left);
            ends.push(now);
        } else {
            open.push(Reverse(left - (until - now)));
            now = until;
        }
    }
    ends
}

fn max_tardiness(flat: &Flat<'_>, ends: &[u32], machines: &[Vec<Sole>]) -> u64 {
    let shop = flat.shop;
    let late = |(job, &end): (&super::Job, &u32)| job.late(end) as u32;
    let mut bound = shop.jobs().iter().zip(ends).map(late).max().unwrap_or(0);
    let last = shop.jobs().iter().filter_map(|job| job.due).max().unwrap_or(0);
    for list in machines {
        let task = |one: &Sole| {
            let job = &shop.jobs()[flat.job[one.operation] as usize];
            let wait = last - job.due? + job.overdue;
            // Measured against the last due date, an earlier one is a longer tail.
            Some(Task { head: one.head, time: one.time, tail: one.tail.saturating_add(wait) })
        };
        let mut tasks: Vec<Task> = list.iter().filter_map(task).collect();
        bound = bound.max(preemptive(&mut tasks).saturating_sub(last));
    }
    u64::from(bound)
}

/// Every family but the first must be entered from another one.
fn setup_time(flat: &Flat<'_>, machine: usize, list: &[Sole]) -> u64 {
    let setups = flat.shop.setups();
    let first = flat.shop.machines()[machine].family;
    let mut families: Vec<u32> = list.iter().filter_map(|one| flat.family(one.operation as u32)).collect();
    families.sort_unstable();
    families.dedup();
    if families.is_empty() {
        return 0;
    }
    // An operation without a family needs no setup before or after it, so it could stand between any two.
    let free = flat.modes.iter().enumerate().any(|(one, modes)| {
        flat.family(one as u32).is_none() && modes.iter().any(|mode| mode.0 as usize == machine)
    });
    if free {
        return 0;
    }
    let others = || (0..setups.families.len() as u32).chain(first);
    let entry = |&to: &u32| {
        if first == Some(to) {
            return 0;
        }
        let from = others().filter(|&from| from != to);
        from.map(|from| u64::from(setups.time(machine, Some(from), Some(to)))).min().unwrap_or(0)
    };
    let entries: Vec<u64> = families.iter().map(entry).collect();
    let free_entry = if first.is_none() { entries.iter().copied().max().unwrap_or(0) } else { 0 };
    entries.iter().sum::<u64>() - free_entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_remaining_by_hand() {
        // (0, 5), (1, 2), (2, 1): 0–1 the first, 1–3 the second, 3–4 the third, 4–8 the rest of the first.
        assert_eq!(shortest_remaining(vec![(0, 5), (2, 1), (1, 2)]), [3, 4, 8]);
        assert_eq!(shortest_remaining(vec![(7, 1)]), [8]);
    }
}
