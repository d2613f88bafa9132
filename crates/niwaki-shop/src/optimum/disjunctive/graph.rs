//! A complete solution as machine sequences, and when each operation can start.

use super::shop::{NONE, Shop};
use crate::{Placed, Schedule};

/// Machine sequences and the chosen alternatives.
#[derive(Clone)]
pub(crate) struct Sequences {
    /// Operations in order, for each machine.
    pub(crate) lists: Vec<Vec<u32>>,
    /// The chosen alternative of each operation, as an index into [`Shop::choices`].
    pub(crate) choice: Vec<u32>,
}

impl Sequences {
    /// All operations, each behind what it waits for.
    pub(crate) fn sorted(&self, shop: &Shop) -> Vec<u32> {
        let mut paths = Paths::default();
        paths.compute(shop, self);
        paths.order
    }
}

/// Longest paths to each operation of a [`Sequences`].
#[derive(Default)]
pub(super) struct Paths {
    /// Earliest start of each operation.
    head: Vec<u32>,
    time: Vec<u32>,
    /// A topological order.
    order: Vec<u32>,
    pub(super) makespan: u32,
    missing: Vec<u8>,
}

impl Paths {
    /// Computes everything; false if the sequences contradict the routes.
    pub(super) fn compute(&mut self, shop: &Shop, sequences: &Sequences) -> bool {
        let count = shop.operations();
        self.head.clone_from(&shop.earliest);
        self.time.clear();
        self.time.resize(count, 0);
        let (mut machine_before, mut machine_after) = (vec![NONE; count], vec![NONE; count]);
        for list in &sequences.lists {
            for pair in list.windows(2) {
                machine_before[pair[1] as usize] = pair[0];
                machine_after[pair[0] as usize] = pair[1];
            }
        }
        self.missing.clear();
        self.order.clear();
        for operation in 0..count {
            self.time[operation] = shop.choices[sequences.choice[operation] as usize].time;
            let missing =
                u8::from(shop.job_before[operation] != NONE) + u8::from(machine_before[operation] != NONE);
            self.missing.push(missing);
            if missing == 0 {
                self.order.push(operation as u32);
            }
        }
        let mut next = 0;
        self.makespan = 0;
        while next < self.order.len() {
            let operation = self.order[next] as usize;
            next += 1;
            let end = self.head[operation] + self.time[operation];
            self.makespan = self.makespan.max(end);
            let (job, machine) = (shop.job_after[operation], machine_after[operation]);
            if job != NONE {
                self.reach(job, end + shop.rests[job as usize]);
            }
            if machine != NONE {
                self.reach(machine, end);
            }
        }
        self.order.len() == count
    }

    fn reach(&mut self, operation: u32, time: u32) {
        let index = operation as usize;
        self.head[index] = self.head[index].max(time);
        self.missing[index] -= 1;
        if self.missing[index] == 0 {
            self.order.push(operation);
        }
    }

    /// The schedule in which each operation starts as early as it can.
    pub(super) fn schedule(&self, shop: &Shop, sequences: &Sequences) -> Schedule {
        let mut operations = Vec::with_capacity(shop.operations());
        for job in 0..shop.jobs() {
            for (op, operation) in shop.job(job).enumerate() {
                let machine = shop.choices[sequences.choice[operation] as usize].machine;
                let start = self.head[operation];
                let end = start + self.time[operation];
                operations.push(Placed { job: job as u32, op: op as u32, machine, start, end });
            }
        }
        Schedule { operations }
    }
}
