//! One machine, one operation at a time: overload and edge finding, with reasons.
//!
//! For each latest end `b`, let Ω(a) be the operations that must run within `[a, b]` and P(a) their work. If
//! `a + P(a) > b` the machine is overloaded. If an operation `i` outside, which cannot start before `a` either, has
//! `a + P(a) + time(i) > b`, then `i` runs after all of Ω(a), so it starts no earlier than the latest
//! `a' + P(a')` over `a' ≥ a`. The same code, with time mirrored, sharpens latest starts.
//!
//! Method: Carlier and Pinson (1989), in the O(n²) form of Baptiste, Le Pape and Nuijten (2001).

use crate::optimum::learning::{Conflict, Fact, Global, Trail, Var};

/// An operation that may run on the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) start: Var,
    pub(crate) time: i32,
    /// Holds when the operation runs on this machine.
    pub(crate) present: Fact,
}

/// A present task as seen along or against time.
#[derive(Clone, Copy)]
struct Seen {
    earliest: i32,
    latest_end: i32,
    task: Task,
    mirrored: bool,
}

impl Seen {
    fn new(task: Task, mirrored: bool, trail: &Trail) -> Self {
        let (start, end) = (trail.low(task.start), trail.high(task.start) + task.time);
        let (earliest, latest_end) = if mirrored { (-end, -start) } else { (start, end) };
        Self { earliest, latest_end, task, mirrored }
    }

    /// "Starts no earlier than `a`."
    const fn from(self, a: i32) -> Fact {
        if self.mirrored {
            Fact::at_most(self.task.start, -a - self.task.time)
        } else {
            Fact::at_least(self.task.start, a)
        }
    }

    /// "Ends no later than `b`."
    const fn until(self, b: i32) -> Fact {
        if self.mirrored {
            Fact::at_least(self.task.start, -b)
        } else {
            Fact::at_most(self.task.start, b - self.task.time)
        }
    }
}

/// The work of Ω(a) for one task's earliest start `a`, and the best end that follows from `a` on.
#[derive(Clone, Copy)]
struct Sum {
    end: i32,
    best: i32,
    best_from: i32,
}

/// The machine.
pub(crate) struct Machine {
    tasks: Vec<Task>,
    seen: Vec<Seen>,
    ends: Vec<i32>,
    sums: Vec<Sum>,
}

impl Machine {
    pub(crate) const fn new(tasks: Vec<Task>) -> Self {
        Self { tasks, seen: Vec::new(), ends: Vec::new(), sums: Vec::new() }
    }

    fn look(&mut self, trail: &Trail, mirrored: bool) {
        self.seen.clear();
        let present = self.tasks.iter().filter(|task| trail.holds(task.present));
        self.seen.extend(present.map(|&task| Seen::new(task, mirrored, trail)));
        self.seen.sort_unstable_by_key(|seen| (seen.earliest, seen.task.start));
        self.ends.clear();
        self.ends.extend(self.seen.iter().map(|seen| seen.latest_end));
        self.ends.sort_unstable();
        self.ends.dedup();
    }

    /// The facts that put the work of Ω(a) within `[a, b]`, with everything from `inner` on kept there.
    fn within(seen: &[Seen], a: i32, widened: i32, inner: i32, b: i32) -> impl Iterator<Item = Fact> + '_ {
        seen.iter().filter(move |one| one.earliest >= a && one.latest_end <= b).flat_map(move |one| {
            let from = if one.earliest >= inner { inner } else { widened };
            [one.task.present, one.from(from), one.until(b)]
        })
    }

    fn run(&mut self, trail: &mut Trail) -> Result<(), Conflict> {
        for &b in &self.ends {
            let (mut work, mut best, mut best_from) = (0, i32::MIN, 0);
            self.sums.clear();
            for one in self.seen.iter().rev() {
                let mut end = i32::MIN;
                if one.latest_end <= b {
                    work += one.task.time;
                    end = one.earliest + work;
                    if end > b {
                        let from = one.earliest - (end - b - 1);
                        return trail.contradict(Self::within(&self.seen, one.earliest, from, i32::MAX, b));
                    }
                    if end > best {
                        (best, best_from) = (end, one.earliest);
                    }
                } else if work > 0 && one.earliest + work + one.task.time > b && best > one.earliest {
                    let from = one.earliest - (one.earliest + work + one.task.time - b - 1);
                    let reason = Self::within(&self.seen, one.earliest, from, best_from, b);
                    trail.infer(one.from(best), reason.chain([one.task.present, one.from(from)]))?;
                }
                self.sums.push(Sum { end, best, best_from });
            }
            let (mut end, mut from, mut sum) = (i32::MIN, 0, Sum { end: 0, best: 0, best_from: 0 });
            for (one, &here) in self.seen.iter().zip(self.sums.iter().rev()) {
                if one.latest_end <= b {
                    if here.end > end {
                        (end, from, sum) = (here.end, one.earliest, here);
                    }
                } else if end > i32::MIN && end + one.task.time > b && sum.best > one.earliest {
                    let reason = Self::within(&self.seen, from, from, sum.best_from, b);
                    trail.infer(one.from(sum.best), reason.chain([one.task.present, one.from(from)]))?;
                }
            }
        }
        Ok(())
    }
}

impl Global for Machine {
    fn propagate(&mut self, trail: &mut Trail) -> Result<(), Conflict> {
        for mirrored in [false, true] {
            self.look(trail, mirrored);
            self.run(trail)?;
        }
        Ok(())
    }
}
