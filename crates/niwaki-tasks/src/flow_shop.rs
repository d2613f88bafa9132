//! The permutation flow shop as a construction: which job comes next.
//!
//! A [`FlowPool`] says which instances are drawn and how they are judged; built, it is a [`FlowTask`] whose optima are
//! known. Candidates are jobs, described by their times; the state is when each machine has done what was sequenced.
//! The order of construction is canonical, so the process is a tree.

use crate::{Building, Construction, Error, Outcome, Stations};
use niwaki_shop::construct::{Lanes, Order, SequenceLanes};
use niwaki_shop::generate::{Size, Task, generate};
use niwaki_shop::optimum::flow_shop::solve;
use niwaki_shop::{Bounds, FlowShop, Instance, Limits, Schedule};
use rayon::prelude::*;
use std::sync::Arc;
use std::time::Duration;

/// Instances to draw.
///
/// Paper: `app:sched-win`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowPool {
    /// Machines; 1, 3, 5, … are bottlenecks, so that three machines have theirs in the middle.
    pub machines: usize,
    /// Jobs.
    pub jobs: usize,
    /// Instances to learn from.
    pub training: usize,
    /// Instances to be judged on.
    pub validation: usize,
    /// Seed of the instances.
    pub seed: u64,
    /// How long the optimum of one instance may be sought.
    pub patience: Duration,
}

impl FlowPool {
    /// Refuses what cannot be drawn.
    ///
    /// # Errors
    /// The first size that is too small.
    pub fn check(&self) -> Result<(), Error> {
        let sizes = [
            ("machines", self.machines),
            ("jobs", self.jobs),
            ("training", self.training),
            ("validation", self.validation),
        ];
        for (axis, came) in sizes {
            let least = if axis == "jobs" { 2 } else { 1 };
            if came < least {
                return Err(Error::TooSmall { task: "flow-shop", axis, least, came });
            }
        }
        generate(Task::HardFlow, self.size(), self.seed, 0)?;
        Ok(())
    }

    fn size(&self) -> Size {
        Size { jobs: self.jobs, machines: self.machines }
    }

    /// Draws the instances and seeks their optima, on all cores.
    ///
    /// # Errors
    /// As [`FlowPool::check`].
    pub fn build(&self) -> Result<FlowTask, Error> {
        self.check()?;
        let indices = 0..(self.training + self.validation) as u64;
        let shops: Vec<FlowShop> = indices
            .filter_map(|index| match generate(Task::HardFlow, self.size(), self.seed, index) {
                Ok(Instance::Flow(shop)) => Some(Ok(shop)),
                // The distribution draws flow shops only.
                Ok(_) => None,
                Err(error) => Some(Err(error)),
            })
            .collect::<Result<_, _>>()?;
        let limits = Limits { time: self.patience, seed: self.seed };
        let bounds = shops.par_iter().map(|shop| solve(shop, limits, &mut |_| {}).bounds()).collect();
        FlowTask::new(shops, bounds, self.training)
    }
}

/// A pool of flow shops with their optima.
#[derive(Clone, Debug)]
pub struct FlowTask {
    shops: Arc<[FlowShop]>,
    bounds: Vec<Bounds>,
    training: usize,
    /// What times are divided by: the work of the busiest machine, and the longest time.
    stations: Arc<Stations>,
}

impl FlowTask {
    /// A task over given shops of one shape, of which the first `training` are to learn from.
    ///
    /// # Errors
    /// If there are no shops to learn from or be judged on, or not one pair of bounds for each.
    pub fn new(shops: Vec<FlowShop>, bounds: Vec<Bounds>, training: usize) -> Result<Self, Error> {
        for (axis, came) in [("training", training), ("validation", shops.len().saturating_sub(training))] {
            if came == 0 {
                return Err(Error::TooSmall { task: "flow-shop", axis, least: 1, came });
            }
        }
        if bounds.len() != shops.len() {
            return Err(Error::TooSmall {
                task: "flow-shop",
                axis: "bounds",
                least: shops.len(),
                came: bounds.len(),
            });
        }
        let mut stations = Stations { count: shops[0].machines(), ..Stations::default() };
        for shop in &shops {
            let work = |machine: usize| (0..shop.jobs()).map(|job| shop.time(job, machine)).sum::<u32>();
            let load = (0..shop.machines()).map(work).max().unwrap_or(0);
            let longest = shop.times().iter().copied().max().unwrap_or(0);
            stations.times.extend(shop.times().iter().map(|&time| time as i32));
            stations.whole.push(load.max(1) as f32);
            stations.unit.push(longest.max(1) as f32);
        }
        Ok(Self { shops: shops.into(), bounds, training, stations: Arc::new(stations) })
    }

    /// The shops, those to learn from first.
    #[must_use]
    pub fn shops(&self) -> &[FlowShop] {
        &self.shops
    }
}

impl Construction for FlowTask {
    fn candidates(&self) -> usize {
        self.shops[0].jobs()
    }

    fn horizon(&self) -> usize {
        self.shops[0].jobs()
    }

    fn features(&self) -> usize {
        self.shops[0].machines()
    }

    fn context(&self) -> usize {
        2 * self.shops[0].machines()
    }

    fn training(&self) -> usize {
        self.training
    }

    fn validation(&self) -> usize {
        self.shops.len() - self.training
    }

    fn bounds(&self) -> &[Bounds] {
        &self.bounds
    }

    fn stations(&self) -> Option<&Stations> {
        Some(&self.stations)
    }

    fn describe(&self, instance: usize, to: &mut [f32]) {
        let longest = self.stations.unit[instance];
        for (to, &time) in to.iter_mut().zip(self.shops[instance].times()) {
            *to = time as f32 / longest;
        }
    }

    fn begin(&self, instances: &[u32]) -> Result<Box<dyn Building>, Error> {
        let mut lanes = SequenceLanes::flow(&self.shops, instances.len(), Order::Canonical)?;
        lanes.reset(instances)?;
        let (instances, stations) = (instances.to_vec(), self.stations.clone());
        Ok(Box::new(FlowLanes { lanes, instances, stations, actions: Vec::new() }))
    }
}

/// Orders of jobs under construction.
struct FlowLanes {
    lanes: SequenceLanes,
    instances: Vec<u32>,
    stations: Arc<Stations>,
    actions: Vec<u32>,
}

impl Building for FlowLanes {
    /// When each machine is done, over the work of the busiest one; then how long after the machine before it, over
    /// the longest time.
    fn context(&self, lane: usize, to: &mut [f32]) {
        let (front, instance) = (self.lanes.front(lane), self.instances[lane] as usize);
        let (whole, unit) = (self.stations.whole[instance], self.stations.unit[instance]);
        let (absolute, relative) = to.split_at_mut(front.len());
        let mut before = front[0];
        for (machine, &done) in front.iter().enumerate() {
            absolute[machine] = done as f32 / whole;
            relative[machine] = (done - before) as f32 / unit;
            before = done;
        }
    }

    fn open(&self, lane: usize, to: &mut [u8]) {
        let legal = self.lanes.legal(lane);
        for (job, to) in to.iter_mut().enumerate() {
            *to = (legal[job / 64] >> (job % 64) & 1) as u8;
        }
    }

    fn choose(&mut self, choices: &[i32]) -> Result<(), Error> {
        self.actions.clear();
        // A negative choice becomes a number beyond all jobs, which the lanes refuse.
        self.actions.extend(choices.iter().map(|&choice| u32::try_from(choice).unwrap_or(u32::MAX)));
        Ok(self.lanes.step(&self.actions)?)
    }

    fn outcome(&self, lane: usize) -> Outcome {
        Outcome { makespan: self.lanes.makespan(lane), late: 0 }
    }

    fn schedule(&self, lane: usize) -> Schedule {
        self.lanes.schedule(lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs a = (3, 2), b = (1, 4): a before b ends at 9, b before a at 7, the optimum.
    fn two_jobs() -> FlowTask {
        let shop = FlowShop::new(2, 2, vec![3, 2, 1, 4]).unwrap();
        let bounds = Bounds { lower: 7, upper: 7 };
        FlowTask::new(vec![shop.clone(), shop], vec![bounds; 2], 1).unwrap()
    }

    #[test]
    fn the_state_in_numbers() {
        let task = two_jobs();
        let (mut features, mut context, mut open) = ([0.0; 4], [0.0; 4], [0; 2]);
        task.describe(0, &mut features);
        // The longest time is 4.
        assert_eq!(features, [0.75, 0.5, 0.25, 1.0]);
        let mut lanes = task.begin(&[0]).unwrap();
        lanes.context(0, &mut context);
        assert_eq!(context, [0.0; 4]);
        lanes.choose(&[0]).unwrap();
        lanes.context(0, &mut context);
        lanes.open(0, &mut open);
        // Job a ends at 3 and 5; the second machine is the busiest with 6; it ends 2 after the first.
        assert_eq!((context, open), ([3.0 / 6.0, 5.0 / 6.0, 0.0, 2.0 / 4.0], [0, 1]));
        assert!(lanes.choose(&[0]).is_err() && lanes.choose(&[-1]).is_err());
        lanes.choose(&[1]).unwrap();
        assert_eq!((lanes.outcome(0).makespan, lanes.schedule(0).makespan()), (9, 9));
    }

    #[test]
    fn a_pool_is_drawn_and_solved() {
        let pool = FlowPool {
            machines: 3,
            jobs: 6,
            training: 3,
            validation: 2,
            seed: 1,
            patience: Duration::from_secs(10),
        };
        let task = pool.build().unwrap();
        assert_eq!(
            (task.training(), task.validation(), task.bounds().iter().all(|bounds| bounds.proven())),
            (3, 2, true)
        );
        // The bottleneck is in the middle: times from 10 there, and up to 20 beside it.
        let all = task.shops().iter().flat_map(|shop| (0..6).map(|job| shop.job(job)));
        assert!(all.clone().all(|times| times[0] <= 20 && times[1] >= 10 && times[2] <= 20));
        assert!(all.map(|times| times[1]).max() > Some(20));
        let refused = |pool: FlowPool| pool.check().unwrap_err().to_string();
        assert!(refused(FlowPool { jobs: 1, ..pool }).contains("jobs of at least 2"));
    }
}
