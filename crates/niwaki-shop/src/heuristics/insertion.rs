//! Taillard's acceleration: the makespans of inserting a job at every position of a sequence, in the time that
//! computing one of them would take.

use crate::FlowShop;

/// Workspace for insertions into sequences of one flow shop. Nothing is allocated after it is made.
#[derive(Clone, Debug)]
pub struct Insertion {
    machines: usize,
    /// Completion of the sequence's i-th job on each machine, row 0 being zero: `[position + 1, machine]`.
    heads: Vec<u32>,
    /// Time from the start of the i-th job on each machine to the end, the last row being zero.
    tails: Vec<u32>,
}

impl Insertion {
    /// A workspace for sequences of up to all the shop's jobs.
    #[must_use]
    pub fn new(shop: &FlowShop) -> Self {
        let machines = shop.machines();
        let cells = (shop.jobs() + 2) * machines;
        Self { machines, heads: vec![0; cells], tails: vec![0; cells] }
    }

    /// The first position at which inserting `job` into `order` gives the least makespan, and that makespan.
    #[must_use]
    pub fn best(&mut self, shop: &FlowShop, order: &[u32], job: u32) -> (usize, u32) {
        let mut best = (0, u32::MAX);
        self.each(shop, order, job, |position, makespan| {
            if makespan < best.1 {
                best = (position, makespan);
            }
        });
        best
    }

    /// Calls `visit` with each position and the makespan of inserting `job` there.
    pub fn each(&mut self, shop: &FlowShop, order: &[u32], job: u32, mut visit: impl FnMut(usize, u32)) {
        let m = self.machines;
        self.fill(shop, order);
        let times = shop.job(job as usize);
        for position in 0..=order.len() {
            let heads = &self.heads[position * m..(position + 1) * m];
            let tails = &self.tails[position * m..(position + 1) * m];
            let (mut ready, mut longest) = (0, 0);
            for ((&head, &tail), &time) in heads.iter().zip(tails).zip(times) {
                ready = head.max(ready) + time;
                longest = longest.max(ready + tail);
            }
            visit(position, longest);
        }
    }

    /// Heads and tails of the sequence.
    fn fill(&mut self, shop: &FlowShop, order: &[u32]) {
        let m = self.machines;
        self.heads[..m].fill(0);
        for (position, &job) in order.iter().enumerate() {
            let (before, after) = self.heads.split_at_mut((position + 1) * m);
            let before = &before[position * m..];
            let mut ready = 0;
            for ((&free, &time), end) in before.iter().zip(shop.job(job as usize)).zip(after) {
                ready = free.max(ready) + time;
                *end = ready;
            }
        }
        self.tails[order.len() * m..(order.len() + 1) * m].fill(0);
        for (position, &job) in order.iter().enumerate().rev() {
            let (before, after) = self.tails.split_at_mut((position + 1) * m);
            let before = &mut before[position * m..];
            let mut ready = 0;
            for ((&free, &time), end) in after[..m].iter().zip(shop.job(job as usize)).zip(before).rev() {
                ready = free.max(ready) + time;
                *end = ready;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use niwaki_stream::Key;

    #[test]
    fn every_insertion_equals_its_simulation() {
        let mut stream = Key::new(3, "law").open();
        for (jobs, machines) in [(1, 1), (4, 1), (5, 3), (9, 7)] {
            let times = (0..jobs * machines).map(|_| stream.below(20) as u32).collect();
            let shop = FlowShop::new(jobs, machines, times).unwrap();
            let mut order: Vec<u32> = (0..jobs as u32).collect();
            stream.shuffle(&mut order);
            let job = order.pop().unwrap();
            let mut insertion = Insertion::new(&shop);
            let mut visited = 0;
            insertion.each(&shop, &order, job, |position, makespan| {
                let mut whole = order.clone();
                whole.insert(position, job);
                assert_eq!(makespan, shop.makespan(&whole), "{jobs} × {machines} at {position}");
                visited += 1;
            });
            assert_eq!(visited, jobs);
        }
    }
}
