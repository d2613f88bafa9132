//! The job shop at the heart of a general shop: its routes, machines and dates, for the tabu search.
//!
//! There is one where jobs are chains, machines are always open and need no setups, nothing has a longest wait, and the makespan
//! alone counts. Releases, windows, machines that are free later and what has started become times before which operations do not
//! start. Deadlines and latest ends become tails: with a tail of `goal − deadline` after an operation, a makespan within the goal
//! keeps the deadline. Where none of these binds, this is the plain job shop, and is searched as one.

use super::list::{Flat, List};
use crate::optimum::disjunctive::{self, Blocks, Choice, Relaxation, Sequences};

/// Moves after which the tabu search looks at the clock: so many looks at operations.
const GLANCE: usize = 400_000;

/// The most moves between two such looks.
const MOVES: usize = 4000;

/// The job shop.
pub(super) struct Core {
    shop: disjunctive::Shop,
    pub(super) relaxation: Relaxation,
    /// The operation of the general shop that each one is.
    of: Vec<u32>,
    /// What each of the general shop's operations is here, if it has not started.
    place: Vec<Option<u32>>,
    /// Operations that have started, in the order of their starts, and their modes.
    begun: Vec<(u32, u32)>,
    /// When each operation must have ended.
    latest: Vec<u32>,
    /// What the objective multiplies the makespan by.
    pub(super) factor: u64,
    /// Whether schedules are as long here as there.
    pub(super) is_exact: bool,
}

impl Core {
    /// The job shop at the heart of this one, if there is one.
    pub(super) fn of(flat: &Flat<'_>) -> Option<Self> {
        let shop = flat.shop;
        let plain = shop.objective().is_makespan()
            && shop.setups().is_empty()
            && flat.bounded.is_empty()
            && shop.machines().iter().all(|machine| machine.calendar.is_always_open());
        if !plain || longest(flat) > u64::from(crate::instance::HORIZON) {
            return None;
        }
        let factor = shop.objective().sums[0].terms.iter().map(|&(factor, _)| u64::from(factor)).sum();
        let count = flat.count();
        let begun = Begun::new(flat)?;
        let (mut of, mut place, mut latest) = (Vec::new(), vec![None; count], Vec::new());
        let (mut starts, mut rests, mut earliest) = (vec![0], Vec::new(), Vec::new());
        let mut is_exact = true;
        for (number, job) in shop.jobs().iter().enumerate() {
            let range = shop.of_job(number);
            for one in range.clone() {
                let links = &flat.before[one];
                let is_first = one == range.start;
                let chained = links.iter().all(|link| !is_first && link.other as usize + 1 == one);
                if !chained || links.is_empty() != is_first {
                    return None;
                }
                let before = (!is_first).then(|| flat.fixed[one - 1]);
                if flat.fixed[one].is_some() {
                    if before == Some(None) {
                        return None;
                    }
                    continue;
                }
                let rest = links.iter().map(|link| link.min).max().unwrap_or(0);
                let ready = before.flatten().map_or(0, |here| here.end.saturating_add(rest));
                let from = flat.earliest[one].max(ready);
                let free = flat.modes[one].iter().map(|mode| begun.free[mode.0 as usize]);
                let (first, last) = (free.clone().min().unwrap_or(0), free.max().unwrap_or(0));
                is_exact &= first == last || last <= from;
                let deadline = job.deadline.filter(|_| one + 1 == range.end).unwrap_or(u32::MAX);
                let date = flat.latest[one].min(deadline);
                latest.push(if date < shop.horizon() { date } else { u32::MAX });
                place[one] = Some(of.len() as u32);
                of.push(one as u32);
                rests.push(rest);
                earliest.push(from.max(first));
            }
            if starts.last().is_some_and(|&start| start < of.len() as u32) {
                starts.push(of.len() as u32);
            }
        }
        if of.is_empty() {
            return None;
        }
        let mut routes = disjunctive::Shop::new(shop.machines().len(), starts);
        for &one in &of {
            let choices = flat.modes[one as usize].iter();
            routes.add(choices.map(|&(machine, time)| Choice { machine, time }));
        }
        (routes.rests, routes.earliest) = (rests, earliest);
        let relaxation = Relaxation::new(&routes);
        Some(Self { shop: routes, relaxation, of, place, begun: begun.operations, latest, factor, is_exact })
    }

    /// Number of operations that have not started.
    pub(super) fn operations(&self) -> usize {
        self.shop.operations()
    }

    /// Whether some operation has a choice of machines.
    pub(super) fn is_flexible(&self) -> bool {
        self.shop.is_flexible()
    }

    /// A first list, by dispatching.
    pub(super) fn first(&self, flat: &Flat<'_>) -> List {
        let sequences = disjunctive::dispatch(&self.shop, &self.relaxation.tails);
        self.list(flat, &sequences.sorted(&self.shop), &sequences.choice)
    }

    /// Operations here, in an order that keeps what they wait for, with their choices, as a list of the general shop.
    fn list(&self, flat: &Flat<'_>, order: &[u32], choice: &[u32]) -> List {
        let mut list = List { order: Vec::with_capacity(flat.count()), mode: vec![0; flat.count()] };
        for &(one, mode) in &self.begun {
            list.order.push(one);
            list.mode[one as usize] = mode;
        }
        for &one in order {
            let there = self.of[one as usize];
            list.order.push(there);
            list.mode[there as usize] =
                choice[one as usize] - self.shop.choices_of(one as usize).start as u32;
        }
        list
    }

    /// The order of operations on every machine in a list of the general shop.
    pub(super) fn sequences(&self, list: &List) -> Sequences {
        let mut sequences =
            Sequences { lists: vec![Vec::new(); self.shop.machines], choice: vec![0; self.of.len()] };
        for &there in &list.order {
            if let Some(one) = self.place[there as usize] {
                let choice = self.shop.choices_of(one as usize).start as u32 + list.mode[there as usize];
                sequences.choice[one as usize] = choice;
                sequences.lists[self.shop.choices[choice as usize].machine as usize].push(one);
            }
        }
        sequences
    }

    /// What makespan is looked for: that of the best so far, or any that keeps all dates where the best does not.
    pub(super) fn goal(&self, cost: &[u64]) -> u32 {
        let makespan = (cost[1] / self.factor) as u32;
        let dates = self.latest.iter().copied().filter(|&latest| cost[0] > 0 && latest < u32::MAX);
        dates.max().unwrap_or(0).max(makespan)
    }
}

/// What has started.
struct Begun {
    /// Operations in the order of their starts, and their modes.
    operations: Vec<(u32, u32)>,
    /// When each machine is free for others.
    free: Vec<u32>,
}

impl Begun {
    /// Nothing where something has started on a machine that cannot run it.
    fn new(flat: &Flat<'_>) -> Option<Self> {
        let begun = (0..flat.count() as u32).filter(|&one| flat.fixed[one as usize].is_some());
        let mut begun = begun.map(|one| flat.begun(one)).collect::<Option<Vec<_>>>()?;
        begun.sort_unstable();
        let mut free: Vec<u32> = flat.shop.machines().iter().map(|machine| machine.available).collect();
        for &(_, one, mode, end) in &begun {
            let free = &mut free[flat.modes[one as usize][mode as usize].0 as usize];
            *free = (*free).max(end);
        }
        Some(Self { operations: begun.into_iter().map(|(_, one, mode, _)| (one, mode)).collect(), free })
    }
}

/// The tabu search of one lane.
pub(super) struct Tabu<'a> {
    core: &'a Core,
    blocks: Blocks<'a>,
    goal: u32,
}

impl<'a> Tabu<'a> {
    pub(super) fn new(core: &'a Core, start: &List, seed: u64, lane: u64) -> Self {
        Self { core, blocks: Blocks::new(&core.shop, &core.sequences(start), seed, lane), goal: u32::MAX }
    }

    /// Learns of a list that was found elsewhere.
    pub(super) fn offer(&mut self, list: &List) {
        self.blocks.offer(&self.core.sequences(list));
    }

    /// So many moves towards schedules shorter than `goal`, fewer where none is shorter than the best, or time is up.
    pub(super) fn run(&mut self, moves: u64, goal: u32, bound: u32, is_late: &impl Fn() -> bool) {
        if goal != self.goal {
            let binds = |goal: u32| self.core.latest.iter().any(|&latest| latest < goal);
            // Without a goal there are no tails yet.
            if binds(goal) || self.goal < u32::MAX && binds(self.goal) {
                let tail = |&latest: &u32| goal.saturating_sub(latest);
                self.blocks.set_tails(&self.core.latest.iter().map(tail).collect::<Vec<_>>());
            }
            self.goal = goal;
        }
        // A move's cost grows with the number of operations.
        let glance = (GLANCE / self.core.operations()).clamp(1, MOVES) as u64;
        let mut left = moves;
        while left > 0 && self.blocks.best_makespan() > bound && !is_late() {
            let now = left.min(glance);
            self.blocks.run(now, bound);
            left -= now;
        }
    }

    /// The best list so far.
    pub(super) fn best(&self, flat: &Flat<'_>) -> List {
        let (order, choice) = self.blocks.best_order();
        self.core.list(flat, order, choice)
    }
}

/// What no makespan or tail exceeds.
fn longest(flat: &Flat<'_>) -> u64 {
    let shop = flat.shop;
    let work = flat.modes.iter().map(|modes| u64::from(modes.iter().map(|mode| mode.1).max().unwrap_or(0)));
    let rests = flat.before.iter().flatten().map(|link| u64::from(link.min));
    let first = flat.earliest.iter().copied().chain(shop.machines().iter().map(|machine| machine.available));
    let begun = flat.fixed.iter().flatten().map(|here| here.end);
    let dates = flat.latest.iter().copied().chain(shop.jobs().iter().filter_map(|job| job.deadline));
    let dates = dates.filter(|&date| date < shop.horizon()).max().unwrap_or(0);
    work.sum::<u64>()
        + rests.sum::<u64>()
        + u64::from(first.chain(begun).max().unwrap_or(0))
        + u64::from(dates)
}
