//! Bounds by refutation: the shop as variables and constraints of the learning engine, asked whether a sum can be smaller.
//!
//! The model is a relaxation: a setup counts as the least that may lie between two operations, others in between or not; an
//! operation that pauses while its machine is closed ends no earlier than it can; earliness costs nothing, and setup time
//! no more than its bound. So what the engine refutes no schedule reaches. What it finds becomes a list, which is placed and
//! judged like any other; where it is no better than the best known, the model has said what it can.
//!
//! Effort is counted in conflicts, not by the clock: the same search gives the same bounds on every machine.

use super::construct::by_priority;
use super::list::{Flat, List, Pass};
use super::{Calendar, Measure, Sum};
use crate::optimum::learning::{Conflict, Difference, Engine, Fact, Global, Outcome, Trail, Var};
use crate::optimum::{Lane, Task};

/// The most pairs of operations on a machine, and of closed times that operations meet, of a shop that is modelled.
const PAIRS: usize = 4000;
const CLOSINGS: usize = 100_000;

/// The share of what is open on which the first question bets, as one over this.
const SHARE: u64 = 8;

/// No time or sum may be larger in the engine.
const LARGEST: u64 = 1 << 29;

/// Bounds of the objective's sums, raised by refutation.
pub(super) struct Proof<'a> {
    flat: &'a Flat<'a>,
    /// The least setup time of all machines.
    setup_floor: u64,
    /// No schedule has a smaller sum, as long as the sums before it are at their least.
    pub(super) bounds: Vec<u64>,
    /// The model of the first sum whose bound is open, and which one that is.
    model: Option<(Model, usize)>,
    /// The share of what is open that the next question bets on: one over this.
    share: u64,
    /// Whether the model has nothing more to say.
    is_over: bool,
}

impl<'a> Proof<'a> {
    /// Starts from bounds. Where operations have started already, they stay as they are.
    pub(super) fn new(flat: &'a Flat<'a>, bounds: Vec<u64>, setup_floor: u64) -> Self {
        let is_over = flat.fixed.iter().any(Option::is_some);
        Self { flat, setup_floor, bounds, model: None, share: SHARE, is_over }
    }

    /// Whether no list can be better than one of this cost: violation, then sums.
    pub(super) fn is_reached_by(&self, cost: &[u64]) -> bool {
        cost[0] == 0 && cost[1..] <= self.bounds[..]
    }

    /// Whether nothing more can come of it.
    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Raises bounds for so many conflicts, or until `stop`; a list that is better than `best`, if one turns up.
    pub(super) fn work(
        &mut self,
        (best, cost): (&List, &[u64]),
        conflicts: u64,
        stop: impl Fn() -> bool,
    ) -> Option<List> {
        let values = &cost[1..];
        let mut left = conflicts;
        while !self.is_over && cost[0] == 0 && left > 0 {
            let Some(level) = (0..values.len()).find(|&level| self.bounds[level] < values[level]) else {
                self.is_over = true;
                return None;
            };
            if self.model.as_ref().is_none_or(|known| known.1 != level) {
                let model = Model::new(self.flat, level, values, self.setup_floor);
                self.model = model.map(|model| (model, level));
                self.share = SHARE;
                if let Some((model, _)) = &mut self.model {
                    model.prefer(self.flat, best);
                }
            }
            let Some((model, _)) = &mut self.model else {
                self.is_over = true;
                return None;
            };
            let (bound, most) = (self.bounds[level], values[level] - 1);
            let target = bound + (most - bound) / self.share;
            let before = model.engine.conflicts();
            model.engine.require(Fact::at_most(model.total, most as i32));
            let asked = Fact::at_most(model.total, target as i32);
            let outcome = model.engine.solve(asked, |now| now - before >= left || stop());
            left = left.saturating_sub(model.engine.conflicts() - before);
            match outcome {
                Outcome::Refuted => {
                    self.bounds[level] = target + 1;
                    self.share = (self.share / 2).max(1);
                }
                Outcome::Interrupted => {
                    self.share = (self.share * 2).min(1 << 20);
                    return None;
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

/// An operation's variables.
struct Node {
    start: Var,
    /// What successors are measured from, and what is added to it.
    end: (Var, i32),
    /// The fact that chooses each mode.
    chosen: Vec<Fact>,
}

/// Two operations that may meet on a machine: the first comes first, or the second does.
struct Pair {
    first: u32,
    second: u32,
    forward: Fact,
    backward: Fact,
}

struct Model {
    engine: Engine,
    nodes: Vec<Node>,
    pairs: Vec<Pair>,
    /// The sum in question.
    total: Var,
}

impl Model {
    /// All schedules with a smaller sum `level` than that of `values`, and no larger ones before it; nothing if the shop is too
    /// large for this.
    fn new(flat: &Flat<'_>, level: usize, values: &[u64], setup_floor: u64) -> Option<Self> {
        let sums = &flat.shop.objective().sums;
        let caps: Vec<u64> = (0..=level).map(|one| values[one] - u64::from(one == level)).collect();
        if u64::from(flat.shop.horizon()) >= LARGEST || caps.iter().any(|&cap| cap >= LARGEST) {
            return None;
        }
        let closings = |mode: &(u32, u32)| flat.shop.machines()[mode.0 as usize].calendar.closed().len();
        if flat.modes.iter().flatten().map(closings).sum::<usize>() > CLOSINGS {
            return None;
        }
        let ends = latest_ends(flat, &sums[..=level], &caps);
        let mut engine = Engine::new();
        let nodes: Vec<Node> =
            (0..flat.count()).map(|one| node(&mut engine, flat, one, ends[flat.job[one] as usize])).collect();
        let mut model = Self { engine, nodes, pairs: Vec::new(), total: 0 };
        model.add_precedences(flat);
        model.add_pairs(flat)?;
        model.add_lanes(flat, ends.iter().copied().max().unwrap_or(0));
        for (sum, &cap) in sums.iter().zip(&caps) {
            model.total = model.add_sum(flat, sum, cap, setup_floor);
        }
        Some(model)
    }

    fn add_precedences(&mut self, flat: &Flat<'_>) {
        for (after, links) in flat.before.iter().enumerate() {
            for link in links {
                let (end, offset) = self.nodes[link.other as usize].end;
                let start = self.nodes[after].start;
                let weight = offset + link.min.min(LARGEST as u32) as i32;
                self.engine.difference(Difference { when: Fact::ALWAYS, from: end, to: start, weight });
                if u64::from(link.max) < LARGEST {
                    let weight = -(link.max as i32) - offset;
                    self.engine.difference(Difference { when: Fact::ALWAYS, from: start, to: end, weight });
                }
            }
        }
    }

    /// An order for each two operations that may meet.
    fn add_pairs(&mut self, flat: &Flat<'_>) -> Option<()> {
        let follows = followers(flat);
        let between: Vec<Between> =
            (0..flat.shop.machines().len()).map(|one| Between::new(flat, one)).collect();
        for machine in 0..between.len() {
            for (one, node) in self.nodes.iter().enumerate() {
                for (&(on, time), &chosen) in flat.modes[one].iter().zip(&node.chosen) {
                    if on as usize == machine && time > 0 {
                        let about = &flat.shop.machines()[machine];
                        let setup = about
                            .family
                            .map_or(0, |from| between[machine].least(Some(from), flat.family(one as u32)));
                        let from = (about.available + setup).min(LARGEST as u32);
                        self.engine.clause(&[chosen.negated(), Fact::at_least(node.start, from as i32)]);
                    }
                }
            }
        }
        for first in 0..self.nodes.len() {
            for second in first + 1..self.nodes.len() {
                let mut meeting = Vec::new();
                let (mut there, mut back) = (u32::MAX, u32::MAX);
                for (&(machine, time), &one) in flat.modes[first].iter().zip(&self.nodes[first].chosen) {
                    for (&(same, other_time), &other) in
                        flat.modes[second].iter().zip(&self.nodes[second].chosen)
                    {
                        if machine == same && time > 0 && other_time > 0 {
                            let (from, to) = (flat.family(first as u32), flat.family(second as u32));
                            there = there.min(between[machine as usize].least(from, to));
                            back = back.min(between[machine as usize].least(to, from));
                            meeting.push((one, other));
                        }
                    }
                }
                let is_settled = follows[first].contains(second) && there == 0
                    || follows[second].contains(first) && back == 0;
                if meeting.is_empty() || is_settled {
                    continue;
                }
                if self.pairs.len() == PAIRS {
                    return None;
                }
                self.add_pair((first, second), (there, back), &meeting);
            }
        }
        Some(())
    }

    fn add_pair(
        &mut self,
        (first, second): (usize, usize),
        (there, back): (u32, u32),
        meeting: &[(Fact, Fact)],
    ) {
        let forward = Fact::is(self.engine.switch(0.0));
        let always = meeting.iter().any(|&(one, other)| one == Fact::ALWAYS && other == Fact::ALWAYS);
        let backward = if always { forward.negated() } else { Fact::is(self.engine.switch(0.0)) };
        if !always {
            self.engine.clause(&[forward.negated(), backward.negated()]);
            for &(one, other) in meeting {
                self.engine.clause(&[one.negated(), other.negated(), forward, backward]);
            }
        }
        for (when, one, other, setup) in [(forward, first, second, there), (backward, second, first, back)] {
            let (from, offset) = self.nodes[one].end;
            let weight = offset + setup as i32;
            self.engine.difference(Difference { when, from, to: self.nodes[other].start, weight });
        }
        self.pairs.push(Pair { first: first as u32, second: second as u32, forward, backward });
    }

    /// Loads of machines. Where nothing pauses, closed times are loads, too.
    fn add_lanes(&mut self, flat: &Flat<'_>, until: u32) {
        for (machine, about) in flat.shop.machines().iter().enumerate() {
            let mut tasks = Vec::new();
            let mut pauses = false;
            for (one, node) in self.nodes.iter().enumerate() {
                for (&(on, time), &present) in flat.modes[one].iter().zip(&node.chosen) {
                    if on as usize == machine {
                        pauses |= flat.shop.operation(one).interruptible || time == 0;
                        if time > 0 {
                            tasks.push(Task { start: node.start, time: time as i32, present });
                        }
                    }
                }
            }
            if tasks.len() < 2 {
                continue;
            }
            if !pauses {
                for &(from, to) in about.calendar.closed().iter().take_while(|closed| closed.0 < until) {
                    let start = self.engine.variable(from as i32, from as i32);
                    tasks.push(Task { start, time: (to - from) as i32, present: Fact::ALWAYS });
                }
            }
            let sides: Vec<u32> = tasks
                .iter()
                .flat_map(|task| [2 * task.start, 2 * task.start + 1, task.present.side])
                .collect();
            self.engine.global(Box::new(Lane::new(tasks)), sides);
        }
    }

    /// A variable that is at least this sum and at most `cap`.
    fn add_sum(&mut self, flat: &Flat<'_>, sum: &Sum, cap: u64, setup_floor: u64) -> Var {
        let shop = flat.shop;
        let total = self.engine.variable(0, cap as i32);
        let most = shop.horizon() as i32;
        let mut linear = Linear { terms: Vec::new(), constant: 0, total };
        for &(factor, measure) in &sum.terms {
            let factor = i64::from(factor);
            match measure {
                Measure::Earliness => {}
                Measure::SetupTime => linear.constant += factor * setup_floor as i64,
                Measure::Makespan => {
                    let last = self.engine.variable(0, most);
                    for job in 0..shop.jobs().len() {
                        self.end_before(flat, job, last, 0);
                    }
                    linear.terms.push((factor, last));
                }
                Measure::MaxTardiness => {
                    let late = self.engine.variable(0, most);
                    for (job, about) in shop.jobs().iter().enumerate() {
                        if let Some(due) = about.due {
                            self.end_before(flat, job, late, -(due.min(most as u32) as i32));
                        }
                    }
                    linear.terms.push((factor, late));
                }
                Measure::Tardiness | Measure::TardyJobs | Measure::FlowTime => {
                    for (job, about) in shop.jobs().iter().enumerate() {
                        let weight = factor * i64::from(about.weight);
                        if weight == 0 {
                            continue;
                        }
                        if measure == Measure::FlowTime {
                            let end = self.engine.variable(0, most);
                            self.end_before(flat, job, end, 0);
                            linear.terms.push((weight, end));
                            linear.constant -= weight * i64::from(about.release);
                        } else if let Some(due) = about.due {
                            let late = self.engine.variable(0, most);
                            self.end_before(flat, job, late, -(due.min(most as u32) as i32));
                            let counted = if measure == Measure::Tardiness {
                                late
                            } else {
                                let is_late = self.engine.variable(0, 1);
                                self.engine.clause(&[Fact::at_most(late, 0), Fact::is(is_late)]);
                                is_late
                            };
                            linear.terms.push((weight, counted));
                        }
                    }
                }
            }
        }
        let sides: Vec<u32> = linear.terms.iter().map(|&(_, var)| 2 * var).chain([2 * total + 1]).collect();
        self.engine.global(Box::new(linear), sides);
        total
    }

    /// `var` is at least the job's end and `weight`.
    fn end_before(&mut self, flat: &Flat<'_>, job: usize, var: Var, weight: i32) {
        for one in flat.shop.of_job(job) {
            // What another operation of the job follows does not end it.
            if flat.after[one].iter().any(|link| flat.job[link.other as usize] as usize == job) {
                continue;
            }
            let (from, offset) = self.nodes[one].end;
            self.engine.difference(Difference { when: Fact::ALWAYS, from, to: var, weight: offset + weight });
        }
    }

    /// Tells the search to look near a list first.
    fn prefer(&mut self, flat: &Flat<'_>, list: &List) {
        let mut place = vec![0; list.order.len()];
        for (index, &one) in list.order.iter().enumerate() {
            place[one as usize] = index;
        }
        for (one, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.chosen.len() > 1) {
            for (mode, fact) in node.chosen.iter().enumerate() {
                self.engine.prefer(fact.var(), list.mode[one] as usize == mode);
            }
        }
        for pair in &self.pairs {
            let meet = flat.machine(list, pair.first) == flat.machine(list, pair.second);
            let forward = place[pair.first as usize] < place[pair.second as usize];
            self.engine.prefer(pair.forward.var(), meet && forward);
            if pair.backward.var() != pair.forward.var() {
                self.engine.prefer(pair.backward.var(), meet && !forward);
            }
        }
    }

    /// What the search found, as a list.
    fn list(&self, flat: &Flat<'_>) -> List {
        let trail = &self.engine.trail;
        let chosen = |node: &Node| node.chosen.iter().position(|&fact| trail.holds(fact)).unwrap_or(0) as u32;
        // Of operations that start at once, predecessors come first.
        let mut order = by_priority(flat, |_| 0);
        order.sort_by_key(|&one| trail.low(self.nodes[one as usize].start));
        List { order, mode: self.nodes.iter().map(chosen).collect() }
    }
}

/// When each job has ended in a schedule whose sums are at most these.
fn latest_ends(flat: &Flat<'_>, sums: &[Sum], caps: &[u64]) -> Vec<u32> {
    let shop = flat.shop;
    let of = |job: &super::Job| {
        let mut latest = u64::from(job.deadline.unwrap_or(u32::MAX).min(shop.horizon()));
        for (sum, cap) in sums.iter().zip(caps) {
            for &(factor, measure) in &sum.terms {
                let weight = match measure {
                    Measure::Tardiness | Measure::FlowTime => u64::from(factor) * u64::from(job.weight),
                    Measure::Makespan | Measure::MaxTardiness => u64::from(factor),
                    Measure::TardyJobs | Measure::Earliness | Measure::SetupTime => 0,
                };
                let from = match measure {
                    Measure::Tardiness | Measure::MaxTardiness => job.due.map(u64::from),
                    Measure::FlowTime => Some(job.release.into()),
                    _ => Some(0),
                };
                if let (Some(from), Some(room)) = (from, cap.checked_div(weight)) {
                    latest = latest.min(from + room);
                }
            }
        }
        latest as u32
    };
    shop.jobs().iter().map(of).collect()
}

/// One operation's variables, and what its machines' calendars say about them.
fn node(engine: &mut Engine, flat: &Flat<'_>, one: usize, job_end: u32) -> Node {
    let (modes, operation) = (&flat.modes[one], flat.shop.operation(one));
    let latest = flat.latest[one].min(job_end);
    let least = modes.iter().map(|mode| mode.1).min().unwrap_or(0);
    let Some(last) = latest.checked_sub(least).filter(|&last| last >= flat.earliest[one]) else {
        // No time is left for it: nothing holds.
        engine.clause(&[]);
        let start = engine.variable(0, 0);
        return Node { start, end: (start, 0), chosen: vec![Fact::ALWAYS; modes.len()] };
    };
    let start = engine.variable(flat.earliest[one] as i32, last as i32);
    let chosen: Vec<Fact> = if modes.len() == 1 {
        vec![Fact::ALWAYS]
    } else {
        modes.iter().map(|_| Fact::is(engine.switch(1.0))).collect()
    };
    engine.clause(&chosen);
    for (index, fact) in chosen.iter().enumerate() {
        for other in &chosen[..index] {
            engine.clause(&[fact.negated(), other.negated()]);
        }
    }
    let calendar = |machine: u32| &flat.shop.machines()[machine as usize].calendar;
    let pauses = operation.interruptible && modes.iter().any(|mode| !calendar(mode.0).is_always_open());
    let end = if pauses || modes.iter().any(|mode| mode.1 != least) {
        let end = engine.variable(0, latest as i32);
        for (&(_, time), &when) in modes.iter().zip(&chosen) {
            engine.difference(Difference { when, from: start, to: end, weight: time as i32 });
        }
        engine.difference(Difference { when: Fact::ALWAYS, from: start, to: end, weight: least as i32 });
        (end, 0)
    } else {
        (start, least as i32)
    };
    for (&(machine, time), fact) in modes.iter().zip(&chosen) {
        if time > 0 {
            add_closings(
                engine,
                calendar(machine),
                (start, end.0, last),
                time,
                operation.interruptible,
                *fact,
            );
        }
    }
    Node { start, end, chosen }
}

/// What closed times say about an operation that runs there if `chosen` holds.
fn add_closings(
    engine: &mut Engine,
    calendar: &Calendar,
    (start, end, last): (Var, Var, u32),
    time: u32,
    interruptible: bool,
    chosen: Fact,
) {
    let closed = calendar.closed();
    let met = closed.partition_point(|&(from, _)| from < last.saturating_add(time));
    for &(from, to) in &closed[..met] {
        if interruptible {
            // Whatever starts from then on ends no earlier than what starts then.
            let first = (from + 1).saturating_sub(time);
            let ends = calendar.place(first, time, true).end;
            let before = Fact::at_least(start, first as i32).negated();
            engine.clause(&[chosen.negated(), before, Fact::at_least(end, ends.min(LARGEST as u32) as i32)]);
            engine.clause(&[
                chosen.negated(),
                Fact::at_most(start, from as i32 - 1),
                Fact::at_least(start, to as i32),
            ]);
        } else {
            let before = Fact::at_most(start, from as i32 - time as i32);
            engine.clause(&[chosen.negated(), before, Fact::at_least(start, to as i32)]);
        }
    }
}

/// Sets of operations, as bits.
#[derive(Clone)]
struct Set(Vec<u64>);

impl Set {
    fn contains(&self, one: usize) -> bool {
        self.0[one / 64] >> (one % 64) & 1 == 1
    }
}

/// All that precedences put after each operation.
fn followers(flat: &Flat<'_>) -> Vec<Set> {
    let mut sets = vec![Set(vec![0; flat.count().div_ceil(64)]); flat.count()];
    for &one in by_priority(flat, |_| 0).iter().rev() {
        let mut all = sets[one as usize].clone();
        for link in &flat.after[one as usize] {
            let other = link.other as usize;
            all.0[other / 64] |= 1 << (other % 64);
            all.0.iter_mut().zip(&sets[other].0).for_each(|(bits, more)| *bits |= more);
        }
        sets[one as usize] = all;
    }
    sets
}

/// The least time between two operations on one machine, by their families: others may lie in between, with their work and
/// their setups.
struct Between {
    /// By families, none last.
    least: Vec<u32>,
    families: usize,
}

impl Between {
    fn new(flat: &Flat<'_>, machine: usize) -> Self {
        let setups = flat.shop.setups();
        let families = setups.families.len();
        let family = |index: usize| (index < families).then_some(index as u32);
        let size = families + 1;
        let mut least = vec![0; size * size];
        // The shortest work of each family here.
        let mut work = vec![u32::MAX; size];
        for (one, modes) in flat.modes.iter().enumerate() {
            for mode in modes.iter().filter(|mode| mode.0 as usize == machine) {
                let of = flat.family(one as u32).map_or(families, |family| family as usize);
                work[of] = work[of].min(mode.1);
            }
        }
        for from in 0..size {
            for to in 0..size {
                least[from * size + to] = setups.time(machine, family(from), family(to));
            }
        }
        for via in 0..size {
            for from in 0..size {
                for to in 0..size {
                    let through = least[from * size + via]
                        .saturating_add(work[via])
                        .saturating_add(least[via * size + to]);
                    least[from * size + to] = least[from * size + to].min(through);
                }
            }
        }
        Self { least, families }
    }

    fn least(&self, from: Option<u32>, to: Option<u32>) -> u32 {
        let index = |family: Option<u32>| family.map_or(self.families, |family| family as usize);
        self.least[index(from) * (self.families + 1) + index(to)].min(LARGEST as u32)
    }
}

/// `total` is at least a sum of variables with positive factors, and a constant.
struct Linear {
    terms: Vec<(i64, Var)>,
    constant: i64,
    total: Var,
}

impl Linear {
    /// The weakest lower bounds of the terms but `except` that still add up to no less than `slack` below what they do now.
    fn reasons(&self, trail: &Trail, except: usize, mut slack: i64) -> Vec<Fact> {
        let mut reasons = Vec::with_capacity(self.terms.len() + 1);
        for (number, &(factor, var)) in self.terms.iter().enumerate() {
            let low = i64::from(trail.low(var));
            if number == except || low <= 0 {
                continue;
            }
            let spare = (slack / factor).min(low);
            slack -= spare * factor;
            if spare < low {
                reasons.push(Fact::at_least(var, (low - spare) as i32));
            }
        }
        reasons
    }
}

impl Global for Linear {
    fn propagate(&mut self, trail: &mut Trail) -> Result<(), Conflict> {
        let low = |trail: &Trail, var| i64::from(trail.low(var));
        let least =
            self.constant + self.terms.iter().map(|&(factor, var)| factor * low(trail, var)).sum::<i64>();
        if least > low(trail, self.total) {
            // Beyond its range the least contradiction explains best.
            let value = least.min(i64::from(trail.high(self.total)) + 1);
            let reasons = self.reasons(trail, usize::MAX, least - value);
            trail.infer(Fact::at_least(self.total, value as i32), reasons)?;
        }
        let high = i64::from(trail.high(self.total));
        for number in 0..self.terms.len() {
            let (factor, var) = self.terms[number];
            let room = (high - least) / factor;
            if low(trail, var) + room < i64::from(trail.high(var)) {
                let value = low(trail, var) + room;
                let slack = least + factor * (room + 1) - high - 1;
                let mut reasons = self.reasons(trail, number, slack);
                reasons.push(Fact::at_most(self.total, high as i32));
                trail.infer(Fact::at_most(var, value as i32), reasons)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::general::{Job, Machine, Mode, Objective, Operation, Parts, Setups, Shop};

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
        let mut proof = Proof::new(&flat, vec![0], 0);
        assert!(proof.work((&list, &pass.cost), 1000, || false).is_none());
        assert_eq!(proof.bounds, [32]);
        assert!(
            proof.is_reached_by(&pass.cost)
                && !proof.is_reached_by(&[0, 33])
                && !proof.is_reached_by(&[1, 0])
        );
        // A worse list is asked for better ones until none is.
        let mut proof = Proof::new(&flat, vec![0], 0);
        let mut cost = vec![0, 500];
        while let Some(better) = proof.work((&list, &cost), 1000, || false) {
            flat.run(&better, &mut pass);
            cost.clone_from(&pass.cost);
        }
        assert_eq!((cost, proof.bounds), (vec![0, 32], vec![32]));
    }
}
