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

use self::preemptive::{TOGETHER, Waiting, line_up, preemptive, preemptive_and_runs};
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

/// The bounds of one partial schedule, with what is needed to say what a choice makes of them.
#[derive(Clone, Debug)]
pub struct View<'a> {
    outlook: &'a Outlook,
    sight: Sight,
}

/// What a view holds, which the next one may take over: looking then takes no new memory.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    now: Moment,
    /// Where what waits for each machine starts, and where its tails do, and the ends: `[machine + 1]`.
    starts: Vec<[usize; 2]>,
    /// Unplaced operations, by machine and by their heads, with their slots.
    order: Vec<Waiting>,
    slots: Vec<u32>,
    /// Their tails, by machine and rising.
    tails: Vec<[f32; TOGETHER]>,
    /// Before when each of them does not run, `[slot]`.
    runs: Vec<f32>,
    /// The bounds as it stands.
    prospect: Prospect,
    /// What a choice makes of it.
    then: Moment,
    then_prospect: Prospect,
    room: Room,
}

/// Heads and what they follow from.
#[derive(Clone, Debug, Default)]
struct Moment {
    /// `[machine]`
    free: Vec<f32>,
    /// `[slot]`, infinite for what is placed.
    heads: Vec<f32>,
    /// When each operation could start as far as its job goes, `[operation]`.
    arrivals: Vec<f32>,
    /// When each job would end, `[job]`.
    ends: Vec<f32>,
}

impl Moment {
    fn become_like(&mut self, other: &Self) {
        self.free.clone_from(&other.free);
        self.heads.clone_from(&other.heads);
        self.arrivals.clone_from(&other.arrivals);
        self.ends.clone_from(&other.ends);
    }
}

/// Room for one machine's operations.
#[derive(Clone, Debug, Default)]
struct Room {
    order: Vec<Waiting>,
    /// Heads and ranks as numbers that rise with the head, then with the rank.
    keys: Vec<u64>,
    /// The slots of all that wait, `[rank]`.
    slots: Vec<u32>,
    /// `[place]`
    runs: Vec<f32>,
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
        let machines = self.machines.len() - 1;
        let Sight { now, starts, order, slots, tails, runs, prospect, .. } = &mut sight;
        self.arrive(standing, now);
        starts.clear();
        starts.push([0; 2]);
        order.clear();
        slots.clear();
        tails.clear();
        refill(runs, 0.0, self.slots.len());
        prospect.machines.clear();
        prospect.jobs = latest(&now.ends);
        for machine in 0..machines {
            sight.wait_for(self, machine);
        }
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

impl Sight {
    /// Lines up what waits for the next machine, and finds its bound.
    fn wait_for(&mut self, outlook: &Outlook, machine: usize) {
        let Self { now, starts, order, slots, tails, runs, prospect, room, .. } = self;
        room.keys.clear();
        room.slots.clear();
        let mut tail_of = |rank: usize, tail: f32| {
            if rank.is_multiple_of(TOGETHER) {
                tails.push([0.0; TOGETHER]);
            }
            if let Some(last) = tails.last_mut() {
                last[rank % TOGETHER] = tail;
            }
        };
        for slot in outlook.slots_of(machine) {
            let head = now.heads[slot];
            if head < f32::INFINITY {
                let rank = room.slots.len();
                tail_of(rank, outlook.slots[slot].tail);
                // Bits of numbers that are not negative rise with them.
                room.keys.push(u64::from(head.to_bits()) << 32 | rank as u64);
                room.slots.push(slot as u32);
            }
        }
        room.keys.sort_unstable();
        let [start, first_tail] = starts[machine];
        for key in &room.keys {
            let rank = *key as u32;
            let slot = room.slots[rank as usize];
            let share = outlook.slots[slot as usize].share;
            order.push(Waiting { head: f32::from_bits((key >> 32) as u32), share, rank });
            slots.push(slot);
        }
        refill(&mut room.runs, 0.0, room.slots.len());
        let bound = preemptive_and_runs(&order[start..], &tails[first_tail..], &mut room.runs);
        prospect.machines.push(bound.max(now.free[machine]));
        for (&slot, &before) in slots[start..].iter().zip(&room.runs) {
            runs[slot as usize] = before;
        }
        starts.push([order.len(), tails.len()]);
    }
}

fn refill(numbers: &mut Vec<f32>, number: f32, count: usize) {
    numbers.clear();
    numbers.resize(count, number);
}

impl View<'_> {
    /// The bounds as it stands.
    #[must_use]
    pub const fn prospect(&self) -> &Prospect {
        &self.sight.prospect
    }

    /// Its memory, for the next view.
    #[must_use]
    pub fn close(self) -> Sight {
        self.sight
    }

    /// When a job's next operation would end on a machine that can run it.
    fn end(&self, operation: usize, machine: usize) -> f32 {
        let ways = &self.outlook.ways[self.outlook.ways_of(operation)];
        let way = ways.iter().find(|way| way.machine as usize == machine);
        let time = way.map_or(0.0, |way| way.time);
        self.sight.now.arrivals[operation].max(self.sight.now.free[machine]) + time
    }

    /// When an operation's job would end at best, if it is the next on a machine that can run it.
    #[must_use]
    pub fn job_end(&self, operation: usize, machine: usize) -> f32 {
        self.end(operation, machine) + self.outlook.steps[operation].tail
    }

    /// When an unplaced operation could start as far as its job goes, and the least time behind it.
    #[must_use]
    pub fn arrival_and_tail(&self, operation: usize) -> (f32, f32) {
        (self.sight.now.arrivals[operation], self.outlook.steps[operation].tail)
    }

    /// The machines that can run an operation, each with the share of its time.
    pub fn shares(&self, operation: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
        let ways = &self.outlook.ways[self.outlook.ways_of(operation)];
        ways.iter().map(|way| (way.machine as usize, self.outlook.slots[way.slot as usize].share))
    }

    /// The bounds once an operation, the next of its job, is placed on a machine that can run it.
    pub fn after(&mut self, operation: usize, machine: usize) -> &Prospect {
        let end = self.end(operation, machine);
        let Self { outlook, sight } = self;
        let Sight { now, starts, order, slots, tails, runs, prospect, then, then_prospect, room } = sight;
        then.become_like(now);
        then.free[machine] = end;
        // Bounds that are not known any more.
        then_prospect.machines.clone_from(&prospect.machines);
        let bounds = &mut then_prospect.machines;
        bounds[machine] = f32::NAN;
        for way in &outlook.ways[outlook.ways_of(operation)] {
            then.heads[way.slot as usize] = f32::INFINITY;
            bounds[way.machine as usize] = f32::NAN;
        }
        let mut moved = |way: Way, head: f32| {
            if runs[way.slot as usize] < head {
                bounds[way.machine as usize] = f32::NAN;
            }
        };
        let job = outlook.steps[operation].job as usize;
        if operation + 1 < outlook.jobs[job + 1] as usize {
            then.arrivals[operation + 1] = end + outlook.steps[operation + 1].rest;
            outlook.walk(operation + 1, then, &mut moved);
        } else {
            then.ends[job] = end;
        }
        // What could have started on the machine before.
        let before = starts[machine][0]..starts[machine + 1][0];
        let before = order[before.clone()].iter().zip(&slots[before]);
        for (_, &slot) in before.take_while(|(waiting, _)| waiting.head < end) {
            let other = outlook.slots[slot as usize].operation as usize;
            if other != operation {
                outlook.walk(other, then, &mut moved);
            }
        }
        for (machine, bound) in then_prospect.machines.iter_mut().enumerate() {
            if !bound.is_nan() {
                continue;
            }
            let ([start, first_tail], [end, last_tail]) = (starts[machine], starts[machine + 1]);
            let slots = &slots[start..end];
            let head = |place: usize| then.heads[slots[place] as usize];
            let first = line_up(&order[start..end], &mut room.order, head);
            let waiting = &room.order[first..];
            *bound = preemptive(waiting, &tails[first_tail..last_tail]).max(then.free[machine]);
        }
        then_prospect.jobs = latest(&then.ends);
        then_prospect
    }
}

fn latest(ends: &[f32]) -> f32 {
    ends.iter().copied().fold(0.0, f32::max)
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
