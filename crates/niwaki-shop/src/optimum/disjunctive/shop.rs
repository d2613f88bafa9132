//! The one shape this room knows: operations with alternatives, along jobs with rests, none before its time.

use crate::FlexibleShop;
use std::ops::Range;

/// No such operation.
pub(crate) const NONE: u32 = u32::MAX;

/// A machine that can run an operation, and its time there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub(crate) machine: u32,
    pub(crate) time: u32,
}

/// A job shop, flexible or not, laid out flat.
pub(crate) struct Shop {
    pub(crate) machines: usize,
    /// Where each job's operations start, and the end.
    job_starts: Vec<u32>,
    /// For each operation, its predecessor and successor in the job.
    pub(super) job_before: Vec<u32>,
    pub(super) job_after: Vec<u32>,
    /// The least rest before each operation, behind the one before it in the job.
    pub(crate) rests: Vec<u32>,
    /// No operation starts before this.
    pub(crate) earliest: Vec<u32>,
    /// Where each operation's choices start, and the end.
    first: Vec<u32>,
    pub(crate) choices: Vec<Choice>,
}

impl Shop {
    /// Jobs by where their operations start and the last one ends; each has at least one.
    pub(crate) fn new(machines: usize, job_starts: Vec<u32>) -> Self {
        let count = job_starts.last().map_or(0, |&end| end as usize);
        let mut shop = Self {
            machines,
            job_starts,
            job_before: vec![NONE; count],
            job_after: vec![NONE; count],
            rests: vec![0; count],
            earliest: vec![0; count],
            first: vec![0],
            choices: Vec::new(),
        };
        for job in 0..shop.jobs() {
            for operation in shop.job(job).skip(1) {
                shop.job_before[operation] = operation as u32 - 1;
                shop.job_after[operation - 1] = operation as u32;
            }
        }
        shop
    }

    /// Says where the next operation can run.
    pub(crate) fn add(&mut self, choices: impl IntoIterator<Item = Choice>) {
        self.choices.extend(choices);
        self.first.push(self.choices.len() as u32);
    }

    pub(super) fn jobs(&self) -> usize {
        self.job_starts.len() - 1
    }

    pub(crate) fn operations(&self) -> usize {
        self.rests.len()
    }

    /// Whether some operation has a choice of machines.
    pub(crate) fn is_flexible(&self) -> bool {
        self.choices.len() > self.operations()
    }

    /// One job's operations.
    pub(super) fn job(&self, job: usize) -> Range<usize> {
        self.job_starts[job] as usize..self.job_starts[job + 1] as usize
    }

    /// Where an operation's choices are in `choices`.
    pub(crate) fn choices_of(&self, operation: usize) -> Range<usize> {
        self.first[operation] as usize..self.first[operation + 1] as usize
    }

    /// An operation's choices.
    pub(super) fn alternatives(&self, operation: usize) -> &[Choice] {
        &self.choices[self.choices_of(operation)]
    }

    /// An operation's least time on any machine.
    pub(super) fn least(&self, operation: usize) -> u32 {
        self.alternatives(operation).iter().map(|choice| choice.time).min().unwrap_or(0)
    }
}

impl From<&FlexibleShop> for Shop {
    fn from(shop: &FlexibleShop) -> Self {
        let starts = (0..shop.jobs()).map(|job| shop.job(job).start as u32);
        let starts = starts.chain([shop.operations() as u32]).collect();
        let mut flat = Self::new(shop.machines(), starts);
        for operation in 0..shop.operations() {
            let choice = |one: &crate::Alternative| Choice { machine: one.machine, time: one.time };
            flat.add(shop.alternatives(operation).iter().map(choice));
            flat.rests[operation] = shop.window(operation).min;
        }
        flat
    }
}
