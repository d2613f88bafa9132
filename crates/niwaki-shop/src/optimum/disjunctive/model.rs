//! The shop as variables and constraints of the learning engine.
//!
//! Each operation has a start; one with several machines has a switch for each, its duration and its end. Each
//! pair of operations that may meet on a machine has an order. Once all switches are set, the earliest starts are a
//! schedule, so only switches are decided.

use super::budget::{Budget, Group};
use super::edge_finding::{Machine, Task};
use super::pair::{Node, Pair};
use super::relaxation::Cut;
use super::shop::{Choice, Shop};
use crate::optimum::learning::{Difference, Engine, Fact, Outcome, Var};
use crate::{Placed, Schedule};

/// Whether rests may exceed their maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Maxima {
    Soft,
    Hard,
}

/// The engine with the meaning of its variables.
pub(crate) struct Model<'a> {
    pub(super) shop: &'a Shop,
    engine: Engine,
    nodes: Vec<Node>,
    pairs: Vec<Pair>,
    makespan: Var,
}

impl<'a> Model<'a> {
    /// All schedules with a makespan between `lower` and `upper`.
    pub(super) fn new(shop: &'a Shop, lower: u32, upper: u32, cuts: &[Cut], maxima: Maxima) -> Self {
        let mut engine = Engine::new();
        let makespan = engine.variable(lower as i32, upper as i32);
        let nodes = (0..shop.operations())
            .map(|operation| node(&mut engine, shop, operation, upper, maxima))
            .collect();
        let mut model = Self { shop, engine, nodes, pairs: Vec::new(), makespan };
        model.add_routes();
        if maxima == Maxima::Hard {
            model.add_maxima(upper);
        }
        model.add_machines();
        model.add_cuts(cuts);
        model
    }

    fn add_routes(&mut self) {
        for job in 0..self.shop.jobs() {
            let range = self.shop.job(job);
            let last = range.end - 1;
            for operation in range {
                let (from, weight) = self.nodes[operation].end;
                let (to, rest) = if operation == last {
                    (self.makespan, 0)
                } else {
                    (self.nodes[operation + 1].start, self.shop.rest(operation + 1) as i32)
                };
                self.engine.difference(Difference { when: Fact::ALWAYS, from, to, weight: weight + rest });
            }
        }
    }

    /// An operation ends no earlier than its successor's start less the longest rest.
    fn add_maxima(&mut self, upper: u32) {
        for operation in 0..self.nodes.len() {
            if let Some(max) = self.shop.windows[operation].max.filter(|&max| max < upper) {
                let (to, offset) = self.nodes[operation - 1].end;
                let (from, weight) = (self.nodes[operation].start, -(max as i32) - offset);
                self.engine.difference(Difference { when: Fact::ALWAYS, from, to, weight });
            }
        }
    }

    fn add_machines(&mut self) {
        let job_of: Vec<usize> =
            (0..self.shop.jobs()).flat_map(|job| self.shop.job(job).map(move |_| job)).collect();
        let mut meeting = Vec::new();
        for first in 0..self.nodes.len() {
            for second in first + 1..self.nodes.len() {
                if job_of[first] == job_of[second] {
                    continue;
                }
                meeting.clear();
                for (a, &one) in self.shop.alternatives(first).iter().zip(&self.nodes[first].chosen) {
                    for (b, &other) in self.shop.alternatives(second).iter().zip(&self.nodes[second].chosen) {
                        if a.machine == b.machine {
                            meeting.push((one, other));
                        }
                    }
                }
                if !meeting.is_empty() {
                    let Self { engine, nodes, pairs, .. } = &mut *self;
                    pairs.push(Pair::new(engine, nodes, (first, second), (0, 0), &meeting));
                }
            }
        }
        let mut lists = vec![Vec::new(); self.shop.machines];
        for (operation, node) in self.nodes.iter().enumerate() {
            for (choice, &present) in self.shop.alternatives(operation).iter().zip(&node.chosen) {
                if choice.time > 0 {
                    let task = Task { start: node.start, time: choice.time as i32, present };
                    lists[choice.machine as usize].push(task);
                }
            }
        }
        for tasks in lists {
            let sides: Vec<u32> = tasks
                .iter()
                .flat_map(|task| [2 * task.start, 2 * task.start + 1, task.present.side])
                .collect();
            if tasks.len() > 1 {
                self.engine.global(Box::new(Machine::new(tasks)), sides);
            }
        }
    }

    fn add_cuts(&mut self, cuts: &[Cut]) {
        for cut in cuts {
            let mut groups = Vec::new();
            let mut offset = cut.offset;
            for (operation, node) in self.nodes.iter().enumerate() {
                let alternatives = self.shop.alternatives(operation);
                let weight = |one: &Choice| cut.weight(one.machine) * i64::from(one.time);
                let first = weight(&alternatives[0]);
                // What no choice changes is no choice.
                if alternatives.iter().all(|one| weight(one) == first) {
                    offset += first;
                } else {
                    let weights = alternatives.iter().map(weight);
                    groups.push(Group { choices: node.chosen.iter().copied().zip(weights).collect() });
                }
            }
            let mut sides: Vec<u32> = vec![2 * self.makespan + 1];
            for (fact, _) in groups.iter().flat_map(|group| &group.choices) {
                sides.extend([fact.side, fact.side ^ 1]);
            }
            let budget = Budget::new(groups, self.makespan, cut.slope(), offset);
            self.engine.global(Box::new(budget), sides);
        }
    }

    /// Tells the search to look near a schedule first.
    pub(super) fn prefer(&mut self, schedule: &Schedule) {
        let mut placed: Vec<Option<Placed>> = vec![None; self.nodes.len()];
        for here in &schedule.operations {
            placed[self.shop.job(here.job as usize).start + here.op as usize] = Some(*here);
        }
        for (operation, node) in self.nodes.iter().enumerate() {
            let machine = placed[operation].map(|here| here.machine);
            for (choice, fact) in self.shop.alternatives(operation).iter().zip(&node.chosen) {
                self.engine.prefer(fact.var(), machine == Some(choice.machine));
            }
        }
        for pair in &self.pairs {
            let (Some(one), Some(other)) = (placed[pair.first as usize], placed[pair.second as usize]) else {
                continue;
            };
            let meet = one.machine == other.machine;
            let forward = (one.start, one.end) < (other.start, other.end);
            pair.prefer(&mut self.engine, meet, forward);
        }
    }

    /// Looks for a schedule with a makespan of at most `target`.
    pub(super) fn search(&mut self, target: u32, stop: impl FnMut(u64) -> bool) -> Outcome {
        self.engine.solve(Fact::at_most(self.makespan, target as i32), stop)
    }

    /// Conflicts met so far.
    pub(super) const fn conflicts(&self) -> u64 {
        self.engine.conflicts()
    }

    /// Only schedules of at most this makespan are of interest from now on.
    pub(super) fn require(&mut self, upper: u32) {
        self.engine.require(Fact::at_most(self.makespan, upper as i32));
    }

    /// The schedule that the search found.
    pub(super) fn schedule(&self) -> Schedule {
        let trail = &self.engine.trail;
        let mut operations = Vec::with_capacity(self.nodes.len());
        for job in 0..self.shop.jobs() {
            for (op, operation) in self.shop.job(job).enumerate() {
                let node = &self.nodes[operation];
                let start = trail.low(node.start) as u32;
                let chosen = self.shop.alternatives(operation).iter().zip(&node.chosen);
                let Some((choice, _)) = chosen.into_iter().find(|&(_, &fact)| trail.holds(fact)) else {
                    continue;
                };
                let (machine, end) = (choice.machine, start + choice.time);
                operations.push(Placed { job: job as u32, op: op as u32, machine, start, end });
            }
        }
        Schedule { operations }
    }
}

/// One operation's variables and the constraints among them.
fn node(engine: &mut Engine, shop: &Shop, operation: usize, upper: u32, maxima: Maxima) -> Node {
    let start = engine.variable(0, upper as i32);
    let alternatives = shop.alternatives(operation);
    if let [only] = alternatives {
        return Node { start, end: (start, only.time as i32), chosen: vec![Fact::ALWAYS] };
    }
    // Machines are chosen before orders until conflicts say otherwise.
    let chosen: Vec<Fact> = alternatives.iter().map(|_| Fact::is(engine.switch(1.0))).collect();
    engine.clause(&chosen);
    for (index, one) in chosen.iter().enumerate() {
        for other in &chosen[..index] {
            engine.clause(&[one.negated(), other.negated()]);
        }
    }
    let mut times: Vec<i32> = alternatives.iter().map(|choice| choice.time as i32).collect();
    times.sort_unstable();
    times.dedup();
    if let [only] = times[..] {
        return Node { start, end: (start, only), chosen };
    }
    let time = engine.variable(times[0], times[times.len() - 1]);
    let end = engine.variable(0, upper as i32);
    for (choice, fact) in alternatives.iter().zip(&chosen) {
        engine.clause(&[fact.negated(), Fact::at_least(time, choice.time as i32)]);
        engine.clause(&[fact.negated(), Fact::at_most(time, choice.time as i32)]);
    }
    for &least in &times {
        // Without all the faster machines, the operation takes at least this long.
        let mut clause = vec![Fact::at_least(time, least)];
        let faster = alternatives.iter().zip(&chosen).filter(|(choice, _)| (choice.time as i32) < least);
        clause.extend(faster.map(|(_, &fact)| fact));
        engine.clause(&clause);
        engine.difference(Difference {
            when: Fact::at_least(time, least),
            from: start,
            to: end,
            weight: least,
        });
        if maxima == Maxima::Hard {
            // The end then follows the successor's start, and the start must follow the end.
            let when = Fact::at_most(time, least);
            engine.difference(Difference { when, from: end, to: start, weight: -least });
        }
    }
    Node { start, end: (end, 0), chosen }
}
