//! Turns of local search and exact search until the bounds meet or time is up.

use super::graph::Paths;
use super::model::{Maxima, Model};
use super::relaxation::Relaxation;
use super::shop::Shop;
use super::start::{dispatch, one_after_another};
use super::tabu::Tabu;
use crate::Schedule;
use crate::optimum::bounds::one_machine;
use crate::optimum::clock::Clock;
use crate::optimum::learning::Outcome;
use crate::optimum::result::{Bounds, Limits, Optimum, Watch};

/// What is known, and who is told.
struct Known<'w> {
    lower: u32,
    upper: u32,
    best: Schedule,
    watch: Watch<'w>,
}

impl<'w> Known<'w> {
    fn new(lower: u32, best: Schedule, watch: Watch<'w>) -> Self {
        let upper = best.makespan();
        watch(Bounds { lower, upper });
        Self { lower, upper, best, watch }
    }

    const fn proven(&self) -> bool {
        self.lower >= self.upper
    }

    fn found(&mut self, schedule: Schedule) {
        self.upper = schedule.makespan();
        self.best = schedule;
        (self.watch)(Bounds { lower: self.lower, upper: self.upper });
    }

    fn refuted(&mut self, makespan: u32) {
        self.lower = makespan + 1;
        (self.watch)(Bounds { lower: self.lower, upper: self.upper });
    }
}

/// Solves any (flexible) job shop; maxima of rests are not looked at.
pub(in crate::optimum) fn solve(shop: &Shop, limits: Limits, watch: Watch<'_>) -> Optimum {
    let clock = Clock::start(limits.time);
    let relaxation = Relaxation::new(shop);
    let lower = relaxation.lower.max(machine_bound(shop, &relaxation));
    let mut tabu = Tabu::new(shop, dispatch(shop, &relaxation.tails), limits.seed);
    let mut known = Known::new(lower, best_schedule(shop, &tabu), watch);

    let mut turn = 30;
    let mut model: Option<Model<'_>> = None;
    let mut prefer = true;
    while !known.proven() && !clock.is_over() {
        local_turn(&mut tabu, turn, known.lower, &clock);
        if tabu.best_makespan() < known.upper {
            known.found(best_schedule(shop, &tabu));
            prefer = true;
        }
        if known.proven() {
            break;
        }
        let exact = model.get_or_insert_with(|| {
            Model::new(shop, known.lower, known.upper - 1, &relaxation.cuts, Maxima::Soft)
        });
        exact.require(known.upper - 1);
        if std::mem::take(&mut prefer) {
            exact.prefer(&known.best);
        }
        exact_turn(exact, turn, &mut known, &clock);
        turn += turn / 2;
    }
    Optimum::new(known.lower, known.best)
}

/// Solves a small shop whose maxima of rests are hard.
pub(in crate::optimum) fn solve_within_windows(shop: &Shop, limits: Limits, watch: Watch<'_>) -> Optimum {
    let clock = Clock::start(limits.time);
    let relaxation = Relaxation::new(shop);
    let lower = relaxation.lower.max(machine_bound(shop, &relaxation));
    let mut known = Known::new(lower, one_after_another(shop), watch);
    if !known.proven() {
        let mut model = Model::new(shop, known.lower, known.upper - 1, &relaxation.cuts, Maxima::Hard);
        while !known.proven() && !clock.is_over() {
            exact_turn(&mut model, 1000, &mut known, &clock);
        }
    }
    Optimum::new(known.lower, known.best)
}

/// Some moves of the tabu search, with a look at the clock now and then.
fn local_turn(tabu: &mut Tabu<'_>, moves: u64, target: u32, clock: &Clock) {
    let mut left = moves;
    while left > 0 && tabu.best_makespan() > target && !clock.is_over() {
        let now = left.min(64);
        tabu.run(now, target);
        left -= now;
    }
}

/// Halves the gap by proof or by schedule until it closes or so many conflicts are met.
fn exact_turn(exact: &mut Model<'_>, conflicts: u64, known: &mut Known<'_>, clock: &Clock) {
    let budget = exact.conflicts() + conflicts;
    while !known.proven() && !clock.is_over() && exact.conflicts() < budget {
        let target = known.lower + (known.upper - 1 - known.lower) / 2;
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

fn best_schedule(shop: &Shop, tabu: &Tabu<'_>) -> Schedule {
    let mut paths = Paths::default();
    paths.compute(shop, tabu.best());
    paths.schedule(shop, tabu.best())
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
