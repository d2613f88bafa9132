//! Tabu search over machine orders: an operation of a critical block goes to the block's front or end, or the front or end goes
//! inside, or a critical operation goes to another machine; moves are estimated, not computed.
//!
//! A move is estimated by the longest paths through the operations that change places, from the paths to and from their
//! neighbours, and no further than to the best estimate so far; only the move that is made is computed, and only where
//! paths can change. That makes a step cost one pass over the operations whatever the number of candidates.
//!
//! Methods: the neighbourhood N6 of Balas and Vazacopoulos (1998) with the inner moves of Zhang, Li, Guan and Rao (2007);
//! other machines as in Mastrolilli and Gambardella (2000; `machines.rs`); starts by insertion (`insertion.rs`); a small
//! population whose members are relinked (`elite.rs`).

mod elite;
mod machines;
mod neighbourhood;

use self::elite::Elite;
use self::machines::{Reassignment, Slot};
use self::neighbourhood::{Block, Shift};
use super::balance::balanced;
use super::graph::Sequences;
use super::insertion::insert_all;
use super::orders::{Lengths, Orders, Routes};
use super::shop::Shop;
use niwaki_stream::{Key, Stream};

/// The most operations for which a start by insertion is tried: its time grows with their square.
const INSERTED_UP_TO: usize = 3000;

/// How much starts by insertion are scattered, but for the first one (see `insertion.rs`).
const NOISE: u64 = 8;

/// The most orders that are forbidden one by one; of more, some that share a place are forbidden together.
const ARCS: usize = 1 << 24;

/// A change of the orders.
#[derive(Clone, Copy)]
enum Move {
    Shift(Shift),
    Reassign(Reassignment),
}

/// The search.
pub(crate) struct Blocks<'a> {
    shop: &'a Shop,
    routes: Routes,
    now: Orders,
    paths: Lengths,
    best: Orders,
    /// The best since the last start.
    local: Orders,
    /// Until when an operation may not come before the job's one on its machine: by [`Blocks::arc`].
    forbidden: Vec<u64>,
    /// Until when an operation may not go to a machine: as [`Shop::choices`].
    left_at: Vec<u64>,
    iteration: u64,
    improved_at: u64,
    elite: Elite,
    stream: Stream,
    /// How much the first start by insertion is scattered.
    noise: u64,
    critical: Vec<u32>,
    block: Block,
    moves: Vec<Move>,
    /// The operations of each machine in order, where machines can be chosen.
    slots: Vec<Vec<Slot>>,
    marked: Vec<u64>,
    stamp: u64,
    taken: Vec<u32>,
    left: Vec<u32>,
}

impl<'a> Blocks<'a> {
    /// Starts from complete sequences that do not contradict the routes, or by insertion where that is better; searches of
    /// other lanes go other ways.
    pub(crate) fn new(shop: &'a Shop, start: &Sequences, seed: u64, lane: u64) -> Self {
        let count = shop.operations();
        let routes = Routes::new(shop);
        let mut paths = Lengths::new(count);
        let mut now = Orders::new(shop, &routes, start);
        now.sort(&routes);
        paths.compute_all(&routes, &mut now);
        Self {
            shop,
            forbidden: vec![0; count.saturating_mul(routes.jobs).min(ARCS)],
            left_at: vec![0; shop.choices.len()],
            slots: (0..routes.machines).map(|_| Vec::new()).collect(),
            routes,
            best: now.clone(),
            local: now.clone(),
            now,
            paths,
            iteration: 0,
            improved_at: 0,
            elite: Elite::default(),
            stream: Key::new(seed, "optimum/blocks").lane(lane).open(),
            noise: if lane == 0 { 0 } else { NOISE },
            critical: Vec::new(),
            block: Block::default(),
            moves: Vec::new(),
            marked: vec![0; count + 1],
            stamp: 0,
            taken: Vec::new(),
            left: Vec::new(),
        }
    }

    /// The shortest makespan found.
    pub(crate) const fn best_makespan(&self) -> u32 {
        self.best.makespan
    }

    /// The sequences of the shortest makespan found.
    pub(super) fn best(&self) -> Sequences {
        let (order, choice) = self.best_order();
        let mut lists = vec![Vec::new(); self.routes.machines];
        for &operation in order {
            lists[self.best.machine[operation as usize] as usize].push(operation);
        }
        Sequences { lists, choice: choice.to_vec() }
    }

    /// Of the shortest makespan found: all operations, each behind what it waits for, and their chosen alternatives.
    pub(crate) fn best_order(&self) -> (&[u32], &[u32]) {
        (&self.best.order, &self.best.choice)
    }

    /// Lets the makespan count so much time after each operation's end, from now on.
    pub(crate) fn set_tails(&mut self, tails: &[u32]) {
        self.routes.set_tails(tails);
        self.elite.judge_again(&self.routes, &mut self.paths);
        for orders in [&mut self.best, &mut self.local, &mut self.now] {
            self.paths.compute_all(&self.routes, orders);
        }
        if self.local.makespan < self.best.makespan {
            self.best.clone_from(&self.local);
        }
    }

    /// Takes sequences that were found elsewhere among those between which it looks for new starts.
    pub(crate) fn offer(&mut self, sequences: &Sequences) {
        let mut other = Orders::new(self.shop, &self.routes, sequences);
        other.sort(&self.routes);
        self.paths.compute_all(&self.routes, &mut other);
        self.elite.take(&other, &self.paths);
        self.paths.compute_all(&self.routes, &mut self.now);
    }

    /// Makes up to `iterations` moves, fewer if `target` is reached; the first ones from insertion, where that is better than the
    /// given start.
    pub(crate) fn run(&mut self, iterations: u64, target: u32) {
        if self.iteration == 0 {
            self.try_insertion();
        }
        self.descend(iterations, target);
    }

    /// Makes up to `iterations` moves from where it is, fewer if `target` is reached.
    pub(super) fn descend(&mut self, iterations: u64, target: u32) {
        let end = self.iteration + iterations;
        let patience = elite::patience(self.routes.count());
        while self.iteration < end && self.best.makespan > target {
            self.iteration += 1;
            if self.iteration - self.improved_at > patience || !self.step() {
                self.turn_to_elite();
            }
        }
    }

    /// Starts by insertion, if that is better than the given start.
    fn try_insertion(&mut self) {
        if self.routes.count() > INSERTED_UP_TO {
            return;
        }
        let mut inserted = self.inserted(self.noise);
        if self.shop.is_flexible() {
            let given = balanced(self.shop, &mut self.stream);
            let other = insert_all(self.shop, &self.routes, Some(&given), 0, &mut self.stream);
            if other.makespan < inserted.makespan {
                inserted = other;
            }
        }
        if inserted.makespan < self.now.makespan {
            self.now = inserted;
            self.paths.compute_all(&self.routes, &mut self.now);
            self.local.clone_from(&self.now);
            self.best.clone_from(&self.now);
        }
    }

    /// A start by insertion.
    fn inserted(&mut self, noise: u64) -> Orders {
        insert_all(self.shop, &self.routes, None, noise, &mut self.stream)
    }

    /// One move; false if the critical path leaves none.
    fn step(&mut self) -> bool {
        self.find_critical_path();
        let Some(chosen) = self.choose() else { return false };
        self.make(chosen);
        if self.now.makespan < self.local.makespan {
            self.local.clone_from(&self.now);
            self.improved_at = self.iteration;
            if self.now.makespan < self.best.makespan {
                self.best.clone_from(&self.now);
            }
        }
        true
    }

    /// Makes a move, and forbids the way back.
    fn make(&mut self, chosen: Move) {
        match chosen {
            Move::Shift(one) => {
                self.forbid(one);
                self.apply(one);
            }
            Move::Reassign(one) => self.reassign(one),
        }
    }

    /// The operations that a shift crosses, first to last, without the one that moves.
    fn crossed(&self, one: Shift) -> impl Iterator<Item = u32> + '_ {
        let (from, to) = if one.forward {
            (self.now.after[one.first as usize], one.last)
        } else {
            (one.first, self.now.before[one.last as usize])
        };
        let nobody = self.routes.nobody();
        let mut at = from;
        std::iter::from_fn(move || {
            let here = at;
            if here == nobody {
                return None;
            }
            at = if here == to { nobody } else { self.now.after[here as usize] };
            Some(here)
        })
    }

    fn arc(&self, before: u32, after: u32) -> usize {
        let arc = before as u64 * self.routes.jobs as u64 + u64::from(self.routes.job[after as usize]);
        let places = self.forbidden.len() as u64;
        (if arc < places { arc } else { arc % places }) as usize
    }

    /// Whether the shift brings back an order that was given up lately.
    fn is_forbidden(&self, one: Shift) -> bool {
        self.crossed(one).any(|other| {
            let arc = if one.forward { self.arc(other, one.first) } else { self.arc(one.last, other) };
            self.forbidden[arc] > self.iteration
        })
    }

    /// Forbids the orders that the shift gives up.
    fn forbid(&mut self, one: Shift) {
        let (jobs, machines) = (self.routes.jobs, self.routes.machines.max(1));
        let least = (10 + jobs / machines) as u64;
        let span = if jobs <= 2 * machines { 2 * least / 5 } else { least / 2 };
        let until = self.iteration + least + self.stream.below(span + 1);
        let mut arcs = std::mem::take(&mut self.left);
        arcs.clear();
        arcs.extend(self.crossed(one).map(|other| {
            (if one.forward { self.arc(one.first, other) } else { self.arc(other, one.last) }) as u32
        }));
        arcs.iter().for_each(|&arc| self.forbidden[arc as usize] = until);
        self.left = arcs;
    }

    /// Changes the machine order and the topological order, and computes what can change.
    fn apply(&mut self, one: Shift) {
        let (from, to) =
            (self.paths.rank[one.first as usize] as usize, self.paths.rank[one.last as usize] as usize);
        self.stamp += 1;
        self.taken.clear();
        self.left.clear();
        if one.forward {
            // Whatever follows the first operation, but for those that it now follows, goes behind it.
            self.mark(&[self.routes.after[one.first as usize]]);
            self.taken.push(one.first);
            for index in from + 1..=to {
                let here = self.now.order[index];
                if here != one.last && self.marked[here as usize] == self.stamp {
                    self.mark(&[self.routes.after[here as usize], self.now.after[here as usize]]);
                    self.taken.push(here);
                } else {
                    self.left.push(here);
                }
            }
            let sorted = self.left.iter().chain(&self.taken);
            self.now.order[from..=to].iter_mut().zip(sorted).for_each(|(place, &here)| *place = here);
            self.now.unlink(one.first);
            self.now.link(one.first, one.last, self.now.after[one.last as usize]);
        } else {
            self.mark(&[self.routes.before[one.last as usize]]);
            self.taken.push(one.last);
            for index in (from..to).rev() {
                let here = self.now.order[index];
                if here != one.first && self.marked[here as usize] == self.stamp {
                    self.mark(&[self.routes.before[here as usize], self.now.before[here as usize]]);
                    self.taken.push(here);
                } else {
                    self.left.push(here);
                }
            }
            let sorted = self.taken.iter().rev().chain(self.left.iter().rev());
            self.now.order[from..=to].iter_mut().zip(sorted).for_each(|(place, &here)| *place = here);
            self.now.unlink(one.last);
            self.now.link(one.last, self.now.before[one.first as usize], one.first);
        }
        for (place, &here) in self.now.order[from..=to].iter().enumerate() {
            self.paths.rank[here as usize] = (from + place) as u32;
        }
        self.paths.compute(&self.routes, &mut self.now, from, to + 1);
    }
}

#[cfg(test)]
mod tests;
