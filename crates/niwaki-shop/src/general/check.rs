//! What is checked when a general shop is made.

use super::{Job, Machine, Objective, Precedence, Says, Setups, Shop};
use crate::instance::HORIZON;
use crate::{Error, Result};

/// The parts of a shop before they are checked.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Jobs with their operations.
    pub jobs: Vec<Job>,
    /// Machines.
    pub machines: Vec<Machine>,
    /// What waits for what, by the flat numbers of operations, job after job.
    pub precedences: Vec<Precedence>,
    /// Setups.
    pub setups: Setups,
    /// What is minimised.
    pub objective: Objective,
    /// How far calendars are known.
    pub horizon: u32,
}

fn refuse<T>(what: String) -> Result<T> {
    Err(Error::Instance(what))
}

impl Parts {
    /// The chain of each job: every operation waits for the one before it.
    #[must_use]
    pub fn chains(jobs: &[Job]) -> Vec<Precedence> {
        let mut chains = Vec::new();
        let mut first = 0;
        for job in jobs {
            let count = job.operations.len() as u32;
            let link =
                |index| Precedence { before: first + index, after: first + index + 1, min: 0, max: None };
            chains.extend((0..count.saturating_sub(1)).map(link));
            first += count;
        }
        chains
    }
}

impl Shop {
    /// A shop from its parts.
    ///
    /// # Errors
    /// The first contradiction, by name: no job or machine, an operation that can run nowhere, a precedence cycle, a
    /// window or deadline that nothing can keep, times that overflow.
    pub fn new(parts: Parts) -> Result<Self> {
        Self::told(parts, Says::default())
    }

    /// A shop from its parts, whose messages say times in these words.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn told(parts: Parts, says: Says) -> Result<Self> {
        let Parts { jobs, machines, precedences, setups, objective, horizon } = parts;
        if jobs.is_empty() || machines.is_empty() {
            return refuse(format!(
                "shop: expected at least one job and one machine, got {} jobs and {} machines",
                jobs.len(),
                machines.len()
            ));
        }
        let mut starts = vec![0];
        for job in &jobs {
            if job.operations.is_empty() {
                return refuse(format!("job {}: expected at least one operation, got none", job.name));
            }
            starts.push(starts[starts.len() - 1] + job.operations.len() as u32);
        }
        let shop = Self { jobs, machines, precedences, setups, objective, horizon, starts, says };
        shop.check_names()?;
        shop.check_operations()?;
        shop.check_setups()?;
        shop.check_sizes()?;
        shop.order_of_precedences()?;
        Ok(shop)
    }

    fn check_names(&self) -> Result<()> {
        let twice = |kind: &str, names: &mut Vec<&str>| {
            names.sort_unstable();
            match names.windows(2).find(|pair| pair[0] == pair[1]) {
                Some(pair) => refuse(format!("{kind} {}: expected each {kind} once, got it twice", pair[0])),
                None => Ok(()),
            }
        };
        twice("job", &mut self.jobs.iter().map(|job| job.name.as_str()).collect())?;
        twice("machine", &mut self.machines.iter().map(|machine| machine.name.as_str()).collect())?;
        for job in &self.jobs {
            let mut names: Vec<&str> =
                job.operations.iter().map(|operation| operation.name.as_str()).collect();
            twice("operation", &mut names)
                .map_err(|error| Error::Instance(format!("job {}: {error}", job.name)))?;
        }
        Ok(())
    }

    fn check_operations(&self) -> Result<()> {
        // The last operation that named each machine, from 1.
        let mut named = vec![0; self.machines.len()];
        for number in 0..self.operations() {
            let operation = self.operation(number);
            if operation.modes.is_empty() {
                return refuse(format!("{}: expected at least one machine, got none", self.called(number)));
            }
            for mode in &operation.modes {
                let Some(machine) = self.machines.get(mode.machine as usize) else {
                    return refuse(format!(
                        "{}: expected one of {} machines, got machine {}",
                        self.called(number),
                        self.machines.len(),
                        mode.machine
                    ));
                };
                if std::mem::replace(&mut named[mode.machine as usize], number + 1) == number + 1 {
                    return refuse(format!(
                        "{}: expected each machine once, got {} twice",
                        self.called(number),
                        machine.name
                    ));
                }
                let end = machine.calendar.place(machine.available, mode.time, operation.interruptible).end;
                if end > self.horizon {
                    return refuse(format!(
                        "{}: machine {} is never open for {} before {}{}",
                        self.called(number),
                        machine.name,
                        self.length(mode.time),
                        self.moment(self.horizon),
                        if operation.interruptible {
                            ""
                        } else {
                            " in one piece; let the operation be interrupted"
                        }
                    ));
                }
            }
            if operation.family.is_some_and(|family| family as usize >= self.setups.families.len()) {
                return refuse(format!("{}: expected a known family", self.called(number)));
            }
        }
        Ok(())
    }

    fn check_setups(&self) -> Result<()> {
        let size = self.setups.families.len() * self.setups.families.len();
        let tables = self.setups.tables.len() as u32;
        let fits = self.setups.tables.iter().all(|table| table.len() == size)
            && self.setups.of_machine.iter().flatten().all(|&table| table < tables)
            && (self.setups.of_machine.is_empty() || self.setups.of_machine.len() == self.machines.len());
        if !fits {
            return refuse(
                "setups: expected a table over all families and one entry for each machine".into(),
            );
        }
        Ok(())
    }

    /// Whether times, weights and factors stay within what sums can hold.
    fn check_sizes(&self) -> Result<()> {
        if self.horizon > HORIZON {
            return refuse(format!(
                "shop: expected to end by {HORIZON}, got a horizon of {}; use a coarser unit of time",
                self.horizon
            ));
        }
        for job in &self.jobs {
            if job.overdue > 0 && job.due != Some(0) {
                return refuse(format!("job {}: expected a job that is overdue to be due at 0", job.name));
            }
            if job.overdue > HORIZON - self.horizon {
                return refuse(format!(
                    "job {}: was due too long before the start; use a coarser unit of time",
                    job.name
                ));
            }
        }
        let overdue = self.jobs.iter().map(|job| job.overdue).max().unwrap_or(0);
        let longest = u128::from(self.horizon) + u128::from(overdue);
        let weights: u128 = self.jobs.iter().map(|job| u128::from(job.weight)).sum::<u128>() + 1;
        for sum in &self.objective.sums {
            let factors: u128 = sum.terms.iter().map(|&(factor, _)| u128::from(factor)).sum();
            let setups = self.operations() as u128;
            let most = factors * longest * weights.max(setups);
            if most > u128::from(u64::MAX / 4) {
                return refuse(format!("objective {sum}: weights and factors are too large to be added up"));
            }
        }
        Ok(())
    }

    /// Operations in an order in which none waits for a later one.
    ///
    /// # Errors
    /// If some wait for each other, by name.
    pub(super) fn order_of_precedences(&self) -> Result<Vec<u32>> {
        let count = self.operations();
        let mut waiting = vec![0_u32; count];
        let mut after: Vec<Vec<u32>> = vec![Vec::new(); count];
        for link in &self.precedences {
            if link.before as usize >= count || link.after as usize >= count {
                return refuse(format!(
                    "precedence {} → {}: expected operations below {count}",
                    link.before, link.after
                ));
            }
            if let Some(max) = link.max.filter(|&max| max < link.min) {
                return refuse(format!(
                    "{}: the least wait {} exceeds the longest wait {}",
                    self.called(link.after as usize),
                    self.length(link.min),
                    self.length(max)
                ));
            }
            waiting[link.after as usize] += 1;
            after[link.before as usize].push(link.after);
        }
        let mut order: Vec<u32> = (0..count as u32).filter(|&one| waiting[one as usize] == 0).collect();
        let mut next = 0;
        while next < order.len() {
            for &one in &after[order[next] as usize] {
                waiting[one as usize] -= 1;
                if waiting[one as usize] == 0 {
                    order.push(one);
                }
            }
            next += 1;
        }
        match (0..count).find(|&one| waiting[one] > 0) {
            // An operation that waits in vain follows a cycle or lies on one: go back until one comes up again.
            Some(stuck) => {
                let mut back: Vec<Option<u32>> = vec![None; count];
                for link in self.precedences.iter().filter(|link| waiting[link.before as usize] > 0) {
                    back[link.after as usize].get_or_insert(link.before);
                }
                let mut seen = vec![false; count];
                let mut at = stuck as u32;
                while !std::mem::replace(&mut seen[at as usize], true) {
                    at = back[at as usize].unwrap_or(at);
                }
                refuse(format!("{}: waits for itself through its predecessors", self.called(at as usize)))
            }
            None => Ok(order),
        }
    }
}
