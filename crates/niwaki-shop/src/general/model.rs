//! The general shop: jobs of operations with modes, on machines with calendars and setups, judged by an objective.
//!
//! It is checked once, when it is made (`check.rs`); everything downstream may rely on it.

use super::{Calendar, Objective, Says};
use std::ops::Range;

/// A job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// What people call it.
    pub name: String,
    /// Hard: none of its operations starts earlier.
    pub release: u32,
    /// Soft: when it should be done.
    pub due: Option<u32>,
    /// How long before time 0 it should have been done; it is then due at 0, and this much later than it seems.
    pub overdue: u32,
    /// Hard: when it must be done.
    pub deadline: Option<u32>,
    /// How much it counts in sums over jobs.
    pub weight: u32,
    /// Its operations.
    pub operations: Vec<Operation>,
}

impl Job {
    /// A job without dates, of weight 1.
    #[must_use]
    pub fn new(name: impl Into<String>, operations: Vec<Operation>) -> Self {
        Self { name: name.into(), release: 0, due: None, overdue: 0, deadline: None, weight: 1, operations }
    }

    /// When it should be done, from time 0.
    #[must_use]
    pub fn due_at(&self) -> Option<i64> {
        self.due.map(|due| i64::from(due) - i64::from(self.overdue))
    }

    /// How late it is if it ends then.
    #[must_use]
    pub fn late(&self, end: u32) -> u64 {
        self.due.map_or(0, |due| (u64::from(end) + u64::from(self.overdue)).saturating_sub(due.into()))
    }
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What people call it.
    pub name: String,
    /// Where it can run and how long that takes; at least one.
    pub modes: Vec<Mode>,
    /// Hard: it does not start earlier.
    pub earliest: u32,
    /// Hard: it is done by then.
    pub latest: Option<u32>,
    /// Whether it may pause while its machine is closed.
    pub interruptible: bool,
    /// What a machine must be set up for.
    pub family: Option<u32>,
}

impl Operation {
    /// An operation without a window or a family, in one piece.
    #[must_use]
    pub fn new(name: impl Into<String>, modes: Vec<Mode>) -> Self {
        Self { name: name.into(), modes, earliest: 0, latest: None, interruptible: false, family: None }
    }
}

/// A machine that can run an operation, and its work there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// The machine.
    pub machine: u32,
    /// How much open time it takes.
    pub time: u32,
}

/// A machine: one operation at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// What people call it.
    pub name: String,
    /// Hard: it runs nothing earlier.
    pub available: u32,
    /// When it is closed.
    pub calendar: Calendar,
    /// What it is set up for at the beginning; its first operation then needs a setup, too.
    pub family: Option<u32>,
}

impl Machine {
    /// A machine that is always open.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), available: 0, calendar: Calendar::default(), family: None }
    }
}

/// `after` starts at least `min` and at most `max` after the end of `before`; operations by their flat numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precedence {
    /// The operation that comes first.
    pub before: u32,
    /// The operation that waits for it.
    pub after: u32,
    /// Hard: the least time in between.
    pub min: u32,
    /// Hard: the longest time in between.
    pub max: Option<u32>,
}

/// The time that a machine needs between two operations of given families, one right after the other. Setups may run
/// while the machine is closed; operations without a family need none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setups {
    /// Names of the families.
    pub families: Vec<String>,
    /// Tables `[from][to]`, flat.
    pub tables: Vec<Vec<u32>>,
    /// The table of each machine, if it needs setups.
    pub of_machine: Vec<Option<u32>>,
}

impl Setups {
    /// The setup on a machine between two families.
    #[must_use]
    pub fn time(&self, machine: usize, from: Option<u32>, to: Option<u32>) -> u32 {
        match (self.of_machine.get(machine).copied().flatten(), from, to) {
            (Some(table), Some(from), Some(to)) => {
                self.tables[table as usize][from as usize * self.families.len() + to as usize]
            }
            _ => 0,
        }
    }

    /// Whether no machine ever needs a setup.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.of_machine.iter().all(Option::is_none)
    }
}

/// A general shop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shop {
    pub(super) jobs: Vec<Job>,
    pub(super) machines: Vec<Machine>,
    pub(super) precedences: Vec<Precedence>,
    pub(super) setups: Setups,
    pub(super) objective: Objective,
    /// Calendars are known up to here, and every schedule ends by then.
    pub(super) horizon: u32,
    /// Where each job's operations start, and the end: `[job + 1]`.
    pub(super) starts: Vec<u32>,
    pub(super) says: Says,
}

impl Shop {
    /// All jobs.
    #[must_use]
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// All machines.
    #[must_use]
    pub fn machines(&self) -> &[Machine] {
        &self.machines
    }

    /// All precedences.
    #[must_use]
    pub fn precedences(&self) -> &[Precedence] {
        &self.precedences
    }

    /// The setups.
    #[must_use]
    pub const fn setups(&self) -> &Setups {
        &self.setups
    }

    /// What is minimised.
    #[must_use]
    pub const fn objective(&self) -> &Objective {
        &self.objective
    }

    /// When every schedule has ended.
    #[must_use]
    pub const fn horizon(&self) -> u32 {
        self.horizon
    }

    /// Number of operations of all jobs together.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.starts[self.jobs.len()] as usize
    }

    /// The flat numbers of one job's operations.
    #[must_use]
    pub fn of_job(&self, job: usize) -> Range<usize> {
        self.starts[job] as usize..self.starts[job + 1] as usize
    }

    /// The job of an operation, and its index there.
    #[must_use]
    pub fn place_of(&self, operation: usize) -> (usize, usize) {
        let job = self.starts.partition_point(|&start| start as usize <= operation) - 1;
        (job, operation - self.starts[job] as usize)
    }

    /// An operation by its flat number.
    #[must_use]
    pub fn operation(&self, operation: usize) -> &Operation {
        let (job, index) = self.place_of(operation);
        &self.jobs[job].operations[index]
    }

    /// Job and operation by name, for a message.
    #[must_use]
    pub fn called(&self, operation: usize) -> String {
        let (job, index) = self.place_of(operation);
        format!("job {}, operation {}", self.jobs[job].name, self.jobs[job].operations[index].name)
    }

    /// A moment, for a message.
    #[must_use]
    pub fn moment(&self, time: impl Into<u64>) -> String {
        self.says.moment(time.into())
    }

    /// A length of time, for a message.
    #[must_use]
    pub fn length(&self, time: impl Into<u64>) -> String {
        self.says.length(time.into())
    }

    /// The same shop with another objective.
    ///
    /// # Errors
    /// If its sums could overflow.
    pub fn with_objective(self, objective: Objective) -> crate::Result<Self> {
        let parts = super::Parts {
            jobs: self.jobs,
            machines: self.machines,
            precedences: self.precedences,
            setups: self.setups,
            objective,
            horizon: self.horizon,
        };
        Self::told(parts, self.says)
    }
}
