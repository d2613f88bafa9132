//! A small population: the best of each descent, and new starts between two of them.

use super::Blocks;
use crate::optimum::disjunctive::balance::{balanced, rebalance};
use crate::optimum::disjunctive::insertion::insert_all;
use crate::optimum::disjunctive::orders::{Lengths, Orders, Routes};

/// Schedules that are kept.
const KEPT: usize = 8;

/// Of so many operations one may have another neighbour before two schedules count as different.
const ALIKE: usize = 20;

/// Moves without progress after which a descent ends.
pub(super) fn patience(operations: usize) -> u64 {
    6000 + 6 * operations as u64
}

/// The best of each descent, and when its operations could start.
#[derive(Default)]
pub(super) struct Elite {
    members: Vec<Member>,
}

struct Member {
    orders: Orders,
    /// Earliest and latest start together; it grows along jobs and along machines.
    middle: Vec<u32>,
}

impl Elite {
    /// Takes a schedule with its paths in, unless one that is as good and hardly different is there.
    pub(super) fn take(&mut self, orders: &Orders, paths: &Lengths) {
        let count = orders.choice.len();
        let middle = middle(orders, paths);
        let differ = |one: &Member| {
            let pairs = one.orders.before[..count].iter().zip(&orders.before[..count]);
            pairs.filter(|(one, other)| one != other).count()
        };
        let alike = self.members.iter().position(|one| differ(one) <= count / ALIKE);
        if let Some(index) = alike {
            if self.members[index].orders.makespan <= orders.makespan {
                return;
            }
            self.members.remove(index);
        }
        self.members.push(Member { orders: orders.clone(), middle });
        self.members.sort_by_key(|one| one.orders.makespan);
        self.members.truncate(KEPT);
    }

    /// Judges all members again, after something about what is looked for has changed.
    pub(super) fn judge_again(&mut self, routes: &Routes, paths: &mut Lengths) {
        for one in &mut self.members {
            paths.compute_all(routes, &mut one.orders);
            one.middle = middle(&one.orders, paths);
        }
        self.members.sort_by_key(|one| one.orders.makespan);
    }
}

/// Earliest and latest start of every operation together.
fn middle(orders: &Orders, paths: &Lengths) -> Vec<u32> {
    let of = |one: usize| paths.end[one] - orders.time[one] + orders.makespan - paths.out[one];
    (0..orders.choice.len()).map(of).collect()
}

impl Blocks<'_> {
    /// Keeps the best of this descent and starts another one: by insertion while there are few, then from between two of the
    /// best.
    pub(super) fn turn_to_elite(&mut self) {
        self.improved_at = self.iteration;
        self.now.clone_from(&self.local);
        self.paths.compute_all(&self.routes, &mut self.now);
        let count = self.routes.count();
        self.elite.take(&self.now, &self.paths);
        let mut keys: Vec<(u64, u32)> = Vec::with_capacity(count);
        let members = self.elite.members.len();
        if members < KEPT / 2 {
            if count <= super::INSERTED_UP_TO && self.stream.below(2) == 0 {
                let given = self.shop.is_flexible().then(|| balanced(self.shop, &mut self.stream));
                self.now =
                    insert_all(self.shop, &self.routes, given.as_deref(), super::NOISE, &mut self.stream);
            } else {
                self.scatter(&mut keys);
                self.now.follow(&self.routes, keys.iter().map(|&(_, one)| one));
            }
        } else {
            let one = self.stream.below(members as u64) as usize;
            let other = (one + 1 + self.stream.below(members as u64 - 1) as usize) % members;
            // Both grow along every job, so any mixture of an operation's two times does.
            let share = 5 + self.stream.below(7);
            let (one, other) = (&self.elite.members[one], &self.elite.members[other]);
            let mut chosen: Vec<u32> = Vec::with_capacity(count);
            for operation in 0..count {
                let (ours, theirs) = (one.orders.choice[operation], other.orders.choice[operation]);
                let taken = if ours == theirs || self.stream.below(16) < share { ours } else { theirs };
                chosen.push(taken);
                let (ours, theirs) = (u64::from(one.middle[operation]), u64::from(other.middle[operation]));
                keys.push((share * ours + (16 - share) * theirs, operation as u32));
            }
            if self.shop.is_flexible() {
                rebalance(self.shop, &mut chosen, &mut self.stream);
            }
            for (operation, &choice) in chosen.iter().enumerate() {
                self.now.assign(self.shop, operation as u32, choice);
            }
            keys.sort_unstable();
            self.now.follow(&self.routes, keys.iter().map(|&(_, one)| one));
        }
        self.paths.compute_all(&self.routes, &mut self.now);
        self.local.clone_from(&self.now);
    }

    /// The best schedule's starts, scattered.
    fn scatter(&mut self, keys: &mut Vec<(u64, u32)>) {
        let noise = u64::from(self.best.makespan / 8 + 1);
        self.now.clone_from(&self.best);
        self.paths.compute_all(&self.routes, &mut self.now);
        for job in 0..self.routes.jobs {
            let mut least = 0;
            for one in self.routes.of_job(job) {
                let head = self.paths.head(&self.now, one as u32);
                least = (u64::from(head) + self.stream.below(noise)).max(least);
                keys.push((least, one as u32));
            }
        }
        keys.sort_unstable();
    }
}
