//! Turns of iterated greedy and branch and bound until the bounds meet or time is up; with several threads one has the branches and
//! the others are greedy, each in its own way.

use super::branch::{Branch, Progress};
use crate::heuristics::{IteratedGreedy, neh};
use crate::optimum::clock::Clock;
use crate::optimum::dispatch::accepted;
use crate::optimum::result::{Bounds, Limits, Optimum, Watch};
use crate::{FlowShop, Instance, Schedule};
use niwaki_stream::Key;
use std::thread;

/// Nodes of the tree for each step of the greedy search; so many times as many in a thread of its own.
const NODES: u64 = 100;
const BESIDE: u64 = 2;

/// Turns after which the lanes of greedy search gather at the best order.
const GATHER: u32 = 4;

/// The most steps of a turn of several threads, which know of each other's orders after it alone.
const LONGEST: u64 = 1000;

/// What is known so far.
struct Known<'a, 'w> {
    shop: &'a FlowShop,
    lower: u32,
    upper: u32,
    best: Vec<u32>,
    watch: Watch<'w>,
}

impl Known<'_, '_> {
    fn show(&mut self) {
        (self.watch)(Bounds { lower: self.lower, upper: self.upper });
    }

    fn take_if_better(&mut self, order: &[u32]) {
        let makespan = self.shop.makespan(order);
        if makespan < self.upper {
            self.upper = makespan;
            self.best.copy_from_slice(order);
            self.show();
        }
    }

    const fn is_proven(&self) -> bool {
        self.lower >= self.upper
    }

    /// Nodes of the tree, in slices, until `stop` says so.
    fn branch(&mut self, branch: &mut Branch, mut nodes: u64, stop: impl Fn() -> bool) {
        branch.require_below(self.upper);
        while nodes > 0 && !self.is_proven() && !stop() {
            let slice = nodes.min(1000);
            nodes -= slice;
            match branch.run(slice) {
                Progress::Improved => self.take_if_better(branch.best()),
                Progress::Exhausted => self.lower = self.upper,
                Progress::Paused => {}
            }
        }
        if branch.lower() > self.lower {
            self.lower = branch.lower();
            self.show();
        }
    }
}

/// So many steps, fewer where the bound is reached or time is up.
fn descend(greedy: &mut IteratedGreedy<'_>, steps: u64, lower: u32, clock: &Clock) {
    for _ in 0..steps {
        if greedy.best().1 <= lower || clock.is_over() {
            break;
        }
        greedy.step();
    }
}

/// The shortest order of a permutation flow shop, proven or as far as time allows.
#[must_use]
pub fn solve(shop: &FlowShop, limits: Limits, watch: Watch<'_>) -> Optimum {
    let clock = Clock::start(limits);
    let best = neh(shop);
    let upper = shop.makespan(&best);
    let mut known = Known { shop, lower: Branch::root_bound(shop), upper, best, watch };
    known.show();
    if !known.is_proven() {
        search(&mut known, limits, &clock);
    }
    let schedule = Schedule::of_order(shop, &known.best);
    debug_assert!(accepted(|| Instance::Flow(shop.clone()), &schedule), "the checker refuses the schedule");
    Optimum::new(known.lower, schedule)
}

fn search(known: &mut Known<'_, '_>, limits: Limits, clock: &Clock) {
    let shop = known.shop;
    let start = |lane: u64| {
        let stream = Key::new(limits.seed, "optimum/greedy").lane(lane).open();
        IteratedGreedy::new(shop, &known.best, stream)
    };
    let mut lanes: Vec<_> = (0..limits.threads.saturating_sub(1).max(1) as u64).map(start).collect();
    let mut branch: Option<Branch> = None;
    let (mut turn, mut turns) = (10, 0_u32);
    loop {
        turns += 1;
        if limits.threads > 1 {
            let branch = branch.get_or_insert_with(|| Branch::new(shop, known.upper));
            thread::scope(|scope| {
                let lower = known.lower;
                for lane in &mut lanes {
                    scope.spawn(move || descend(lane, turn, lower, clock));
                }
                known.branch(branch, turn * NODES * BESIDE, || clock.is_over());
            });
            lanes.iter().for_each(|lane| known.take_if_better(lane.best().0));
            if turns.is_multiple_of(GATHER) {
                lanes.iter_mut().for_each(|lane| lane.adopt(&known.best));
            }
        } else {
            descend(&mut lanes[0], turn, known.lower, clock);
            known.take_if_better(lanes[0].best().0);
            if !known.is_proven() && !clock.is_over() {
                let branch = branch.get_or_insert_with(|| Branch::new(shop, known.upper));
                known.branch(branch, turn * NODES, || clock.is_over());
            }
        }
        if known.is_proven() || clock.is_over() {
            return;
        }
        turn = if limits.threads > 1 { (turn * 3 / 2).min(LONGEST) } else { turn * 3 / 2 };
    }
}
