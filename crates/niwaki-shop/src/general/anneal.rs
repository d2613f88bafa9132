//! Simulated annealing over lists: moves along what holds late operations back, of single operations and of whole jobs, in
//! cycles that grow (see `search.rs` for who calls it).

use super::list::{Flat, List, NONE, Pass};
use super::moves::Mover;
use crate::Limits;
use niwaki_stream::{Key, Stream};
use std::time::Instant;

/// Moves of the first cycle, and of the longest.
const FIRST_CYCLE: u64 = 20_000;
const LONGEST_CYCLE: u64 = 2_000_000;

/// The temperature at a cycle's end, as a share of that at its beginning.
const COOLED: f64 = 0.003;

/// The temperatures at which cycles begin, in turn, where 1 is half of what an uphill move costs on average; and whether
/// operations fill gaps in them, if machines close. The first one descends; hot ones leave what is known behind, which a large
/// shop can afford only once cycles have grown.
const CYCLES: [(f64, bool); 4] = [(0.03, false), (4.0, true), (4.0, false), (0.3, true)];
const LARGE_CYCLES: [(f64, bool); 6] =
    [(0.03, false), (1.0, false), (4.0, true), (0.3, false), (4.0, false), (0.3, true)];

/// The most operations of a shop that is not large.
const SMALL: usize = 250;

/// Moves for which a proof may meet a conflict where it takes turns: of a small shop, which it costs a third of the time, and of a
/// large one, whose bounds stay far away, which it costs a tenth.
const MOVES_PER_CONFLICT: u64 = 128;
const MOVES_PER_TURN: u64 = 1024;

/// The most operations of a shop whose proof takes as many turns as it can use.
const PROVABLE: usize = 100;

/// Moves between two looks at the clock; a shop with more operations than this looks after every move.
const GLANCE: u64 = 128;
const LARGE: usize = 5000;

/// How a cycle goes.
#[derive(Clone, Copy)]
pub(super) struct Cycle {
    moves: u64,
    /// The temperature at its beginning.
    heat: f64,
    /// Whether operations fill gaps.
    fills: bool,
}

/// One thread's search.
pub(super) struct Chain<'a> {
    flat: &'a Flat<'a>,
    mover: Mover,
    stream: Stream,
    current: List,
    pass: Pass,
    trial: List,
    trial_pass: Pass,
    /// Whether lists are read so that operations fill gaps.
    fills: bool,
    place: Vec<u32>,
    path: Vec<u32>,
    /// Operations at which costs arise.
    sources: Vec<u32>,
    flexible: Vec<u32>,
    windowed: Vec<u32>,
    begun: usize,
    heat: Vec<f64>,
    pub(super) best: List,
    pub(super) best_cost: Vec<u64>,
}

impl<'a> Chain<'a> {
    pub(super) fn new(
        flat: &'a Flat<'a>,
        start: &List,
        seed: u64,
        thread: u64,
        is_late: &impl Fn() -> bool,
    ) -> Self {
        let mut pass = Pass::default();
        flat.run(start, &mut pass);
        let all = 0..flat.count() as u32;
        let movable = |&one: &u32| flat.fixed[one as usize].is_none() && flat.modes[one as usize].len() > 1;
        let windowed = |&one: &u32| flat.latest[one as usize] < flat.shop.horizon();
        let mut chain = Self {
            mover: Mover::new(flat),
            stream: Key::new(seed, "general/anneal").lane(thread).open(),
            current: start.clone(),
            trial: start.clone(),
            trial_pass: Pass::default(),
            fills: false,
            place: vec![0; flat.count()],
            path: Vec::new(),
            sources: Vec::new(),
            flexible: all.clone().filter(movable).collect(),
            windowed: all.filter(windowed).collect(),
            begun: flat.fixed.iter().flatten().count(),
            heat: vec![1.0; pass.cost.len()],
            best: start.clone(),
            best_cost: pass.cost.clone(),
            pass,
            flat,
        };
        chain.begin(false);
        chain.warm_up(is_late);
        chain
    }

    /// Takes over a list that another chain has found.
    pub(super) fn adopt(&mut self, list: &List, cost: &[u64]) {
        self.best = list.clone();
        self.best_cost = cost.to_vec();
    }

    /// Goes on from the best list, read in one way or the other.
    fn begin(&mut self, fills: bool) {
        self.fills = fills;
        self.current = self.best.clone();
        if fills {
            self.flat.run_filling(&self.current, &mut self.pass);
        } else {
            self.flat.run(&self.current, &mut self.pass);
        }
        self.settle();
    }

    /// Updates what moves look at after the current list has changed.
    fn settle(&mut self) {
        for (index, &one) in self.current.order.iter().enumerate() {
            self.place[one as usize] = index as u32;
        }
        self.sources.clear();
        let (flat, pass) = (self.flat, &self.pass);
        let makespan = pass.job_end.iter().copied().max().unwrap_or(0);
        for ((number, job), &end) in flat.shop.jobs().iter().enumerate().zip(&pass.job_end) {
            let late = |date: Option<u32>| date.is_some_and(|date| end > date);
            if job.late(end) > 0 || late(job.deadline) || end == makespan {
                let last = flat.shop.of_job(number).rev().find(|&one| pass.end[one] == end);
                self.sources.extend(last.map(|one| one as u32));
            }
        }
        let late = |&&one: &&u32| pass.end[one as usize] > flat.latest[one as usize];
        self.sources.extend(self.windowed.iter().filter(late));
    }

    /// Sets the heat of each level to half of what an uphill move costs there.
    fn warm_up(&mut self, is_late: &impl Fn() -> bool) {
        let mut sums = vec![(0.0, 0.0); self.heat.len()];
        for _ in 0..200 {
            if self.flat.count() > LARGE && is_late() {
                break;
            }
            if !self.propose() {
                continue;
            }
            let pairs = self.trial_pass.cost.iter().zip(&self.pass.cost);
            for ((new, old), (sum, count)) in pairs.zip(&mut sums) {
                if new > old {
                    *sum += (new - old) as f64;
                    *count += 1.0;
                }
            }
        }
        for (heat, (sum, count)) in self.heat.iter_mut().zip(sums) {
            *heat = if count > 0.0 { 0.5 * sum / count } else { 1.0 };
        }
    }

    /// One cycle from hot to cold; it ends early when time is up or `enough` is reached.
    pub(super) fn cycle(&mut self, plan: Cycle, enough: &[u64], limits: Limits, began: Instant) {
        let Cycle { moves, heat, fills } = plan;
        self.begin(fills);
        let mut left = moves;
        while left > 0 {
            if self.best_cost.as_slice() <= enough || limits.is_stopped() || began.elapsed() >= limits.time {
                return;
            }
            let now = left.min(GLANCE);
            let cooling = heat * COOLED.powf((moves - left) as f64 / moves as f64);
            for step in 0..now {
                // A move's cost grows with the number of operations.
                if self.flat.count() > LARGE
                    && step > 0
                    && (limits.is_stopped() || began.elapsed() >= limits.time)
                {
                    return;
                }
                self.step(cooling);
            }
            left -= now;
        }
    }

    fn step(&mut self, cooling: f64) {
        if !self.propose() || !self.accepts(cooling) {
            return;
        }
        std::mem::swap(&mut self.current, &mut self.trial);
        std::mem::swap(&mut self.pass, &mut self.trial_pass);
        self.settle();
        if self.pass.cost >= self.best_cost {
            return;
        }
        if !self.fills {
            self.best = self.current.clone();
            self.best_cost.clone_from(&self.pass.cost);
            return;
        }
        let list = self.flat.by_start(&self.current, &self.pass);
        self.flat.run(&list, &mut self.trial_pass);
        if self.trial_pass.cost < self.best_cost {
            self.best = list;
            self.best_cost.clone_from(&self.trial_pass.cost);
        }
    }

    /// The first level at which the two differ decides.
    fn accepts(&mut self, cooling: f64) -> bool {
        let pairs = self.trial_pass.cost.iter().zip(&self.pass.cost);
        for ((&new, &old), heat) in pairs.zip(&self.heat) {
            if new < old {
                return true;
            }
            if new > old {
                let rise = (new - old) as f64;
                return self.stream.uniform() < (-rise / (heat * cooling)).exp();
            }
        }
        true
    }

    /// Makes a trial list and its pass; false if the move that was drawn cannot be made.
    fn propose(&mut self) -> bool {
        self.trial.order.clone_from(&self.current.order);
        self.trial.mode.clone_from(&self.current.mode);
        let draw = self.stream.below(100);
        let made = if draw < 20 && !self.flexible.is_empty() {
            self.change_mode()
        } else if draw < 60 {
            self.reorder_path()
        } else if draw < 70 {
            self.reorder_anywhere()
        } else {
            self.shift_job()
        };
        if made {
            if self.fills {
                self.flat.run_filling(&self.trial, &mut self.trial_pass);
            } else {
                self.flat.run(&self.trial, &mut self.trial_pass);
            }
        }
        made
    }

    /// Another machine for an operation, somewhere among those that it may pass.
    fn change_mode(&mut self) -> bool {
        let one = self.flexible[self.stream.below(self.flexible.len() as u64) as usize];
        let index = one as usize;
        let count = self.flat.modes[index].len() as u64;
        let other = (u64::from(self.current.mode[index]) + 1 + self.stream.below(count - 1)) % count;
        self.trial.mode[index] = other as u32;
        let places = |links: &[super::list::Link]| -> Vec<usize> {
            links.iter().map(|link| self.place[link.other as usize] as usize).collect()
        };
        let low = places(&self.flat.before[index]).into_iter().max().map_or(0, |place| place + 1);
        let high = places(&self.flat.after[index]).into_iter().min().unwrap_or(self.flat.count()) - 1;
        let from = self.place[index] as usize;
        let to = low + self.stream.below((high - low + 1) as u64) as usize;
        if self.flat.fixed[self.current.order[to] as usize].is_some() {
            return false;
        }
        Mover::slide(&mut self.trial, from, to);
        true
    }

    /// Lets a job, from one of its operations on, go ahead or wait on all its machines at once.
    fn shift_job(&mut self) -> bool {
        let count = self.flat.count();
        let one = self.stream.below(count as u64) as u32;
        let reach = 1 + self.stream.below((count as u64 / 4).max(1)) as usize;
        let from = self.place[one as usize] as usize;
        if from < self.begun {
            return false;
        }
        if self.stream.below(2) == 0 {
            self.mover.hurry(self.flat, &mut self.trial, &self.place, from, reach, self.begun)
        } else {
            self.mover.delay(self.flat, &mut self.trial, &self.place, from, reach)
        }
    }

    /// Takes the chain of operations that hold one of the late ones back, and turns a pair of it on one machine around.
    fn reorder_path(&mut self) -> bool {
        let Some(&source) = pick(&self.sources, &mut self.stream) else { return self.reorder_anywhere() };
        self.path.clear();
        let mut at = source;
        while at != NONE {
            self.path.push(at);
            at = self.pass.held_by[at as usize];
        }
        // Pairs of the path that are neighbours on a machine.
        let tied = |chain: &Self, later: usize| {
            later + 1 < chain.path.len()
                && chain.pass.machine_before[chain.path[later] as usize] == chain.path[later + 1]
        };
        let (mut later, mut ties) = (usize::MAX, 0);
        for index in 0..self.path.len() {
            if tied(self, index) {
                ties += 1;
                if self.stream.below(ties) == 0 {
                    later = index;
                }
            }
        }
        if later == usize::MAX {
            return self.reorder_anywhere();
        }
        // Mostly neighbours, now and then farther along the block.
        let mut earlier = later + 1;
        while tied(self, earlier) && self.stream.below(3) == 0 {
            earlier += 1;
        }
        let (high, low) = (self.path[later], self.path[earlier]);
        self.turn(low, high)
    }

    /// Takes any operation and one that comes before it on its machine, by preference one of the same family.
    fn reorder_anywhere(&mut self) -> bool {
        let high = self.stream.below(self.flat.count() as u64) as u32;
        let mut low = self.pass.machine_before[high as usize];
        let family = self.flat.family(high);
        let to_kin = family.is_some() && self.stream.below(2) == 0;
        let mut steps = if to_kin { 20 } else { self.stream.below(4) };
        while low != NONE && steps > 0 {
            let next = self.pass.machine_before[low as usize];
            if next == NONE || to_kin && self.flat.family(next) == family {
                break;
            }
            low = next;
            steps -= 1;
        }
        low != NONE && self.turn(low, high)
    }

    fn turn(&mut self, low: u32, high: u32) -> bool {
        let (from, to) = (self.place[low as usize] as usize, self.place[high as usize] as usize);
        // Where operations fill gaps, what comes first on a machine may come later in the list.
        if from > to {
            return false;
        }
        if self.stream.below(2) == 0 {
            self.mover.pull(self.flat, &mut self.trial, to, from)
        } else {
            self.mover.push(self.flat, &mut self.trial, from, to)
        }
    }
}

fn pick<'s, T>(items: &'s [T], stream: &mut Stream) -> Option<&'s T> {
    if items.is_empty() { None } else { items.get(stream.below(items.len() as u64) as usize) }
}

/// How many moves the next cycle has.
pub(super) fn next_cycle(moves: u64) -> u64 {
    if moves == 0 { FIRST_CYCLE } else { (moves + moves / 2).min(LONGEST_CYCLE) }
}

/// How many conflicts a proof may meet beside a cycle.
pub(super) fn conflicts(flat: &Flat<'_>, moves: u64) -> u64 {
    moves / if flat.count() <= PROVABLE { MOVES_PER_CONFLICT } else { MOVES_PER_TURN }
}

impl Cycle {
    /// The cycle of a round.
    pub(super) fn of(flat: &Flat<'_>, round: u32, moves: u64) -> Self {
        let cycles: &[(f64, bool)] = if flat.count() <= SMALL { &CYCLES } else { &LARGE_CYCLES };
        let (heat, fills) = cycles[round as usize % cycles.len()];
        Self { moves, heat, fills: fills && flat.fills_gaps() }
    }
}
