//! Depth-first branch and bound over orders built from both ends, resumable and without allocation per node.

use super::pairs::Pairs;
use crate::FlowShop;

/// Which end of the order a node's children extend.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Front,
    Back,
}

#[derive(Clone, Copy)]
struct Child {
    bound: i32,
    job: u32,
}

/// One open node on the way down.
struct Level {
    end: End,
    /// Children still to visit lie in `children[from..to]` of this level's row.
    from: usize,
    to: usize,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// A shorter order was found: see [`Branch::best`].
    Improved,
    /// Nothing shorter than the upper bound is left.
    Exhausted,
    /// The node budget is spent.
    Paused,
}

/// The search.
pub(super) struct Branch {
    jobs: usize,
    machines: usize,
    times: Vec<i32>,
    pairs: Pairs,
    upper: i32,
    best: Vec<u32>,
    /// The order: `..front` is placed, `back..` is placed, the middle is open.
    order: Vec<u32>,
    place: Vec<u32>,
    open: Vec<bool>,
    front: usize,
    back: usize,
    levels: Vec<Level>,
    children: Vec<Child>,
    /// For each depth: when each machine is done with the front, how long it takes from the start of the back, and
    /// the work left on it, `[depth, machine]`.
    fronts: Vec<i32>,
    backs: Vec<i32>,
    left: Vec<i32>,
    least_head: Vec<i32>,
    least_tail: Vec<i32>,
    scratch: [Vec<Child>; 2],
}

impl Branch {
    /// A search for orders shorter than `upper`.
    pub(super) fn new(shop: &FlowShop, upper: u32) -> Self {
        let (jobs, machines) = (shop.jobs(), shop.machines());
        let times: Vec<i32> = shop.times().iter().map(|&time| time as i32).collect();
        let (mut least_head, mut least_tail) = (vec![i32::MAX; machines], vec![i32::MAX; machines]);
        let mut left = vec![0; (jobs + 1) * machines];
        for job in times.chunks_exact(machines) {
            let (mut head, mut tail) = (0, 0);
            for machine in 0..machines {
                least_head[machine] = least_head[machine].min(head);
                head += job[machine];
                left[machine] += job[machine];
            }
            for machine in (0..machines).rev() {
                least_tail[machine] = least_tail[machine].min(tail);
                tail += job[machine];
            }
        }
        let mut branch = Self {
            jobs,
            machines,
            times,
            pairs: Pairs::new(shop),
            upper: upper as i32,
            best: Vec::new(),
            order: (0..jobs as u32).collect(),
            place: (0..jobs as u32).collect(),
            open: vec![true; jobs],
            front: 0,
            back: jobs,
            levels: Vec::with_capacity(jobs + 1),
            children: vec![Child { bound: 0, job: 0 }; (jobs + 1) * jobs],
            fronts: vec![0; (jobs + 1) * machines],
            backs: vec![0; (jobs + 1) * machines],
            left,
            least_head,
            least_tail,
            scratch: [Vec::with_capacity(jobs), Vec::with_capacity(jobs)],
        };
        branch.open_node();
        branch
    }

    /// The bound of the whole problem before any branching.
    pub(super) fn root_bound(shop: &FlowShop) -> u32 {
        let mut branch = Self::new(shop, 0);
        let (one, pairs) = (branch.least_alone(), &mut branch.pairs);
        let pair = pairs.bound(&branch.open, &branch.least_head, &branch.least_tail, i32::MAX);
        one.max(pair) as u32
    }

    /// Each machine alone: its least head, all its work, its least tail.
    fn least_alone(&self) -> i32 {
        let machines = 0..self.machines;
        machines.map(|one| self.least_head[one] + self.left[one] + self.least_tail[one]).max().unwrap_or(0)
    }

    /// The order of the last improvement.
    pub(super) fn best(&self) -> &[u32] {
        &self.best
    }

    /// Only orders shorter than this are of interest from now on.
    pub(super) fn require_below(&mut self, upper: u32) {
        self.upper = self.upper.min(upper as i32);
    }

    /// The least bound of all nodes still open.
    pub(super) fn lower(&self) -> u32 {
        let mut least = self.upper;
        for (depth, level) in self.levels.iter().enumerate() {
            let row = &self.children[depth * self.jobs..];
            // Children are sorted, so the next is the least of its level.
            if level.from < level.to {
                least = least.min(row[level.from].bound);
            }
        }
        least as u32
    }

    /// Goes on for up to `nodes` nodes.
    pub(super) fn run(&mut self, nodes: u64) -> Progress {
        let mut left = nodes;
        while let Some(depth) = self.levels.len().checked_sub(1) {
            let level = &mut self.levels[depth];
            let child = self.children[depth * self.jobs + level.from.min(self.jobs - 1)];
            if level.from == level.to || child.bound >= self.upper {
                // Children are sorted: after one that is too long, all are.
                self.close_node();
                continue;
            }
            if left == 0 {
                return Progress::Paused;
            }
            left -= 1;
            level.from += 1;
            let end = level.end;
            self.put(depth, end, child.job);
            if self.front == self.back {
                let makespan = self.complete(depth + 1);
                let improved = makespan < self.upper;
                if improved {
                    self.upper = makespan;
                    self.best.clone_from(&self.order);
                }
                self.take(end);
                if improved {
                    return Progress::Improved;
                }
                continue;
            }
            self.open_node();
        }
        Progress::Exhausted
    }

    /// Puts a job at one end and computes the next depth's rows.
    fn put(&mut self, depth: usize, end: End, job: u32) {
        let m = self.machines;
        let slot = if end == End::Front { self.front } else { self.back - 1 };
        let (from, other) = (self.place[job as usize] as usize, self.order[slot]);
        self.order.swap(slot, from);
        self.place[job as usize] = slot as u32;
        self.place[other as usize] = from as u32;
        self.open[job as usize] = false;
        let times = &self.times[job as usize * m..(job as usize + 1) * m];
        let (here, next) = (depth * m..(depth + 1) * m, (depth + 1) * m);
        self.fronts.copy_within(here.clone(), next);
        self.backs.copy_within(here.clone(), next);
        self.left.copy_within(here, next);
        for (left, time) in self.left[next..next + m].iter_mut().zip(times) {
            *left -= time;
        }
        match end {
            End::Front => {
                let mut ready = 0;
                for (row, &time) in self.fronts[next..next + m].iter_mut().zip(times) {
                    ready = ready.max(*row) + time;
                    *row = ready;
                }
                self.front += 1;
            }
            End::Back => {
                let mut ready = 0;
                for (row, &time) in self.backs[next..next + m].iter_mut().zip(times).rev() {
                    ready = ready.max(*row) + time;
                    *row = ready;
                }
                self.back -= 1;
            }
        }
    }

    /// Takes back the last job put at an end.
    fn take(&mut self, end: End) {
        let slot = if end == End::Front {
            self.front -= 1;
            self.front
        } else {
            self.back += 1;
            self.back - 1
        };
        self.open[self.order[slot] as usize] = true;
    }

    fn close_node(&mut self) {
        self.levels.pop();
        if let Some(parent) = self.levels.last() {
            let end = parent.end;
            self.take(end);
        }
    }

    /// The makespan of a complete order whose front and back meet.
    fn complete(&self, depth: usize) -> i32 {
        let row = depth * self.machines..(depth + 1) * self.machines;
        let pairs = self.fronts[row.clone()].iter().zip(&self.backs[row]);
        pairs.map(|(front, back)| front + back).max().unwrap_or(0)
    }

    /// Bounds the children at both ends, keeps the end with fewer, and sorts them.
    fn open_node(&mut self) {
        let depth = self.levels.len();
        let m = self.machines;
        let row = depth * m..(depth + 1) * m;
        let (no_front, no_back) = (self.front == 0, self.back == self.jobs);
        let [ahead, behind] = &mut self.scratch;
        ahead.clear();
        behind.clear();
        let (mut ahead_sum, mut behind_sum) = (0_i64, 0_i64);
        {
            let (fronts, backs) = (&self.fronts[row.clone()], &self.backs[row.clone()]);
            let left = &self.left[row.clone()];
            let head_row = if no_front { &self.least_head[..] } else { fronts };
            let tail_row = if no_back { &self.least_tail[..] } else { backs };
            for &job in &self.order[self.front..self.back] {
                let times = &self.times[job as usize * m..(job as usize + 1) * m];
                let (mut ready, mut bound) = (0, 0);
                for machine in 0..m {
                    ready = fronts[machine].max(ready) + times[machine];
                    bound = bound.max(ready + left[machine] - times[machine] + tail_row[machine]);
                }
                ahead_sum += i64::from(bound);
                if bound < self.upper {
                    ahead.push(Child { bound, job });
                }
                let (mut ready, mut bound) = (0, 0);
                for machine in (0..m).rev() {
                    ready = backs[machine].max(ready) + times[machine];
                    bound = bound.max(ready + left[machine] - times[machine] + head_row[machine]);
                }
                behind_sum += i64::from(bound);
                if bound < self.upper {
                    behind.push(Child { bound, job });
                }
            }
        }
        let front = (ahead.len(), -ahead_sum) <= (behind.len(), -behind_sum);
        let end = if front { End::Front } else { End::Back };
        let kept = usize::from(!front);
        let mut count = 0;
        for index in 0..self.scratch[kept].len() {
            let child = self.scratch[kept][index];
            let bound = child.bound.max(self.pair_bound(depth, end, child.job));
            if bound < self.upper {
                self.children[depth * self.jobs + count] = Child { bound, job: child.job };
                count += 1;
            }
        }
        let row = depth * self.jobs;
        self.children[row..row + count].sort_unstable_by_key(|child| (child.bound, child.job));
        self.levels.push(Level { end, from: 0, to: count });
    }

    /// The bound by pairs of machines once `job` is put at an end.
    fn pair_bound(&mut self, depth: usize, end: End, job: u32) -> i32 {
        if self.back - self.front <= 2 {
            // One job is left after this one: the machines alone are exact enough.
            return 0;
        }
        self.put(depth, end, job);
        let row = (depth + 1) * self.machines..(depth + 2) * self.machines;
        let front = if self.front == 0 { &self.least_head } else { &self.fronts[row.clone()] };
        let back = if self.back == self.jobs { &self.least_tail } else { &self.backs[row] };
        let bound = self.pairs.bound(&self.open, front, back, self.upper);
        self.take(end);
        bound
    }
}
