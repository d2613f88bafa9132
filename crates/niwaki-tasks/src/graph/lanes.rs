//! Shops under construction: what a lane shows, what is open, what was chosen.

use super::features::{Features, MACHINE, Placement};
use super::task::GraphSizes;
use crate::{Error, Outcome};
use niwaki_shop::construct::{FlexibleLanes, JobOrder, Lanes, Order};
use niwaki_shop::{FlexibleShop, Schedule};
use std::sync::Arc;

/// Graphs under construction.
#[derive(Clone, Debug)]
pub struct GraphLanes {
    shops: Arc<[FlexibleShop]>,
    sizes: GraphSizes,
    lanes: FlexibleLanes,
    /// Whether an action of the lanes is a pair, or a job for the machine that decides.
    pairs: bool,
    /// `[lane]`, as are the features.
    instances: Vec<u32>,
    features: Vec<Features>,
}

impl GraphLanes {
    pub(super) fn new(
        shops: Arc<[FlexibleShop]>,
        sizes: GraphSizes,
        order: JobOrder,
        instances: &[u32],
    ) -> Result<Self, Error> {
        let mut lanes = match order {
            JobOrder::NonDelay(order) => FlexibleLanes::new(&shops, instances.len(), order)?,
            JobOrder::Active => FlexibleLanes::active(&shops, instances.len())?,
            JobOrder::Machine | JobOrder::List => return Err(Error::GraphOrder),
        };
        lanes.reset(instances)?;
        let empty =
            |&instance: &u32| Features::new(&shops[instance as usize], sizes.features, sizes.machines);
        let features = instances.iter().map(empty).collect();
        let pairs = order == JobOrder::NonDelay(Order::Free);
        Ok(Self { shops, sizes, lanes, pairs, instances: instances.to_vec(), features })
    }

    /// Lanes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.instances.len()
    }

    /// Steps until the last lane is complete, from the beginning.
    #[must_use]
    pub fn longest(&self) -> usize {
        (0..self.count()).map(|lane| self.shop(lane).operations()).max().unwrap_or(0)
    }

    /// The instance of a lane.
    #[must_use]
    pub fn instance(&self, lane: usize) -> usize {
        self.instances[lane] as usize
    }

    /// The shop of a lane.
    #[must_use]
    pub fn shop(&self, lane: usize) -> &FlexibleShop {
        &self.shops[self.instance(lane)]
    }

    /// When each job's next operation could start as far as the job goes: `[job]`, with what a larger shop has behind.
    #[must_use]
    pub fn ready(&self, lane: usize) -> &[u32] {
        self.lanes.ready(lane)
    }

    /// When each machine is free: `[machine]`, with what a larger shop has behind.
    #[must_use]
    pub fn free(&self, lane: usize) -> &[u32] {
        self.lanes.free(lane)
    }

    /// Whether a lane's schedule is complete.
    #[must_use]
    pub fn done(&self, lane: usize) -> bool {
        self.lanes.done(lane)
    }

    /// The features of a lane's own operations: `[operation, feature]`.
    #[must_use]
    pub fn operations(&self, lane: usize) -> &[f64] {
        &self.features[lane].operations
    }

    /// The times of a lane's arcs, 0 where there is none; rows are its own operations, columns the machines of the
    /// largest shop.
    ///
    /// Shapes: `[operation, machine]`
    #[must_use]
    pub fn arcs(&self, lane: usize) -> &[f64] {
        &self.features[lane].arcs
    }

    /// Which arcs there are, 1 or 0, since one may have no length: as [`GraphLanes::arcs`].
    #[must_use]
    pub fn able(&self, lane: usize) -> &[u8] {
        &self.features[lane].able
    }

    /// The features of a lane's own machines: `[machine]`.
    pub fn machines(&self, lane: usize) -> impl Iterator<Item = [f64; MACHINE]> + Clone + '_ {
        let (features, clock) = (&self.features[lane], f64::from(self.lanes.clock(lane)));
        let machine = move |((&reach, &work), &free): ((&u32, &u64), &u32)| {
            let busy = if clock > 0.0 { (work as f64).min(clock) / clock } else { 0.0 };
            [f64::from(reach), f64::from(free), busy]
        };
        features.reach.iter().zip(&features.work).zip(self.lanes.free(lane)).map(machine)
    }

    /// Each job's next operation among the lane's own, `None` for a finished job or one that the shop does not have:
    /// `[job]`.
    pub fn next(&self, lane: usize) -> impl Iterator<Item = Option<usize>> + '_ {
        let shop = self.shop(lane);
        let next = move |(job, &done): (usize, &u32)| {
            let route = if job < shop.jobs() { shop.job(job) } else { 0..0 };
            route.clone().nth(done as usize)
        };
        self.lanes.next(lane).iter().enumerate().map(next)
    }

    /// The pairs that a lane may choose, in rising order; none once it is complete.
    pub fn open(&self, lane: usize) -> impl Iterator<Item = usize> + '_ {
        let (machines, machine) = (self.sizes.machines, self.lanes.machine(lane) as usize);
        let words = self.lanes.legal(lane).iter().enumerate();
        let bits = words.flat_map(|(word, &bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| 64 * word + bit)
        });
        bits.map(move |action| if self.pairs { action } else { action * machines + machine })
    }

    /// Takes one pair in every lane that is not complete; the others pass over theirs. Nothing moves where one is closed.
    ///
    /// # Errors
    /// If there is not one pair per lane, or one is closed.
    pub fn choose(&mut self, pairs: &[i32]) -> Result<(), Error> {
        let lanes = self.instances.len();
        if pairs.len() != lanes {
            return Err(Error::Choices { expected: lanes, came: pairs.len() });
        }
        for (lane, &pair) in pairs.iter().enumerate().filter(|(lane, _)| !self.lanes.done(*lane)) {
            if !self.open(lane).any(|open| open as i32 == pair) {
                return Err(Error::Closed { lane, choice: pair });
            }
        }
        for (lane, &pair) in pairs.iter().enumerate() {
            if !self.lanes.done(lane) {
                self.take(lane, pair as usize);
            }
        }
        Ok(())
    }

    /// Takes an open pair in one lane.
    fn take(&mut self, lane: usize, pair: usize) {
        let (job, machine) = (pair / self.sizes.machines, pair % self.sizes.machines);
        let start = self.lanes.ready(lane)[job].max(self.lanes.free(lane)[machine]);
        let index = self.lanes.next(lane)[job] as usize;
        let shop = &self.shops[self.instances[lane] as usize];
        self.features[lane].place(shop, Placement { job, index, machine, start });
        self.lanes.act(lane, if self.pairs { pair } else { job } as u32);
    }

    /// How a complete lane turned out.
    #[must_use]
    pub fn outcome(&self, lane: usize) -> Outcome {
        Outcome { makespan: self.lanes.makespan(lane), late: 0, violation: self.lanes.violation(lane) }
    }

    /// What a lane has scheduled so far.
    #[must_use]
    pub fn schedule(&self, lane: usize) -> Schedule {
        self.lanes.schedule(lane)
    }
}

#[cfg(test)]
mod tests {
    use crate::GraphTask;
    use niwaki_shop::{Alternative, Bounds, FlexibleShop, Instance, Window};

    fn task(shop: FlexibleShop, order: usize) -> GraphTask {
        let bounds = vec![Bounds { lower: 1, upper: 1 }];
        GraphTask::new(vec![Instance::Flexible(shop)], bounds, 1, GraphTask::ORDERS[order].1).unwrap()
    }

    /// Job 0: machine 0 for 2 or machine 1 for 4, then machine 1 for 3. Job 1: machine 0 for 1, then 5 or 1.
    fn two_by_two() -> FlexibleShop {
        let on = |machine, time| Alternative { machine, time };
        let jobs =
            [vec![vec![on(0, 2), on(1, 4)], vec![on(1, 3)]], vec![vec![on(0, 1)], vec![on(0, 5), on(1, 1)]]];
        FlexibleShop::new(2, &jobs).unwrap()
    }

    #[test]
    fn a_shop_of_two_jobs_and_two_machines_step_by_step() {
        let task = task(two_by_two(), 0);
        let mut lanes = task.begin(&[0]).unwrap();
        assert_eq!(
            task.neighbours(0),
            [GraphTask::AFTER, GraphTask::BEFORE, GraphTask::AFTER, GraphTask::BEFORE]
        );
        let sizes = task.sizes();
        assert_eq!((sizes.operations, sizes.features, sizes.pairs()), (4, 6, 4));
        // Placed, arcs, time, left, completion, start. Mean times 3, 3, 1, 3: job 0 would end at 6, job 1 at 4.
        let mut operations = [
            [0.0, 2.0, 3.0, 2.0, 6.0, 0.0],
            [0.0, 1.0, 3.0, 2.0, 6.0, 3.0],
            [0.0, 1.0, 1.0, 2.0, 4.0, 0.0],
            [0.0, 2.0, 3.0, 2.0, 4.0, 1.0],
        ];
        let mut arcs = [[2.0, 4.0], [0.0, 3.0], [1.0, 0.0], [5.0, 1.0]];
        let shown = |lanes: &super::GraphLanes| (lanes.operations(0).to_vec(), lanes.arcs(0).to_vec());
        assert_eq!(shown(&lanes), (operations.concat(), arcs.concat()));
        assert_eq!(lanes.able(0), [1, 1, 0, 1, 1, 0, 1, 1]);
        // Arcs, free, busy.
        assert_eq!(lanes.machines(0).collect::<Vec<_>>(), [[3.0, 0.0, 0.0]; 2]);
        // Machine 0 decides: job 0 or job 1 on it.
        assert_eq!(lanes.open(0).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(lanes.next(0).collect::<Vec<_>>(), [Some(0), Some(2)]);
        for closed in [-1, 1, 3, 4] {
            assert_eq!(
                lanes.choose(&[closed]).unwrap_err().to_string(),
                format!("lane 0: choice {closed} is closed")
            );
        }
        assert!(lanes.choose(&[]).is_err());

        // Job 1 on machine 0, from 0 to 1. Now only machine 1 is idle, and only job 0 waits: it is forced.
        lanes.choose(&[2]).unwrap();
        operations[2] = [1.0, 1.0, 1.0, 1.0, 4.0, 0.0];
        operations[3] = [0.0, 2.0, 3.0, 1.0, 4.0, 1.0];
        assert_eq!(shown(&lanes), (operations.concat(), arcs.concat()));
        assert_eq!(lanes.machines(0).collect::<Vec<_>>(), [[3.0, 1.0, 0.0], [3.0, 0.0, 0.0]]);
        assert_eq!((lanes.open(0).collect::<Vec<_>>(), lanes.next(0).last()), (vec![1], Some(Some(3))));

        // Job 0 on machine 1, from 0 to 4: it would end at 7. Machine 0 loses an arc. At 1 machine 0 decides.
        lanes.choose(&[1]).unwrap();
        operations[0] = [1.0, 1.0, 4.0, 1.0, 7.0, 0.0];
        operations[1] = [0.0, 1.0, 3.0, 1.0, 7.0, 4.0];
        arcs[0] = [0.0, 4.0];
        assert_eq!(shown(&lanes), (operations.concat(), arcs.concat()));
        assert_eq!(lanes.machines(0).collect::<Vec<_>>(), [[2.0, 1.0, 1.0], [3.0, 4.0, 1.0]]);
        assert_eq!(lanes.open(0).collect::<Vec<_>>(), [2]);

        // Job 1 on machine 0 again, from 1 to 6, though machine 1 is faster. At 4 machine 1 decides.
        lanes.choose(&[2]).unwrap();
        operations[2] = [1.0, 1.0, 1.0, 0.0, 6.0, 0.0];
        operations[3] = [1.0, 1.0, 5.0, 0.0, 6.0, 1.0];
        arcs[3] = [5.0, 0.0];
        assert_eq!(shown(&lanes), (operations.concat(), arcs.concat()));
        // Machine 0 has 6 units of work placed, of which 4 are over by the clock: it was always busy.
        assert_eq!(lanes.machines(0).collect::<Vec<_>>(), [[2.0, 6.0, 1.0], [2.0, 4.0, 1.0]]);
        assert_eq!(lanes.next(0).collect::<Vec<_>>(), [Some(1), None]);
        assert_eq!(lanes.open(0).collect::<Vec<_>>(), [1]);

        lanes.choose(&[1]).unwrap();
        assert!(lanes.done(0) && lanes.open(0).next().is_none() && lanes.choose(&[-1]).is_ok());
        assert_eq!((lanes.outcome(0).makespan, lanes.schedule(0).makespan()), (7, 7));
    }

    #[test]
    fn in_the_free_order_a_choice_takes_a_machine_too() {
        let task = task(two_by_two(), 1);
        let mut lanes = task.begin(&[0]).unwrap();
        assert_eq!(lanes.open(0).collect::<Vec<_>>(), [0, 1, 2]);
        // Job 0 on machine 1 first, while machine 0 is idle.
        lanes.choose(&[1]).unwrap();
        assert_eq!((lanes.open(0).collect::<Vec<_>>(), lanes.operations(0)[5]), (vec![2], 0.0));
    }

    #[test]
    fn rests_count_in_estimates_and_are_shown() {
        // One machine. 2, then after a rest of 1 to 4 again 2; another job of 5 whose second operation may rest for ever.
        let on = |time| vec![Alternative { machine: 0, time }];
        let windows = [
            vec![Window::FREE, Window { min: 1, max: Some(4) }],
            vec![Window::FREE, Window { min: 2, max: None }],
        ];
        let shop = FlexibleShop::new(1, &[vec![on(2), on(2)], vec![on(5), on(1)]]).unwrap();
        let task = task(shop.with_windows(&windows).unwrap(), 0);
        let mut lanes = task.begin(&[0]).unwrap();
        // The first job would end at 2 + 1 + 2, the second at 5 + 2 + 1. The only slack is 3, which stands for none, too.
        let expected = [
            [0.0, 1.0, 2.0, 2.0, 5.0, 0.0, 0.0, 3.0],
            [0.0, 1.0, 2.0, 2.0, 5.0, 3.0, 1.0, 3.0],
            [0.0, 1.0, 5.0, 2.0, 8.0, 0.0, 0.0, 3.0],
            [0.0, 1.0, 1.0, 2.0, 8.0, 7.0, 2.0, 3.0],
        ];
        assert_eq!(lanes.operations(0), expected.concat());
        lanes.choose(&[1]).unwrap();
        // Job 0 was not placed: its estimate stays at 0 and is not lifted to the clock, which is 5.
        assert_eq!(lanes.operations(0)[..16], expected.concat()[..16]);
        assert_eq!(lanes.machines(0).collect::<Vec<_>>(), [[4.0, 5.0, 1.0]]);
    }

    #[test]
    fn what_is_no_graph_is_named() {
        let bounds = || vec![Bounds { lower: 1, upper: 1 }];
        let shops = || vec![Instance::Flexible(two_by_two())];
        let list = GraphTask::new(shops(), bounds(), 1, crate::Reading::ORDERS[3].1).unwrap_err().to_string();
        assert_eq!(list, "graphs are built in the orders 'non-delay', 'free' and 'active' only");
        let single = niwaki_shop::SingleMachine::new(vec![1], vec![1]).unwrap();
        let other = GraphTask::new(vec![Instance::Single(single)], bounds(), 1, GraphTask::ORDERS[0].1);
        assert_eq!(
            other.unwrap_err().to_string(),
            "this is a single machine, but the task is 'flexible-shop'"
        );
        assert!(GraphTask::new(shops(), vec![], 1, GraphTask::ORDERS[0].1).is_err());
        assert!(task(two_by_two(), 2).begin(&[1]).is_err());
    }
}
