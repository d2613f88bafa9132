//! The shop as variables and constraints of the learning engine: a relaxation, see the room's head.

use super::LARGEST;
use super::between::Between;
use super::cuts;
use super::linear::Linear;
use crate::general::construct::in_order;
use crate::general::core::Core;
use crate::general::list::{Flat, List};
use crate::general::{Calendar, Job, Measure, Sum};
use crate::optimum::learning::{Difference, Engine, Fact, Var};
use crate::optimum::{Lane, Node, Pair, Task};

/// The most pairs of operations that may meet on a machine, and of closed times that operations meet, of a shop that is
/// modelled. A job shop's proof is given conflicts by the number of its operations, so it may have more of them.
const PAIRS: usize = 4000;
const PAIRS_OF_JOB_SHOPS: usize = 150_000;
const CLOSINGS: usize = 100_000;

/// The most operations of a shop that is modelled: whether two may meet is asked of every two. In a larger job shop a conflict
/// costs as much as thousands of moves and proves nothing.
const OPERATIONS: usize = 3000;
const JOB_SHOP: usize = 500;

/// The shop as variables and constraints.
pub(super) struct Model {
    pub(super) engine: Engine,
    nodes: Vec<Node>,
    pairs: Vec<Pair>,
    /// The makespan, where it counts.
    makespan: Option<Var>,
    /// The sum in question.
    pub(super) total: Var,
}

impl Model {
    /// All schedules with a smaller sum `level` than that of `values`, and no larger ones before it; nothing if the shop is too
    /// large for this.
    pub(super) fn new(
        flat: &Flat<'_>,
        core: Option<&Core>,
        level: usize,
        values: &[u64],
        setup_floor: u64,
    ) -> Option<Self> {
        if flat.count() > if core.is_some() { JOB_SHOP } else { OPERATIONS } {
            return None;
        }
        let sums = &flat.shop.objective().sums;
        let caps: Vec<u64> = (0..=level).map(|one| values[one] - u64::from(one == level)).collect();
        if caps.iter().any(|&cap| cap >= LARGEST) {
            return None;
        }
        let closings = |mode: &(u32, u32)| flat.shop.machines()[mode.0 as usize].calendar.closed().len();
        if flat.modes.iter().flatten().map(closings).sum::<usize>() > CLOSINGS {
            return None;
        }
        let ends = latest_ends(flat, &sums[..=level], &caps);
        let until = ends.iter().copied().max().unwrap_or(0);
        if u64::from(until) >= LARGEST {
            return None;
        }
        let mut engine = Engine::new();
        let nodes: Vec<Node> =
            (0..flat.count()).map(|one| node(&mut engine, flat, one, ends[flat.job[one] as usize])).collect();
        let mut model = Self { engine, nodes, pairs: Vec::new(), makespan: None, total: 0 };
        model.add_precedences(flat);
        model.add_pairs(flat, if core.is_some() { PAIRS_OF_JOB_SHOPS } else { PAIRS })?;
        model.add_lanes(flat, until);
        for (sum, &cap) in sums.iter().zip(&caps) {
            model.total = model.add_sum(flat, sum, cap, setup_floor, until);
        }
        if let (Some(core), Some(makespan)) = (core, model.makespan) {
            cuts::add(&mut model.engine, &model.nodes, flat, &core.relaxation.cuts, makespan);
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
    fn add_pairs(&mut self, flat: &Flat<'_>, most: usize) -> Option<()> {
        let follows = followers(flat);
        let between: Vec<Between> =
            (0..flat.shop.machines().len()).map(|one| Between::new(flat, one)).collect();
        for machine in 0..between.len() {
            for (one, node) in self.nodes.iter().enumerate() {
                for (&(on, _), &chosen) in flat.modes[one].iter().zip(&node.chosen) {
                    if on as usize == machine {
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
                for (&(machine, _), &one) in flat.modes[first].iter().zip(&self.nodes[first].chosen) {
                    for (&(same, _), &other) in flat.modes[second].iter().zip(&self.nodes[second].chosen) {
                        if machine == same {
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
                if self.pairs.len() == most {
                    return None;
                }
                let Self { engine, nodes, pairs, .. } = &mut *self;
                pairs.push(Pair::new(engine, nodes, (first, second), (there, back), &meeting));
            }
        }
        Some(())
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

    /// A variable that is at least this sum and at most `cap`; no job ends after `until`.
    fn add_sum(&mut self, flat: &Flat<'_>, sum: &Sum, cap: u64, setup_floor: u64, until: u32) -> Var {
        let shop = flat.shop;
        let total = self.engine.variable(0, cap as i32);
        if let [(1, Measure::Makespan)] = sum.terms[..] {
            for job in 0..shop.jobs().len() {
                self.end_before(flat, job, total, 0);
            }
            self.makespan = Some(total);
            return total;
        }
        let most = until as i32;
        let overdue = shop.jobs().iter().map(|job| job.overdue).max().unwrap_or(0) as i32;
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
                    self.makespan = Some(last);
                    linear.terms.push((factor, last));
                }
                Measure::MaxTardiness => {
                    let late = self.engine.variable(0, most + overdue);
                    for (job, about) in shop.jobs().iter().enumerate() {
                        if let Some(due) = about.due {
                            self.end_before(
                                flat,
                                job,
                                late,
                                about.overdue as i32 - due.min(most as u32) as i32,
                            );
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
                            let late = self.engine.variable(0, most + about.overdue as i32);
                            self.end_before(
                                flat,
                                job,
                                late,
                                about.overdue as i32 - due.min(most as u32) as i32,
                            );
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
    pub(super) fn prefer(&mut self, flat: &Flat<'_>, list: &List) {
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
            pair.prefer(&mut self.engine, meet, forward);
        }
    }

    /// What the search found, as a list.
    pub(super) fn list(&self, flat: &Flat<'_>) -> List {
        let trail = &self.engine.trail;
        let chosen = |node: &Node| node.chosen.iter().position(|&fact| trail.holds(fact)).unwrap_or(0) as u32;
        let mode: Vec<u32> = self.nodes.iter().map(chosen).collect();
        // Of operations that start at once those without work come first, which end before the others occupy their machines;
        // then predecessors.
        let mut order = in_order(flat);
        order.sort_by_key(|&one| {
            let one = one as usize;
            (trail.low(self.nodes[one].start), flat.modes[one][mode[one] as usize].1 > 0)
        });
        List { order, mode }
    }
}

/// When each job has ended in a schedule whose sums are at most these.
fn latest_ends(flat: &Flat<'_>, sums: &[Sum], caps: &[u64]) -> Vec<u32> {
    let shop = flat.shop;
    let of = |job: &Job| {
        let mut latest = u64::from(job.deadline.unwrap_or(u32::MAX).min(shop.horizon()));
        for (sum, cap) in sums.iter().zip(caps) {
            for &(factor, measure) in &sum.terms {
                let weight = match measure {
                    Measure::Tardiness | Measure::FlowTime => u64::from(factor) * u64::from(job.weight),
                    Measure::Makespan | Measure::MaxTardiness => u64::from(factor),
                    Measure::TardyJobs | Measure::Earliness | Measure::SetupTime => 0,
                };
                let from = match measure {
                    Measure::Tardiness | Measure::MaxTardiness => job.due_at(),
                    Measure::FlowTime => Some(i64::from(job.release)),
                    _ => Some(0),
                };
                if let (Some(from), Some(room)) = (from, cap.checked_div(weight)) {
                    latest = latest.min(room.saturating_add_signed(from));
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
    let end = if !pauses && modes.iter().any(|mode| mode.1 != least) {
        (end_by_time(engine, modes, &chosen, start, latest), 0)
    } else if pauses {
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

/// The end of an operation that takes other times on other machines: no less than the least time of machines that are left.
fn end_by_time(engine: &mut Engine, modes: &[(u32, u32)], chosen: &[Fact], start: Var, latest: u32) -> Var {
    let mut times: Vec<i32> = modes.iter().map(|mode| mode.1 as i32).collect();
    times.sort_unstable();
    times.dedup();
    let time = engine.variable(times[0], times[times.len() - 1]);
    let end = engine.variable(0, latest as i32);
    for (mode, fact) in modes.iter().zip(chosen) {
        engine.clause(&[fact.negated(), Fact::at_least(time, mode.1 as i32)]);
        engine.clause(&[fact.negated(), Fact::at_most(time, mode.1 as i32)]);
    }
    for &least in &times {
        // Without all the faster machines, the operation takes at least this long.
        let mut clause = vec![Fact::at_least(time, least)];
        let faster = modes.iter().zip(chosen).filter(|(mode, _)| (mode.1 as i32) < least);
        clause.extend(faster.map(|(_, &fact)| fact));
        engine.clause(&clause);
        let when = Fact::at_least(time, least);
        engine.difference(Difference { when, from: start, to: end, weight: least });
    }
    end
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
    for &one in in_order(flat).iter().rev() {
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
