//! Moves of a critical operation to another machine, each to where the longest path through it is shortest.
//!
//! On the other machine ends grow and what follows shrinks along the order. So operations that end before this one is ready
//! come first, those after which less remains come last, and only what is left in between, mostly nothing, has to be tried.
//!
//! Method: Mastrolilli and Gambardella, "Effective neighbourhood functions for the flexible job shop problem", J. Scheduling 3
//! (2000), with the paths of the graph as it is instead of those without the operation.

use super::neighbourhood::Choice;
use super::{Blocks, Move};

/// Takes an operation to another of its choices, between two neighbours there.
#[derive(Clone, Copy)]
pub(super) struct Reassignment {
    pub(super) one: u32,
    choice: u32,
    before: u32,
    after: u32,
}

/// An operation in its machine's order, with the longest paths to its end and from its start.
pub(super) struct Slot {
    one: u32,
    end: u32,
    out: u32,
}

impl Blocks<'_> {
    /// Looks at every other machine of every critical operation.
    pub(super) fn consider_machines(&mut self, best: &mut Choice) {
        self.slots.iter_mut().for_each(Vec::clear);
        for &one in &self.now.order {
            let (end, out) = (self.paths.end[one as usize], self.paths.out[one as usize]);
            self.slots[self.now.machine[one as usize] as usize].push(Slot { one, end, out });
        }
        for index in 0..self.critical.len() {
            let one = self.critical[index];
            let bridge = self.bridge(one);
            if self.shop.choices_of(one as usize).len() < 2 || bridge > best.estimate {
                continue;
            }
            for choice in self.shop.choices_of(one as usize) {
                if choice == self.now.choice[one as usize] as usize {
                    continue;
                }
                let Some((through, reassignment)) = self.best_place(one, choice as u32) else { continue };
                // Work that is longer there is missing elsewhere, which no path through the operation shows.
                let time = self.shop.choices[choice].time;
                let waste = time.saturating_sub(self.now.time[one as usize]);
                let (estimate, reassignment) = (through.max(bridge) + waste, Move::Reassign(reassignment));
                self.moves.push(reassignment);
                let free = self.left_at[choice] <= self.iteration || estimate < self.best.makespan;
                if free && estimate <= best.estimate {
                    self.prefer(reassignment, estimate, best);
                }
            }
        }
    }

    /// The path through the machine's next operation once this one has gone.
    fn bridge(&self, one: u32) -> u32 {
        let (before, after) = (self.now.before[one as usize] as usize, self.now.after[one as usize] as usize);
        self.paths.ready(&self.routes, after).max(self.paths.end[before]) + self.paths.out[after]
    }

    /// Where the longest path through an operation is shortest on another machine; nothing where a path could close a cycle.
    fn best_place(&mut self, one: u32, choice: u32) -> Option<(u32, Reassignment)> {
        let index = one as usize;
        let (ready, remains) =
            (self.paths.ready(&self.routes, index), self.paths.remains(&self.routes, index));
        let slots = &self.slots[self.shop.choices[choice as usize].machine as usize];
        let from = slots.partition_point(|slot| slot.end <= ready);
        let to = slots.partition_point(|slot| slot.out > remains);
        let place = if from >= to {
            to + self.stream.below((from - to + 1) as u64) as usize
        } else {
            let end_before = |place: usize| if place == 0 { 0 } else { slots[place - 1].end };
            let out_after = |place: usize| slots.get(place).map_or(0, |slot| slot.out);
            let around = |place: &usize| ready.max(end_before(*place)) + remains.max(out_after(*place));
            (from..=to).min_by_key(around)?
        };
        let nobody = self.routes.nobody();
        let before = if place == 0 { nobody } else { slots[place - 1].one };
        let after = slots.get(place).map_or(nobody, |slot| slot.one);
        let found = Reassignment { one, choice, before, after };
        self.is_clear(found).then(|| (self.through(found), found))
    }

    /// At least the longest path through an operation once it has moved.
    pub(super) fn through(&self, to: Reassignment) -> u32 {
        let index = to.one as usize;
        let ready = self.paths.ready(&self.routes, index).max(self.paths.end[to.before as usize]);
        let remains = self.paths.remains(&self.routes, index).max(self.paths.out[to.after as usize]);
        ready + self.shop.choices[to.choice as usize].time + remains
    }

    /// Whether no path leads from the job's next operation to `before`, nor from `after` to the job's previous one.
    fn is_clear(&self, to: Reassignment) -> bool {
        let Reassignment { one, before, after, .. } = to;
        let nobody = self.routes.nobody();
        let (previous, next) = (self.routes.before[one as usize], self.routes.after[one as usize]);
        // A path shows in the start of the operation that it leads to.
        let apart = |early: u32, late: u32| {
            early == nobody
                || late == nobody
                || early != late && self.paths.head(&self.now, early) < self.paths.end[late as usize]
        };
        apart(before, next) && apart(previous, after)
    }

    /// Changes machines, and computes what can change.
    pub(super) fn reassign(&mut self, to: Reassignment) {
        let Reassignment { one, choice, before, after } = to;
        let index = one as usize;
        let tenure =
            self.critical.len() as u64 / 2 + self.shop.choices_of(index).len() as u64 + self.stream.below(6);
        self.left_at[self.now.choice[index] as usize] = self.iteration + tenure;
        self.now.unlink(one);
        self.now.assign(self.shop, one, choice);
        self.now.link(one, before, after);
        let nobody = self.routes.nobody();
        let rank = |other: u32| (other != nobody).then(|| self.paths.rank[other as usize] as usize);
        let low = rank(before).max(rank(self.routes.before[index]));
        let high = [rank(after), rank(self.routes.after[index])].into_iter().flatten().min();
        let old = self.paths.rank[index] as usize;
        let new = match (low, high) {
            (Some(low), _) if low > old => low,
            (_, Some(high)) if high < old => high,
            _ => old,
        };
        // Between what comes before it and what comes after; where those are the wrong way round, all is sorted afresh.
        if low.is_some_and(|low| high.is_some_and(|high| low > high)) {
            self.now.sort(&self.routes);
            self.paths.compute_all(&self.routes, &mut self.now);
            return;
        }
        let (from, until) = (old.min(new), old.max(new));
        if new > old {
            self.now.order[from..=until].rotate_left(1);
        } else {
            self.now.order[from..=until].rotate_right(1);
        }
        for (place, &here) in self.now.order[from..=until].iter().enumerate() {
            self.paths.rank[here as usize] = (from + place) as u32;
        }
        self.paths.compute(&self.routes, &mut self.now, from, until + 1);
    }
}
