//! Machine orders as links, with a topological order and longest paths that are computed only where they can change.

use super::shop::{NONE, Shop};

/// The order of operations on every machine.
#[derive(Clone)]
pub(super) struct Orders {
    /// The operation before and after each one on its machine.
    pub(super) before: Vec<u32>,
    pub(super) after: Vec<u32>,
    /// A topological order.
    pub(super) order: Vec<u32>,
    pub(super) makespan: u32,
}

/// Longest paths to each operation's start and from its end, and its place in the topological order.
pub(super) struct Lengths {
    pub(super) head: Vec<u32>,
    pub(super) tail: Vec<u32>,
    pub(super) rank: Vec<u32>,
}

impl Orders {
    /// The orders of these lists; they are not sorted yet.
    pub(super) fn new(count: usize, lists: &[Vec<u32>]) -> Self {
        let (mut before, mut after) = (vec![NONE; count], vec![NONE; count]);
        for list in lists {
            for pair in list.windows(2) {
                before[pair[1] as usize] = pair[0];
                after[pair[0] as usize] = pair[1];
            }
        }
        Self { before, after, order: Vec::new(), makespan: 0 }
    }

    pub(super) fn unlink(&mut self, one: u32) {
        let (before, after) = (self.before[one as usize], self.after[one as usize]);
        if before != NONE {
            self.after[before as usize] = after;
        }
        if after != NONE {
            self.before[after as usize] = before;
        }
    }

    pub(super) fn link_after(&mut self, one: u32, before: u32) {
        let after = self.after[before as usize];
        self.before[one as usize] = before;
        self.after[one as usize] = after;
        self.after[before as usize] = one;
        if after != NONE {
            self.before[after as usize] = one;
        }
    }

    pub(super) fn link_front(&mut self, one: u32, after: u32) {
        self.before[one as usize] = NONE;
        self.after[one as usize] = after;
        self.before[after as usize] = one;
    }

    /// Sorts all operations so that each comes after what it waits for.
    pub(super) fn sort(&mut self, shop: &Shop) {
        let count = self.before.len();
        let waits =
            |one: usize| u32::from(shop.job_before[one] != NONE) + u32::from(self.before[one] != NONE);
        let mut missing: Vec<u32> = (0..count).map(waits).collect();
        let mut order: Vec<u32> = (0..count as u32).filter(|&one| missing[one as usize] == 0).collect();
        let mut next = 0;
        while next < order.len() {
            let one = order[next] as usize;
            next += 1;
            for follower in [shop.job_after[one], self.after[one]] {
                if follower != NONE {
                    missing[follower as usize] -= 1;
                    if missing[follower as usize] == 0 {
                        order.push(follower);
                    }
                }
            }
        }
        debug_assert_eq!(order.len(), count, "sequences that contradict the routes");
        self.order = order;
    }

    /// Lets every machine serve its operations in this order, which keeps every job's own.
    pub(super) fn follow(&mut self, shop: &Shop, operations: impl Iterator<Item = u32>) {
        let mut last = vec![NONE; shop.machines];
        self.before.fill(NONE);
        self.after.fill(NONE);
        self.order.clear();
        for one in operations {
            let machine = shop.choices[shop.choices_of(one as usize).start].machine as usize;
            let before = std::mem::replace(&mut last[machine], one);
            self.before[one as usize] = before;
            if before != NONE {
                self.after[before as usize] = one;
            }
            self.order.push(one);
        }
    }
}

impl Lengths {
    pub(super) fn new(count: usize) -> Self {
        Self { head: vec![0; count], tail: vec![0; count], rank: vec![0; count] }
    }

    /// Heads from place `from` of the order on, tails before place `to`, and the makespan.
    pub(super) fn compute(&mut self, shop: &Shop, time: &[u32], now: &mut Orders, from: usize, to: usize) {
        let Self { head, tail, rank } = self;
        let end = |lengths: &[u32], one: u32| lengths[one as usize] + time[one as usize];
        for (place, &one) in now.order.iter().enumerate().skip(from) {
            let index = one as usize;
            rank[index] = place as u32;
            let (job, machine) = (shop.job_before[index], now.before[index]);
            let mut start = if job == NONE { 0 } else { end(head, job) + shop.rest(index) };
            if machine != NONE {
                start = start.max(end(head, machine));
            }
            head[index] = start;
        }
        for &one in now.order[..to].iter().rev() {
            let index = one as usize;
            let (job, machine) = (shop.job_after[index], now.after[index]);
            let mut rest = if job == NONE { 0 } else { end(tail, job) + shop.rest(job as usize) };
            if machine != NONE {
                rest = rest.max(end(tail, machine));
            }
            tail[index] = rest;
        }
        now.makespan = now.order.iter().map(|&one| end(head, one)).max().unwrap_or(0);
    }
}
