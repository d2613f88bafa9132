//! Machine orders as links, with a topological order and longest paths that are computed only where they can change.
//!
//! "Nobody", the number of operations, stands where an operation has no neighbour; nobody takes no time, so that longest
//! paths need no case for it.

use super::graph::Sequences;
use super::shop::{Choice, NONE, Shop};

/// What no move changes: routes and rests, laid out flat; each list has an entry for nobody.
pub(super) struct Routes {
    pub(super) machines: usize,
    pub(super) jobs: usize,
    pub(super) job: Vec<u32>,
    /// The operation before and after each one in its job.
    pub(super) before: Vec<u32>,
    pub(super) after: Vec<u32>,
    /// The least rest between an operation and the one before it in its job, and the time before which it does not start.
    pub(super) waits: Vec<(u32, u32)>,
    /// How long the schedule goes on at least once an operation has ended; 0 where nothing asks for that.
    tails: Vec<u32>,
    /// The last operation of each job.
    last: Vec<u32>,
    /// Operations at whose end, and tail, a schedule may end: the last ones of jobs, and others with tails.
    ends: Vec<u32>,
}

impl Routes {
    /// The routes of a shop.
    pub(super) fn new(shop: &Shop) -> Self {
        let nobody = shop.operations() as u32;
        let linked = |other: u32| if other == NONE { nobody } else { other };
        let mut routes = Self {
            machines: shop.machines,
            jobs: shop.jobs(),
            job: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            waits: Vec::new(),
            tails: vec![0; shop.operations() + 1],
            last: Vec::new(),
            ends: Vec::new(),
        };
        for job in 0..shop.jobs() {
            for one in shop.job(job) {
                routes.job.push(job as u32);
                routes.before.push(linked(shop.job_before[one]));
                routes.after.push(linked(shop.job_after[one]));
                let rest = if shop.job_before[one] == NONE { 0 } else { shop.rests[one] };
                routes.waits.push((rest, shop.earliest[one]));
            }
            routes.last.extend(shop.job(job).last().map(|one| one as u32));
        }
        routes.job.push(0);
        routes.waits.push((0, 0));
        routes.before.push(nobody);
        routes.after.push(nobody);
        routes.ends.clone_from(&routes.last);
        routes
    }

    /// Lets the schedule go on for so long after each operation's end.
    pub(super) fn set_tails(&mut self, tails: &[u32]) {
        self.tails[..tails.len()].copy_from_slice(tails);
        self.ends.clone_from(&self.last);
        self.ends.extend((0..self.nobody()).filter(|&one| tails[one as usize] > 0));
        self.ends.sort_unstable();
        self.ends.dedup();
    }

    /// How long the schedule goes on at least once an operation has ended.
    pub(super) fn tail(&self, one: u32) -> u32 {
        self.tails[one as usize]
    }

    /// The least rest before an operation.
    pub(super) fn rest(&self, one: usize) -> u32 {
        self.waits[one].0
    }

    pub(super) const fn count(&self) -> usize {
        self.job.len() - 1
    }

    pub(super) const fn nobody(&self) -> u32 {
        self.count() as u32
    }

    /// Operations at whose end, and tail, a schedule may end.
    pub(super) fn ends(&self) -> impl Iterator<Item = u32> + '_ {
        self.ends.iter().copied()
    }

    /// A job's operations, in the order of its route.
    pub(super) fn of_job(&self, job: usize) -> std::ops::RangeInclusive<usize> {
        let first = if job == 0 { 0 } else { self.last[job - 1] as usize + 1 };
        first..=self.last[job] as usize
    }
}

/// The machine of every operation, and the order of operations on every machine.
#[derive(Clone)]
pub(super) struct Orders {
    /// The chosen alternative of each operation, as an index into [`Shop::choices`], with its machine and its time.
    pub(super) choice: Vec<u32>,
    pub(super) machine: Vec<u32>,
    pub(super) time: Vec<u32>,
    /// The operation before and after each one on its machine.
    pub(super) before: Vec<u32>,
    pub(super) after: Vec<u32>,
    /// A topological order.
    pub(super) order: Vec<u32>,
    pub(super) makespan: u32,
}

impl Orders {
    /// Every operation where it is quickest, and no machine has an order yet.
    pub(super) fn empty(shop: &Shop, routes: &Routes) -> Self {
        let nobody = vec![routes.nobody(); routes.count() + 1];
        let mut orders = Self {
            choice: vec![0; routes.count()],
            machine: vec![0; routes.count() + 1],
            time: vec![0; routes.count() + 1],
            before: nobody.clone(),
            after: nobody,
            order: Vec::new(),
            makespan: 0,
        };
        for one in 0..routes.count() {
            let quickest = shop.choices_of(one).min_by_key(|&choice| shop.choices[choice].time);
            orders.assign(shop, one as u32, quickest.unwrap_or(0) as u32);
        }
        orders
    }

    /// The orders of sequences; they are not sorted yet.
    pub(super) fn new(shop: &Shop, routes: &Routes, sequences: &Sequences) -> Self {
        let mut orders = Self::empty(shop, routes);
        for (one, &choice) in sequences.choice.iter().enumerate() {
            orders.assign(shop, one as u32, choice);
        }
        for list in &sequences.lists {
            for pair in list.windows(2) {
                orders.before[pair[1] as usize] = pair[0];
                orders.after[pair[0] as usize] = pair[1];
            }
        }
        orders
    }

    /// Chooses an alternative for an operation that no order holds.
    pub(super) fn assign(&mut self, shop: &Shop, one: u32, choice: u32) {
        let Choice { machine, time } = shop.choices[choice as usize];
        self.choice[one as usize] = choice;
        self.machine[one as usize] = machine;
        self.time[one as usize] = time;
    }

    pub(super) fn unlink(&mut self, one: u32) {
        let (before, after) = (self.before[one as usize], self.after[one as usize]);
        self.after[before as usize] = after;
        self.before[after as usize] = before;
    }

    /// Puts an operation between two neighbours, either of which may be nobody.
    pub(super) fn link(&mut self, one: u32, before: u32, after: u32) {
        self.before[one as usize] = before;
        self.after[one as usize] = after;
        self.after[before as usize] = one;
        self.before[after as usize] = one;
    }

    /// Sorts all operations so that each comes after what it waits for.
    pub(super) fn sort(&mut self, routes: &Routes) {
        let (count, nobody) = (routes.count(), routes.nobody());
        let waits =
            |one: usize| u8::from(routes.before[one] != nobody) + u8::from(self.before[one] != nobody);
        let mut missing: Vec<u8> = (0..count).map(waits).collect();
        let order = &mut self.order;
        order.clear();
        order.extend((0..nobody).filter(|&one| missing[one as usize] == 0));
        let mut next = 0;
        while next < order.len() {
            let one = order[next] as usize;
            next += 1;
            for follower in [routes.after[one], self.after[one]] {
                if follower != nobody {
                    missing[follower as usize] -= 1;
                    if missing[follower as usize] == 0 {
                        order.push(follower);
                    }
                }
            }
        }
        debug_assert_eq!(order.len(), count, "sequences that contradict the routes");
    }

    /// Lets every machine serve its operations in this order, which keeps every job's own.
    pub(super) fn follow(&mut self, routes: &Routes, operations: impl Iterator<Item = u32>) {
        let nobody = routes.nobody();
        let mut last = vec![nobody; routes.machines];
        self.order.clear();
        for one in operations {
            let before = std::mem::replace(&mut last[self.machine[one as usize] as usize], one);
            self.link(one, before, nobody);
            self.order.push(one);
        }
    }
}

/// Longest paths to each operation's end and from its start on, and its place in the topological order.
pub(super) struct Lengths {
    pub(super) end: Vec<u32>,
    pub(super) out: Vec<u32>,
    pub(super) rank: Vec<u32>,
}

impl Lengths {
    pub(super) fn new(count: usize) -> Self {
        Self { end: vec![0; count + 1], out: vec![0; count + 1], rank: vec![0; count + 1] }
    }

    /// An operation's earliest start.
    pub(super) fn head(&self, now: &Orders, one: u32) -> u32 {
        self.end[one as usize] - now.time[one as usize]
    }

    /// When an operation can start as far as its job is concerned.
    pub(super) fn ready(&self, routes: &Routes, one: usize) -> u32 {
        let (rest, earliest) = routes.waits[one];
        (self.end[routes.before[one] as usize] + rest).max(earliest)
    }

    /// What follows an operation's end at least as far as its job is concerned.
    pub(super) fn remains(&self, routes: &Routes, one: usize) -> u32 {
        let after = routes.after[one] as usize;
        (self.out[after] + routes.waits[after].0).max(routes.tails[one])
    }

    /// Everything afresh.
    pub(super) fn compute_all(&mut self, routes: &Routes, now: &mut Orders) {
        for (place, &one) in now.order.iter().enumerate() {
            self.rank[one as usize] = place as u32;
        }
        self.compute(routes, now, 0, routes.count());
    }

    /// Ends from place `from` of the order on, what follows before place `to`, and the makespan.
    pub(super) fn compute(&mut self, routes: &Routes, now: &mut Orders, from: usize, to: usize) {
        for &one in &now.order[from..] {
            let one = one as usize;
            let start = self.ready(routes, one).max(self.end[now.before[one] as usize]);
            self.end[one] = start + now.time[one];
        }
        for &one in now.order[..to].iter().rev() {
            let one = one as usize;
            let rest = self.remains(routes, one).max(self.out[now.after[one] as usize]);
            self.out[one] = rest + now.time[one];
        }
        let ends = routes.ends.iter().map(|&one| self.end[one as usize] + routes.tails[one as usize]);
        now.makespan = ends.max().unwrap_or(0);
    }
}
