//! The bounds of one partial schedule, and what a choice makes of them.

use super::preemptive::{TOGETHER, Waiting, line_up, preemptive, preemptive_and_runs};
use super::{Outlook, Prospect, Standing, Way};

/// The bounds of one partial schedule, with what is needed to say what a choice makes of them.
#[derive(Clone, Debug)]
pub struct View<'a> {
    pub(super) outlook: &'a Outlook,
    pub(super) sight: Sight,
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
pub(super) struct Moment {
    /// `[machine]`
    pub(super) free: Vec<f32>,
    /// `[slot]`, infinite for what is placed.
    pub(super) heads: Vec<f32>,
    /// When each operation could start as far as its job goes, `[operation]`.
    pub(super) arrivals: Vec<f32>,
    /// When each job would end, `[job]`.
    pub(super) ends: Vec<f32>,
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

impl Sight {
    /// Takes in a partial schedule.
    pub(super) fn see(&mut self, outlook: &Outlook, standing: Standing<'_>) {
        let Self { now, starts, order, slots, tails, runs, prospect, .. } = self;
        outlook.arrive(standing, now);
        starts.clear();
        starts.push([0; 2]);
        order.clear();
        slots.clear();
        tails.clear();
        refill(runs, 0.0, outlook.slots.len());
        prospect.machines.clear();
        prospect.jobs = latest(&now.ends);
        for machine in 0..outlook.machines.len() - 1 {
            self.wait_for(outlook, machine);
        }
    }

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

pub(super) fn refill(numbers: &mut Vec<f32>, number: f32, count: usize) {
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
