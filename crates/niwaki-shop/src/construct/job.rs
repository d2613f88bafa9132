//! Lanes for the job shop.

use super::lanes::{Lanes, Order, check_pool, check_reset};
use crate::{JobShop, Placed, Result, Schedule};

/// A job without a next operation waits for ever.
const NEVER: u32 = u32::MAX;

/// Which operation of a job shop is decided next, and who may have it.
///
/// "Always the machine that next becomes free" leaves open what free means, and the readings build different schedules.
/// All but [`JobOrder::List`] and the free non-delay order are trees.
///
/// Paper: `sec:setting`, `app:sched-win`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOrder {
    /// Word for word: of the machines that some job wants next, the one that has finished first, the lowest numbered of
    /// those that tie. Open are all jobs that want it next, even those that are still busy elsewhere: the machine then
    /// waits. Where nobody wants the machine that has finished first, the next one decides: its slot cannot be filled
    /// before some job's earlier operations are placed. A schedule in which a machine waits for a job that is two
    /// operations away is not built, so the optimum may be missed.
    Machine,
    /// No machine waits while it could work. Canonical: the machine that can start an operation first, the lowest
    /// numbered of those that tie, decides among the jobs that can start then. Free: any job that can start then, on any
    /// machine. The optimum may be missed.
    NonDelay(Order),
    /// Giffler and Thompson: the machine on which an operation can end first decides among the jobs that can start on
    /// it before that end. Every active schedule is built once, an optimum among them.
    Active,
    /// Any job that is not finished: a list of jobs, each entry the job's next operation. Histories merge; every
    /// semi-active schedule is built.
    List,
}

/// Job shops under construction. The action is a job: its next operation starts as early as it can.
#[derive(Clone, Debug)]
pub struct JobLanes {
    order: JobOrder,
    lanes: usize,
    jobs: usize,
    machines: usize,
    /// Operations of the longest route.
    longest: usize,
    words: usize,
    /// Machine and time of each operation, `[instance, job, operation]`, padded with `NEVER`.
    routes: Vec<[u32; 2]>,
    instances: usize,
    operations: Vec<u32>,
    instance: Vec<u32>,
    placed: Vec<u32>,
    /// `[lane, job]`: how many operations are done, and when the last of them ends.
    next: Vec<u32>,
    ready: Vec<u32>,
    /// `[lane, job]`: machine and time of the next operation.
    pending: Vec<[u32; 2]>,
    /// `[lane, machine]`: when the machine is free, and how many operations it has run.
    free: Vec<u32>,
    rank: Vec<u32>,
    /// `[lane, job, operation]`: start and rank on its machine.
    starts: Vec<[u32; 2]>,
    /// `[lane]`: the machine of the decision at hand, and the time before which nothing can start any more.
    machine: Vec<u32>,
    clock: Vec<u32>,
    legal: Vec<u64>,
    /// Scratch of one lane: what the order goes by, and the machine, of each job.
    keys: Vec<u64>,
}

impl JobLanes {
    /// Lanes over a pool of job shops with equally many jobs and machines.
    ///
    /// # Errors
    /// If the pool is empty or its shapes differ.
    pub fn new(pool: &[JobShop], lanes: usize, order: JobOrder) -> Result<Self> {
        let (jobs, machines) = check_pool(pool.iter().map(|shop| (shop.jobs(), shop.machines())))?;
        let lengths = |shop: &JobShop| (0..jobs).map(|job| shop.route(job).len()).max().unwrap_or(0);
        let longest = pool.iter().map(lengths).max().unwrap_or(0);
        let mut routes = vec![[NEVER; 2]; pool.len() * jobs * longest];
        for (row, job) in pool.iter().flat_map(|shop| (0..jobs).map(move |job| (shop, job))).enumerate() {
            for (slot, step) in routes[row * longest..].iter_mut().zip(job.0.route(job.1)) {
                *slot = [step.machine, step.time];
            }
        }
        let words = jobs.div_ceil(64);
        let mut made = Self {
            order,
            lanes,
            jobs,
            machines,
            longest,
            words,
            routes,
            instances: pool.len(),
            operations: pool.iter().map(|shop| shop.operations() as u32).collect(),
            instance: (0..lanes).map(|lane| (lane % pool.len()) as u32).collect(),
            placed: vec![0; lanes],
            next: vec![0; lanes * jobs],
            ready: vec![0; lanes * jobs],
            pending: vec![[NEVER; 2]; lanes * jobs],
            free: vec![0; lanes * machines],
            rank: vec![0; lanes * machines],
            starts: vec![[NEVER; 2]; lanes * jobs * longest],
            machine: vec![0; lanes],
            clock: vec![0; lanes],
            legal: vec![0; lanes * words],
            keys: vec![u64::MAX; jobs],
        };
        made.clear();
        Ok(made)
    }

    fn clear(&mut self) {
        self.placed.fill(0);
        self.next.fill(0);
        self.ready.fill(0);
        self.free.fill(0);
        self.rank.fill(0);
        self.starts.fill([NEVER; 2]);
        for lane in 0..self.lanes {
            for job in 0..self.jobs {
                self.pending[lane * self.jobs + job] = self.routes[self.row(lane, job)];
            }
            self.look(lane);
        }
    }

    /// Where a job's route starts.
    fn row(&self, lane: usize, job: usize) -> usize {
        (self.instance[lane] as usize * self.jobs + job) * self.longest
    }

    /// The machine whose slot is decided next; where the action chooses the machine too, one of several.
    #[must_use]
    pub fn machine(&self, lane: usize) -> u32 {
        self.machine[lane]
    }

    /// The earliest time at which any operation that is not placed yet can start.
    #[must_use]
    pub fn clock(&self, lane: usize) -> u32 {
        self.clock[lane]
    }

    /// How many operations of each job are done: `[job]`.
    #[must_use]
    pub fn next(&self, lane: usize) -> &[u32] {
        &self.next[lane * self.jobs..(lane + 1) * self.jobs]
    }

    /// When each job's last placed operation ends: `[job]`.
    #[must_use]
    pub fn ready(&self, lane: usize) -> &[u32] {
        &self.ready[lane * self.jobs..(lane + 1) * self.jobs]
    }

    /// When each machine is free: `[machine]`.
    #[must_use]
    pub fn free(&self, lane: usize) -> &[u32] {
        &self.free[lane * self.machines..(lane + 1) * self.machines]
    }

    /// Finds the decision at hand and its legal jobs.
    #[inline]
    fn look(&mut self, lane: usize) {
        let jobs = lane * self.jobs..(lane + 1) * self.jobs;
        let (ready, pending) = (&self.ready[jobs.clone()], &self.pending[jobs]);
        let free = &self.free[lane * self.machines..(lane + 1) * self.machines];
        let legal = &mut self.legal[lane * self.words..(lane + 1) * self.words];
        let order = self.order;
        // A decision's key is (time, machine) in one number, so that one minimum finds both and breaks ties.
        let (mut best, mut clock) = (u64::MAX, u32::MAX);
        for ((&ready, &[machine, time]), key) in ready.iter().zip(pending).zip(&mut self.keys) {
            *key = match free.get(machine as usize) {
                Some(&free) => {
                    let start = ready.max(free);
                    clock = clock.min(start);
                    let time = match order {
                        JobOrder::Machine => free,
                        JobOrder::NonDelay(_) | JobOrder::List => start,
                        JobOrder::Active => start + time,
                    };
                    u64::from(time) << 32 | u64::from(machine)
                }
                // A finished job: no machine has the number `NEVER`.
                None => u64::MAX,
            };
            best = best.min(*key);
        }
        legal.fill(0);
        if best == u64::MAX {
            return;
        }
        let (time, machine) = ((best >> 32) as u32, best as u32);
        match order {
            JobOrder::Machine | JobOrder::NonDelay(Order::Canonical) => {
                mark(legal, &self.keys, |_, key| key == best);
            }
            JobOrder::NonDelay(Order::Free) => mark(legal, &self.keys, |_, key| key >> 32 == best >> 32),
            // An operation without length may start at the very end that it sets.
            JobOrder::Active => mark(legal, &self.keys, |job, key| {
                key as u32 == machine && (ready[job].max(free[machine as usize]) < time || key == best)
            }),
            JobOrder::List => mark(legal, &self.keys, |_, key| key != u64::MAX),
        }
        self.machine[lane] = machine;
        self.clock[lane] = clock;
    }

    /// Starts a job's next operation.
    #[inline]
    fn place(&mut self, lane: usize, job: usize) {
        let slot = lane * self.jobs + job;
        let [machine, time] = self.pending[slot];
        let at = lane * self.machines + machine as usize;
        let start = self.ready[slot].max(self.free[at]);
        let end = start + time;
        let index = self.next[slot] as usize;
        self.starts[slot * self.longest + index] = [start, self.rank[at]];
        self.rank[at] += 1;
        self.free[at] = end;
        self.ready[slot] = end;
        self.next[slot] += 1;
        self.placed[lane] += 1;
        self.pending[slot] =
            if index + 1 < self.longest { self.routes[self.row(lane, job) + index + 1] } else { [NEVER; 2] };
    }
}

/// Sets the bit of every job whose key satisfies the test.
#[inline]
fn mark(legal: &mut [u64], keys: &[u64], may: impl Fn(usize, u64) -> bool) {
    for (word, (legal, keys)) in legal.iter_mut().zip(keys.chunks(64)).enumerate() {
        for (bit, &key) in keys.iter().enumerate() {
            *legal |= u64::from(may(64 * word + bit, key)) << bit;
        }
    }
}

impl Lanes for JobLanes {
    fn lanes(&self) -> usize {
        self.lanes
    }

    fn actions(&self) -> usize {
        self.jobs
    }

    fn horizon(&self) -> usize {
        self.operations.iter().copied().max().unwrap_or(0) as usize
    }

    fn reset(&mut self, instances: &[u32]) -> Result<()> {
        check_reset(instances, self.lanes, self.instances)?;
        self.instance.copy_from_slice(instances);
        self.clear();
        Ok(())
    }

    #[inline]
    fn legal(&self, lane: usize) -> &[u64] {
        &self.legal[lane * self.words..(lane + 1) * self.words]
    }

    #[inline]
    fn act(&mut self, lane: usize, action: u32) {
        self.place(lane, action as usize);
        self.look(lane);
    }

    #[inline]
    fn done(&self, lane: usize) -> bool {
        self.placed[lane] == self.operations[self.instance[lane] as usize]
    }

    fn makespan(&self, lane: usize) -> u32 {
        self.ready(lane).iter().copied().max().unwrap_or(0)
    }

    fn schedule(&self, lane: usize) -> Schedule {
        let mut operations = Vec::with_capacity(self.placed[lane] as usize);
        for job in 0..self.jobs {
            for op in 0..self.next(lane)[job] {
                let [machine, time] = self.routes[self.row(lane, job) + op as usize];
                let [start, _] = self.starts[(lane * self.jobs + job) * self.longest + op as usize];
                operations.push(Placed { job: job as u32, op, machine, start, end: start + time });
            }
        }
        Schedule { operations }
    }

    fn write_state(&self, lane: usize, state: &mut Vec<u32>) {
        let width = self.jobs * self.longest;
        state.extend(self.starts[lane * width..(lane + 1) * width].iter().map(|[_, rank]| rank));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operation;

    fn shop() -> JobShop {
        // Job 0: machine 0 for 3, machine 1 for 2. Job 1: machine 1 for 4, machine 0 for 1. Job 2: machine 0 for 1.
        let op = |machine, time| Operation { machine, time };
        JobShop::new(2, &[vec![op(0, 3), op(1, 2)], vec![op(1, 4), op(0, 1)], vec![op(0, 1)]]).unwrap()
    }

    #[test]
    fn the_lowest_free_machine_decides() {
        let mut lanes = JobLanes::new(&[shop()], 1, JobOrder::NonDelay(Order::Canonical)).unwrap();
        // Both machines are free at 0; machine 0 comes first, and jobs 0 and 2 wait for it.
        assert_eq!((lanes.machine(0), lanes.legal(0)), (0, [0b101].as_slice()));
        lanes.step(&[2]).unwrap();
        // Machine 1 is still free at 0 and job 1 waits for it; machine 0 is busy until 1.
        assert_eq!((lanes.machine(0), lanes.clock(0), lanes.legal(0)), (1, 0, [0b010].as_slice()));
        lanes.step(&[1]).unwrap();
        assert_eq!((lanes.machine(0), lanes.clock(0), lanes.legal(0)), (0, 1, [0b001].as_slice()));
        lanes.step(&[0]).unwrap();
        // Both machines are free at 4: job 1 waits for machine 0, job 0 for machine 1.
        assert_eq!((lanes.machine(0), lanes.clock(0), lanes.legal(0)), (0, 4, [0b010].as_slice()));
        lanes.step(&[1]).unwrap();
        lanes.step(&[0]).unwrap();
        assert!(lanes.done(0));
        assert_eq!(lanes.makespan(0), 6);
    }

    #[test]
    fn free_order_offers_every_job_that_can_start() {
        let lanes = JobLanes::new(&[shop()], 1, JobOrder::NonDelay(Order::Free)).unwrap();
        assert_eq!(lanes.legal(0), [0b111]);
    }

    #[test]
    fn active_schedules_may_wait() {
        // The earliest end is job 2's on machine 0, at 1: jobs 0 and 2 can start before it.
        let mut lanes = JobLanes::new(&[shop()], 1, JobOrder::Active).unwrap();
        assert_eq!((lanes.machine(0), lanes.legal(0)), (0, [0b101].as_slice()));
        lanes.step(&[0]).unwrap();
        // Ends: job 0 on machine 1 at 5, job 1 on machine 1 at 4, job 2 on machine 0 at 4: tie, machine 0 first.
        assert_eq!((lanes.machine(0), lanes.legal(0)), (0, [0b100].as_slice()));
        lanes.step(&[2]).unwrap();
        // Machine 1: job 1 could end at 4, and job 0 could start at 3, before that: waiting for it is allowed.
        assert_eq!((lanes.machine(0), lanes.legal(0)), (1, [0b011].as_slice()));
    }

    #[test]
    fn the_machine_that_finished_first_decides_and_may_wait() {
        let mut lanes = JobLanes::new(&[shop()], 1, JobOrder::Machine).unwrap();
        // Both machines are free at 0, machine 0 comes first: jobs 0 and 2 want it.
        assert_eq!((lanes.machine(0), lanes.legal(0)), (0, [0b101].as_slice()));
        lanes.step(&[0]).unwrap();
        // Machine 1 has finished first, at 0. Jobs 0 and 1 want it next, job 0 only from 3 on: waiting is allowed.
        assert_eq!((lanes.machine(0), lanes.clock(0), lanes.legal(0)), (1, 0, [0b011].as_slice()));
        lanes.step(&[0]).unwrap();
        // Machine 0 is free at 3, machine 1 at 5. Job 2 alone wants machine 0; nothing can start before 3.
        assert_eq!((lanes.machine(0), lanes.clock(0), lanes.legal(0)), (0, 3, [0b100].as_slice()));
        lanes.step(&[2]).unwrap();
        // Machine 0 is free at 4, but the one job that still needs it comes from machine 1, which decides.
        assert_eq!((lanes.machine(0), lanes.clock(0), lanes.legal(0)), (1, 5, [0b010].as_slice()));
        lanes.step(&[1]).unwrap();
        lanes.step(&[1]).unwrap();
        // Job 0 on machine 1 from 3 to 5, job 1 from 5 to 9, then on machine 0 to 10.
        assert_eq!((lanes.done(0), lanes.makespan(0)), (true, 10));
    }

    #[test]
    fn a_list_has_every_unfinished_job() {
        let mut lanes = JobLanes::new(&[shop()], 1, JobOrder::List).unwrap();
        assert_eq!(lanes.legal(0), [0b111]);
        lanes.step(&[2]).unwrap();
        assert_eq!((lanes.clock(0), lanes.legal(0)), (0, [0b011].as_slice()));
        lanes.step(&[0]).unwrap();
        lanes.step(&[0]).unwrap();
        // Job 0 has taken machine 1 from 4 to 6 before job 1, which could have run there from 0 on.
        lanes.step(&[1]).unwrap();
        lanes.step(&[1]).unwrap();
        assert_eq!((lanes.done(0), lanes.makespan(0)), (true, 11));
    }
}
