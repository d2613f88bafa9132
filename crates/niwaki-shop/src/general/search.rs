//! Rounds of local searches and of the proof, on as many threads as there are.
//!
//! A round gives every lane of local search the best so far and as many moves as the others; what they find is compared when all
//! have ended. Beside them one thread raises the bounds. A single thread does one after the other. Where rounds are counted there is
//! one lane whatever the threads: so the answer does not depend on them. Where the clock counts, the same seed and number of
//! threads give the same answer unless time cuts a round short.
//!
//! The local search is the tabu search of a job shop wherever the shop has one at its heart whose schedules are its own, and
//! simulated annealing elsewhere; the two take turns while deadlines are broken, or where the job shop says only half of it.

use super::Progress;
use super::anneal::{Chain, Cycle, conflicts, next_cycle};
use super::core::{Core, Tabu};
use super::list::{Flat, List, Pass};
use super::proof::Proof;
use crate::Limits;
use std::time::Instant;

/// Conflicts of the proof's first turn in a job shop, and the most of a turn; the tabu search makes so many moves for each.
const FIRST_TURN: u64 = 30;
const LONGEST_TURN: u64 = 4000;
const MOVES: u64 = 60;

/// The number of operations, to the power of 1.5, up to which both searches of a job shop get as many steps; beyond it a conflict
/// costs more than its moves, and proofs are out of reach.
const EVEN_UP_TO: u64 = 100 * 10;

/// How many times as many conflicts a proof may meet in a thread of its own: about what takes a lane's time.
const BESIDE: u64 = 3;

/// The best so far.
pub(super) struct Known {
    pub(super) list: List,
    pub(super) pass: Pass,
}

impl Known {
    pub(super) fn new(flat: &Flat<'_>, list: List) -> Self {
        let mut pass = Pass::default();
        flat.run(&list, &mut pass);
        Self { list, pass }
    }

    /// Violation, then the sums of the objective.
    pub(super) fn cost(&self) -> &[u64] {
        &self.pass.cost
    }

    pub(super) fn take_if_better(&mut self, other: Self) {
        if other.pass.cost < self.pass.cost {
            *self = other;
        }
    }

    pub(super) fn show(&self, bounds: &[u64], watch: &mut dyn FnMut(&Progress<'_>)) {
        watch(&Progress { violation: self.cost()[0], values: &self.cost()[1..], bounds });
    }
}

/// What every lane does in a round.
#[derive(Clone, Copy)]
enum Turn {
    Tabu { moves: u64, goal: u32, bound: u32 },
    Anneal(Cycle),
}

/// What all lanes share.
#[derive(Clone, Copy)]
struct Shared<'a> {
    flat: &'a Flat<'a>,
    core: Option<&'a Core>,
    limits: Limits,
    began: Instant,
}

impl Shared<'_> {
    fn is_late(&self) -> bool {
        self.limits.is_stopped() || self.began.elapsed() >= self.limits.time
    }
}

/// A local search of its own seed.
struct Lane<'a> {
    of: Shared<'a>,
    number: u64,
    tabu: Option<Tabu<'a>>,
    chain: Option<Chain<'a>>,
    /// What the best cost when its last round ended.
    reached: Vec<u64>,
}

impl<'a> Lane<'a> {
    const fn new(of: Shared<'a>, number: u64) -> Self {
        Self { of, number, tabu: None, chain: None, reached: Vec::new() }
    }

    /// A round; the best of this lane.
    fn run(&mut self, turn: Turn, known: &Known, enough: &[u64], gather: bool) -> Known {
        let of = self.of;
        let Shared { flat, core, limits, began } = of;
        let is_late = || of.is_late();
        let found = match (turn, core) {
            (Turn::Tabu { moves, goal, bound }, Some(core)) => {
                let tabu = match &mut self.tabu {
                    Some(tabu) => {
                        if known.cost() < self.reached.as_slice() {
                            tabu.offer(&known.list);
                        }
                        tabu
                    }
                    none => none.insert(Tabu::new(core, &known.list, limits.seed, self.number)),
                };
                tabu.run(moves, goal, bound, &is_late);
                tabu.best(flat)
            }
            (Turn::Anneal(cycle), _) => {
                let chain = match &mut self.chain {
                    Some(chain) => {
                        // Half of the chains gather at the best, the others go their own way for another cycle.
                        if self.number.is_multiple_of(2) || gather {
                            chain.adopt(&known.list, known.cost());
                        }
                        chain
                    }
                    none => none.insert(Chain::new(flat, &known.list, limits.seed, self.number, &is_late)),
                };
                chain.cycle(cycle, enough, limits, began);
                chain.best.clone()
            }
            (Turn::Tabu { .. }, None) => known.list.clone(),
        };
        let found = Known::new(flat, found);
        self.reached = found.cost().to_vec();
        found
    }
}

/// How many rounds there were.
#[derive(Default)]
struct Rounds {
    all: u32,
    tabu: u32,
    anneal: u32,
    /// Conflicts of the next turn in a job shop, and moves of the next cycle of annealing.
    turn: u64,
    moves: u64,
}

impl Rounds {
    /// What comes next, and how many conflicts the proof may meet beside it.
    fn next(&mut self, of: Shared<'_>, known: &Known, bounds: &[u64]) -> (Turn, u64) {
        self.all += 1;
        let settled = known.cost()[0] == 0 && of.core.is_some_and(|core| core.is_exact);
        if let Some(core) = of.core.filter(|_| settled || self.tabu <= self.anneal) {
            self.tabu += 1;
            self.turn =
                if self.tabu == 1 { FIRST_TURN } else { (self.turn + self.turn / 2).min(LONGEST_TURN) };
            let goal = core.goal(known.cost());
            let bound = bounds[0].div_ceil(core.factor) as u32;
            let count = of.flat.count() as u64;
            let conflicts = self.turn * EVEN_UP_TO / EVEN_UP_TO.max(count * count.isqrt());
            return (Turn::Tabu { moves: MOVES * self.turn, goal, bound }, conflicts);
        }
        self.moves = next_cycle(self.moves);
        let cycle = Cycle::of(of.flat, self.anneal, self.moves);
        self.anneal += 1;
        (Turn::Anneal(cycle), conflicts(of.flat, self.moves))
    }
}

/// Goes on from a list until time is up, the rounds are over or the bounds are reached; the best of all.
pub(super) fn search(
    flat: &Flat<'_>,
    core: Option<&Core>,
    mut known: Known,
    proof: &mut Proof<'_>,
    (limits, began): (Limits, Instant),
    watch: &mut dyn FnMut(&Progress<'_>),
) -> Known {
    let of = Shared { flat, core, limits, began };
    let mut lanes: Vec<Lane<'_>> = Vec::new();
    let mut rounds = Rounds::default();
    loop {
        let (turn, mut conflicts) = rounds.next(of, &known, &proof.bounds);
        if limits.rounds.is_none() && limits.threads > 1 {
            conflicts *= BESIDE;
        }
        let enough: Vec<u64> = std::iter::once(0).chain(proof.bounds.iter().copied()).collect();
        let proves = known.cost()[0] == 0 && !proof.is_over();
        let wide = match limits.rounds {
            Some(_) => 1,
            None => (limits.threads - usize::from(proves && limits.threads > 1)).max(1),
        };
        while lanes.len() < wide {
            lanes.push(Lane::new(of, lanes.len() as u64));
        }
        let gather = rounds.anneal % 4 == 1;
        let mut found = Vec::new();
        if limits.threads == 1 {
            found.push(lanes[0].run(turn, &known, &enough, gather));
            if proves {
                found.extend(prove(flat, proof, &known, conflicts, || of.is_late()));
            }
        } else {
            std::thread::scope(|scope| {
                let (known, enough) = (&known, &enough);
                let mut running = Vec::new();
                for lane in &mut lanes[..wide] {
                    running.push(scope.spawn(move || lane.run(turn, known, enough, gather)));
                }
                let proven =
                    if proves { prove(flat, proof, known, conflicts, || of.is_late()) } else { None };
                for lane in running {
                    found.push(lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                }
                found.extend(proven);
            });
        }
        found.into_iter().for_each(|found| known.take_if_better(found));
        known.show(&proof.bounds, watch);
        let is_last = limits.rounds.is_some_and(|most| rounds.all >= most);
        if proof.is_reached_by(known.cost()) || is_last || of.is_late() {
            return known;
        }
    }
}

/// A turn of the proof: so many conflicts, or until `stop`; what it found that is better.
fn prove(
    flat: &Flat<'_>,
    proof: &mut Proof<'_>,
    known: &Known,
    conflicts: u64,
    stop: impl Fn() -> bool,
) -> Option<Known> {
    let mut found: Option<Known> = None;
    let mut left = conflicts;
    while left > 0 && !stop() {
        let best = found.as_ref().unwrap_or(known);
        if proof.is_over() || proof.is_reached_by(best.cost()) {
            break;
        }
        let Some(better) = proof.work((&best.list, best.cost()), &mut left, &stop) else { continue };
        found = Some(Known::new(flat, better));
    }
    found
}
