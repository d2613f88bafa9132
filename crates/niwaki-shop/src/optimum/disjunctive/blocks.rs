//! Tabu search for large job shops without a choice of machines: an operation of a critical block goes to the block's front
//! or end, or the front or end goes inside; moves are estimated, not computed.
//!
//! A move is estimated by the longest paths through the operations that change places, from the heads and tails of their
//! neighbours; only the move that is made is computed, and only where heads and tails can change. That makes a step cost
//! one pass over the operations whatever the number of candidates.
//!
//! Methods: the neighbourhood N6 of Balas and Vazacopoulos (1998) with the inner moves of Zhang, Li, Guan and Rao (2007);
//! elite schedules and paths between them in the manner of Nowicki and Smutnicki's i-TSAB (2005).

use super::graph::Sequences;
use super::orders::{Lengths, Orders};
use super::shop::{NONE, Shop};
use niwaki_stream::{Key, Stream};

/// Takes the operation `first` right after `last`, or `last` right before `first`; they are on one machine in this order.
#[derive(Clone, Copy)]
struct Move {
    first: u32,
    last: u32,
    forward: bool,
    estimate: u32,
}

/// The search.
pub(super) struct Blocks<'a> {
    shop: &'a Shop,
    time: Vec<u32>,
    job: Vec<u32>,
    jobs: usize,
    now: Orders,
    paths: Lengths,
    best: Orders,
    /// Until when an operation may not come before the job's one on its machine: `[operation, job]`.
    forbidden: Vec<u64>,
    iteration: u64,
    improved_at: u64,
    /// Schedules to relink, the best of each descent.
    elite: Vec<Orders>,
    local: Orders,
    stream: Stream,
    critical: Vec<u32>,
    moves: Vec<Move>,
    segment: Vec<u32>,
    marked: Vec<u64>,
    stamp: u64,
    taken: Vec<u32>,
    left: Vec<u32>,
}

/// Elite schedules that are kept.
const ELITE: usize = 8;

impl<'a> Blocks<'a> {
    /// Starts from complete sequences that do not contradict the routes.
    pub(super) fn new(shop: &'a Shop, start: &Sequences, seed: u64) -> Self {
        let count = shop.operations();
        let mut job = vec![0; count];
        for number in 0..shop.jobs() {
            shop.job(number).for_each(|operation| job[operation] = number as u32);
        }
        let now = Orders::new(count, &start.lists);
        let mut search = Self {
            shop,
            time: (0..count).map(|operation| shop.least(operation)).collect(),
            job,
            jobs: shop.jobs(),
            best: now.clone(),
            local: now.clone(),
            now,
            paths: Lengths::new(count),
            forbidden: vec![0; count * shop.jobs()],
            iteration: 0,
            improved_at: 0,
            elite: Vec::new(),
            stream: Key::new(seed, "optimum/blocks").open(),
            critical: Vec::new(),
            moves: Vec::new(),
            segment: Vec::new(),
            marked: vec![0; count],
            stamp: 0,
            taken: Vec::new(),
            left: Vec::new(),
        };
        search.now.sort(shop);
        search.place_heads();
        search.best = search.now.clone();
        search.local = search.now.clone();
        search
    }

    /// The shortest makespan found.
    pub(super) const fn best_makespan(&self) -> u32 {
        self.best.makespan
    }

    /// The sequences of the shortest makespan found.
    pub(super) fn best(&self) -> Sequences {
        let mut lists = vec![Vec::new(); self.shop.machines];
        for &operation in &self.best.order {
            let choice = self.shop.choices_of(operation as usize).start;
            lists[self.shop.choices[choice].machine as usize].push(operation);
        }
        let choice = (0..self.shop.operations()).map(|one| self.shop.choices_of(one).start as u32).collect();
        Sequences { lists, choice }
    }

    /// Makes up to `iterations` moves, fewer if `target` is reached.
    pub(super) fn run(&mut self, iterations: u64, target: u32) {
        let end = self.iteration + iterations;
        let patience = 2000 + 2 * self.shop.operations() as u64;
        while self.iteration < end && self.best.makespan > target {
            self.iteration += 1;
            if self.iteration - self.improved_at > patience || !self.step() {
                self.turn_to_elite();
            }
        }
    }

    /// One move; false if the critical path leaves none.
    fn step(&mut self) -> bool {
        self.find_critical_path();
        self.find_moves();
        let (mut chosen, mut ties): (Option<Move>, u64) = (None, 0);
        for index in 0..self.moves.len() {
            let one = self.moves[index];
            if one.estimate >= self.best.makespan && self.is_forbidden(one) {
                continue;
            }
            match chosen.map(|known| known.estimate) {
                Some(known) if one.estimate > known => {}
                Some(known) if one.estimate == known => {
                    ties += 1;
                    if self.stream.below(ties) == 0 {
                        chosen = Some(one);
                    }
                }
                _ => (chosen, ties) = (Some(one), 1),
            }
        }
        if chosen.is_none() && !self.moves.is_empty() {
            chosen = Some(self.moves[self.stream.below(self.moves.len() as u64) as usize]);
        }
        let Some(chosen) = chosen else { return false };
        self.forbid(chosen);
        self.apply(chosen);
        if self.now.makespan < self.local.makespan {
            self.local.clone_from(&self.now);
            self.improved_at = self.iteration;
            if self.now.makespan < self.best.makespan {
                self.best.clone_from(&self.now);
            }
        }
        true
    }

    /// One critical path, ties at random, from its end to its start.
    fn find_critical_path(&mut self) {
        self.critical.clear();
        let (mut at, mut ties) = (NONE, 0);
        for operation in 0..self.time.len() {
            if self.paths.head[operation] + self.time[operation] == self.now.makespan {
                ties += 1;
                if self.stream.below(ties) == 0 {
                    at = operation as u32;
                }
            }
        }
        while at != NONE {
            self.critical.push(at);
            let index = at as usize;
            let (job, machine) = (self.shop.job_before[index], self.now.before[index]);
            let end = |one: u32| self.paths.head[one as usize] + self.time[one as usize];
            let by_job = job != NONE && end(job) + self.shop.rest(index) == self.paths.head[index];
            let by_machine = machine != NONE && end(machine) == self.paths.head[index];
            at = match (by_job, by_machine) {
                (true, true) if self.stream.below(2) == 0 => job,
                (_, true) => machine,
                (true, false) => job,
                (false, false) => NONE,
            };
        }
        self.critical.reverse();
    }

    /// All moves of the critical path's blocks that close no cycle, with their estimates.
    fn find_moves(&mut self) {
        self.moves.clear();
        let mut from = 0;
        while from < self.critical.len() {
            let mut to = from;
            while to + 1 < self.critical.len()
                && self.now.after[self.critical[to] as usize] == self.critical[to + 1]
            {
                to += 1;
            }
            // A block at the path's start gains nothing at its front, one at the end nothing at its end.
            let (at_start, at_end) = (from == 0, to + 1 == self.critical.len());
            for index in from..=to {
                if index < to && !at_end {
                    self.consider(index, to, true);
                }
                if index > from && !at_start {
                    self.consider(from, index, false);
                }
                if index > from && index < to {
                    if !at_start {
                        self.consider(from, index, true);
                    }
                    if !at_end {
                        self.consider(index, to, false);
                    }
                }
            }
            from = to + 1;
        }
    }

    /// Adds the move of one operation of a block across others, if no path can turn it into a cycle.
    fn consider(&mut self, from: usize, to: usize, forward: bool) {
        let (first, last) = (self.critical[from], self.critical[to]);
        let (u, v) = (first as usize, last as usize);
        // The job's neighbour of the operation that moves, and whether the other end of the move lies clear of it: a path
        // between the two would close a cycle.
        let clear = if forward {
            let next = self.shop.job_after[u];
            next == NONE || {
                let n = next as usize;
                let (far, near) = (
                    self.paths.tail[v] + self.time[v],
                    self.paths.tail[n] + self.time[n] + self.shop.rest(n),
                );
                far > near || (far == near && next != last && self.time[n] + self.shop.rest(n) > 0)
            }
        } else {
            let previous = self.shop.job_before[v];
            previous == NONE || {
                let p = previous as usize;
                let (far, near) = (
                    self.paths.head[u] + self.time[u],
                    self.paths.head[p] + self.time[p] + self.shop.rest(v),
                );
                far > near || (far == near && previous != first && self.time[p] + self.shop.rest(v) > 0)
            }
        };
        if !clear {
            return;
        }
        self.segment.clear();
        if forward {
            self.segment.extend_from_slice(&self.critical[from + 1..=to]);
            self.segment.push(first);
        } else {
            self.segment.push(last);
            self.segment.extend_from_slice(&self.critical[from..to]);
        }
        let estimate = self.estimate(self.now.before[u], self.now.after[v]);
        self.moves.push(Move { first, last, forward, estimate });
    }

    /// The longest path through the segment in its new order, between its neighbours on the machine.
    fn estimate(&mut self, left: u32, right: u32) -> u32 {
        let ready = |search: &Self, one: u32| {
            let job = search.shop.job_before[one as usize];
            if job == NONE {
                0
            } else {
                search.paths.head[job as usize] + search.time[job as usize] + search.shop.rest(one as usize)
            }
        };
        let rest = |search: &Self, one: u32| {
            let job = search.shop.job_after[one as usize];
            if job == NONE {
                0
            } else {
                search.paths.tail[job as usize] + search.time[job as usize] + search.shop.rest(job as usize)
            }
        };
        let mut end =
            if left == NONE { 0 } else { self.paths.head[left as usize] + self.time[left as usize] };
        self.taken.clear();
        for &one in &self.segment {
            let head = end.max(ready(self, one));
            end = head + self.time[one as usize];
            self.taken.push(end);
        }
        let mut after =
            if right == NONE { 0 } else { self.paths.tail[right as usize] + self.time[right as usize] };
        let mut longest = 0;
        for (&one, &end) in self.segment.iter().zip(&self.taken).rev() {
            let tail = after.max(rest(self, one));
            longest = longest.max(end + tail);
            after = tail + self.time[one as usize];
        }
        longest
    }

    /// The operations that a move crosses, first to last, without the one that moves.
    fn crossed(&self, one: Move) -> impl Iterator<Item = u32> + '_ {
        let (from, to) = if one.forward {
            (self.now.after[one.first as usize], one.last)
        } else {
            (one.first, self.now.before[one.last as usize])
        };
        let mut at = from;
        std::iter::from_fn(move || {
            let here = at;
            if here == NONE {
                return None;
            }
            at = if here == to { NONE } else { self.now.after[here as usize] };
            Some(here)
        })
    }

    fn arc(&self, before: u32, after: u32) -> usize {
        before as usize * self.jobs + self.job[after as usize] as usize
    }

    /// Whether the move brings back an order that was given up lately.
    fn is_forbidden(&self, one: Move) -> bool {
        self.crossed(one).any(|other| {
            let arc = if one.forward { self.arc(other, one.first) } else { self.arc(one.last, other) };
            self.forbidden[arc] > self.iteration
        })
    }

    /// Forbids the orders that the move gives up.
    fn forbid(&mut self, one: Move) {
        let least = 10 + self.jobs as u64 / self.shop.machines.max(1) as u64;
        let span = if self.jobs <= 2 * self.shop.machines { 2 * least / 5 } else { least / 2 };
        let until = self.iteration + least + self.stream.below(span + 1);
        let mut arcs = std::mem::take(&mut self.left);
        arcs.clear();
        arcs.extend(self.crossed(one).map(|other| {
            (if one.forward { self.arc(one.first, other) } else { self.arc(other, one.last) }) as u32
        }));
        arcs.iter().for_each(|&arc| self.forbidden[arc as usize] = until);
        self.left = arcs;
    }

    /// Changes the machine order and the topological order, and computes what can change.
    fn apply(&mut self, one: Move) {
        let (u, v) = (one.first as usize, one.last as usize);
        let (from, to) = (self.paths.rank[u] as usize, self.paths.rank[v] as usize);
        self.stamp += 1;
        self.taken.clear();
        self.left.clear();
        if one.forward {
            // Whatever follows the first operation, but for those that it now follows, goes behind it.
            self.mark_after(one.first, false);
            self.taken.push(one.first);
            for index in from + 1..=to {
                let here = self.now.order[index];
                if here != one.last && self.marked[here as usize] == self.stamp {
                    self.mark_after(here, true);
                    self.taken.push(here);
                } else {
                    self.left.push(here);
                }
            }
            let sorted = self.left.iter().chain(&self.taken);
            self.now.order[from..=to].iter_mut().zip(sorted).for_each(|(place, &here)| *place = here);
            self.now.unlink(one.first);
            self.now.link_after(one.first, one.last);
        } else {
            self.mark_before(one.last, false);
            self.taken.push(one.last);
            for index in (from..to).rev() {
                let here = self.now.order[index];
                if here != one.first && self.marked[here as usize] == self.stamp {
                    self.mark_before(here, true);
                    self.taken.push(here);
                } else {
                    self.left.push(here);
                }
            }
            let sorted = self.taken.iter().rev().chain(self.left.iter().rev());
            self.now.order[from..=to].iter_mut().zip(sorted).for_each(|(place, &here)| *place = here);
            let before = self.now.before[u];
            self.now.unlink(one.last);
            if before == NONE {
                self.now.link_front(one.last, one.first);
            } else {
                self.now.link_after(one.last, before);
            }
        }
        self.compute(from, to + 1);
    }

    fn mark_after(&mut self, one: u32, machine: bool) {
        let job = self.shop.job_after[one as usize];
        if job != NONE {
            self.marked[job as usize] = self.stamp;
        }
        let next = self.now.after[one as usize];
        if machine && next != NONE {
            self.marked[next as usize] = self.stamp;
        }
    }

    fn mark_before(&mut self, one: u32, machine: bool) {
        let job = self.shop.job_before[one as usize];
        if job != NONE {
            self.marked[job as usize] = self.stamp;
        }
        let next = self.now.before[one as usize];
        if machine && next != NONE {
            self.marked[next as usize] = self.stamp;
        }
    }

    /// Keeps the best of this descent and starts another one: from noise while there are few, then from between two of the
    /// best.
    fn turn_to_elite(&mut self) {
        self.improved_at = self.iteration;
        let known = self
            .elite
            .iter()
            .any(|one| one.makespan == self.local.makespan && one.before == self.local.before);
        if !known {
            self.elite.push(self.local.clone());
            self.elite.sort_by_key(|one| one.makespan);
            self.elite.truncate(ELITE);
        }
        let count = self.time.len();
        let mut keys: Vec<(u64, u32)> = Vec::with_capacity(count);
        if self.elite.len() < ELITE / 2 {
            let noise = u64::from(self.best.makespan / 8 + 1);
            self.now.clone_from(&self.best);
            self.place_heads();
            for job in 0..self.jobs {
                let mut least = 0;
                for one in self.shop.job(job) {
                    least = (u64::from(self.paths.head[one]) + self.stream.below(noise)).max(least);
                    keys.push((least, one as u32));
                }
            }
        } else {
            let one = self.stream.below(self.elite.len() as u64) as usize;
            let other =
                (one + 1 + self.stream.below(self.elite.len() as u64 - 1) as usize) % self.elite.len();
            // Both lists keep every job's order, so any mixture of an operation's two places does.
            let share = 5 + self.stream.below(7);
            keys.extend((0..count as u32).map(|operation| (0, operation)));
            for (weight, list) in [(share, one), (16 - share, other)] {
                for (place, &operation) in self.elite[list].order.iter().enumerate() {
                    keys[operation as usize].0 += weight * place as u64;
                }
            }
        }
        keys.sort_unstable();
        self.now.follow(self.shop, keys.iter().map(|&(_, one)| one));
        self.place_heads();
        self.local.clone_from(&self.now);
    }

    fn place_heads(&mut self) {
        self.compute(0, self.time.len());
    }

    fn compute(&mut self, from: usize, to: usize) {
        self.paths.compute(self.shop, &self.time, &mut self.now, from, to);
    }
}

#[cfg(test)]
mod tests;
