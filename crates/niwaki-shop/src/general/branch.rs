//! Exact search over small shops: every list of operations and modes, depth first, without those that cannot become better.
//!
//! A list is built from its front; each operation starts as early as it can, but not before the one placed last. The best
//! schedule's own list, sorted by start, is among these, as long as starting earlier never costs anything: so earliness is
//! left to others. A branch ends where its bound reaches the best known, or where the same operations were placed before and
//! nothing about that was worse: machines free no later in the same families, successors ready no later, no more spent.
//!
//! A longest wait lets what is placed already start later. So in shops that have some, a part of a list is placed as a whole,
//! as early as its own waits allow; more operations can only push it back, which keeps bounds honest. Parts are compared
//! where no wait leads out of them, since nothing pushes them any more; and lists that put the same operations in the same
//! order on every machine are looked at once.

use super::list::{Flat, Link, List, Pass};
use super::{Measure, Shop};
use crate::Limits;
use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// The most operations of a shop that is searched exactly.
pub(super) const OPERATIONS: usize = 40;

/// Places that are looked at before the search gives up.
const NODES: u32 = 40_000;

/// Rounds in which longest waits may push a part of a list until the search gives up.
const ROUNDS: usize = 1000;

/// How an exact search ended.
pub(super) struct Outcome {
    /// A list that is better than what was known before.
    pub(super) better: Option<List>,
    /// Whether nothing is better than that, or than what was known.
    pub(super) complete: bool,
}

/// Looks for lists below `upper` (violation, then the sums of the objective); nothing where this search does not apply.
pub(super) fn search(flat: &Flat<'_>, upper: &[u64], limits: Limits, began: Instant) -> Option<Outcome> {
    if flat.count() > OPERATIONS || flat.shop.objective().counts(Measure::Earliness) {
        return None;
    }
    let known = if upper[0] == 0 { upper[1..].to_vec() } else { vec![u64::MAX; upper.len() - 1] };
    let mut search = Branch {
        flat,
        order: super::construct::in_order(flat),
        list: List { order: Vec::new(), mode: vec![0; flat.count()] },
        best: known,
        better: None,
        seen: HashMap::new(),
        orders: HashSet::new(),
        pass: Pass::default(),
        nodes: 0,
        limits,
        began,
    };
    let mut state = State::new(flat);
    let mut begun: Vec<_> = (0..flat.count()).filter_map(|one| Some((flat.fixed[one]?, one))).collect();
    begun.sort_by_key(|(here, one)| (here.start, here.end, *one));
    for (here, one) in begun {
        let mode = flat.modes[one].iter().position(|mode| mode.0 == here.machine).unwrap_or(0);
        search.list.order.push(one as u32);
        search.list.mode[one] = mode as u32;
        state.now = here.start;
        state.place(flat, one, here.machine as usize, here.end);
    }
    let complete = search.extend(&state);
    Some(Outcome { better: search.better, complete })
}

/// What jobs that are done, and setups, have cost.
#[derive(Clone, Default)]
struct Spent {
    makespan: u64,
    tardiness: u64,
    most: u64,
    tardy: u64,
    flow: u64,
    setups: u64,
}

impl Spent {
    fn add(&mut self, shop: &Shop, job: usize, end: u32) {
        let job = &shop.jobs()[job];
        let weight = u64::from(job.weight);
        let late = job.late(end);
        self.makespan = self.makespan.max(end.into());
        self.tardiness += weight * late;
        self.most = self.most.max(late);
        self.tardy += if late > 0 { weight } else { 0 };
        self.flow += weight * u64::from(end.saturating_sub(job.release));
    }

    fn sums(&self, shop: &Shop) -> Vec<u64> {
        let value = |measure| match measure {
            Measure::Makespan => self.makespan,
            Measure::Tardiness => self.tardiness,
            Measure::MaxTardiness => self.most,
            Measure::TardyJobs => self.tardy,
            Measure::FlowTime => self.flow,
            Measure::Earliness => 0,
            Measure::SetupTime => self.setups,
        };
        let sum =
            |sum: &super::Sum| sum.terms.iter().map(|&(factor, one)| u64::from(factor) * value(one)).sum();
        shop.objective().sums.iter().map(sum).collect()
    }
}

/// A part of a schedule.
#[derive(Clone)]
struct State {
    /// The operations that are placed, as bits.
    placed: u64,
    /// When the one placed last starts; 0 where longest waits may push it.
    now: u32,
    /// When each machine is free, and its family.
    free: Vec<u32>,
    family: Vec<Option<u32>>,
    /// When each operation could start as far as those that are placed are concerned.
    ready: Vec<u32>,
    /// The end of each job so far, and how many of its operations are left.
    end: Vec<u32>,
    left: Vec<usize>,
    spent: Spent,
}

/// Operations that are placed, and the families of machines.
type Key = (u64, Vec<Option<u32>>);

impl State {
    fn new(flat: &Flat<'_>) -> Self {
        let shop = flat.shop;
        Self {
            placed: 0,
            now: 0,
            free: shop.machines().iter().map(|machine| machine.available).collect(),
            family: shop.machines().iter().map(|machine| machine.family).collect(),
            ready: flat.earliest.clone(),
            end: vec![0; shop.jobs().len()],
            left: shop.jobs().iter().map(|job| job.operations.len()).collect(),
            spent: Spent::default(),
        }
    }

    fn has(&self, one: usize) -> bool {
        self.placed >> one & 1 == 1
    }

    fn place(&mut self, flat: &Flat<'_>, one: usize, machine: usize, end: u32) {
        let setup = flat.shop.setups().time(machine, self.family[machine], flat.family(one as u32));
        self.spent.setups += u64::from(setup);
        self.placed |= 1 << one;
        self.free[machine] = end;
        self.family[machine] = flat.family(one as u32);
        for link in &flat.after[one] {
            let ready = &mut self.ready[link.other as usize];
            *ready = (*ready).max(end.saturating_add(link.min));
        }
        let job = flat.job[one] as usize;
        self.end[job] = self.end[job].max(end);
        self.left[job] -= 1;
        if self.left[job] == 0 {
            self.spent.add(flat.shop, job, self.end[job]);
        }
    }

    /// What the state can be compared by: no number larger means that nothing is worse.
    fn numbers(&self) -> Vec<u64> {
        let Spent { makespan, tardiness, most, tardy, flow, setups } = self.spent;
        let mut numbers = vec![self.now.into(), makespan, tardiness, most, tardy, flow, setups];
        numbers.extend(self.free.iter().map(|&free| u64::from(free.max(self.now))));
        let open = (0..self.ready.len()).filter(|&one| !self.has(one));
        numbers.extend(open.map(|one| u64::from(self.ready[one].max(self.now))));
        let jobs = self.end.iter().zip(&self.left).filter(|(_, left)| **left > 0);
        numbers.extend(jobs.map(|(&end, _)| u64::from(end)));
        numbers
    }
}

struct Branch<'a> {
    flat: &'a Flat<'a>,
    /// All operations, predecessors first.
    order: Vec<u32>,
    list: List,
    /// The sums to beat.
    best: Vec<u64>,
    better: Option<List>,
    seen: HashMap<Key, Vec<Vec<u64>>>,
    /// Orders on machines that were looked at, in shops with longest waits.
    orders: HashSet<Vec<u32>>,
    pass: Pass,
    nodes: u32,
    limits: Limits,
    began: Instant,
}

impl Branch<'_> {
    /// Looks at everything that begins like this; false if it had to give up.
    fn extend(&mut self, state: &State) -> bool {
        let count = self.flat.count();
        let Some(bound) = self.bound(state) else { return true };
        if bound >= self.best {
            return true;
        }
        if self.list.order.len() == count {
            self.best = bound;
            self.better = Some(self.list.clone());
            return true;
        }
        self.nodes += 1;
        let late = self.nodes.is_multiple_of(64) && self.began.elapsed() * 2 > self.limits.time;
        if self.nodes > NODES || late || self.limits.is_stopped() {
            return false;
        }
        if self.is_dominated(state) {
            return true;
        }
        let mut next = Vec::new();
        for one in (0..count).filter(|&one| !state.has(one)) {
            if self.flat.before[one].iter().any(|link| !state.has(link.other as usize)) {
                continue;
            }
            for (mode, &(machine, time)) in self.flat.modes[one].iter().enumerate() {
                let machine = machine as usize;
                let setup = self.flat.shop.setups().time(
                    machine,
                    state.family[machine],
                    self.flat.family(one as u32),
                );
                let from = state.ready[one].max(state.now).max(state.free[machine].saturating_add(setup));
                let span = self.flat.place(machine, one, time, from);
                next.push((span.start, span.end, one, mode, machine));
            }
        }
        next.sort_unstable();
        for (start, end, one, mode, machine) in next {
            self.list.order.push(one as u32);
            self.list.mode[one] = mode as u32;
            let complete = if !self.flat.bounded.is_empty() {
                self.extend_pushed()
            } else if end <= self.flat.latest[one] {
                let mut after = state.clone();
                after.now = start;
                after.place(self.flat, one, machine, end);
                self.extend(&after)
            } else {
                true
            };
            self.list.order.pop();
            if !complete {
                return false;
            }
        }
        true
    }

    /// Places the list so far as a whole, since its longest waits may push what was placed before, and goes on from there;
    /// false if that had to be given up.
    fn extend_pushed(&mut self) -> bool {
        let flat = self.flat;
        if !self.orders.insert(self.orders_so_far()) {
            return true;
        }
        if flat.run_part(&self.list, &mut self.pass, ROUNDS).is_none() {
            return false;
        }
        let mut state = State::new(flat);
        for &one in &self.list.order {
            let index = one as usize;
            let end = self.pass.end[index];
            if end > flat.latest[index] {
                return true;
            }
            state.place(flat, index, flat.machine(&self.list, one) as usize, end);
        }
        let too_long = |&(before, link): &(u32, Link)| {
            let latest = self.pass.end[before as usize].saturating_add(link.max);
            state.has(link.other as usize) && self.pass.start[link.other as usize] > latest
        };
        if flat.bounded.iter().any(too_long) {
            return true;
        }
        self.extend(&state)
    }

    /// The operations of every machine in order, with their modes; two lists that agree in it are one schedule.
    fn orders_so_far(&self) -> Vec<u32> {
        let mut placed: Vec<(u32, usize, u32)> = Vec::with_capacity(self.list.order.len());
        for (place, &one) in self.list.order.iter().enumerate() {
            placed.push((self.flat.machine(&self.list, one), place, one));
        }
        placed.sort_unstable();
        placed.into_iter().flat_map(|(machine, _, one)| [machine, one]).collect()
    }

    /// Whether the same operations were placed before, and nothing about it was worse.
    fn is_dominated(&mut self, state: &State) -> bool {
        let leads_out =
            |&(before, link): &(u32, Link)| state.has(before as usize) && !state.has(link.other as usize);
        if self.flat.bounded.iter().any(leads_out) {
            return false;
        }
        let numbers = state.numbers();
        let no_worse = |one: &[u64], other: &[u64]| one.iter().zip(other).all(|(one, other)| one <= other);
        let known = self.seen.entry((state.placed, state.family.clone())).or_default();
        if known.iter().any(|one| no_worse(one, &numbers)) {
            return true;
        }
        known.retain(|one| !no_worse(&numbers, one));
        known.push(numbers);
        false
    }

    /// No schedule that begins like this has smaller sums; nothing if none keeps every date.
    fn bound(&self, state: &State) -> Option<Vec<u64>> {
        let flat = self.flat;
        let mut end = vec![0_u32; flat.count()];
        let mut job_end = state.end.clone();
        for &one in &self.order {
            let one = one as usize;
            if state.has(one) {
                continue;
            }
            let mut from = state.ready[one].max(state.now);
            for link in flat.before[one].iter().filter(|link| !state.has(link.other as usize)) {
                from = from.max(end[link.other as usize].saturating_add(link.min));
            }
            let modes = flat.modes[one].iter();
            let ends = modes.map(|&(machine, time)| {
                flat.place(machine as usize, one, time, from.max(state.free[machine as usize])).end
            });
            end[one] = ends.min().unwrap_or(from);
            if end[one] > flat.latest[one] {
                return None;
            }
            let job = flat.job[one] as usize;
            job_end[job] = job_end[job].max(end[one]);
        }
        let mut spent = state.spent.clone();
        for (job, &end) in job_end.iter().enumerate() {
            if flat.shop.jobs()[job].deadline.is_some_and(|deadline| end > deadline) {
                return None;
            }
            if state.left[job] > 0 {
                spent.add(flat.shop, job, end);
            }
        }
        Some(spent.sums(flat.shop))
    }
}
