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
    /// For each open job, its row at either end: `[open job, machine]`.
    ends: Vec<i32>,
    begins: Vec<i32>,
    /// The earliest start of any open job and the least time after the last of them, `[machine]`.
    heads: Vec<i32>,
    tails: Vec<i32>,
    scratch: [Vec<Child>; 2],
}

impl Branch {
    /// A search for orders shorter than `upper`.
    pub(super) fn new(shop: &FlowShop, upper: u32) -> Self {
        let (jobs, machines) = (shop.jobs(), shop.machines());
        let times: Vec<i32> = shop.times().iter().map(|&time| time as i32).collect();
        let mut left = vec![0; (jobs + 1) * machines];
        for job in times.chunks_exact(machines) {
            for (left, time) in left.iter_mut().zip(job) {
                *left += time;
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
            ends: vec![0; jobs * machines],
            begins: vec![0; jobs * machines],
            heads: vec![0; machines],
            tails: vec![0; machines],
            scratch: [Vec::with_capacity(jobs), Vec::with_capacity(jobs)],
        };
        branch.open_node();
        branch
    }

    /// The bound of the whole problem before any branching: each machine with its least head and tail, and each
    /// pair.
    pub(super) fn root_bound(shop: &FlowShop) -> u32 {
        let mut branch = Self::new(shop, 0);
        branch.close_node();
        branch.lay_ends(0);
        let alone = |machine| branch.heads[machine] + branch.left[machine] + branch.tails[machine];
        let alone = (0..branch.machines).map(alone).max().unwrap_or(0);
        let pairs = branch.pairs.bound(&branch.open, &branch.heads, &branch.tails, i32::MAX);
        alone.max(pairs) as u32
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
        self.lay_ends(depth);
        let m = self.machines;
        let left = &self.left[depth * m..(depth + 1) * m];
        let [ahead, behind] = &mut self.scratch;
        ahead.clear();
        behind.clear();
        let (mut ahead_sum, mut behind_sum) = (0_i64, 0_i64);
        for (row, &job) in self.order[self.front..self.back].iter().enumerate() {
            let times = &self.times[job as usize * m..(job as usize + 1) * m];
            let (ends, begins) = (&self.ends[row * m..(row + 1) * m], &self.begins[row * m..(row + 1) * m]);
            let (mut first, mut last) = (0, 0);
            for machine in 0..m {
                let others = left[machine] - times[machine];
                first = first.max(ends[machine] + others + self.tails[machine]);
                last = last.max(begins[machine] + others + self.heads[machine]);
            }
            ahead_sum += i64::from(first);
            behind_sum += i64::from(last);
            if first < self.upper {
                ahead.push(Child { bound: first, job });
            }
            if last < self.upper {
                behind.push(Child { bound: last, job });
            }
        }
        let front = (ahead.len(), -ahead_sum) <= (behind.len(), -behind_sum);
        let end = if front { End::Front } else { End::Back };
        let kept = usize::from(!front);
        let mut count = 0;
        for index in 0..self.scratch[kept].len() {
            let child = self.scratch[kept][index];
            let bound = child.bound.max(self.pair_bound(end, child.job));
            if bound < self.upper {
                self.children[depth * self.jobs + count] = Child { bound, job: child.job };
                count += 1;
            }
        }
        let row = depth * self.jobs;
        self.children[row..row + count].sort_unstable_by_key(|child| (child.bound, child.job));
        self.levels.push(Level { end, from: 0, to: count });
    }

    /// Lays each open job at either end: when it would end on each machine at the front, and how long before the end
    /// of all it would begin at the back; and when the first of them can start, and the last must have ended.
    fn lay_ends(&mut self, depth: usize) {
        let m = self.machines;
        let (fronts, backs) =
            (&self.fronts[depth * m..(depth + 1) * m], &self.backs[depth * m..(depth + 1) * m]);
        self.heads.fill(i32::MAX);
        self.tails.fill(i32::MAX);
        for (row, &job) in self.order[self.front..self.back].iter().enumerate() {
            let times = &self.times[job as usize * m..(job as usize + 1) * m];
            let (ends, begins) =
                (&mut self.ends[row * m..(row + 1) * m], &mut self.begins[row * m..(row + 1) * m]);
            let mut ready = 0;
            for machine in 0..m {
                ready = fronts[machine].max(ready);
                self.heads[machine] = self.heads[machine].min(ready);
                ready += times[machine];
                ends[machine] = ready;
            }
            let mut ready = 0;
            for machine in (0..m).rev() {
                ready = backs[machine].max(ready);
                self.tails[machine] = self.tails[machine].min(ready);
                ready += times[machine];
                begins[machine] = ready;
            }
        }
    }

    /// The bound by pairs of machines once `job` is put at an end.
    fn pair_bound(&mut self, end: End, job: u32) -> i32 {
        if self.back - self.front <= 2 {
            // One job is left after this one: the machines alone are exact enough.
            return 0;
        }
        let row = (self.place[job as usize] as usize - self.front) * self.machines;
        let (front, back) = match end {
            End::Front => (&self.ends[row..row + self.machines], &self.tails[..]),
            End::Back => (&self.heads[..], &self.begins[row..row + self.machines]),
        };
        self.open[job as usize] = false;
        let bound = self.pairs.bound(&self.open, front, back, self.upper);
        self.open[job as usize] = true;
        bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heuristics::johnson;
    use niwaki_stream::Key;

    #[test]
    fn two_machines_are_bounded_exactly() {
        let mut stream = Key::new(5, "law").open();
        for _ in 0..50 {
            let shop = FlowShop::new(9, 2, (0..18).map(|_| stream.below(20) as u32).collect()).unwrap();
            assert_eq!(Branch::root_bound(&shop), shop.makespan(&johnson(&shop).unwrap()));
        }
    }

    #[test]
    fn one_job_is_one_node() {
        let shop = FlowShop::new(1, 3, vec![2, 3, 4]).unwrap();
        let mut branch = Branch::new(&shop, 10);
        assert_eq!(branch.run(5), Progress::Improved);
        assert_eq!(branch.best(), [0]);
        assert_eq!(branch.run(5), Progress::Exhausted);
        assert_eq!(Branch::new(&shop, 9).run(5), Progress::Exhausted);
    }
}
