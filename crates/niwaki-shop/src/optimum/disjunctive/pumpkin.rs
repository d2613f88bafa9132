//! The shop as a model of Pumpkin, a solver that learns clauses as ours does: a second opinion on what ours leaves open.
//!
//! Pumpkin's disjunctive constraint knows neither optional tasks nor a choice of durations. So each machine that can
//! run an operation has a start of its own for it, within the operation's window or in a parking place after the
//! horizon; places on one machine do not overlap, and the machine that is chosen is the one where it is not parked.

use super::model::Maxima;
use super::relaxation::Relaxation;
use super::shop::Shop;
use super::solve::Known;
use crate::optimum::clock::Clock;
use crate::{Limits, Placed, Schedule};
use pumpkin_conflict_resolvers::resolvers::ResolutionResolver;
use pumpkin_constraints::{disjunctive_strict, less_than_or_equals};
use pumpkin_core::predicate;
use pumpkin_core::proof::ConstraintTag;
use pumpkin_core::results::{ProblemSolution as _, SatisfactionResultUnderAssumptions};
use pumpkin_core::termination::TerminationCondition;
use pumpkin_core::variables::{AffineView, DomainId, Literal, TransformableVariable as _};
use pumpkin_core::{DefaultBrancher, Solver};
use pumpkin_propagators::disjunctive::ArgDisjunctiveTask;
use std::time::Duration;

/// The largest number in a model: Pumpkin's sums must fit 32 bits.
const LARGEST: i64 = i32::MAX as i64 / 4;

/// The time for the first question; what is learnt helps with the next, so each gets twice as long.
const FIRST_SLICE: Duration = Duration::from_millis(200);

/// An operation on one of its machines.
struct Here {
    job: usize,
    time: i32,
    /// When it starts there, or its parking place.
    start: DomainId,
}

/// An operation's variables.
struct Node {
    start: DomainId,
    /// None where there is only one.
    time: Option<DomainId>,
    /// For each alternative: whether it is chosen; empty where there is only one.
    chosen: Vec<Literal>,
}

/// The solver with the meaning of its variables.
struct Model<'a> {
    shop: &'a Shop,
    solver: Solver,
    tag: ConstraintTag,
    makespan: DomainId,
    nodes: Vec<Node>,
    brancher: DefaultBrancher,
    resolver: ResolutionResolver,
}

/// Ends Pumpkin's search with our clock or with its slice of time for one question.
struct UntilOver<'c> {
    whole: &'c Clock,
    slice: Clock,
}

impl TerminationCondition for UntilOver<'_> {
    fn should_stop(&mut self) -> bool {
        self.slice.is_over() || self.whole.is_over()
    }
}

/// How a search ended.
enum Found {
    Schedule(Schedule),
    /// There is none as short.
    Nothing,
    /// Time is up.
    NoAnswer,
}

/// Closes what is left between the bounds as far as time allows.
pub(super) fn close(
    shop: &Shop,
    relaxation: &Relaxation,
    maxima: Maxima,
    known: &mut Known<'_>,
    clock: &Clock,
) {
    let work: i64 = shop.choices.iter().map(|choice| i64::from(choice.time)).sum();
    if known.proven() || clock.is_over() || i64::from(known.upper) + work > LARGEST {
        return;
    }
    let mut model = Model::new(shop, relaxation, maxima, known.lower, known.upper - 1);
    let mut slice = FIRST_SLICE;
    let mut turn = 0;
    while !known.proven() && !clock.is_over() {
        let target = known.target(shop.is_flexible(), turn);
        match model.search(target, UntilOver { whole: clock, slice: Clock::start(Limits::new(slice, 0)) }) {
            Found::Schedule(schedule) => known.found(schedule),
            Found::Nothing => known.refuted(target),
            Found::NoAnswer => {
                slice *= 2;
                turn += 1;
                continue;
            }
        }
        if !known.proven() {
            model.bound(known.lower, known.upper - 1);
        }
    }
}

impl<'a> Model<'a> {
    /// All schedules with a makespan between `lower` and `upper`.
    fn new(shop: &'a Shop, relaxation: &Relaxation, maxima: Maxima, lower: u32, upper: u32) -> Self {
        let mut solver = Solver::default();
        let tag = solver.new_constraint_tag();
        let makespan = solver.new_bounded_integer(lower as i32, upper as i32);
        let (brancher, resolver) = (solver.default_brancher(), ResolutionResolver::default());
        let mut model = Self { shop, solver, tag, makespan, nodes: Vec::new(), brancher, resolver };
        let machines = model.add_operations(relaxation, upper as i32);
        model.add_routes(maxima, upper);
        for tasks in machines {
            model.add_machine(&tasks);
        }
        model.add_cuts(relaxation, upper);
        // It decides the variables that are there when it is made.
        model.brancher = model.solver.default_brancher();
        model
    }

    /// Adds each operation's start within its window, its time and its machine; the tasks of each machine come back.
    fn add_operations(&mut self, relaxation: &Relaxation, horizon: i32) -> Vec<Vec<Here>> {
        let mut machines: Vec<Vec<Here>> = (0..self.shop.machines).map(|_| Vec::new()).collect();
        // After the horizon even for an operation without length, which may start at the horizon itself.
        let mut parking = vec![horizon + 1; self.shop.machines];
        let job_of = (0..self.shop.jobs()).flat_map(|job| self.shop.job(job).map(move |_| job));
        for (operation, job) in job_of.enumerate() {
            let (head, tail) = (relaxation.heads[operation] as i32, relaxation.tails[operation] as i32);
            let latest = horizon - tail - self.shop.least(operation) as i32;
            let start = self.solver.new_bounded_integer(head, latest);
            let alternatives = self.shop.alternatives(operation);
            if let [only] = alternatives {
                machines[only.machine as usize].push(Here { job, time: only.time as i32, start });
                self.nodes.push(Node { start, time: None, chosen: Vec::new() });
                continue;
            }
            let mut times: Vec<i32> = alternatives.iter().map(|choice| choice.time as i32).collect();
            times.sort_unstable();
            times.dedup();
            let time = self.solver.new_sparse_integer(times);
            let mut chosen = Vec::with_capacity(alternatives.len());
            for choice in alternatives {
                let (length, place) = (choice.time as i32, &mut parking[choice.machine as usize]);
                let last = horizon - tail - length;
                let local = self.solver.new_bounded_integer(head, *place);
                let here = self.solver.new_literal_for_predicate(predicate!(local <= last), self.tag);
                self.solver.add_clause([predicate!(local <= last), predicate!(local >= *place)], self.tag);
                *place += length;
                for terms in [[local.scaled(1), start.scaled(-1)], [local.scaled(-1), start.scaled(1)]] {
                    self.solver.add_constraint(less_than_or_equals(terms, 0, self.tag)).implied_by(here);
                }
                self.solver.add_clause([here.get_false_predicate(), predicate!(time == length)], self.tag);
                machines[choice.machine as usize].push(Here { job, time: length, start: local });
                chosen.push(here);
            }
            self.choose_one(operation, time, &chosen);
            self.nodes.push(Node { start, time: Some(time), chosen });
        }
        machines
    }

    /// Exactly one alternative is chosen, and a time is only taken on a machine that offers it.
    fn choose_one(&mut self, operation: usize, time: DomainId, chosen: &[Literal]) {
        self.solver.add_clause(chosen.iter().map(Literal::get_true_predicate), self.tag);
        for (index, one) in chosen.iter().enumerate() {
            for other in &chosen[..index] {
                self.solver.add_clause([one.get_false_predicate(), other.get_false_predicate()], self.tag);
            }
        }
        let alternatives = self.shop.alternatives(operation);
        for choice in alternatives {
            let length = choice.time as i32;
            let same = alternatives.iter().zip(chosen).filter(|(one, _)| one.time == choice.time);
            let clause = same.map(|(_, here)| here.get_true_predicate());
            self.solver.add_clause(clause.chain([predicate!(time != length)]), self.tag);
        }
    }

    /// Operations of a job follow each other after their rests, and the makespan follows the last.
    fn add_routes(&mut self, maxima: Maxima, horizon: u32) {
        for job in 0..self.shop.jobs() {
            let range = self.shop.job(job);
            let last = range.end - 1;
            for operation in range {
                let (next, rest) = if operation == last {
                    (self.makespan, 0)
                } else {
                    (self.nodes[operation + 1].start, self.shop.rest(operation + 1) as i32)
                };
                self.add_step(operation, next, rest, 1);
                let max = if operation == last { None } else { self.shop.windows[operation + 1].max };
                if let Some(max) = max.filter(|&max| maxima == Maxima::Hard && max < horizon) {
                    self.add_step(operation, next, max as i32, -1);
                }
            }
        }
    }

    /// From an operation's end to `next` it takes at least `rest`, or with a sign of −1 at most.
    fn add_step(&mut self, operation: usize, next: DomainId, rest: i32, sign: i32) {
        let node = &self.nodes[operation];
        let mut terms = vec![node.start.scaled(sign), next.scaled(-sign)];
        let time = match node.time {
            Some(time) => {
                terms.push(time.scaled(sign));
                0
            }
            None => self.shop.least(operation) as i32,
        };
        self.solver.add_constraint(less_than_or_equals(terms, -sign * (time + rest), self.tag)).post();
    }

    /// No two tasks overlap: an order for each pair of two jobs, and edge finding over all.
    fn add_machine(&mut self, tasks: &[Here]) {
        for (index, one) in tasks.iter().enumerate() {
            for other in tasks[..index].iter().filter(|other| other.job != one.job) {
                let first = self.solver.new_literal();
                for (when, one, other) in [(first, one, other), (!first, other, one)] {
                    let terms = [one.start.scaled(1), other.start.scaled(-1)];
                    self.solver
                        .add_constraint(less_than_or_equals(terms, -one.time, self.tag))
                        .implied_by(when);
                }
            }
        }
        let working = tasks.iter().filter(|task| task.time > 0);
        let working: Vec<_> = working
            .map(|task| ArgDisjunctiveTask { start_time: task.start, processing_time: task.time })
            .collect();
        if working.len() > 1 {
            self.solver.add_constraint(disjunctive_strict(working, self.tag)).post();
        }
    }

    /// Weighted loads stay within the makespan, where the numbers are small enough.
    fn add_cuts(&mut self, relaxation: &Relaxation, upper: u32) {
        for cut in &relaxation.cuts {
            let slope = cut.slope();
            let mut offset = cut.offset;
            let mut terms: Vec<AffineView<DomainId>> = Vec::new();
            let mut largest = slope * i64::from(upper) + offset.abs();
            for (operation, node) in self.nodes.iter().enumerate() {
                for (place, choice) in self.shop.alternatives(operation).iter().enumerate() {
                    let weight = cut.weight(choice.machine) * i64::from(choice.time);
                    largest += weight;
                    match node.chosen.get(place) {
                        Some(_) if weight == 0 => {}
                        Some(here) => terms.push(here.get_integer_variable().scaled(weight as i32)),
                        None => offset += weight,
                    }
                }
            }
            if largest <= LARGEST {
                terms.push(self.makespan.scaled(-(slope as i32)));
                self.solver.add_constraint(less_than_or_equals(terms, -offset as i32, self.tag)).post();
            }
        }
    }

    /// Only schedules from `lower` to `upper` are of interest from now on.
    fn bound(&mut self, lower: u32, upper: u32) {
        let (lower, upper, makespan) = (lower as i32, upper as i32, self.makespan);
        self.solver.add_clause([predicate!(makespan >= lower)], self.tag);
        self.solver.add_clause([predicate!(makespan <= upper)], self.tag);
    }

    /// Looks for a schedule with a makespan of at most `target`.
    fn search(&mut self, target: u32, mut until: UntilOver<'_>) -> Found {
        let (makespan, target) = (self.makespan, target as i32);
        let result = self.solver.satisfy_under_assumptions(
            &mut self.brancher,
            &mut until,
            &mut self.resolver,
            &[predicate!(makespan <= target)],
        );
        match result {
            SatisfactionResultUnderAssumptions::Satisfiable(found) => {
                let solution = found.solution();
                let value = |variable: DomainId| solution.get_integer_value(variable) as u32;
                let mut operations = Vec::with_capacity(self.nodes.len());
                for job in 0..self.shop.jobs() {
                    for (op, operation) in self.shop.job(job).enumerate() {
                        let node = &self.nodes[operation];
                        let here = node.chosen.iter().position(|&here| solution.get_literal_value(here));
                        let choice = self.shop.alternatives(operation)[here.unwrap_or(0)];
                        let start = value(node.start);
                        let (machine, end) = (choice.machine, start + choice.time);
                        operations.push(Placed { job: job as u32, op: op as u32, machine, start, end });
                    }
                }
                Found::Schedule(Schedule { operations })
            }
            SatisfactionResultUnderAssumptions::UnsatisfiableUnderAssumptions(_)
            | SatisfactionResultUnderAssumptions::Unsatisfiable(_) => Found::Nothing,
            SatisfactionResultUnderAssumptions::Unknown(_) => Found::NoAnswer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Size, Task, generate};
    use crate::optimum::disjunctive::solve::{solve, solve_within_windows};
    use crate::optimum::disjunctive::start::one_after_another;
    use crate::optimum::{Bounds, Limits, Optimum};
    use crate::{Alternative, FlexibleShop, Instance, Window, verify};
    use niwaki_stream::Key;
    use std::time::Instant;

    /// Pumpkin alone, from the poorest schedule.
    fn alone(shop: &FlexibleShop, maxima: Maxima, seconds: f64) -> Optimum {
        let flat = Shop::from(shop);
        let relaxation = Relaxation::new(&flat);
        let mut seen = Vec::new();
        let mut watch = |bounds: Bounds| seen.push(bounds);
        let mut known = Known::new(relaxation.lower, one_after_another(&flat), &mut watch);
        let clock = Clock::start(Limits::new(Duration::from_secs_f64(seconds), 0));
        close(&flat, &relaxation, maxima, &mut known, &clock);
        let optimum = Optimum::new(known.lower, known.best);
        let verdict = verify(&Instance::Flexible(shop.clone()), &optimum.schedule).unwrap();
        assert_eq!(verdict.makespan, optimum.upper);
        optimum
    }

    /// Three jobs of up to three operations, some without work, some on the same machine, with or without rests.
    fn small(lane: u64) -> FlexibleShop {
        let mut stream = Key::new(9, "law/pumpkin").lane(lane).open();
        let mut draw = |below: u64| stream.below(below) as u32;
        let mut jobs = Vec::new();
        let mut windows = Vec::new();
        for _ in 0..3 {
            let count = 1 + draw(3) as usize;
            let choices = |draw: &mut dyn FnMut(u64) -> u32| {
                let set = 1 + draw(7);
                let on = |machine| Alternative { machine, time: draw(8) };
                (0..3).filter(|machine| set >> machine & 1 == 1).map(on).collect::<Vec<_>>()
            };
            jobs.push((0..count).map(|_| choices(&mut draw)).collect::<Vec<_>>());
            let window = |op: usize| {
                let min = draw(4);
                let max = (draw(2) == 0).then_some(min + draw(3));
                if op == 0 { Window::FREE } else { Window { min, max } }
            };
            windows.push((0..count).map(window).collect::<Vec<_>>());
        }
        FlexibleShop::new(3, &jobs).unwrap().with_windows(&windows).unwrap()
    }

    #[test]
    fn it_proves_what_our_own_search_proves() {
        let limits = Limits::new(Duration::from_secs(60), 1);
        for lane in 0..150 {
            let shop = small(lane);
            let ours = solve(&Shop::from(&shop), None, limits, &mut |_| {});
            let theirs = alone(&shop, Maxima::Soft, 60.0);
            assert!(ours.proven && theirs.proven, "{lane}");
            assert_eq!(ours.upper, theirs.upper, "{lane}");
            let ours = solve_within_windows(&Shop::from(&shop), limits, &mut |_| {});
            let theirs = alone(&shop, Maxima::Hard, 60.0);
            assert!(ours.proven && theirs.proven, "{lane} within windows");
            assert_eq!(ours.upper, theirs.upper, "{lane} within windows");
            assert_eq!(theirs.schedule.violation(&shop), 0, "{lane}");
        }
        for (task, jobs, machines) in [(Task::L2d, 6, 4), (Task::Flexible, 4, 4), (Task::Windows, 4, 3)] {
            for index in 0..4 {
                let shop = match generate(task, Size { jobs, machines }, 6, index).unwrap() {
                    Instance::Job(shop) => FlexibleShop::from_job_shop(&shop).unwrap(),
                    Instance::Flexible(shop) => shop,
                    other => panic!("{} is not a job shop", other.kind()),
                };
                let ours = solve(&Shop::from(&shop), None, limits, &mut |_| {});
                let theirs = alone(&shop, Maxima::Soft, 60.0);
                assert!(ours.proven && theirs.proven, "{} {index}", task.name());
                assert_eq!(ours.upper, theirs.upper, "{} {index}", task.name());
            }
        }
    }

    #[test]
    fn it_stops_in_time() {
        let Ok(Instance::Flexible(shop)) = generate(Task::Windows, Size { jobs: 10, machines: 5 }, 5, 0)
        else {
            panic!("windows are of a flexible shop");
        };
        let began = Instant::now();
        let optimum = alone(&shop, Maxima::Soft, 0.5);
        // Left alone it would go on for hours; a busy machine may take some seconds to build the model.
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        assert!(!optimum.proven);
    }
}
