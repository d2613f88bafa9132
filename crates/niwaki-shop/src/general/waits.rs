//! Longest waits: an operation whose successor would wait too long starts later, and what that moves is placed again.
//!
//! Of what must be placed again, the first of the list goes first: what comes before it is settled by then, so that a list of
//! jobs one after the other settles job by job. Nothing ever moves back, so the order in which it is done decides nothing.

use super::list::{Flat, Link, List, NONE, Pass};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How often operations are placed on average: at least, where a job has few longest waits, and at most.
const ROUNDS: usize = 32;
const MOST_ROUNDS: usize = 256;

/// What must be placed again.
#[derive(Clone, Default)]
pub(super) struct Ripple {
    /// Where each operation stands in the list, if it does.
    place: Vec<u32>,
    /// The operation after it on its machine.
    machine_after: Vec<u32>,
    waits: Vec<bool>,
    queue: BinaryHeap<Reverse<u32>>,
}

impl Ripple {
    fn fill(&mut self, list: &List, machine_before: &[u32]) {
        let count = machine_before.len();
        for values in [&mut self.place, &mut self.machine_after] {
            values.clear();
            values.resize(count, NONE);
        }
        self.waits.clear();
        self.waits.resize(count, false);
        self.queue.clear();
        for (place, &one) in list.order.iter().enumerate() {
            self.place[one as usize] = place as u32;
            let before = machine_before[one as usize];
            if before != NONE {
                self.machine_after[before as usize] = one;
            }
        }
    }

    fn add(&mut self, one: u32) {
        if one == NONE || self.place[one as usize] == NONE {
            return;
        }
        if !std::mem::replace(&mut self.waits[one as usize], true) {
            self.queue.push(Reverse(self.place[one as usize]));
        }
    }
}

impl Flat<'_> {
    /// How often operations may be placed: a chain of waits is pushed once for each of its operations.
    pub(super) fn rounds_of_waits(&self) -> usize {
        let mut of_job = vec![0; self.shop.jobs().len()];
        for &(before, _) in &self.bounded {
            of_job[self.job[before as usize] as usize] += 2;
        }
        of_job.into_iter().max().unwrap_or(0).clamp(ROUNDS, MOST_ROUNDS)
    }

    /// Places operations until no longest wait pushes any more; whether that is so once each has been placed so often on
    /// average.
    pub(super) fn settle(&self, list: &List, pass: &mut Pass, rounds: usize) -> bool {
        pass.hold.clear();
        if self.bounded.is_empty() {
            self.place_all(list, pass);
            return true;
        }
        pass.hold.resize(self.count(), 0);
        self.place_all(list, pass);
        pass.ripple.fill(list, &pass.machine_before);
        for &(before, link) in &self.bounded {
            self.push(list, before, link, pass);
        }
        let mut left = rounds.saturating_mul(list.order.len());
        while let Some(Reverse(place)) = pass.ripple.queue.pop() {
            if left == 0 {
                self.place_all(list, pass);
                return false;
            }
            left -= 1;
            let one = list.order[place as usize];
            let index = one as usize;
            pass.ripple.waits[index] = false;
            let known = (pass.start[index], pass.end[index]);
            self.place_one(list, one, pass);
            if known == (pass.start[index], pass.end[index]) {
                continue;
            }
            pass.ripple.add(pass.ripple.machine_after[index]);
            for link in &self.after[index] {
                pass.ripple.add(link.other);
            }
            for link in self.before[index].iter().filter(|link| link.max < u32::MAX) {
                self.push(list, link.other, Link { other: one, ..*link }, pass);
            }
        }
        true
    }

    /// Lets an operation start later whose successor would wait too long.
    fn push(&self, list: &List, before: u32, link: Link, pass: &mut Pass) {
        let (first, second) = (before as usize, link.other as usize);
        let wanted = pass.start[second].saturating_sub(link.max);
        if pass.end[first] >= wanted || self.fixed[first].is_some() || wanted > self.shop.horizon() {
            return;
        }
        let (machine, time) = self.modes[first][list.mode[first] as usize];
        let calendar = self.calendars[machine as usize];
        // The end does not fall as the start rises, so the first start that is late enough can be bisected.
        let (mut low, mut high) = (pass.start[first], wanted);
        while low < high {
            let middle = low + (high - low) / 2;
            if calendar.place(middle, time, self.interruptible[first]).end >= wanted {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        if low > pass.hold[first] {
            pass.hold[first] = low;
            pass.ripple.add(before);
        }
    }
}
