//! Tabu search over machine sequences: take a critical operation out, put it back in its best place.
//!
//! Without operation v the longest paths are computed afresh; then the longest path through v at any place of any
//! machine is exact, and so is the makespan after the move. The neighbourhood is that of Mastrolilli and
//! Gambardella, "Effective neighbourhood functions for the flexible job shop problem", J. Scheduling 3 (2000).

use super::graph::{Paths, Sequences};
use super::shop::{Choice, NONE, Shop};
use niwaki_stream::{Key, Stream};

/// Where a taken-out operation goes.
#[derive(Clone, Copy)]
struct Move {
    operation: u32,
    choice: u32,
    place: usize,
    makespan: u32,
    /// The longest path through the operation, where it goes.
    through: u32,
}

/// The state of the search.
pub(crate) struct Tabu<'a> {
    shop: &'a Shop,
    current: Sequences,
    paths: Paths,
    best: Sequences,
    best_makespan: u32,
    /// For each alternative, the iteration until which its operation may not go there.
    forbidden: Vec<u64>,
    iteration: u64,
    improved_at: u64,
    stream: Stream,
    without: Without,
    critical: Vec<u32>,
}

/// Longest paths of the graph without one operation.
#[derive(Default)]
struct Without {
    head: Vec<u32>,
    tail: Vec<u32>,
    makespan: u32,
}

impl<'a> Tabu<'a> {
    /// Starts from complete sequences that do not contradict the routes.
    pub(super) fn new(shop: &'a Shop, start: Sequences, seed: u64) -> Self {
        let mut paths = Paths::default();
        let feasible = paths.compute(shop, &start);
        debug_assert!(feasible, "the search starts from a schedule");
        Self {
            shop,
            best: start.clone(),
            current: start,
            best_makespan: paths.makespan,
            paths,
            forbidden: vec![0; shop.choices.len()],
            iteration: 0,
            improved_at: 0,
            stream: Key::new(seed, "optimum/tabu").open(),
            without: Without::default(),
            critical: Vec::new(),
        }
    }

    /// The shortest makespan found.
    pub(super) const fn best_makespan(&self) -> u32 {
        self.best_makespan
    }

    /// The sequences of the shortest makespan found.
    pub(super) const fn best(&self) -> &Sequences {
        &self.best
    }

    /// Makes up to `iterations` moves, fewer if `target` is reached; true if the best improved.
    pub(super) fn run(&mut self, iterations: u64, target: u32) -> bool {
        let before = self.best_makespan;
        let end = self.iteration + iterations;
        // Far from the best for long: go back to it and shake.
        let patience = 40 * self.shop.operations() as u64 + 400;
        while self.iteration < end && self.best_makespan > target {
            self.iteration += 1;
            if self.iteration - self.improved_at > patience {
                self.improved_at = self.iteration;
                self.current = self.best.clone();
                self.refresh();
                for _ in 0..4 + self.stream.below(8) {
                    self.step(true);
                }
            } else {
                self.step(false);
            }
        }
        self.best_makespan < before
    }

    fn refresh(&mut self) {
        let feasible = self.paths.compute(self.shop, &self.current);
        debug_assert!(feasible, "a move closed a cycle");
    }

    fn step(&mut self, shake: bool) {
        self.find_critical_path();
        let (mut chosen, mut ties): (Option<Move>, u64) = (None, 0);
        let (mut fallback, mut others): (Option<Move>, u64) = (None, 0);
        for index in 0..self.critical.len() {
            let operation = self.critical[index];
            if !self.may_gain(index) {
                continue;
            }
            self.take_out(operation);
            for choice in self.shop.choices_of(operation as usize) {
                let free = self.forbidden[choice] < self.iteration;
                let Some(best) = self.best_place(operation, choice as u32) else { continue };
                others += 1;
                if self.stream.below(others) == 0 {
                    fallback = Some(best);
                }
                if !free && best.makespan >= self.best_makespan {
                    continue;
                }
                let key = |one: Move| (one.makespan, one.through);
                match chosen.map(key) {
                    Some(known) if key(best) > known => {}
                    Some(known) if key(best) == known => {
                        ties += 1;
                        if self.stream.below(ties) == 0 {
                            chosen = Some(best);
                        }
                    }
                    _ => {
                        chosen = Some(best);
                        ties = 1;
                    }
                }
            }
        }
        let Some(chosen) = (if shake { fallback } else { chosen.or(fallback) }) else { return };
        self.apply(chosen);
        if self.paths.makespan < self.best_makespan {
            self.best_makespan = self.paths.makespan;
            self.best = self.current.clone();
            self.improved_at = self.iteration;
        }
    }

    /// Whether moving the operation at this place of the critical path can shorten it: it has another machine, or a
    /// neighbour on the path that runs on its own.
    fn may_gain(&self, index: usize) -> bool {
        let operation = self.critical[index];
        let next_to = |other: Option<&u32>| {
            other.is_some_and(|&other| {
                let other = other as usize;
                self.paths.machine_before[other] == operation || self.paths.machine_after[other] == operation
            })
        };
        self.shop.choices_of(operation as usize).len() > 1
            || next_to(self.critical.get(index + 1))
            || next_to(index.checked_sub(1).and_then(|before| self.critical.get(before)))
    }

    /// One critical path, ties at random.
    fn find_critical_path(&mut self) {
        self.critical.clear();
        let (paths, shop) = (&self.paths, self.shop);
        let critical = |operation: usize| {
            paths.head[operation] + paths.time[operation] + paths.tail[operation] == paths.makespan
        };
        let mut ties = 0;
        let mut at = NONE;
        for operation in 0..shop.operations() {
            if paths.head[operation] == 0 && critical(operation) {
                ties += 1;
                if self.stream.below(ties) == 0 {
                    at = operation as u32;
                }
            }
        }
        while at != NONE {
            self.critical.push(at);
            let index = at as usize;
            let end = paths.head[index] + paths.time[index];
            let (job, machine) = (shop.job_after[index], paths.machine_after[index]);
            let by_job = job != NONE
                && critical(job as usize)
                && paths.head[job as usize] == end + shop.rest(job as usize);
            let by_machine =
                machine != NONE && critical(machine as usize) && paths.head[machine as usize] == end;
            at = match (by_job, by_machine) {
                (true, true) if self.stream.below(2) == 0 => job,
                (_, true) => machine,
                (true, false) => job,
                (false, false) => NONE,
            };
        }
    }

    /// Longest paths without one operation (its job's arcs then join its neighbours).
    fn take_out(&mut self, out: u32) {
        let (paths, shop, without) = (&self.paths, self.shop, &mut self.without);
        without.head.clear();
        without.head.extend_from_slice(&paths.head);
        without.tail.clear();
        without.tail.extend_from_slice(&paths.tail);
        let rank = paths.rank[out as usize] as usize;
        without.makespan = if rank == 0 { 0 } else { paths.end_up_to[rank - 1] };
        let bridge_before = paths.machine_before[out as usize];
        let bridge_after = paths.machine_after[out as usize];
        // What comes before it keeps its head, what comes after it keeps its tail.
        for &operation in &paths.order[rank + 1..] {
            let index = operation as usize;
            let job = shop.job_before[index];
            let mut head = 0;
            if job != NONE && job != out {
                head = without.head[job as usize] + paths.time[job as usize] + shop.rest(index);
            }
            let mut machine = paths.machine_before[index];
            if machine == out {
                machine = bridge_before;
            }
            if machine != NONE {
                head = head.max(without.head[machine as usize] + paths.time[machine as usize]);
            }
            without.head[index] = head;
            without.makespan = without.makespan.max(head + paths.time[index]);
        }
        for &operation in paths.order[..rank].iter().rev() {
            let index = operation as usize;
            let job = shop.job_after[index];
            let mut tail = 0;
            if job != NONE && job != out {
                let job = job as usize;
                tail = without.tail[job] + paths.time[job] + shop.rest(job);
            }
            let mut machine = paths.machine_after[index];
            if machine == out {
                machine = bridge_after;
            }
            if machine != NONE {
                tail = tail.max(without.tail[machine as usize] + paths.time[machine as usize]);
            }
            without.tail[index] = tail;
        }
    }

    /// The best place on one machine for the operation that was taken out, other than where it came from.
    fn best_place(&self, operation: u32, choice: u32) -> Option<Move> {
        let (paths, shop, without) = (&self.paths, self.shop, &self.without);
        let index = operation as usize;
        let Choice { machine, time } = shop.choices[choice as usize];
        let (before, after) = (shop.job_before[index], shop.job_after[index]);
        let ready = if before == NONE {
            0
        } else {
            without.head[before as usize] + paths.time[before as usize] + shop.rest(index)
        };
        let after_tail = if after == NONE {
            0
        } else {
            let after = after as usize;
            without.tail[after] + paths.time[after] + shop.rest(after)
        };
        // A path from the job's next operation to x shows in x's head, so a smaller head excludes it.
        let may_precede = |x: u32| {
            after == NONE
                || (x != after
                    && without.head[x as usize] < without.head[after as usize] + paths.time[after as usize])
        };
        let may_follow = |y: u32| {
            before == NONE
                || (y != before
                    && without.head[before as usize] < without.head[y as usize] + paths.time[y as usize])
        };
        let list = &self.current.lists[machine as usize];
        let (mut best, mut place, mut left) = (None::<Move>, 0, NONE);
        let mut at_home = false;
        for slot in 0..=list.len() {
            if slot < list.len() && list[slot] == operation {
                at_home = true;
                continue;
            }
            let right = if slot < list.len() { list[slot] } else { NONE };
            if left != NONE && !may_precede(left) {
                break;
            }
            if !at_home && (right == NONE || may_follow(right)) {
                let mut head = ready;
                if left != NONE {
                    head = head.max(without.head[left as usize] + paths.time[left as usize]);
                }
                let mut tail = after_tail;
                if right != NONE {
                    tail = tail.max(without.tail[right as usize] + paths.time[right as usize]);
                }
                let through = head + time + tail;
                if best.is_none_or(|known| through < known.through) {
                    let makespan = through.max(without.makespan);
                    best = Some(Move { operation, choice, place, makespan, through });
                }
            }
            at_home = false;
            left = right;
            place += 1;
        }
        best
    }

    fn apply(&mut self, chosen: Move) {
        let index = chosen.operation as usize;
        let old = self.current.choice[index] as usize;
        let old_machine = self.shop.choices[old].machine as usize;
        let new_machine = self.shop.choices[chosen.choice as usize].machine as usize;
        self.current.lists[old_machine].retain(|&operation| operation != chosen.operation);
        self.current.lists[new_machine].insert(chosen.place, chosen.operation);
        self.current.choice[index] = chosen.choice;
        let tenure =
            self.critical.len() as u64 / 2 + self.shop.choices_of(index).len() as u64 + self.stream.below(6);
        self.forbidden[old] = self.iteration + tenure;
        self.refresh();
        debug_assert_eq!(self.paths.makespan, chosen.makespan, "a move's makespan is exact");
    }
}
