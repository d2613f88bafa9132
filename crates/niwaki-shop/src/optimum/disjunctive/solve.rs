//! Turns of local search and exact search until the bounds meet or time is up.

use super::blocks::Blocks;
use super::graph::{Paths, Sequences};
use super::model::{Maxima, Model};
use super::relaxation::Relaxation;
use super::shop::Shop;
use super::start::{better, one_after_another, sequences_of};
use crate::Schedule;
use crate::optimum::bounds::one_machine;
use crate::optimum::clock::Clock;
use crate::optimum::learning::Outcome;
use crate::optimum::result::{Bounds, Limits, Optimum, Watch};

/// The square of the number of operations up to which both searches get as many steps; beyond it a conflict costs more
/// than a move and proofs are out of reach.
const EVEN_UP_TO: u64 = 100 * 100;

/// Moves for each conflict of the exact search: they cost so much less.
const MOVES: u64 = 60;

/// The most operations for the exact search: beyond, a conflict costs as much as thousands of moves and proves nothing.
const EXACT_OPERATIONS: usize = 500;

/// The longest schedule for the exact search: its sums of a start, some work and a tail must fit 32 bits.
const EXACT_UP_TO: u32 = i32::MAX as u32 / 4;

/// What is known, and who is told.
pub(super) struct Known<'w> {
    pub(super) lower: u32,
    pub(super) upper: u32,
    pub(super) best: Schedule,
    watch: Watch<'w>,
}

impl<'w> Known<'w> {
    pub(super) fn new(lower: u32, best: Schedule, watch: Watch<'w>) -> Self {
        let upper = best.makespan();
        watch(Bounds { lower, upper });
        Self { lower, upper, best, watch }
    }

    pub(super) const fn proven(&self) -> bool {
        self.lower >= self.upper
    }

    pub(super) fn found(&mut self, schedule: Schedule) {
        self.upper = schedule.makespan();
        self.best = schedule;
        (self.watch)(Bounds { lower: self.lower, upper: self.upper });
    }

    pub(super) fn refuted(&mut self, makespan: u32) {
        self.lower = makespan + 1;
        (self.watch)(Bounds { lower: self.lower, upper: self.upper });
    }

    /// The makespan to ask for in this turn: the gap is halved, except in a flexible shop once it is small. There the
    /// loads' bound is nearly always the optimum or just below it, but hard to refute where it is not; so every other
    /// turn is content with any shorter schedule.
    pub(super) const fn target(&self, flexible: bool, turn: u32) -> u32 {
        let gap = self.upper - 1 - self.lower;
        match (flexible && gap <= self.lower / 10, turn % 2) {
            (false, _) => self.lower + gap / 2,
            (true, 0) => self.lower,
            (true, _) => self.upper - 1,
        }
    }
}

/// Solves any (flexible) job shop, from a schedule at hand or from dispatching; maxima of rests are not looked at.
pub(in crate::optimum) fn solve(
    shop: &Shop,
    given: Option<&Schedule>,
    limits: Limits,
    watch: Watch<'_>,
) -> Optimum {
    #[cfg(feature = "pumpkin")]
    let whole = Clock::start(limits);
    let clock = Clock::start(own_share(limits));
    let relaxation = Relaxation::new(shop);
    let lower = relaxation.lower.max(machine_bound(shop, &relaxation));
    let mut local = Blocks::new(shop, &better(shop, &relaxation.tails, given), limits.seed);
    let mut known = Known::new(lower, best_schedule(shop, &local.best()), watch);

    let mut moves = 30;
    let mut turn = 0;
    let mut model: Option<Model<'_>> = None;
    let mut prefer = true;
    while !known.proven() && !clock.is_over() {
        local_turn(&mut local, moves, known.lower, shop.operations(), &clock);
        if local.best_makespan() < known.upper {
            known.found(best_schedule(shop, &local.best()));
            prefer = true;
        }
        if known.proven() {
            break;
        }
        let conflicts = moves * EVEN_UP_TO / EVEN_UP_TO.max((shop.operations() * shop.operations()) as u64);
        moves += moves / 2;
        if conflicts == 0 || known.upper > EXACT_UP_TO || shop.operations() > EXACT_OPERATIONS {
            continue;
        }
        let exact = model.get_or_insert_with(|| {
            Model::new(shop, known.lower, known.upper - 1, &relaxation.cuts, Maxima::Soft)
        });
        exact.require(known.upper - 1);
        if std::mem::take(&mut prefer) {
            exact.prefer(&known.best);
        }
        exact_turn(exact, turn, conflicts, &mut known, &clock);
        turn += 1;
    }
    #[cfg(feature = "pumpkin")]
    super::pumpkin::close(shop, &relaxation, Maxima::Soft, &mut known, &whole);
    Optimum::new(known.lower, known.best)
}

/// So many moves of the local search from a schedule; nothing where that is none of the shop's. No clock is looked at.
pub(in crate::optimum) fn improve(shop: &Shop, given: &Schedule, moves: u64, seed: u64) -> Option<Schedule> {
    let start = sequences_of(shop, given)?;
    let mut local = Blocks::new(shop, &start, seed);
    local.descend(moves, Relaxation::new(shop).lower);
    Some(best_schedule(shop, &local.best()))
}

/// Solves a small shop whose maxima of rests are hard.
pub(in crate::optimum) fn solve_within_windows(shop: &Shop, limits: Limits, watch: Watch<'_>) -> Optimum {
    #[cfg(feature = "pumpkin")]
    let whole = Clock::start(limits);
    let clock = Clock::start(own_share(limits));
    let relaxation = Relaxation::new(shop);
    let lower = relaxation.lower.max(machine_bound(shop, &relaxation));
    let mut known = Known::new(lower, one_after_another(shop), watch);
    if known.upper <= EXACT_UP_TO && !known.proven() {
        let mut model = Model::new(shop, known.lower, known.upper - 1, &relaxation.cuts, Maxima::Hard);
        let mut turn = 0;
        while !known.proven() && !clock.is_over() {
            exact_turn(&mut model, turn, 1000, &mut known, &clock);
            turn += 1;
        }
    }
    #[cfg(feature = "pumpkin")]
    super::pumpkin::close(shop, &relaxation, Maxima::Hard, &mut known, &whole);
    Optimum::new(known.lower, known.best)
}

/// The part of the time limit for our own searches: what is left is Pumpkin's, where it is built in.
fn own_share(limits: Limits) -> Limits {
    let share = if cfg!(feature = "pumpkin") { 2.0 / 3.0 } else { 1.0 };
    limits.within(limits.time.mul_f64(share))
}

/// Some moves of the local search, with a look at the clock now and then.
fn local_turn(local: &mut Blocks<'_>, moves: u64, target: u32, operations: usize, clock: &Clock) {
    let mut left = MOVES * moves;
    // A move's cost grows with the number of operations.
    let slice = (MOVES * 6400 / operations.max(1) as u64).clamp(1, MOVES * 64);
    while left > 0 && local.best_makespan() > target && !clock.is_over() {
        let now = left.min(slice);
        local.run(now, target);
        left -= now;
    }
}

/// Closes the gap by proof or by schedule until it is gone or so many conflicts are met.
fn exact_turn(exact: &mut Model<'_>, turn: u32, conflicts: u64, known: &mut Known<'_>, clock: &Clock) {
    let budget = exact.conflicts() + conflicts;
    while !known.proven() && !clock.is_over() && exact.conflicts() < budget {
        let target = known.target(exact.shop.is_flexible(), turn);
        match exact.search(target, |conflicts| conflicts >= budget || clock.is_over()) {
            Outcome::Refuted => known.refuted(target),
            Outcome::Found => {
                known.found(exact.schedule());
                exact.require(known.upper - 1);
            }
            Outcome::Interrupted => {}
        }
    }
}

fn best_schedule(shop: &Shop, best: &Sequences) -> Schedule {
    let mut paths = Paths::default();
    paths.compute(shop, best);
    paths.schedule(shop, best)
}

/// Jackson's preemptive bound on each machine over the operations that can run nowhere else.
fn machine_bound(shop: &Shop, relaxation: &Relaxation) -> u32 {
    let mut lists = vec![Vec::new(); shop.machines];
    for operation in 0..shop.operations() {
        if let [only] = shop.alternatives(operation) {
            lists[only.machine as usize].push(one_machine::Task {
                head: relaxation.heads[operation],
                time: only.time,
                tail: relaxation.tails[operation],
            });
        }
    }
    lists.iter_mut().map(|tasks| one_machine::preemptive(tasks)).max().unwrap_or(0)
}
