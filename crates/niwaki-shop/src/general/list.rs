//! A solution as one list of operations, and the schedule that follows from it.
//!
//! Operations are placed in the list's order, each as early as its predecessors, its machine's last operation, setups and
//! the calendar allow. A list that respects the precedences is never infeasible; what it cannot keep (deadlines, windows,
//! longest waits) is counted as its violation, which comes before every sum of the objective.

use super::model::Setups;
use super::waits::Ripple;
use super::{Calendar, Measure, Shop, Span};
use crate::{Placed, Schedule};

/// No such operation.
pub(super) const NONE: u32 = u32::MAX;

/// A precedence seen from one of its ends.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) other: u32,
    pub(super) min: u32,
    pub(super) max: u32,
}

/// A shop laid out flat for quick passes.
pub(super) struct Flat<'a> {
    pub(super) shop: &'a Shop,
    pub(super) job: Vec<u32>,
    pub(super) earliest: Vec<u32>,
    pub(super) latest: Vec<u32>,
    pub(super) interruptible: Vec<bool>,
    family: Vec<Option<u32>>,
    pub(super) modes: Vec<Vec<(u32, u32)>>,
    pub(super) before: Vec<Vec<Link>>,
    pub(super) after: Vec<Vec<Link>>,
    /// Precedences with a longest wait.
    pub(super) bounded: Vec<(u32, Link)>,
    /// How often an operation is placed, on average, before longest waits that are left count as violation.
    rounds: usize,
    pub(super) calendars: Vec<&'a Calendar>,
    setups: Option<&'a Setups>,
    right_shift: bool,
    /// Operations that have started already: where and when.
    pub(super) fixed: Vec<Option<Placed>>,
}

/// A list of operations and the chosen modes.
#[derive(Clone)]
pub(super) struct List {
    pub(super) order: Vec<u32>,
    /// The chosen mode of each operation.
    pub(super) mode: Vec<u32>,
}

/// What a pass over a list finds.
#[derive(Clone, Default)]
pub(super) struct Pass {
    pub(super) start: Vec<u32>,
    pub(super) end: Vec<u32>,
    /// What held each operation back: its machine's last operation, another predecessor, or nothing.
    pub(super) held_by: Vec<u32>,
    /// The operation before it on its machine.
    pub(super) machine_before: Vec<u32>,
    pub(super) job_end: Vec<u32>,
    /// Violation, then the sums of the objective.
    pub(super) cost: Vec<u64>,
    last: Vec<u32>,
    /// Before when longest waits let no operation start; empty where there are none.
    pub(super) hold: Vec<u32>,
    pub(super) ripple: Ripple,
    pub(super) setup_time: u64,
    cap: Vec<u32>,
    /// What each machine runs, in the order of time: start, end, operation.
    pub(super) lanes: Vec<Vec<(u32, u32, u32)>>,
}

impl<'a> Flat<'a> {
    /// The shop, with operations that have started before `now` where they are and all others from then on.
    pub(super) fn new(shop: &'a Shop, past: Option<(&Schedule, u32)>) -> Self {
        let count = shop.operations();
        let mut flat = Self {
            shop,
            job: Vec::with_capacity(count),
            earliest: Vec::with_capacity(count),
            latest: Vec::with_capacity(count),
            interruptible: Vec::with_capacity(count),
            family: Vec::with_capacity(count),
            modes: Vec::with_capacity(count),
            before: vec![Vec::new(); count],
            after: vec![Vec::new(); count],
            bounded: Vec::new(),
            rounds: 0,
            calendars: shop.machines().iter().map(|machine| &machine.calendar).collect(),
            setups: (!shop.setups().is_empty()).then(|| shop.setups()),
            right_shift: shop.objective().counts(Measure::Earliness),
            fixed: vec![None; count],
        };
        for (number, job) in shop.jobs().iter().enumerate() {
            for operation in &job.operations {
                flat.job.push(number as u32);
                flat.earliest.push(operation.earliest.max(job.release));
                flat.latest.push(operation.latest.unwrap_or(u32::MAX).min(shop.horizon()));
                flat.interruptible.push(operation.interruptible);
                flat.family.push(operation.family);
                flat.modes.push(operation.modes.iter().map(|mode| (mode.machine, mode.time)).collect());
            }
        }
        for link in shop.precedences() {
            let max = link.max.unwrap_or(u32::MAX);
            flat.before[link.after as usize].push(Link { other: link.before, min: link.min, max });
            flat.after[link.before as usize].push(Link { other: link.after, min: link.min, max });
            if link.max.is_some() {
                flat.bounded.push((link.before, Link { other: link.after, min: link.min, max }));
            }
        }
        flat.rounds = flat.rounds_of_waits();
        if let Some((schedule, now)) = past {
            flat.earliest.iter_mut().for_each(|earliest| *earliest = (*earliest).max(now));
            for here in schedule.operations.iter().filter(|here| here.start < now) {
                flat.fixed[shop.of_job(here.job as usize).start + here.op as usize] = Some(*here);
            }
        }
        flat
    }

    pub(super) fn count(&self) -> usize {
        self.job.len()
    }

    pub(super) fn machine(&self, list: &List, operation: u32) -> u32 {
        self.modes[operation as usize][list.mode[operation as usize] as usize].0
    }

    pub(super) fn setup(&self, machine: u32, from: u32, to: u32) -> u32 {
        self.setups.map_or(0, |setups| {
            let family = if from == NONE {
                self.shop.machines()[machine as usize].family
            } else {
                self.family[from as usize]
            };
            setups.time(machine as usize, family, self.family[to as usize])
        })
    }

    pub(super) fn family(&self, operation: u32) -> Option<u32> {
        self.family[operation as usize]
    }

    /// Where an operation lies on a machine if it cannot start before `from`.
    pub(super) fn place(&self, machine: usize, operation: usize, time: u32, from: u32) -> Span {
        self.calendars[machine].place(from, time, self.interruptible[operation])
    }

    /// Places every operation and sums up.
    pub(super) fn run(&self, list: &List, pass: &mut Pass) {
        self.make_room(pass);
        self.settle(list, pass, self.rounds);
        if self.right_shift {
            self.shift_right(list, pass);
        }
        self.sum_up(pass);
    }

    pub(super) fn make_room(&self, pass: &mut Pass) {
        for values in [&mut pass.start, &mut pass.end, &mut pass.held_by, &mut pass.machine_before] {
            values.resize(self.count(), 0);
        }
    }

    /// Whether no place depends on what comes later in the list.
    pub(super) fn is_causal(&self) -> bool {
        self.bounded.is_empty() && !self.right_shift
    }

    /// Places the operations of a list that is not whole yet; nothing if longest waits still push after so many rounds.
    pub(super) fn run_part(&self, list: &List, pass: &mut Pass, rounds: usize) -> Option<()> {
        for values in [&mut pass.start, &mut pass.end, &mut pass.held_by, &mut pass.machine_before] {
            values.clear();
            values.resize(self.count(), 0);
        }
        self.settle(list, pass, rounds).then_some(())
    }

    /// Places every operation behind those before it in the list, no earlier than longest waits hold it.
    pub(super) fn place_all(&self, list: &List, pass: &mut Pass) {
        pass.last.clear();
        pass.last.resize(self.calendars.len(), NONE);
        pass.setup_time = 0;
        for &operation in &list.order {
            let machine = self.machine(list, operation) as usize;
            let last = std::mem::replace(&mut pass.last[machine], operation);
            pass.machine_before[operation as usize] = last;
            pass.setup_time += u64::from(self.place_one(list, operation, pass));
        }
    }

    /// Places an operation behind its predecessors and the operation before it on its machine; returns its setup.
    pub(super) fn place_one(&self, list: &List, operation: u32, pass: &mut Pass) -> u32 {
        let index = operation as usize;
        let (machine, time) = self.modes[index][list.mode[index] as usize];
        let last = pass.machine_before[index];
        let setup = self.setup(machine, last, operation);
        if let Some(here) = self.fixed[index] {
            (pass.start[index], pass.end[index], pass.held_by[index]) = (here.start, here.end, NONE);
            return setup;
        }
        let mut start = self.earliest[index];
        let mut held_by = NONE;
        if let Some(&hold) = pass.hold.get(index) {
            start = start.max(hold);
        }
        for link in &self.before[index] {
            let ready = pass.end[link.other as usize].saturating_add(link.min);
            if ready >= start {
                (start, held_by) = (ready, link.other);
            }
        }
        let free = if last == NONE {
            self.shop.machines()[machine as usize].available
        } else {
            pass.end[last as usize]
        };
        let free = free.saturating_add(setup);
        if free > start || free == start && last != NONE && free > 0 {
            (start, held_by) = (free, last);
        }
        let span = self.place(machine as usize, index, time, start);
        (pass.start[index], pass.end[index], pass.held_by[index]) = (span.start, span.end, held_by);
        setup
    }

    /// Moves operations of jobs that end before their due date to the right, as far as nothing else has to move.
    fn shift_right(&self, list: &List, pass: &mut Pass) {
        let makespan = pass.end.iter().copied().max().unwrap_or(0);
        pass.job_end.clear();
        pass.job_end.resize(self.shop.jobs().len(), 0);
        for (index, &job) in self.job.iter().enumerate() {
            pass.job_end[job as usize] = pass.job_end[job as usize].max(pass.end[index]);
        }
        pass.cap.clear();
        pass.cap.resize(self.calendars.len(), NONE);
        for &operation in list.order.iter().rev() {
            let index = operation as usize;
            let (machine, time) = self.modes[index][list.mode[index] as usize];
            let next = std::mem::replace(&mut pass.cap[machine as usize], operation);
            if self.fixed[index].is_some() {
                continue;
            }
            let job = self.job[index] as usize;
            let due = self.shop.jobs()[job].due.unwrap_or(0).max(pass.job_end[job]);
            let mut until = due.min(self.latest[index]).min(makespan.max(pass.end[index]));
            if let Some(deadline) = self.shop.jobs()[job].deadline {
                until = until.min(deadline.max(pass.end[index]));
            }
            for link in &self.after[index] {
                until = until.min(pass.start[link.other as usize].saturating_sub(link.min));
            }
            if next != NONE {
                let setup = self.setup(machine, operation, next);
                until = until.min(pass.start[next as usize].saturating_sub(setup));
            }
            let latest_start = self.before[index]
                .iter()
                .map(|link| pass.end[link.other as usize].saturating_add(link.max))
                .min()
                .unwrap_or(u32::MAX);
            let calendar = self.calendars[machine as usize];
            if let Some(span) = calendar.place_before(until, time, self.interruptible[index])
                && span.start > pass.start[index]
                && span.start <= latest_start
            {
                (pass.start[index], pass.end[index]) = (span.start, span.end);
            }
        }
    }

    pub(super) fn sum_up(&self, pass: &mut Pass) {
        let jobs = self.shop.jobs();
        pass.job_end.clear();
        pass.job_end.resize(jobs.len(), 0);
        let mut violation = 0;
        for (index, &end) in pass.end.iter().enumerate() {
            violation += u64::from(end.saturating_sub(self.latest[index]));
            let job_end = &mut pass.job_end[self.job[index] as usize];
            *job_end = (*job_end).max(end);
        }
        for &(before, link) in &self.bounded {
            let latest = pass.end[before as usize].saturating_add(link.max);
            violation += u64::from(pass.start[link.other as usize].saturating_sub(latest));
        }
        let (mut tardiness, mut most, mut tardy, mut flow, mut early) = (0_u64, 0_u64, 0_u64, 0_u64, 0_u64);
        let mut makespan = 0;
        for (job, &end) in jobs.iter().zip(&pass.job_end) {
            let weight = u64::from(job.weight);
            makespan = makespan.max(end);
            flow += weight * u64::from(end.saturating_sub(job.release));
            if let Some(due) = job.due {
                let late = job.late(end);
                tardiness += weight * late;
                most = most.max(late);
                tardy += if late > 0 { weight } else { 0 };
                early += weight * u64::from(due.saturating_sub(end));
            }
            violation += job.deadline.map_or(0, |deadline| u64::from(end.saturating_sub(deadline)));
        }
        pass.cost.clear();
        pass.cost.push(violation);
        for sum in &self.shop.objective().sums {
            let value = |measure| match measure {
                Measure::Makespan => u64::from(makespan),
                Measure::Tardiness => tardiness,
                Measure::MaxTardiness => most,
                Measure::TardyJobs => tardy,
                Measure::FlowTime => flow,
                Measure::Earliness => early,
                Measure::SetupTime => pass.setup_time,
            };
            let terms = sum.terms.iter();
            pass.cost.push(terms.map(|&(factor, measure)| u64::from(factor) * value(measure)).sum());
        }
    }

    /// The schedule that a pass found.
    pub(super) fn schedule(&self, list: &List, pass: &Pass) -> Schedule {
        let mut operations = Vec::with_capacity(self.count());
        for job in 0..self.shop.jobs().len() {
            for (op, index) in self.shop.of_job(job).enumerate() {
                let machine = self.machine(list, index as u32);
                let (start, end) = (pass.start[index], pass.end[index]);
                operations.push(Placed { job: job as u32, op: op as u32, machine, start, end });
            }
        }
        Schedule { operations }
    }

    /// The list of a schedule: operations by start, on the machines that it gives them.
    pub(super) fn list_of(&self, schedule: &Schedule) -> List {
        let mut list = List { order: Vec::new(), mode: vec![0; self.count()] };
        let mut start = vec![(0, 0); self.count()];
        for here in &schedule.operations {
            let index = self.shop.of_job(here.job as usize).start + here.op as usize;
            let mode = self.modes[index].iter().position(|&(machine, _)| machine == here.machine);
            list.mode[index] = mode.unwrap_or(0) as u32;
            start[index] = (here.start, here.end);
        }
        list.order = super::construct::by_priority(self, |operation| start[operation as usize]);
        list
    }
}
