//! Lanes for the flexible job shop, with or without resting windows.

use super::lanes::{Build, Lanes, Order, check_reset};
use super::mask;
use crate::{Error, FlexibleShop, Placed, Result, Schedule};

/// A time that never comes: the machine cannot run the operation, or the job has none left.
const NEVER: u32 = u32::MAX;

/// One placed operation: machine, rank on it, start, end.
type Record = [u32; 4];

/// Flexible job shops under construction.
///
/// Canonical: the machine that next becomes free decides, the lowest numbered of those that tie, and the action is the
/// job that it runs next. Free: the action is `job · machines + machine` for any pair that can start at that time.
///
/// With windows a job becomes available when its least rest is over; what its rest exceeds the most by is summed.
///
/// Shops of a pool may differ in all sizes: jobs and machines are numbered as in the largest of them, and those that a
/// shop does not have are never offered.
///
/// Paper: app:sched-driftdial
#[derive(Clone, Debug)]
pub struct FlexibleLanes {
    build: Build,
    lanes: usize,
    jobs: usize,
    machines: usize,
    /// Operations of the longest job.
    longest: usize,
    words: usize,
    /// `[instance, job, operation, machine]`, `NEVER` where the machine cannot run it.
    times: Vec<u32>,
    /// The machines that can run each operation as bits, `[instance, job, operation, machine word]`.
    able: Vec<u64>,
    machine_words: usize,
    /// Least and most rest before each operation, `[instance, job, operation]`.
    rests: Vec<[u32; 2]>,
    /// `[instance, job]`.
    lengths: Vec<u32>,
    operations: Vec<u32>,
    instance: Vec<u32>,
    placed: Vec<u32>,
    /// `[lane, job]`: how many operations are done, and when the next may start (`NEVER` for a finished job).
    next: Vec<u32>,
    ready: Vec<u32>,
    /// `[lane, machine]`: when the machine is free, and how many operations it has run.
    free: Vec<u32>,
    rank: Vec<u32>,
    /// `[lane, job, operation]`.
    records: Vec<Record>,
    /// `[lane, job]`: the cell of the next operation in `rests`, and by words in `able`.
    cells: Vec<u32>,
    machine: Vec<u32>,
    clock: Vec<u32>,
    makespan: Vec<u32>,
    violation: Vec<u64>,
    legal: Vec<u64>,
}

impl FlexibleLanes {
    /// Lanes over a pool of flexible shops, building non-delay schedules.
    ///
    /// # Errors
    /// If the pool is empty.
    pub fn new(pool: &[FlexibleShop], lanes: usize, order: Order) -> Result<Self> {
        Self::build(pool, lanes, Build::NonDelay(order))
    }

    /// Lanes that build active schedules (Giffler and Thompson) in a canonical order: the machine on which an operation
    /// can end earliest, and the jobs that can start on it before that end.
    ///
    /// Some optimum is among them. What an optimum starts on that machine before that end is one of those jobs, since
    /// nothing can end earlier and make way for another; and if it starts nothing there, the operation that can end
    /// earliest may as well run there, where it ends no later and is in nobody's way.
    ///
    /// # Errors
    /// If the pool is empty.
    pub fn active(pool: &[FlexibleShop], lanes: usize) -> Result<Self> {
        Self::build(pool, lanes, Build::Active)
    }

    fn build(pool: &[FlexibleShop], lanes: usize, build: Build) -> Result<Self> {
        if pool.is_empty() {
            return Err(Error::Choice("lanes: expected at least one instance, got none".into()));
        }
        let jobs = pool.iter().map(FlexibleShop::jobs).max().unwrap_or(0);
        let machines = pool.iter().map(FlexibleShop::machines).max().unwrap_or(0);
        // The operations of each job of each shop, none where a shop has no such job.
        let all = || pool.iter().flat_map(|shop| (0..jobs).map(move |job| (shop, route(shop, job))));
        let longest = all().map(|(_, route)| route.len()).max().unwrap_or(0);
        let mut times = vec![NEVER; pool.len() * jobs * longest * machines];
        let mut rests = vec![[0, NEVER]; pool.len() * jobs * longest];
        let machine_words = machines.div_ceil(64);
        let mut able = vec![0; rests.len() * machine_words];
        for (row, (shop, route)) in all().enumerate() {
            for (index, operation) in route.enumerate() {
                let cell = row * longest + index;
                let window = shop.window(operation);
                rests[cell] = [window.min, window.max.unwrap_or(NEVER)];
                for choice in shop.alternatives(operation) {
                    times[cell * machines + choice.machine as usize] = choice.time;
                    mask::allow(
                        &mut able[cell * machine_words..(cell + 1) * machine_words],
                        choice.machine as usize,
                    );
                }
            }
        }
        let words = actions(build, jobs, machines).div_ceil(64);
        let mut made = Self {
            build,
            lanes,
            jobs,
            machines,
            longest,
            words,
            times,
            able,
            machine_words,
            rests,
            lengths: all().map(|(_, route)| route.len() as u32).collect(),
            operations: pool.iter().map(|shop| shop.operations() as u32).collect(),
            instance: (0..lanes).map(|lane| (lane % pool.len()) as u32).collect(),
            placed: vec![0; lanes],
            next: vec![0; lanes * jobs],
            ready: vec![0; lanes * jobs],
            free: vec![0; lanes * machines],
            rank: vec![0; lanes * machines],
            records: vec![[NEVER; 4]; lanes * jobs * longest],
            cells: vec![0; lanes * jobs],
            machine: vec![0; lanes],
            clock: vec![0; lanes],
            makespan: vec![0; lanes],
            violation: vec![0; lanes],
            legal: vec![0; lanes * words],
        };
        made.clear();
        Ok(made)
    }

    fn clear(&mut self) {
        self.placed.fill(0);
        self.next.fill(0);
        self.free.fill(0);
        self.rank.fill(0);
        self.records.fill([NEVER; 4]);
        self.clock.fill(0);
        self.makespan.fill(0);
        self.violation.fill(0);
        for lane in 0..self.lanes {
            for job in 0..self.jobs {
                let row = self.instance[lane] as usize * self.jobs + job;
                self.cells[lane * self.jobs + job] = (row * self.longest) as u32;
                self.ready[lane * self.jobs + job] = if self.lengths[row] == 0 { NEVER } else { 0 };
            }
            self.look(lane);
        }
    }

    /// The machine whose slot is decided next; under [`Order::Free`], the lowest numbered of several.
    #[must_use]
    pub fn machine(&self, lane: usize) -> u32 {
        self.machine[lane]
    }

    /// The time of the decision at hand: when it starts an operation, or the earliest end where schedules are active.
    #[must_use]
    pub fn clock(&self, lane: usize) -> u32 {
        self.clock[lane]
    }

    /// The jobs and machines of the largest shop, by which actions are numbered.
    #[must_use]
    pub const fn sizes(&self) -> (usize, usize) {
        (self.jobs, self.machines)
    }

    /// How many operations of each job are done: `[job]`.
    #[must_use]
    pub fn next(&self, lane: usize) -> &[u32] {
        &self.next[lane * self.jobs..(lane + 1) * self.jobs]
    }

    /// When each job's next operation may start, its least rest included; `u32::MAX` for a finished job: `[job]`.
    #[must_use]
    pub fn ready(&self, lane: usize) -> &[u32] {
        &self.ready[lane * self.jobs..(lane + 1) * self.jobs]
    }

    /// When each machine is free: `[machine]`.
    #[must_use]
    pub fn free(&self, lane: usize) -> &[u32] {
        &self.free[lane * self.machines..(lane + 1) * self.machines]
    }

    /// The times of a job's next operation on each machine, `u32::MAX` where it cannot run: `[machine]`.
    ///
    /// # Panics
    /// If the job is finished.
    #[must_use]
    pub fn next_times(&self, lane: usize, job: usize) -> &[u32] {
        assert!(self.ready(lane)[job] != NEVER, "job {job} of lane {lane} is finished");
        let cell = self.cells[lane * self.jobs + job] as usize;
        &self.times[cell * self.machines..(cell + 1) * self.machines]
    }

    /// By how much the rests of a lane exceed their most, in all.
    #[must_use]
    pub fn violation(&self, lane: usize) -> u64 {
        self.violation[lane]
    }

    /// Finds the decision at hand and its legal actions.
    #[inline]
    fn look(&mut self, lane: usize) {
        self.legal[lane * self.words..(lane + 1) * self.words].fill(0);
        if self.placed[lane] == self.operations[self.instance[lane] as usize] {
            return;
        }
        match self.build {
            Build::NonDelay(order) => self.look_now(lane, order),
            Build::Active => self.look_ahead(lane),
        }
    }

    /// The machine on which an operation can end earliest, the lowest numbered of those that tie.
    fn look_ahead(&mut self, lane: usize) {
        let (jobs, m) = (self.jobs, self.machines);
        let ready = &self.ready[lane * jobs..(lane + 1) * jobs];
        let cells = &self.cells[lane * jobs..(lane + 1) * jobs];
        let free = &self.free[lane * m..(lane + 1) * m];
        let span = |job: usize, machine: usize| {
            let time = self.times[cells[job] as usize * m + machine];
            let start = ready[job].max(free[machine]);
            (ready[job] != NEVER && time != NEVER).then(|| (start, start + time))
        };
        let ends = |job| (0..m).filter_map(move |machine| Some((span(job, machine)?.1, machine)));
        let Some((end, machine)) = (0..jobs).flat_map(ends).min() else { return };
        let legal = &mut self.legal[lane * self.words..(lane + 1) * self.words];
        for job in 0..jobs {
            // An operation without length may start at the very end that it sets.
            if span(job, machine).is_some_and(|(start, last)| start < end || last == end) {
                mask::allow(legal, job);
            }
        }
        self.machine[lane] = machine as u32;
        self.clock[lane] = end;
    }

    /// The clock stands still while some job waits for an idle machine, and then moves to the next time at which a
    /// machine or a job becomes free. Everything that could have started earlier has, so the clock never turns back.
    #[inline]
    fn look_now(&mut self, lane: usize, order: Order) {
        let (jobs, m, words) = (self.jobs, self.machines, self.machine_words);
        let ready = &self.ready[lane * jobs..(lane + 1) * jobs];
        let cells = &self.cells[lane * jobs..(lane + 1) * jobs];
        let free = &self.free[lane * m..(lane + 1) * m];
        let mut clock = self.clock[lane];
        let first = 'search: loop {
            for (word, free) in free.chunks(64).enumerate() {
                let idle = free
                    .iter()
                    .enumerate()
                    .fold(0, |bits, (bit, &free)| bits | u64::from(free <= clock) << bit);
                // Which jobs wait cannot be predicted: masks rather than branches.
                let mut wanted = 0;
                for (&ready, &cell) in ready.iter().zip(cells) {
                    let waits = u64::from(ready <= clock).wrapping_neg();
                    wanted |= self.able[cell as usize * words + word] & waits;
                }
                if wanted & idle != 0 {
                    break 'search 64 * word as u32 + (wanted & idle).trailing_zeros();
                }
            }
            // An operation is left, so a machine or a job becomes free later.
            let later = |time: &u32| if *time > clock { *time } else { NEVER };
            clock = ready.iter().chain(free).map(later).min().unwrap_or(NEVER);
        };
        let legal = &mut self.legal[lane * self.words..(lane + 1) * self.words];
        let (first_word, first_bit) = (first as usize / 64, first % 64);
        for (job, (&ready, &cell)) in ready.iter().zip(cells).enumerate() {
            match order {
                Order::Canonical => {
                    let able = self.able[cell as usize * words + first_word] >> first_bit & 1;
                    legal[job / 64] |= (able & u64::from(ready <= clock)) << (job % 64);
                }
                Order::Free => {
                    let able = &self.able[cell as usize * words..(cell as usize + 1) * words];
                    for machine in 0..m {
                        if ready <= clock && free[machine] <= clock && mask::allows(able, machine as u32) {
                            mask::allow(legal, job * m + machine);
                        }
                    }
                }
            }
        }
        self.machine[lane] = first;
        self.clock[lane] = clock;
    }

    /// Starts a job's next operation on a machine as early as it can.
    #[inline]
    fn place(&mut self, lane: usize, job: usize, machine: usize) {
        let slot = lane * self.jobs + job;
        let op = self.next[slot] as usize;
        let cell = self.cells[slot] as usize;
        let at = lane * self.machines + machine;
        let start = self.ready[slot].max(self.free[at]);
        let end = start + self.times[cell * self.machines + machine];
        if op > 0 {
            let before = self.records[slot * self.longest + op - 1][3];
            let most = self.rests[cell][1];
            self.violation[lane] += u64::from((start - before).saturating_sub(most));
        }
        self.records[slot * self.longest + op] = [machine as u32, self.rank[at], start, end];
        self.rank[at] += 1;
        self.free[at] = end;
        self.next[slot] += 1;
        self.placed[lane] += 1;
        self.makespan[lane] = self.makespan[lane].max(end);
        let length = self.lengths[self.instance[lane] as usize * self.jobs + job] as usize;
        if op + 1 < length {
            self.ready[slot] = end + self.rests[cell + 1][0];
            self.cells[slot] += 1;
        } else {
            self.ready[slot] = NEVER;
        }
    }
}

/// The flat numbers of a job's operations; none where the shop has no such job.
fn route(shop: &FlexibleShop, job: usize) -> std::ops::Range<usize> {
    if job < shop.jobs() { shop.job(job) } else { 0..0 }
}

/// Jobs, or jobs with machines where the action chooses both.
const fn actions(build: Build, jobs: usize, machines: usize) -> usize {
    match build {
        Build::NonDelay(Order::Free) => jobs * machines,
        Build::NonDelay(Order::Canonical) | Build::Active => jobs,
    }
}

impl Lanes for FlexibleLanes {
    fn lanes(&self) -> usize {
        self.lanes
    }

    fn actions(&self) -> usize {
        actions(self.build, self.jobs, self.machines)
    }

    fn horizon(&self) -> usize {
        self.operations.iter().copied().max().unwrap_or(0) as usize
    }

    fn reset(&mut self, instances: &[u32]) -> Result<()> {
        check_reset(instances, self.lanes, self.operations.len())?;
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
        let (job, machine) = match self.build {
            Build::NonDelay(Order::Free) => {
                (action as usize / self.machines, action as usize % self.machines)
            }
            Build::NonDelay(Order::Canonical) | Build::Active => {
                (action as usize, self.machine[lane] as usize)
            }
        };
        self.place(lane, job, machine);
        self.look(lane);
    }

    #[inline]
    fn done(&self, lane: usize) -> bool {
        self.placed[lane] == self.operations[self.instance[lane] as usize]
    }

    fn makespan(&self, lane: usize) -> u32 {
        self.makespan[lane]
    }

    fn schedule(&self, lane: usize) -> Schedule {
        let mut operations = Vec::with_capacity(self.placed[lane] as usize);
        for job in 0..self.jobs {
            for op in 0..self.next(lane)[job] {
                let [machine, _, start, end] =
                    self.records[(lane * self.jobs + job) * self.longest + op as usize];
                operations.push(Placed { job: job as u32, op, machine, start, end });
            }
        }
        Schedule { operations }
    }

    fn write_state(&self, lane: usize, state: &mut Vec<u32>) {
        let width = self.jobs * self.longest;
        let records = &self.records[lane * width..(lane + 1) * width];
        state.extend(records.iter().flat_map(|[machine, rank, _, _]| [machine, rank]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Alternative, Window};

    #[test]
    fn rests_hold_and_their_excess_is_measured() {
        // One machine. Job 0: 2, then 1 after a rest of 1 to 2. Job 1: 5.
        // Order 0, 1, 0: 0–2, 2–7 (job 0 rests until 3, so only job 1 can start at 2), 7–8: a rest of 5, 3 too long.
        let on = |time| vec![Alternative { machine: 0, time }];
        let shop = FlexibleShop::new(1, &[vec![on(2), on(1)], vec![on(5)]])
            .and_then(|shop| {
                shop.with_windows(&[vec![Window::FREE, Window { min: 1, max: Some(2) }], vec![Window::FREE]])
            })
            .unwrap();
        let mut lanes = FlexibleLanes::new(std::slice::from_ref(&shop), 1, Order::Canonical).unwrap();
        lanes.step(&[0]).unwrap();
        assert_eq!((lanes.clock(0), lanes.legal(0)), (2, [0b10].as_slice()));
        lanes.step(&[1]).unwrap();
        lanes.step(&[0]).unwrap();
        assert!(lanes.done(0));
        assert_eq!((lanes.makespan(0), lanes.violation(0)), (8, 3));
        assert_eq!(lanes.schedule(0).violation(&shop), 3);
    }

    #[test]
    fn machines_without_work_are_passed_over() {
        // Machine 0 can run nothing at first; machine 1 decides, then machine 0 gets the second operation.
        let on = |machine, time| Alternative { machine, time };
        let shop = FlexibleShop::new(2, &[vec![vec![on(1, 2)], vec![on(0, 3), on(1, 1)]]]).unwrap();
        let mut lanes = FlexibleLanes::new(std::slice::from_ref(&shop), 1, Order::Canonical).unwrap();
        assert_eq!(lanes.machine(0), 1);
        lanes.step(&[0]).unwrap();
        // At 2 both machines are free: machine 0 comes first.
        assert_eq!((lanes.machine(0), lanes.clock(0)), (0, 2));
        let mut free = FlexibleLanes::new(&[shop], 1, Order::Free).unwrap();
        free.step(&[1]).unwrap();
        assert_eq!(free.legal(0), [0b11]);
    }
}
