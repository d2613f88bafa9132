//! What is still to come, machine by machine: bounds of a partial schedule, and what they become with the next choice.
//!
//! Each unplaced operation has a *head*, before which it cannot start on a machine (its job's earlier operations by their least
//! times, and when the machine is free), and a *tail*, the least time that its job needs behind it. Jackson's preemptive schedule of a
//! machine's operations with their heads and tails ends no later than any real one, so that in a job shop it bounds every
//! completion of the partial schedule from below. Where an operation may choose among machines, each gets a share of its time
//! that falls with the square of its time there: an estimate then, since nobody knows who will run it.
//!
//! A choice moves few heads, and a machine is looked at again only where that can matter: where nothing runs before its new head, the preemptive
//! schedule stays as it is. Numbers are f32, exact for whole times up to 16 million; shares are rounded.

mod preemptive;
mod view;

pub use view::{Sight, View};

use self::view::{Moment, refill};
use crate::FlexibleShop;

/// What never changes of a shop.
#[derive(Clone, Debug)]
pub struct Outlook {
    /// Where each machine's slots start, and the end: `[machine + 1]`. A slot is an operation on a machine that can run it; those of
    /// a machine rise with their tails.
    machines: Vec<u32>,
    /// `[slot]`
    slots: Vec<Slot>,
    /// Where each job's operations start, and the end: `[job + 1]`.
    jobs: Vec<u32>,
    /// `[operation]`
    steps: Vec<Step>,
    /// `[operation][alternative]`
    ways: Vec<Way>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    operation: u32,
    /// The share of its time that the machine gets.
    share: f32,
    tail: f32,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    job: u32,
    /// Where its ways start and end.
    ways: [u32; 2],
    /// The least rest before it.
    rest: f32,
    tail: f32,
}

#[derive(Clone, Copy, Debug)]
struct Way {
    machine: u32,
    slot: u32,
    time: f32,
}

/// Where a partial schedule stands.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    /// Operations that are placed, `[job]`.
    pub next: &'a [u32],
    /// When each job's next operation could start as far as the job goes, `[job]`.
    pub ready: &'a [u32],
    /// When each machine is free, `[machine]`.
    pub free: &'a [u32],
}

/// What a partial schedule leads to at best.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prospect {
    /// When each machine's last job would end, `[machine]`: Jackson's preemptive bound, at least when the machine is free.
    pub machines: Vec<f32>,
    /// When the last job would end if no machine made it wait.
    pub jobs: f32,
}

impl Prospect {
    /// The largest of the bounds.
    #[must_use]
    pub fn latest(&self) -> f32 {
        self.machines.iter().copied().fold(self.jobs, f32::max)
    }

    /// A norm of all bounds, which nears the largest as the power grows and counts those close behind it.
    #[must_use]
    pub fn norm(&self, power: i32) -> f32 {
        let latest = self.latest();
        if latest <= 0.0 {
            return 0.0;
        }
        let part = |bound: f32| (bound / latest).powi(power);
        let sum = self.machines.iter().copied().map(part).sum::<f32>() + part(self.jobs);
        latest * sum.powf(1.0 / power as f32)
    }
}

impl Outlook {
    /// The tables of a shop.
    #[must_use]
    pub fn new(shop: &FlexibleShop) -> Self {
        let mut jobs = vec![0];
        let (mut steps, mut ways) = (Vec::with_capacity(shop.operations()), Vec::new());
        for job in 0..shop.jobs() {
            let route = shop.job(job);
            jobs.push(route.end as u32);
            for operation in route {
                let rest = shop.window(operation).min as f32;
                let alternatives = shop.alternatives(operation);
                let first = ways.len() as u32;
                let own = [first, first + alternatives.len() as u32];
                steps.push(Step { job: job as u32, ways: own, rest, tail: 0.0 });
                let way = |choice: &crate::Alternative| Way {
                    machine: choice.machine,
                    slot: 0,
                    time: choice.time as f32,
                };
                ways.extend(alternatives.iter().map(way));
            }
            let (first, mut tail) = (jobs[job] as usize, 0.0);
            for operation in (first..steps.len()).rev() {
                steps[operation].tail = tail;
                let times = shop.alternatives(operation).iter().map(|choice| choice.time);
                tail += steps[operation].rest + times.min().unwrap_or(0) as f32;
            }
        }
        let mut outlook =
            Self { machines: vec![0], slots: Vec::with_capacity(ways.len()), jobs, steps, ways };
        outlook.fill_slots(shop.machines());
        outlook
    }

    /// Deals the ways to their machines, by rising tails.
    fn fill_slots(&mut self, machines: usize) {
        let mut on: Vec<Vec<(usize, Slot)>> = vec![Vec::new(); machines];
        for (operation, step) in self.steps.iter().enumerate() {
            let range = self.ways_of(operation);
            // What takes no time takes a part of one unit.
            let weight = |way: &Way| way.time.max(0.5).powi(-2);
            let all: f32 = self.ways[range.clone()].iter().map(weight).sum();
            for way in range {
                let Way { machine, time, .. } = self.ways[way];
                let share = time * (weight(&self.ways[way]) / all);
                let slot = Slot { operation: operation as u32, share, tail: step.tail };
                on[machine as usize].push((way, slot));
            }
        }
        for mut on in on {
            on.sort_by(|one, other| one.1.tail.total_cmp(&other.1.tail));
            for (way, slot) in on {
                self.ways[way].slot = self.slots.len() as u32;
                self.slots.push(slot);
            }
            self.machines.push(self.slots.len() as u32);
        }
    }

    fn ways_of(&self, operation: usize) -> std::ops::Range<usize> {
        let [start, end] = self.steps[operation].ways;
        start as usize..end as usize
    }

    fn slots_of(&self, machine: usize) -> std::ops::Range<usize> {
        self.machines[machine] as usize..self.machines[machine + 1] as usize
    }

    /// Looks at a partial schedule; what it holds beyond the shop's own jobs and machines is passed over.
    ///
    /// # Panics
    /// If it has fewer jobs or machines than the shop.
    #[must_use]
    pub fn look(&self, standing: Standing<'_>) -> View<'_> {
        self.look_again(standing, Sight::default())
    }

    /// As [`Outlook::look`], in the memory of an earlier view, of whatever shop.
    ///
    /// # Panics
    /// If the partial schedule has fewer jobs or machines than the shop.
    #[must_use]
    pub fn look_again(&self, standing: Standing<'_>, mut sight: Sight) -> View<'_> {
        sight.see(self, standing);
        View { outlook: self, sight }
    }

    /// What follows from a partial schedule alone.
    fn arrive(&self, standing: Standing<'_>, now: &mut Moment) {
        now.free.clear();
        now.free.extend(standing.free[..self.machines.len() - 1].iter().map(|&free| free as f32));
        refill(&mut now.heads, f32::INFINITY, self.slots.len());
        // None is known, and none is equal to this.
        refill(&mut now.arrivals, f32::NAN, self.steps.len());
        refill(&mut now.ends, 0.0, self.jobs.len() - 1);
        for job in 0..now.ends.len() {
            let next = self.jobs[job] + standing.next[job];
            if next < self.jobs[job + 1] {
                now.arrivals[next as usize] = standing.ready[job] as f32;
                self.walk(next as usize, now, |_, _| {});
            }
        }
    }

    /// Heads from an operation on, whose arrival is known, to its job's end or to where an arrival is what it was; tells of the
    /// heads that moved.
    fn walk(&self, operation: usize, moment: &mut Moment, mut moved: impl FnMut(Way, f32)) {
        let job = self.steps[operation].job as usize;
        let last = self.jobs[job + 1] as usize;
        let mut arrival = moment.arrivals[operation];
        for operation in operation..last {
            moment.arrivals[operation] = arrival;
            let mut end = f32::INFINITY;
            for way in &self.ways[self.ways_of(operation)] {
                let head = arrival.max(moment.free[way.machine as usize]);
                let slot = &mut moment.heads[way.slot as usize];
                if *slot != head {
                    *slot = head;
                    moved(*way, head);
                }
                end = end.min(head + way.time);
            }
            if operation + 1 == last {
                moment.ends[job] = end;
                return;
            }
            arrival = end + self.steps[operation + 1].rest;
            if arrival == moment.arrivals[operation + 1] {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::construct::{FlexibleLanes, Lanes, Order, pick};
    use crate::optimum::one_machine::{self, Task};
    use crate::{Alternative, Window};
    use niwaki_stream::{Key, Stream};

    fn standing(lanes: &FlexibleLanes) -> Standing<'_> {
        Standing { next: lanes.next(0), ready: lanes.ready(0), free: lanes.free(0) }
    }

    /// A shop of jobs that pass through some machines, with so many to choose from at most.
    fn drawn(stream: &mut Stream, choices: u64, rests: bool) -> FlexibleShop {
        let (jobs, machines) = (2 + stream.below(5) as usize, 2 + stream.below(3) as usize);
        let mut operation = || {
            let first = stream.below(machines as u64);
            let on = |n: u64| Alternative {
                machine: ((first + n) % machines as u64) as u32,
                time: stream.below(9) as u32,
            };
            (0..1 + first.min(choices - 1)).map(on).collect::<Vec<_>>()
        };
        let jobs: Vec<Vec<_>> = (0..jobs).map(|_| (0..machines).map(|_| operation()).collect()).collect();
        let shop = FlexibleShop::new(machines, &jobs).unwrap();
        if !rests {
            return shop;
        }
        let window = |index: usize| Window { min: if index > 0 { index as u32 } else { 0 }, max: None };
        let windows: Vec<Vec<_>> = jobs.iter().map(|job| (0..job.len()).map(window).collect()).collect();
        shop.with_windows(&windows).unwrap()
    }

    #[test]
    fn after_a_choice_bounds_are_what_they_are_when_it_was_taken() {
        let mut stream = Key::new(5, "law").open();
        for round in 0..120 {
            let shop = drawn(&mut stream, 1 + round % 3, round % 2 == 0);
            let outlook = Outlook::new(&shop);
            let mut lanes = FlexibleLanes::new(std::slice::from_ref(&shop), 1, Order::Free).unwrap();
            while !lanes.done(0) {
                let pair = pick(lanes.legal(0), stream.bits()).unwrap();
                let (job, machine) = (pair as usize / shop.machines(), pair as usize % shop.machines());
                let operation = shop.job(job).start + lanes.next(0)[job] as usize;
                let mut view = outlook.look(standing(&lanes));
                // What was looked at before leaves no trace.
                for other in
                    (0..shop.jobs()).filter(|&other| lanes.next(0)[other] < shop.job(other).len() as u32)
                {
                    let operation = shop.job(other).start + lanes.next(0)[other] as usize;
                    view.after(operation, shop.alternatives(operation)[0].machine as usize);
                }
                let after = view.after(operation, machine).clone();
                lanes.step(&[pair]).unwrap();
                let (taken, done) =
                    (outlook.look(standing(&lanes)), lanes.next(0)[job] as usize == shop.job(job).len());
                for (after, taken) in after.machines.iter().zip(&taken.prospect().machines) {
                    // Shares of a time are added up in another order.
                    let close = if round % 3 == 0 { 0.0 } else { 1e-5 * taken };
                    assert!((after - taken).abs() <= close, "{after} {taken}");
                }
                assert!(done || after.jobs == taken.prospect().jobs);
            }
        }
    }

    #[test]
    fn in_a_job_shop_a_machines_bound_is_jacksons_and_no_completion_is_shorter() {
        let mut stream = Key::new(6, "law").open();
        for _ in 0..60 {
            let shop = drawn(&mut stream, 1, false);
            let outlook = Outlook::new(&shop);
            let mut lanes = FlexibleLanes::new(std::slice::from_ref(&shop), 1, Order::Free).unwrap();
            let mut promised = Vec::new();
            while !lanes.done(0) {
                let view = outlook.look(standing(&lanes));
                for machine in 0..shop.machines() {
                    let mut tasks = Vec::new();
                    for job in 0..shop.jobs() {
                        let route = shop.job(job);
                        let placed = lanes.next(0)[job] as usize;
                        let time = |operation: usize| shop.alternatives(operation)[0].time;
                        let mut head = lanes.ready(0)[job];
                        for operation in route.clone().skip(placed) {
                            let on = shop.alternatives(operation)[0].machine as usize;
                            head = head.max(lanes.free(0)[on]);
                            if on == machine {
                                let tail = (operation + 1..route.end).map(time).sum();
                                tasks.push(Task { head, time: time(operation), tail });
                            }
                            head += time(operation);
                        }
                    }
                    let expected = one_machine::preemptive(&mut tasks).max(lanes.free(0)[machine]);
                    assert_eq!(view.prospect().machines[machine], expected as f32);
                }
                promised.push(view.prospect().latest());
                lanes.step(&[pick(lanes.legal(0), stream.bits()).unwrap()]).unwrap();
            }
            assert!(promised.iter().all(|&bound| bound <= lanes.makespan(0) as f32));
        }
    }

    #[test]
    fn norms_near_the_largest() {
        let prospect = Prospect { machines: vec![3.0, 4.0], jobs: 0.0 };
        assert_eq!((prospect.norm(2), prospect.latest()), (5.0, 4.0));
        assert!(prospect.norm(60) < 4.001 && prospect.norm(60) >= 4.0);
        assert_eq!(Prospect::default().norm(20), 0.0);
    }
}
