//! Lanes for problems whose solution is one order of the jobs: flow shop, lagged flow shop, single machine.

use super::lanes::{Lanes, Order, check_pool, check_reset};
use super::mask;
use crate::{FlowShop, Instance, Placed, Result, Schedule, SingleMachine, TwoMachineLags};

/// An empty position.
const NONE: u32 = u32::MAX;

/// Jobs with their times, lags and due dates, instance after instance.
#[derive(Clone, Debug)]
struct Pool {
    instances: usize,
    jobs: usize,
    machines: usize,
    /// `[instance, job, machine]`.
    times: Vec<u32>,
    /// The least rest before each machine, `[instance, job, machine]`; empty where no problem has lags.
    lags: Vec<u32>,
    /// `[instance, job]`, `u32::MAX` where nobody waits; empty where no problem has due dates.
    due: Vec<u32>,
}

/// Orders of jobs under construction.
///
/// Canonical: the action is the job for the next position. Free: the action is `job · jobs + position` for any job
/// that is left and any empty position; the makespan then counts the filled positions before the first empty one.
#[derive(Clone, Debug)]
pub struct SequenceLanes {
    pool: Pool,
    order: Order,
    lanes: usize,
    words: usize,
    /// Which instance each lane works on.
    instance: Vec<u32>,
    /// The job at each position: `[lane, job]`.
    slots: Vec<u32>,
    /// Positions before the first empty one.
    prefix: Vec<u32>,
    placed: Vec<u32>,
    /// When each machine has done the prefix: `[lane, machine]`.
    front: Vec<u32>,
    /// Jobs of the prefix that end after their due date.
    late: Vec<u32>,
    legal: Vec<u64>,
}

impl SequenceLanes {
    /// Lanes over a pool of flow shops of one shape.
    ///
    /// # Errors
    /// If the pool is empty or its shapes differ.
    pub fn flow(pool: &[FlowShop], lanes: usize, order: Order) -> Result<Self> {
        let (jobs, machines) = check_pool(pool.iter().map(|shop| (shop.jobs(), shop.machines())))?;
        let times = pool.iter().flat_map(|shop| shop.times().iter().copied()).collect();
        let pool = Pool { instances: pool.len(), jobs, machines, times, lags: Vec::new(), due: Vec::new() };
        Ok(Self::new(pool, lanes, order))
    }

    /// Lanes over a pool of lagged flow shops of one size.
    ///
    /// # Errors
    /// If the pool is empty or its sizes differ.
    pub fn lagged(pool: &[TwoMachineLags], lanes: usize, order: Order) -> Result<Self> {
        let (jobs, machines) = check_pool(pool.iter().map(|shop| (shop.jobs(), 2)))?;
        let all = || pool.iter().flat_map(|shop| shop.all());
        let pool = Pool {
            instances: pool.len(),
            jobs,
            machines,
            times: all().flat_map(|job| [job.first, job.second]).collect(),
            lags: all().flat_map(|job| [0, job.lag]).collect(),
            due: all().map(|job| job.due.unwrap_or(u32::MAX)).collect(),
        };
        Ok(Self::new(pool, lanes, order))
    }

    /// Lanes over a pool of single machines of one size.
    ///
    /// # Errors
    /// If the pool is empty or its sizes differ.
    pub fn single(pool: &[SingleMachine], lanes: usize, order: Order) -> Result<Self> {
        let (jobs, machines) = check_pool(pool.iter().map(|shop| (shop.jobs(), 1)))?;
        let pool = Pool {
            instances: pool.len(),
            jobs,
            machines,
            times: pool.iter().flat_map(|shop| shop.times().iter().copied()).collect(),
            lags: Vec::new(),
            due: pool.iter().flat_map(|shop| shop.due().iter().copied()).collect(),
        };
        Ok(Self::new(pool, lanes, order))
    }

    fn new(pool: Pool, lanes: usize, order: Order) -> Self {
        let actions = match order {
            Order::Canonical => pool.jobs,
            Order::Free => pool.jobs * pool.jobs,
        };
        let words = actions.div_ceil(64);
        let mut made = Self {
            order,
            lanes,
            words,
            instance: (0..lanes).map(|lane| (lane % pool.instances) as u32).collect(),
            slots: vec![NONE; lanes * pool.jobs],
            prefix: vec![0; lanes],
            placed: vec![0; lanes],
            front: vec![0; lanes * pool.machines],
            late: vec![0; lanes],
            legal: vec![0; lanes * words],
            pool,
        };
        made.clear();
        made
    }

    fn clear(&mut self) {
        self.slots.fill(NONE);
        self.prefix.fill(0);
        self.placed.fill(0);
        self.front.fill(0);
        self.late.fill(0);
        let actions = self.actions();
        for lane in 0..self.lanes {
            mask::fill(&mut self.legal[lane * self.words..(lane + 1) * self.words], actions);
        }
    }

    /// When each machine has done what a lane has sequenced: `[machine]`.
    #[must_use]
    pub fn front(&self, lane: usize) -> &[u32] {
        &self.front[lane * self.pool.machines..(lane + 1) * self.pool.machines]
    }

    /// The jobs that a lane has sequenced without a gap, in order.
    #[must_use]
    pub fn sequence(&self, lane: usize) -> &[u32] {
        &self.slots[lane * self.pool.jobs..][..self.prefix[lane] as usize]
    }

    /// Sequenced jobs that end after their due date.
    #[must_use]
    pub fn late(&self, lane: usize) -> u32 {
        self.late[lane]
    }

    /// Runs a job after the lane's prefix.
    #[inline]
    fn advance(&mut self, lane: usize, job: usize) {
        let m = self.pool.machines;
        let row = self.instance[lane] as usize * self.pool.jobs + job;
        let front = &mut self.front[lane * m..(lane + 1) * m];
        let times = &self.pool.times[row * m..(row + 1) * m];
        let mut ready = 0;
        if self.pool.lags.is_empty() {
            for (free, &time) in front.iter_mut().zip(times) {
                ready = ready.max(*free) + time;
                *free = ready;
            }
        } else {
            let lags = &self.pool.lags[row * m..(row + 1) * m];
            for ((free, &time), &lag) in front.iter_mut().zip(times).zip(lags) {
                ready = (ready + lag).max(*free) + time;
                *free = ready;
            }
        }
        if !self.pool.due.is_empty() {
            self.late[lane] += u32::from(ready > self.pool.due[row]);
        }
    }

    /// Puts a job at the lane's next position.
    #[inline]
    fn append(&mut self, lane: usize, job: usize) {
        self.slots[lane * self.pool.jobs + self.prefix[lane] as usize] = job as u32;
        self.prefix[lane] += 1;
        self.placed[lane] += 1;
        mask::forbid(&mut self.legal[lane * self.words..(lane + 1) * self.words], job);
        self.advance(lane, job);
    }

    /// Puts a job at any empty position.
    fn insert(&mut self, lane: usize, job: usize, position: usize) {
        let jobs = self.pool.jobs;
        self.slots[lane * jobs + position] = job as u32;
        self.placed[lane] += 1;
        let legal = &mut self.legal[lane * self.words..(lane + 1) * self.words];
        for other in 0..jobs {
            mask::forbid(legal, job * jobs + other);
            mask::forbid(legal, other * jobs + position);
        }
        while (self.prefix[lane] as usize) < jobs {
            let next = self.slots[lane * jobs + self.prefix[lane] as usize];
            if next == NONE {
                break;
            }
            self.advance(lane, next as usize);
            self.prefix[lane] += 1;
        }
    }
}

impl Lanes for SequenceLanes {
    fn lanes(&self) -> usize {
        self.lanes
    }

    fn actions(&self) -> usize {
        match self.order {
            Order::Canonical => self.pool.jobs,
            Order::Free => self.pool.jobs * self.pool.jobs,
        }
    }

    fn horizon(&self) -> usize {
        self.pool.jobs
    }

    fn reset(&mut self, instances: &[u32]) -> Result<()> {
        check_reset(instances, self.lanes, self.pool.instances)?;
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
        let (action, jobs) = (action as usize, self.pool.jobs);
        match self.order {
            Order::Canonical => self.append(lane, action),
            Order::Free => self.insert(lane, action / jobs, action % jobs),
        }
    }

    #[inline]
    fn done(&self, lane: usize) -> bool {
        self.placed[lane] as usize == self.pool.jobs
    }

    fn makespan(&self, lane: usize) -> u32 {
        self.front(lane)[self.pool.machines - 1]
    }

    fn schedule(&self, lane: usize) -> Schedule {
        let m = self.pool.machines;
        let mut front = vec![0; m];
        let mut operations = Vec::new();
        for &job in self.sequence(lane) {
            let row = self.instance[lane] as usize * self.pool.jobs + job as usize;
            let mut ready = 0_u32;
            for machine in 0..m {
                let lag = self.pool.lags.get(row * m + machine).copied().unwrap_or(0);
                let start = front[machine].max(ready + lag);
                ready = start + self.pool.times[row * m + machine];
                front[machine] = ready;
                let machine = machine as u32;
                operations.push(Placed { job, op: machine, machine, start, end: ready });
            }
        }
        Schedule { operations }
    }

    fn write_state(&self, lane: usize, state: &mut Vec<u32>) {
        state.extend_from_slice(&self.slots[lane * self.pool.jobs..(lane + 1) * self.pool.jobs]);
    }
}

impl SequenceLanes {
    /// Lanes for one instance whose solution is an order; `None` for the others.
    ///
    /// # Errors
    /// None for a valid instance.
    pub fn of(instance: &Instance, lanes: usize, order: Order) -> Option<Result<Self>> {
        match instance {
            Instance::Flow(shop) => Some(Self::flow(std::slice::from_ref(shop), lanes, order)),
            Instance::Lags(shop) => Some(Self::lagged(std::slice::from_ref(shop), lanes, order)),
            Instance::Single(shop) => Some(Self::single(std::slice::from_ref(shop), lanes, order)),
            Instance::Job(_) | Instance::Flexible(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LaggedJob;

    #[test]
    fn free_positions_end_at_the_same_makespan() {
        let shop = FlowShop::new(3, 2, vec![3, 2, 1, 4, 2, 2]).unwrap();
        let mut lanes = SequenceLanes::flow(std::slice::from_ref(&shop), 1, Order::Free).unwrap();
        // Job 1 at position 2, job 2 at position 0, job 0 at position 1: the order 2, 0, 1.
        lanes.step(&[5]).unwrap();
        assert_eq!(lanes.makespan(0), 0, "nothing runs before the first position is filled");
        lanes.step(&[6]).unwrap();
        lanes.step(&[1]).unwrap();
        assert!(lanes.done(0) && mask::count(lanes.legal(0)) == 0);
        assert_eq!((lanes.sequence(0), lanes.makespan(0)), ([2, 0, 1].as_slice(), shop.makespan(&[2, 0, 1])));
    }

    #[test]
    fn lags_and_due_dates_count() {
        // Job 0: 2, lag 5, 1, due 8; job 1: 3, lag 0, 2, due 5. Order 0, 1: ends 8 and 10; job 1 is late.
        let job = |first, lag, second, due| LaggedJob { first, lag, second, due: Some(due) };
        let shop = TwoMachineLags::new(vec![job(2, 5, 1, 8), job(3, 0, 2, 5)]).unwrap();
        let mut lanes = SequenceLanes::lagged(&[shop], 2, Order::Canonical).unwrap();
        lanes.step(&[0, 1]).unwrap();
        lanes.step(&[1, 0]).unwrap();
        assert_eq!((lanes.makespan(0), lanes.late(0)), (10, 1));
        // Order 1, 0: ends 5 and 11; job 0 is late.
        assert_eq!((lanes.makespan(1), lanes.late(1)), (11, 1));
    }

    #[test]
    fn illegal_actions_are_named() {
        let shop = FlowShop::new(2, 1, vec![1, 1]).unwrap();
        let mut lanes = SequenceLanes::flow(&[shop], 1, Order::Canonical).unwrap();
        lanes.step(&[1]).unwrap();
        let line = lanes.step(&[1]).unwrap_err().to_string();
        assert_eq!(line, "step: lane 0: expected a legal action, got 1");
        assert!(lanes.step(&[]).is_err() && lanes.reset(&[3]).is_err());
    }
}
