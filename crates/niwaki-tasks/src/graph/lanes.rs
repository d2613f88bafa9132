//! Shops under construction: what a lane shows, what is open, what was chosen.

use super::features::{COMPLETION, Features, MACHINE, Placement};
use super::task::GraphSizes;
use crate::{Error, Outcome};
use niwaki_shop::construct::{FlexibleLanes, JobOrder, Lanes, Order, Standing};
use niwaki_shop::{FlexibleShop, Schedule};
use rayon::prelude::*;
use std::sync::Arc;

/// Lanes that are built together: one thread takes their steps.
const TOGETHER: usize = 32;

/// Graphs under construction.
#[derive(Clone, Debug)]
pub struct GraphLanes {
    shops: Arc<[FlexibleShop]>,
    sizes: GraphSizes,
    /// `[lane]`
    instances: Vec<u32>,
    /// `[lane / TOGETHER]`
    crews: Vec<Crew>,
}

/// Some lanes, with the tables of their own shops alone: a pool may hold many thousands.
#[derive(Clone, Debug)]
struct Crew {
    lanes: FlexibleLanes,
    /// Whether an action of the lanes is a pair, or a job for the machine that decides.
    pairs: bool,
    /// `[lane]`
    features: Vec<Features>,
}

impl Crew {
    fn new(
        shops: &[FlexibleShop],
        sizes: GraphSizes,
        order: JobOrder,
        instances: &[u32],
    ) -> Result<Self, Error> {
        let mut own: Vec<u32> = instances.to_vec();
        own.sort_unstable();
        own.dedup();
        let shop = |&instance: &u32| shops.get(instance as usize).cloned();
        let pool: Vec<FlexibleShop> = own.iter().map_while(shop).collect();
        if pool.len() < own.len() {
            let (instance, count) = (own[pool.len()], shops.len());
            return Err(niwaki_shop::Error::Choice(format!(
                "lanes: expected an instance below {count}, got {instance}"
            ))
            .into());
        }
        let mut lanes = match order {
            JobOrder::NonDelay(order) => FlexibleLanes::new(&pool, instances.len(), order)?,
            JobOrder::Active => FlexibleLanes::active(&pool, instances.len())?,
            JobOrder::Machine | JobOrder::List => return Err(Error::GraphOrder),
        };
        let places = instances.iter().map(|instance| own.partition_point(|own| own < instance) as u32);
        lanes.reset(&places.collect::<Vec<_>>())?;
        let empty =
            |&instance: &u32| Features::new(&shops[instance as usize], sizes.features, sizes.machines);
        let pairs = order == JobOrder::NonDelay(Order::Free);
        Ok(Self { lanes, pairs, features: instances.iter().map(empty).collect() })
    }

    /// The open pairs of a lane as jobs and machines.
    fn open(&self, lane: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let (machines, machine) = (self.lanes.sizes().1, self.lanes.machine(lane) as usize);
        let words = self.lanes.legal(lane).iter().enumerate();
        let actions = words.flat_map(|(word, &bits)| Bits(bits).map(move |bit| 64 * word + bit));
        let pairs = self.pairs;
        actions
            .map(move |action| if pairs { (action / machines, action % machines) } else { (action, machine) })
    }

    /// Whether a pair is open.
    fn is_open(&self, lane: usize, (job, machine): (usize, usize)) -> bool {
        self.open(lane).any(|open| open == (job, machine))
    }

    /// Takes an open pair in one lane.
    fn take(&mut self, shop: &FlexibleShop, lane: usize, (job, machine): (usize, usize)) {
        let start = self.lanes.ready(lane)[job].max(self.lanes.free(lane)[machine]);
        let index = self.lanes.next(lane)[job] as usize;
        self.features[lane].place(shop, Placement { job, index, machine, start });
        let action = if self.pairs { job * self.lanes.sizes().1 + machine } else { job };
        self.lanes.act(lane, action as u32);
    }
}

/// The places of a word's bits, rising.
#[derive(Clone, Copy, Debug)]
struct Bits(u64);

impl Iterator for Bits {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let bit = (self.0 != 0).then(|| self.0.trailing_zeros() as usize);
        self.0 &= self.0.wrapping_sub(1);
        bit
    }
}

impl GraphLanes {
    pub(super) fn new(
        shops: Arc<[FlexibleShop]>,
        sizes: GraphSizes,
        order: JobOrder,
        instances: &[u32],
    ) -> Result<Self, Error> {
        let crew = |instances: &[u32]| Crew::new(&shops, sizes, order, instances);
        let crews = instances.par_chunks(TOGETHER).map(crew).collect::<Result<_, _>>()?;
        Ok(Self { crews, sizes, instances: instances.to_vec(), shops })
    }

    /// The crew of a lane, and its number there.
    fn crew(&self, lane: usize) -> (&Crew, usize) {
        (&self.crews[lane / TOGETHER], lane % TOGETHER)
    }

    fn features(&self, lane: usize) -> &Features {
        let (crew, lane) = self.crew(lane);
        &crew.features[lane]
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

    /// When each job's next operation could start as far as the job goes: `[job]`, with what a larger shop may have behind.
    #[must_use]
    pub fn ready(&self, lane: usize) -> &[u32] {
        let (crew, lane) = self.crew(lane);
        crew.lanes.ready(lane)
    }

    /// When each machine is free: `[machine]`, with what a larger shop may have behind.
    #[must_use]
    pub fn free(&self, lane: usize) -> &[u32] {
        let (crew, lane) = self.crew(lane);
        crew.lanes.free(lane)
    }

    /// Where a lane's schedule stands.
    #[must_use]
    pub fn standing(&self, lane: usize) -> Standing<'_> {
        let (Crew { lanes, .. }, lane) = self.crew(lane);
        Standing { next: lanes.next(lane), ready: lanes.ready(lane), free: lanes.free(lane) }
    }

    /// Whether a lane's schedule is complete.
    #[must_use]
    pub fn done(&self, lane: usize) -> bool {
        let (crew, lane) = self.crew(lane);
        crew.lanes.done(lane)
    }

    /// Whether two lanes are in the same state, by whatever way they came there: they show the same and the same is open.
    #[must_use]
    pub fn alike(&self, one: usize, other: usize) -> bool {
        fn state(crew: &Crew, lane: usize) -> (u32, u32, [&[u32]; 3], &[u64], &Features) {
            let Crew { lanes, features, .. } = crew;
            let each = [lanes.next(lane), lanes.ready(lane), lanes.free(lane)];
            (lanes.machine(lane), lanes.clock(lane), each, lanes.legal(lane), &features[lane])
        }
        let state = |lane| {
            let (crew, lane) = self.crew(lane);
            state(crew, lane)
        };
        self.instance(one) == self.instance(other) && state(one) == state(other)
    }

    /// The features of a lane's own operations: `[operation, feature]`.
    #[must_use]
    pub fn operations(&self, lane: usize) -> &[f64] {
        &self.features(lane).operations
    }

    /// The times of a lane's arcs, 0 where there is none; rows are its own operations, columns the machines of the
    /// largest shop.
    ///
    /// Shapes: `[operation, machine]`
    #[must_use]
    pub fn arcs(&self, lane: usize) -> &[f64] {
        &self.features(lane).arcs
    }

    /// Which arcs there are, 1 or 0, since one may have no length: as [`GraphLanes::arcs`].
    #[must_use]
    pub fn able(&self, lane: usize) -> &[u8] {
        &self.features(lane).able
    }

    /// The features of a lane's own machines: `[machine]`.
    pub fn machines(&self, lane: usize) -> impl Iterator<Item = [f64; MACHINE]> + Clone + '_ {
        let (crew, lane) = self.crew(lane);
        let (features, clock) = (&crew.features[lane], f64::from(crew.lanes.clock(lane)));
        let machine = move |((&reach, &work), &free): ((&u32, &u64), &u32)| {
            let busy = if clock > 0.0 { (work as f64).min(clock) / clock } else { 0.0 };
            [f64::from(reach), f64::from(free), busy]
        };
        features.reach.iter().zip(&features.work).zip(crew.lanes.free(lane)).map(machine)
    }

    /// Each job's next operation among the lane's own, `None` for a finished job: `[job]`, of the lane's own jobs.
    pub fn next(&self, lane: usize) -> impl Iterator<Item = Option<usize>> + '_ {
        let (shop, (crew, lane)) = (self.shop(lane), self.crew(lane));
        let next = move |(job, &done): (usize, &u32)| shop.job(job).nth(done as usize);
        crew.lanes.next(lane).iter().take(shop.jobs()).enumerate().map(next)
    }

    /// The pairs that a lane may choose, in rising order; none once it is complete.
    pub fn open(&self, lane: usize) -> impl Iterator<Item = usize> + '_ {
        let (crew, lane) = self.crew(lane);
        crew.open(lane).map(|(job, machine)| job * self.sizes.machines + machine)
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
        let machines = self.sizes.machines as i32;
        let of = |pair: i32| (pair.div_euclid(machines) as usize, pair.rem_euclid(machines) as usize);
        let closed = |(first, (crew, pairs)): (usize, (&Crew, &[i32]))| {
            let open = |&(lane, &pair): &(usize, &i32)| crew.lanes.done(lane) || crew.is_open(lane, of(pair));
            let closed = pairs.iter().enumerate().find(|lane| !open(lane));
            closed.map(|(lane, &choice)| Error::Closed { lane: first * TOGETHER + lane, choice })
        };
        let crews = self.crews.par_iter().zip(pairs.par_chunks(TOGETHER));
        if let Some(closed) = crews.enumerate().find_map_first(closed) {
            return Err(closed);
        }
        let instances = self.instances.par_chunks(TOGETHER);
        let crews = self.crews.par_iter_mut().zip(pairs.par_chunks(TOGETHER)).zip(instances);
        crews.for_each(|((crew, pairs), instances)| {
            for (lane, (&pair, &instance)) in pairs.iter().zip(instances).enumerate() {
                if !crew.lanes.done(lane) {
                    crew.take(&self.shops[instance as usize], lane, of(pair));
                }
            }
        });
        Ok(())
    }

    /// When the last job would end if what is left took its mean times, one operation right after the other (Song and others,
    /// 2022); of a complete lane its makespan.
    #[must_use]
    pub fn estimate(&self, lane: usize) -> f64 {
        let rows = self.operations(lane).chunks_exact(self.sizes.features);
        rows.map(|row| row[COMPLETION]).fold(0.0, f64::max)
    }

    /// How a complete lane turned out.
    #[must_use]
    pub fn outcome(&self, lane: usize) -> Outcome {
        let (crew, lane) = self.crew(lane);
        Outcome { makespan: crew.lanes.makespan(lane), late: 0, violation: crew.lanes.violation(lane) }
    }

    /// What a lane has scheduled so far.
    #[must_use]
    pub fn schedule(&self, lane: usize) -> Schedule {
        let (crew, lane) = self.crew(lane);
        crew.lanes.schedule(lane)
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

        assert_eq!(lanes.estimate(0), 6.0);

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
        assert_eq!(lanes.estimate(0), 7.0);
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
    fn lanes_are_alike_where_the_same_was_placed_in_whatever_order() {
        let task = task(two_by_two(), 1);
        let mut lanes = task.begin(&[0; 3]).unwrap();
        assert!(lanes.alike(0, 1) && lanes.alike(1, 2));
        // Job 0 on machine 1 and job 1 on machine 0, both from 0 on, one way round and the other; or job 0 on machine 0.
        lanes.choose(&[1, 2, 0]).unwrap();
        assert!(!lanes.alike(0, 1));
        lanes.choose(&[2, 1, 2]).unwrap();
        assert!(lanes.alike(0, 1) && !lanes.alike(0, 2));
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
