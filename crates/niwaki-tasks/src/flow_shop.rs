//! The permutation flow shop as a construction: which job comes next.
//!
//! Candidates are jobs, described by their times; the state is when each machine has done what was sequenced. The order
//! of construction is canonical, so the process is a tree.

use crate::numbered::Numbered;
use crate::orders::Orders;
use crate::{Building, Construction, Error, Numbers, Stations};
use niwaki_shop::construct::{Order, SequenceLanes};
use niwaki_shop::{Bounds, FlowShop};

/// A pool of flow shops with their optima.
///
/// Paper: `app:sched-win`
#[derive(Clone, Debug)]
pub struct FlowTask {
    pool: Numbered<FlowShop>,
    /// What times are divided by: the work of the busiest machine, and the longest time.
    stations: Stations,
}

impl FlowTask {
    /// A task over given shops of one shape, of which the first `training` are to learn from.
    ///
    /// # Errors
    /// If there is no shop to learn from, shapes differ, or there is not one pair of bounds for each shop.
    pub fn new(shops: Vec<FlowShop>, bounds: Vec<Bounds>, training: usize) -> Result<Self, Error> {
        let shape = |shop: &FlowShop| (shop.jobs(), shop.machines(), shop.times().len());
        let pool = Numbered::new("flow-shop", shops, bounds, training, shape)?;
        let mut stations = Stations { count: pool.shops[0].machines(), ..Stations::default() };
        for shop in pool.shops.iter() {
            let work = |machine: usize| (0..shop.jobs()).map(|job| shop.time(job, machine)).sum::<u32>();
            let load = (0..shop.machines()).map(work).max().unwrap_or(0);
            let longest = shop.times().iter().copied().max().unwrap_or(0);
            stations.times.extend(shop.times().iter().map(|&time| time as i32));
            stations.whole.push(load.max(1) as f32);
            stations.unit.push(longest.max(1) as f32);
        }
        Ok(Self { pool, stations })
    }

    /// The shops, those to learn from first.
    #[must_use]
    pub fn shops(&self) -> &[FlowShop] {
        &self.pool.shops
    }
}

impl Construction for FlowTask {
    fn candidates(&self) -> usize {
        self.pool.shops[0].jobs()
    }

    fn features(&self) -> usize {
        self.pool.shops[0].machines()
    }

    fn context(&self) -> usize {
        2 * self.pool.shops[0].machines()
    }

    fn numbers(&self) -> &Numbers {
        &self.pool.numbers
    }

    fn stations(&self) -> Option<&Stations> {
        Some(&self.stations)
    }

    fn describe(&self, instance: usize, to: &mut [f32]) {
        let longest = self.stations.unit[instance];
        for (to, &time) in to.iter_mut().zip(self.pool.shops[instance].times()) {
            *to = time as f32 / longest;
        }
    }

    fn begin(&self, instances: &[u32]) -> Result<Box<dyn Building>, Error> {
        let lanes = SequenceLanes::flow(&self.pool.shops, instances.len(), Order::Canonical)?;
        Orders::begin(lanes, instances, &self.stations.whole, &self.stations.unit)
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
    fn one_shape_only() {
        let shops = vec![FlowShop::new(2, 2, vec![1; 4]).unwrap(), FlowShop::new(2, 1, vec![1; 2]).unwrap()];
        let bounds = vec![Bounds { lower: 1, upper: 1 }; 2];
        assert_eq!(
            FlowTask::new(shops, bounds, 1).unwrap_err().to_string(),
            "task flow-shop: instance 1 has 2 jobs, 1 machines and 2 operations, the first has 2, 2 and 4"
        );
        let shop = vec![FlowShop::new(2, 2, vec![1; 4]).unwrap()];
        let line = FlowTask::new(shop, vec![Bounds { lower: 1, upper: 1 }; 2], 1).unwrap_err().to_string();
        assert_eq!(line, "task flow-shop: 2 pairs of bounds for 1 instances; expected one each");
    }
}
