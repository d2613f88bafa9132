//! The critical path, the moves of its blocks, and what they would come to.

use super::{Blocks, Move};

/// Takes the operation `first` right after `last`, or `last` right before `first`; they are on one machine in this order.
#[derive(Clone, Copy)]
pub(super) struct Shift {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) forward: bool,
}

/// How far from the ends of a block operations are looked at.
const FARTHEST: usize = 1000;

/// A block of the critical path, laid out for estimates.
#[derive(Default)]
pub(super) struct Block {
    operations: Vec<u32>,
    time: Vec<u32>,
    /// When each operation is ready, and what follows it at least, as far as its job is concerned.
    ready: Vec<u32>,
    remains: Vec<u32>,
    ends: Vec<u32>,
}

impl Block {
    /// The longest path through places `from..=to` if the operation at `from` goes right after that at `to`; nothing if it
    /// is longer than `limit`. `left` and `right` are the paths to and from what stands around them.
    pub(super) fn forward(
        &mut self,
        from: usize,
        to: usize,
        (left, right): (u32, u32),
        limit: u32,
    ) -> Option<u32> {
        let Self { time, ready, remains, ends, .. } = self;
        let mut end = left;
        for index in from + 1..=to {
            end = end.max(ready[index]) + time[index];
            if end + remains[index] > limit {
                return None;
            }
            ends[index] = end;
        }
        end = end.max(ready[from]) + time[from];
        let mut rest = right.max(remains[from]);
        let mut longest = end + rest;
        rest += time[from];
        for index in (from + 1..=to).rev() {
            rest = rest.max(remains[index]);
            longest = longest.max(ends[index] + rest);
            rest += time[index];
        }
        (longest <= limit).then_some(longest)
    }

    /// The same if the operation at `to` goes right before that at `from`.
    pub(super) fn backward(
        &mut self,
        from: usize,
        to: usize,
        (left, right): (u32, u32),
        limit: u32,
    ) -> Option<u32> {
        let Self { time, ready, remains, ends, .. } = self;
        let mut rest = right;
        for index in (from..to).rev() {
            rest = rest.max(remains[index]) + time[index];
            if rest + ready[index] > limit {
                return None;
            }
            ends[index] = rest;
        }
        rest = rest.max(remains[to]) + time[to];
        let mut end = left.max(ready[to]);
        let mut longest = end + rest;
        end += time[to];
        for index in from..to {
            end = end.max(ready[index]);
            longest = longest.max(end + ends[index]);
            end += time[index];
        }
        (longest <= limit).then_some(longest)
    }
}

/// The best of the moves that were looked at.
pub(super) struct Choice {
    best: Option<Move>,
    pub(super) estimate: u32,
    ties: u64,
}

impl Blocks<'_> {
    /// Notes that these operations must keep their places beside one that moves.
    pub(super) fn mark(&mut self, others: &[u32]) {
        for &other in others {
            self.marked[other as usize] = self.stamp;
        }
    }

    /// One critical path, ties at random.
    pub(super) fn find_critical_path(&mut self) {
        let (routes, paths) = (&self.routes, &self.paths);
        let nobody = routes.nobody();
        self.critical.clear();
        let (mut at, mut ties) = (nobody, 0);
        for one in routes.ends() {
            if paths.end[one as usize] + routes.tail(one) == self.now.makespan {
                ties += 1;
                if ties == 1 || self.stream.below(ties) == 0 {
                    at = one;
                }
            }
        }
        while at != nobody {
            self.critical.push(at);
            let index = at as usize;
            let head = paths.head(&self.now, at);
            let (job, machine) = (routes.before[index], self.now.before[index]);
            let by_job = job != nobody && paths.end[job as usize] + routes.rest(index) == head;
            let by_machine = machine != nobody && paths.end[machine as usize] == head;
            at = match (by_job, by_machine) {
                (true, true) if self.stream.below(2) == 0 => job,
                (_, true) => machine,
                (true, false) => job,
                (false, false) => nobody,
            };
        }
        self.critical.reverse();
    }

    /// The move with the least estimate of those that are not forbidden or better than everything so far, ties at random;
    /// any move where all are forbidden.
    pub(super) fn choose(&mut self) -> Option<Move> {
        self.moves.clear();
        let mut choice = Choice { best: None, estimate: u32::MAX, ties: 0 };
        let length = self.critical.len();
        let mut from = 0;
        while from < length {
            let mut to = from;
            while to + 1 < length && self.now.after[self.critical[to] as usize] == self.critical[to + 1] {
                to += 1;
            }
            if to > from {
                self.lay_out(from, to);
                // A block at the path's start gains nothing at its front, one at the end nothing at its end; but for
                // operations that had to wait for their time, or have tails.
                let (first, last) = (self.critical[from], self.critical[to]);
                let front = from > 0 || self.paths.head(&self.now, first) > 0;
                let end = to + 1 < length || self.routes.tail(last) > 0;
                self.consider_block(to - from, front, end, &mut choice);
            }
            from = to + 1;
        }
        if self.shop.is_flexible() {
            self.consider_machines(&mut choice);
        }
        match choice.best {
            None if !self.moves.is_empty() => {
                Some(self.moves[self.stream.below(self.moves.len() as u64) as usize])
            }
            best => best,
        }
    }

    /// Lays out the block at places `from..=to` of the critical path.
    pub(super) fn lay_out(&mut self, from: usize, to: usize) {
        let Block { operations, time, ready, remains, ends } = &mut self.block;
        for list in [&mut *operations, &mut *time, &mut *ready, &mut *remains, &mut *ends] {
            list.clear();
        }
        for &one in &self.critical[from..=to] {
            let index = one as usize;
            operations.push(one);
            time.push(self.now.time[index]);
            ready.push(self.paths.ready(&self.routes, index));
            remains.push(self.paths.remains(&self.routes, index));
            ends.push(0);
        }
    }

    fn consider_block(&mut self, to: usize, front: bool, end: bool, choice: &mut Choice) {
        // Of a very long block only what lies near its ends: all of it would take the square of its length.
        let (near, far) = (FARTHEST.min(to), to.saturating_sub(FARTHEST));
        if near < far {
            for index in 1..=near {
                if front {
                    self.consider(0, index, false, choice);
                    self.consider(0, index, true, choice);
                }
                if end {
                    self.consider(to - index, to, true, choice);
                    self.consider(to - index, to, false, choice);
                }
            }
            return;
        }
        for index in 0..=to {
            if index < to && end {
                self.consider(index, to, true, choice);
            }
            // A pair is turned around once.
            if index > 0 && front && !(end && to == 1) {
                self.consider(0, index, false, choice);
            }
            if index > 0 && index < to {
                if front {
                    self.consider(0, index, true, choice);
                }
                if end {
                    self.consider(index, to, false, choice);
                }
            }
        }
    }

    /// Looks at the move of one operation of the block across others, if no path can turn it into a cycle.
    fn consider(&mut self, from: usize, to: usize, forward: bool, choice: &mut Choice) {
        let (first, last) = (self.block.operations[from], self.block.operations[to]);
        let (u, v) = (first as usize, last as usize);
        let (routes, paths) = (&self.routes, &self.paths);
        let nobody = routes.nobody();
        // The job's neighbour of the operation that moves, and whether the other end of the move lies clear of it: a path
        // between the two would close a cycle.
        let clear = if forward {
            let next = routes.after[u];
            next == nobody || {
                let (far, near) = (paths.out[v], self.block.remains[from]);
                let n = next as usize;
                far > near || (far == near && next != last && self.now.time[n] + routes.rest(n) > 0)
            }
        } else {
            let previous = routes.before[v];
            previous == nobody || {
                let (far, near) = (paths.end[u], self.block.ready[to]);
                far > near
                    || (far == near
                        && previous != first
                        && self.now.time[previous as usize] + routes.rest(v) > 0)
            }
        };
        if !clear {
            return;
        }
        let one = Shift { first, last, forward };
        self.moves.push(Move::Shift(one));
        let around = (paths.end[self.now.before[u] as usize], paths.out[self.now.after[v] as usize]);
        let estimate = if forward {
            self.block.forward(from, to, around, choice.estimate)
        } else {
            self.block.backward(from, to, around, choice.estimate)
        };
        let Some(estimate) = estimate else { return };
        if estimate >= self.best.makespan && self.is_forbidden(one) {
            return;
        }
        self.prefer(Move::Shift(one), estimate, choice);
    }

    /// Takes a move whose estimate is not above that of the best one so far.
    pub(super) fn prefer(&mut self, one: Move, estimate: u32, choice: &mut Choice) {
        if estimate < choice.estimate {
            *choice = Choice { best: Some(one), estimate, ties: 1 };
        } else {
            choice.ties += 1;
            if self.stream.below(choice.ties) == 0 {
                choice.best = Some(one);
            }
        }
    }
}
