//! Bounds by refutation: the shop as variables and constraints of the learning engine, asked whether a sum can be smaller.
//!
//! The model is a relaxation: a setup counts as the least that may lie between two operations, others in between or not; an
//! operation that pauses while its machine is closed ends no earlier than it can; earliness costs nothing, and setup time
//! no more than its bound. So what the engine refutes no schedule reaches. What it finds becomes a list, which is placed and
//! judged like any other; where it is no better than the best known, the model has said what it can.
//!
//! Effort is counted in conflicts, not by the clock: the same search gives the same bounds on every machine. `model` has the
//! constraints, `linear` the sums, `between` the setups.

mod between;
mod cuts;
mod linear;
mod model;

use super::core::Core;
use super::list::{Flat, List, Pass};
use crate::optimum::learning::{Fact, Outcome};
use model::Model;

/// The share of what is open on which the first question bets, as one over this.
const SHARE: u64 = 8;

/// The share on which the first questions about a job shop bet, until one of them has met as many conflicts as `BOLD`.
const HALF: u64 = 2;
const BOLD: u64 = 1500;

/// Conflicts that any question may meet.
const PATIENCE: u64 = 20;

/// No time or sum may be larger in the engine.
const LARGEST: u64 = 1 << 29;

/// Bounds of the objective's sums, raised by refutation.
pub(super) struct Proof<'a> {
    flat: &'a Flat<'a>,
    /// The job shop at its heart, with bounds of its own.
    core: Option<&'a Core>,
    /// The least setup time of all machines.
    setup_floor: u64,
    /// No schedule has a smaller sum, as long as the sums before it are at their least.
    pub(super) bounds: Vec<u64>,
    /// The model of the first sum whose bound is open, and which one that is.
    model: Option<(Model, usize)>,
    /// The share of what is open that the next question bets on: one over this.
    share: u64,
    /// Conflicts met over the question that is open.
    asked: u64,
    /// Whether questions still bet on half of what is open, with more patience.
    is_bold: bool,
    /// Turns so far.
    turn: u32,
    /// What the best known cost when the model was last told to look near it first.
    preferred: Vec<u64>,
    /// Whether the model has nothing more to say.
    is_over: bool,
}

impl<'a> Proof<'a> {
    /// Starts from bounds. Where operations have started already, they stay as they are.
    pub(super) fn new(
        flat: &'a Flat<'a>,
        core: Option<&'a Core>,
        mut bounds: Vec<u64>,
        setup_floor: u64,
    ) -> Self {
        let is_over = flat.fixed.iter().any(Option::is_some);
        if let Some(core) = core {
            bounds[0] = bounds[0].max(core.factor * u64::from(core.relaxation.lower));
        }
        let (model, preferred) = (None, Vec::new());
        Self {
            flat,
            core,
            setup_floor,
            bounds,
            model,
            share: SHARE,
            asked: 0,
            is_bold: false,
            turn: 0,
            preferred,
            is_over,
        }
    }

    /// Whether no list can be better than one of this cost: violation, then sums.
    pub(super) fn is_reached_by(&self, cost: &[u64]) -> bool {
        cost[0] == 0 && cost[1..] <= self.bounds[..]
    }

    /// Whether nothing more can come of it.
    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// What the next question bets on: a share of what is open.
    ///
    /// In a flexible job shop the bound of loads is nearly always the optimum or just below it, but hard to refute where it is not: once
    /// little is open, every other turn is content with anything better.
    fn target(&self, level: usize, most: u64) -> u64 {
        let bound = self.bounds[level];
        let is_flexible = self.core.is_some_and(Core::is_flexible);
        match (is_flexible && most - bound <= bound / 10, self.turn % 2) {
            (false, _) => bound + (most - bound) / self.share,
            (true, 0) => most,
            (true, _) => bound,
        }
    }

    /// Raises bounds for as many conflicts as are left, or until `stop`; a list that is better than `best`, if one turns up.
    pub(super) fn work(
        &mut self,
        (best, cost): (&List, &[u64]),
        left: &mut u64,
        stop: impl Fn() -> bool,
    ) -> Option<List> {
        let values = &cost[1..];
        self.turn += 1;
        while !self.is_over && cost[0] == 0 && *left > 0 {
            let Some(level) = (0..values.len()).find(|&level| self.bounds[level] < values[level]) else {
                self.is_over = true;
                return None;
            };
            if self.model.as_ref().is_none_or(|known| known.1 != level) {
                let model = Model::new(self.flat, self.core, level, values, self.setup_floor);
                self.model = model.map(|model| (model, level));
                // What is learnt from a bold question holds for all that are less so; what a shop with setups or closed times
                // leaves open is mostly too much for one.
                self.is_bold = self.core.is_some();
                self.share = if self.is_bold { HALF } else { SHARE };
                self.preferred.clear();
            }
            let most = values[level] - 1;
            let target = self.target(level, most);
            let Some((model, _)) = &mut self.model else {
                self.is_over = true;
                return None;
            };
            if self.preferred != cost {
                model.prefer(self.flat, best);
                self.preferred = cost.to_vec();
            }
            let before = model.engine.conflicts();
            // A question that takes too much of all effort so far was too bold.
            let patience = if self.is_bold { BOLD } else { PATIENCE.max(before / 8) };
            let most_now = (*left).min(patience.saturating_sub(self.asked).max(1));
            model.engine.require(Fact::at_most(model.total, most as i32));
            let asked = Fact::at_most(model.total, target as i32);
            let outcome = model.engine.solve(asked, |now| now - before >= most_now || stop());
            let spent = model.engine.conflicts() - before;
            *left = left.saturating_sub(spent);
            self.asked += spent;
            match outcome {
                Outcome::Refuted => {
                    self.bounds[level] = target + 1;
                    self.share = (self.share / 2).max(1);
                    self.asked = 0;
                }
                Outcome::Interrupted => {
                    if self.asked >= patience {
                        self.share = if self.is_bold { SHARE } else { (self.share * 2).min(1 << 20) };
                        (self.is_bold, self.asked) = (false, 0);
                    }
                    if stop() {
                        return None;
                    }
                }
                Outcome::Found => {
                    let list = model.list(self.flat);
                    let mut pass = Pass::default();
                    self.flat.run(&list, &mut pass);
                    if pass.cost.as_slice() < cost {
                        return Some(list);
                    }
                    self.is_over = true;
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::between::Between;
    use super::*;
    use crate::general::{Calendar, Job, Machine, Measure, Mode, Objective, Operation, Parts, Setups, Shop};

    /// One machine and jobs of one operation each: `(time, family)`.
    fn shop(jobs: &[(u32, u32)], setups: [u32; 4], due: Option<u32>, closed: Vec<(u32, u32)>) -> Shop {
        let job = |(number, &(time, family)): (usize, &(u32, u32))| {
            let operation =
                Operation { family: Some(family), ..Operation::new("o", vec![Mode { machine: 0, time }]) };
            Job { due, ..Job::new(format!("j{number}"), vec![operation]) }
        };
        let parts = Parts {
            jobs: jobs.iter().enumerate().map(job).collect(),
            machines: vec![Machine { calendar: Calendar::new(closed), ..Machine::new("m") }],
            precedences: Vec::new(),
            setups: Setups {
                families: vec!["a".into(), "b".into()],
                tables: vec![setups.to_vec()],
                of_machine: vec![Some(0)],
            },
            objective: Objective::only(Measure::Tardiness),
            horizon: 1000,
        };
        Shop::new(parts).unwrap()
    }

    #[test]
    fn setups_between_by_hand() {
        // From a to a takes 9, but a, b, a takes 2 and 1 of setups and the work of b: 4, the shorter one.
        let shop = shop(&[(5, 0), (7, 0), (4, 1), (6, 1)], [9, 2, 1, 0], None, Vec::new());
        let flat = Flat::new(&shop, None);
        let between = Between::new(&flat, 0);
        let least = |from, to| between.least(Some(from), Some(to));
        assert_eq!([least(0, 0), least(0, 1), least(1, 0), least(1, 1)], [7, 2, 1, 0]);
        assert_eq!(between.least(None, Some(0)), 0);
    }

    #[test]
    fn three_late_jobs_by_hand() {
        // Times 3, 3, 3, all due at 0, closed from 3 to 10: ends 3, 13 and 16, in whatever order.
        let shop = shop(&[(3, 0), (3, 0), (3, 0)], [0; 4], Some(0), vec![(3, 10)]);
        let flat = Flat::new(&shop, None);
        let list = List { order: vec![2, 0, 1], mode: vec![0; 3] };
        let mut pass = Pass::default();
        flat.run(&list, &mut pass);
        assert_eq!(pass.cost, [0, 32]);
        let mut proof = Proof::new(&flat, None, vec![0], 0);
        assert!(proof.work((&list, &pass.cost), &mut 1000, || false).is_none());
        assert_eq!(proof.bounds, [32]);
        assert!(
            proof.is_reached_by(&pass.cost)
                && !proof.is_reached_by(&[0, 33])
                && !proof.is_reached_by(&[1, 0])
        );
        // A worse list is asked for better ones until none is.
        let mut proof = Proof::new(&flat, None, vec![0], 0);
        let mut cost = vec![0, 500];
        while let Some(better) = proof.work((&list, &cost), &mut 1000, || false) {
            flat.run(&better, &mut pass);
            cost.clone_from(&pass.cost);
        }
        assert_eq!((cost, proof.bounds), (vec![0, 32], vec![32]));
    }
}
