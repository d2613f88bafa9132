//! The search itself: propagate, decide, learn, go back.

use super::activity::Activity;
use super::analyse::Analysis;
use super::clauses::Clauses;
use super::difference::Difference;
use super::fact::{Fact, Var};
use super::trail::{Conflict, Reason, Trail};

/// A constraint with its own algorithm, run when the cheap ones have nothing more to say.
pub(crate) trait Global {
    /// Draws conclusions from the current bounds.
    ///
    /// # Errors
    /// If no value is left for some variable; the trail then holds the conflict.
    fn propagate(&mut self, trail: &mut Trail) -> Result<(), Conflict>;
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every decided variable has a value; lower bounds are a solution.
    Found,
    /// The assumption cannot hold.
    Refuted,
    /// The budget is spent.
    Interrupted,
}

/// Variables, constraints and everything learnt about them.
pub(crate) struct Engine {
    pub(crate) trail: Trail,
    clauses: Clauses,
    differences: Vec<Difference>,
    /// For each side, the differences that look at it.
    listeners: Vec<Vec<u32>>,
    globals: Vec<Box<dyn Global>>,
    /// For each side, the globals that look at it.
    global_listeners: Vec<Vec<u32>>,
    awake: Vec<bool>,
    activity: Activity,
    phase: Vec<bool>,
    analysis: Analysis,
    /// Entries of the trail whose conclusions are drawn.
    done: usize,
    conflicts: u64,
    room: usize,
    /// Whether the constraints contradict each other without any assumption.
    dead: bool,
}

impl Engine {
    pub(crate) fn new() -> Self {
        let mut engine = Self {
            trail: Trail::default(),
            clauses: Clauses::default(),
            differences: Vec::new(),
            listeners: Vec::new(),
            globals: Vec::new(),
            global_listeners: Vec::new(),
            awake: Vec::new(),
            activity: Activity::new(),
            phase: Vec::new(),
            analysis: Analysis::default(),
            done: 0,
            conflicts: 0,
            room: 4000,
            dead: false,
        };
        engine.variable(1, 1);
        engine
    }

    /// Conflicts met so far.
    pub(crate) const fn conflicts(&self) -> u64 {
        self.conflicts
    }

    /// A variable that constraints bound but the search never decides.
    pub(crate) fn variable(&mut self, low: i32, high: i32) -> Var {
        self.add(low, high, false, 0.0)
    }

    /// A 0–1 variable for the search to decide, with its first score.
    pub(crate) fn switch(&mut self, score: f64) -> Var {
        self.add(0, 1, true, score)
    }

    fn add(&mut self, low: i32, high: i32, decided: bool, score: f64) -> Var {
        self.clauses.add_variable();
        self.activity.add(decided, score);
        self.phase.push(false);
        self.listeners.extend([Vec::new(), Vec::new()]);
        self.global_listeners.extend([Vec::new(), Vec::new()]);
        self.trail.variable(low, high)
    }

    /// The value the search tries first for a switch.
    pub(crate) fn prefer(&mut self, var: Var, value: bool) {
        self.phase[var as usize] = value;
    }

    /// At least one of these facts holds. Only before the search.
    pub(crate) fn clause(&mut self, facts: &[Fact]) {
        if facts.iter().any(|&fact| self.trail.holds(fact)) {
            return;
        }
        let open: Vec<Fact> = facts.iter().copied().filter(|&fact| !self.trail.fails(fact)).collect();
        match open[..] {
            [] => self.dead = true,
            [fact] => self.trail.push(fact, Reason::Chosen),
            _ => {
                self.clauses.add(&open, 0);
            }
        }
    }

    /// Adds a difference constraint. Only before the search.
    pub(crate) fn difference(&mut self, difference: Difference) {
        let number = self.differences.len() as u32;
        self.differences.push(difference);
        for side in [2 * difference.from, 2 * difference.to + 1, difference.when.side] {
            self.listeners[side as usize].push(number);
        }
        if difference.propagate(number, &mut self.trail).is_err() {
            self.dead = true;
        }
    }

    /// Adds a global constraint that listens to these sides. Only before the search.
    pub(crate) fn global(&mut self, global: Box<dyn Global>, sides: impl IntoIterator<Item = u32>) {
        let number = self.globals.len() as u32;
        for side in sides {
            self.global_listeners[side as usize].push(number);
        }
        self.globals.push(global);
        self.awake.push(true);
    }

    /// Makes a fact hold from now on.
    pub(crate) fn require(&mut self, fact: Fact) {
        self.back_to(0);
        if self.trail.fails(fact) {
            self.dead = true;
        } else if !self.trail.holds(fact) {
            self.trail.push(fact, Reason::Chosen);
        }
    }

    /// Draws all conclusions.
    fn propagate(&mut self) -> Result<(), Conflict> {
        loop {
            while self.done < self.trail.entries.len() {
                let entry = self.trail.entries[self.done];
                self.done += 1;
                for &number in &self.global_listeners[entry.side as usize] {
                    self.awake[number as usize] = true;
                }
                self.clauses.propagate(entry.side, entry.old, entry.new, &mut self.trail)?;
                for &number in &self.listeners[entry.side as usize] {
                    self.differences[number as usize].propagate(number, &mut self.trail)?;
                }
            }
            let Some(next) = self.awake.iter().position(|&awake| awake) else { return Ok(()) };
            self.awake[next] = false;
            if let Err(conflict) = self.globals[next].propagate(&mut self.trail) {
                self.awake[next] = true;
                return Err(conflict);
            }
        }
    }

    fn back_to(&mut self, level: u32) {
        let (activity, phase, trail) = (&mut self.activity, &mut self.phase, &mut self.trail);
        let before = trail.entries.len();
        trail.back_to(level, |side| {
            let var = side / 2;
            // A switch's lower side moves only to 1, its upper side only to 0.
            phase[var as usize] = side & 1 == 0;
            activity.insert(var);
        });
        if trail.entries.len() < before {
            self.done = self.trail.entries.len();
        }
    }

    /// Learns from the conflict and goes back; false if it cannot be mended.
    fn learn(&mut self) -> bool {
        self.conflicts += 1;
        // A conflict may lie wholly below the last level when a lazy constraint saw it late.
        let deepest = self.deepest_of_conflict();
        if deepest == 0 {
            self.dead = true;
            return false;
        }
        if deepest < self.trail.level() {
            self.back_to(deepest);
        }
        let verdict = self.analysis.learn(&self.trail, &self.clauses, &self.differences);
        for &var in &self.analysis.touched {
            self.activity.bump(var);
        }
        self.activity.decay();
        self.back_to(verdict.level);
        let lesson = &self.analysis.lesson;
        let reason = if lesson.len() > 1 {
            Reason::Clause(self.clauses.add(lesson, verdict.spread))
        } else {
            Reason::Chosen
        };
        self.trail.push(lesson[0], reason);
        true
    }

    fn deepest_of_conflict(&self) -> u32 {
        self.trail.conflict.iter().map(|&fact| self.trail.level_of(fact)).max().unwrap_or(0)
    }

    /// Searches for a solution in which `assumption` holds, until `stop` says so: it is asked at each conflict, and now
    /// and then between decisions, of which a large problem needs many before its first conflict.
    ///
    /// Leaves the trail at the solution when one is found, at level 0 otherwise.
    pub(crate) fn solve(&mut self, assumption: Fact, mut stop: impl FnMut(u64) -> bool) -> Outcome {
        self.back_to(0);
        let (mut run, mut left) = (0, luby(0) * 100);
        let mut decisions = 0_u32;
        loop {
            if self.dead {
                return Outcome::Refuted;
            }
            if self.propagate().is_err() {
                if !self.learn() {
                    self.back_to(0);
                    return Outcome::Refuted;
                }
                left = left.saturating_sub(1);
                if stop(self.conflicts) {
                    self.back_to(0);
                    return Outcome::Interrupted;
                }
                continue;
            }
            if left == 0 {
                run += 1;
                left = luby(run) * 100;
                self.back_to(0);
                if self.clauses.learnt > self.room {
                    // Root facts must be propagated before clauses move.
                    if self.propagate().is_err() {
                        self.dead = true;
                        return Outcome::Refuted;
                    }
                    self.clauses.forget(&self.trail);
                    self.room += 500;
                }
                continue;
            }
            if self.trail.level() == 0 {
                if self.trail.fails(assumption) {
                    return Outcome::Refuted;
                }
                self.trail.open_level();
                if !self.trail.holds(assumption) {
                    self.trail.push(assumption, Reason::Chosen);
                }
                continue;
            }
            decisions = decisions.wrapping_add(1);
            if decisions.is_multiple_of(16) && stop(self.conflicts) {
                self.back_to(0);
                return Outcome::Interrupted;
            }
            let Some(choice) = self.choose() else { return Outcome::Found };
            self.trail.open_level();
            self.trail.push(choice, Reason::Chosen);
        }
    }

    fn choose(&mut self) -> Option<Fact> {
        while let Some(var) = self.activity.pop() {
            if self.trail.low(var) < self.trail.high(var) {
                let fact = Fact::is(var);
                return Some(if self.phase[var as usize] { fact } else { fact.negated() });
            }
        }
        None
    }
}

/// Luby's sequence from 0: 1, 1, 2, 1, 1, 2, 4, …
fn luby(mut index: u64) -> u64 {
    let (mut size, mut power) = (1, 0);
    while size < index + 1 {
        size = 2 * size + 1;
        power += 1;
    }
    while size - 1 != index {
        size = (size - 1) / 2;
        power -= 1;
        index %= size;
    }
    1 << power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn luby_by_hand() {
        let first: Vec<u64> = (0..15).map(luby).collect();
        assert_eq!(first, [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]);
    }

    /// Three tasks of length 2 on one machine, as starts and orders.
    fn three_tasks(latest_end: i32) -> (Engine, Vec<Var>) {
        let mut engine = Engine::new();
        let starts: Vec<Var> = (0..3).map(|_| engine.variable(0, latest_end - 2)).collect();
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            let forward = Fact::is(engine.switch(0.0));
            for (when, from, to) in [(forward, one, other), (forward.negated(), other, one)] {
                engine.difference(Difference { when, from: starts[from], to: starts[to], weight: 2 });
            }
        }
        (engine, starts)
    }

    #[test]
    fn three_tasks_need_six() {
        let (mut engine, starts) = three_tasks(6);
        assert_eq!(engine.solve(Fact::ALWAYS, |_| false), Outcome::Found);
        let mut at: Vec<i32> = starts.iter().map(|&start| engine.trail.low(start)).collect();
        at.sort_unstable();
        assert_eq!(at, [0, 2, 4]);
        let (mut engine, _) = three_tasks(5);
        assert_eq!(engine.solve(Fact::ALWAYS, |_| false), Outcome::Refuted);
    }

    #[test]
    fn a_refuted_assumption_leaves_the_rest_solvable() {
        // Within 7, the first task may start at 5 only if the others are done by then: yes; the second as well: no.
        let (mut engine, starts) = three_tasks(7);
        engine.require(Fact::at_least(starts[0], 4));
        assert_eq!(engine.solve(Fact::at_least(starts[1], 4), |_| false), Outcome::Refuted);
        assert_eq!(engine.solve(Fact::at_most(starts[1], 1), |_| false), Outcome::Found);
        assert!(engine.trail.low(starts[0]) >= 4 && engine.trail.high(starts[1]) <= 1);
    }
}
