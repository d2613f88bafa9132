//! A complete solution as machine sequences, with longest paths from the start and to the end.

use super::shop::{NONE, Shop};
use crate::{Placed, Schedule};

/// Machine sequences and the chosen alternatives.
#[derive(Clone)]
pub(crate) struct Sequences {
    /// Operations in order, for each machine.
    pub(super) lists: Vec<Vec<u32>>,
    /// The chosen alternative of each operation, as an index into [`Shop::choices`].
    pub(super) choice: Vec<u32>,
}

/// Longest paths of a [`Sequences`].
#[derive(Default)]
pub(super) struct Paths {
    /// Earliest start of each operation.
    pub(super) head: Vec<u32>,
    /// Longest path from each operation's end to the end of all.
    pub(super) tail: Vec<u32>,
    pub(super) time: Vec<u32>,
    pub(super) machine_before: Vec<u32>,
    pub(super) machine_after: Vec<u32>,
    /// A topological order, and each operation's place in it.
    pub(super) order: Vec<u32>,
    pub(super) rank: Vec<u32>,
    /// The latest end of all operations up to each place of the order.
    pub(super) end_up_to: Vec<u32>,
    pub(super) makespan: u32,
    missing: Vec<u8>,
}

impl Paths {
    /// Computes everything; false if the sequences contradict the routes.
    pub(super) fn compute(&mut self, shop: &Shop, sequences: &Sequences) -> bool {
        let count = shop.operations();
        for list in [&mut self.head, &mut self.tail, &mut self.time] {
            list.clear();
            list.resize(count, 0);
        }
        for list in [&mut self.machine_before, &mut self.machine_after] {
            list.clear();
            list.resize(count, NONE);
        }
        for list in &sequences.lists {
            for pair in list.windows(2) {
                self.machine_before[pair[1] as usize] = pair[0];
                self.machine_after[pair[0] as usize] = pair[1];
            }
        }
        self.missing.clear();
        self.order.clear();
        for operation in 0..count {
            self.time[operation] = shop.choices[sequences.choice[operation] as usize].time;
            let missing = u8::from(shop.job_before[operation] != NONE)
                + u8::from(self.machine_before[operation] != NONE);
            self.missing.push(missing);
            if missing == 0 {
                self.order.push(operation as u32);
            }
        }
        let mut next = 0;
        self.makespan = 0;
        self.end_up_to.clear();
        self.rank.resize(count, 0);
        while next < self.order.len() {
            let operation = self.order[next] as usize;
            self.rank[operation] = next as u32;
            next += 1;
            let end = self.head[operation] + self.time[operation];
            self.makespan = self.makespan.max(end);
            self.end_up_to.push(self.makespan);
            let (job, machine) = (shop.job_after[operation], self.machine_after[operation]);
            if job != NONE {
                self.reach(job, end + shop.rest(job as usize));
            }
            if machine != NONE {
                self.reach(machine, end);
            }
        }
        if self.order.len() < count {
            return false;
        }
        for &operation in self.order.iter().rev() {
            let operation = operation as usize;
            let (job, machine) = (shop.job_after[operation], self.machine_after[operation]);
            let mut tail = 0;
            if job != NONE {
                let job = job as usize;
                tail = self.tail[job] + self.time[job] + shop.rest(job);
            }
            if machine != NONE {
                tail = tail.max(self.tail[machine as usize] + self.time[machine as usize]);
            }
            self.tail[operation] = tail;
        }
        true
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
