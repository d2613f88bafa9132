//! The two-machine flow shop with lags as a construction: which job comes next, and who must not be late.
//!
//! Candidates are jobs, described by their times, lag and due date; the state is as in a flow shop. The order of
//! construction is canonical, so the process is a tree.

use crate::numbered::Numbered;
use crate::orders::Orders;
use crate::{Building, Construction, Error, Numbers};
use niwaki_shop::construct::{Order, SequenceLanes};
use niwaki_shop::{Bounds, TwoMachineLags};

/// Numbers that describe a job: both times, lag, due date, and whether it has one.
const FEATURES: usize = 5;

/// A pool of lagged flow shops with their optima.
///
/// Paper: `app:sched-boundary`
#[derive(Clone, Debug)]
pub struct LagTask {
    pool: Numbered<TwoMachineLags>,
    /// Whether lags and due dates are kept from the policy.
    hidden: bool,
    /// What times are divided by, `[instance]`: the work of the busier machine with the longest rest, and the longest
    /// time or rest.
    whole: Vec<f32>,
    unit: Vec<f32>,
}

impl LagTask {
    /// A task over given shops of one size, of which the first `training` are to learn from. Where lags and due dates
    /// are `hidden`, nothing shows which job is critical before it has run.
    ///
    /// # Errors
    /// If there is no shop to learn from, sizes differ, or there is not one pair of bounds for each shop.
    pub fn new(
        shops: Vec<TwoMachineLags>,
        bounds: Vec<Bounds>,
        training: usize,
        hidden: bool,
    ) -> Result<Self, Error> {
        let shape = |shop: &TwoMachineLags| (shop.jobs(), 2, 2 * shop.jobs());
        let pool = Numbered::new("lags", shops, bounds, training, shape)?;
        let (mut whole, mut unit) = (Vec::new(), Vec::new());
        for shop in pool.shops.iter() {
            let all = || shop.all().iter();
            let longest = all().flat_map(|job| [job.first, job.lag, job.second]).max().unwrap_or(0);
            let (first, second): (u32, u32) =
                (all().map(|job| job.first).sum(), all().map(|job| job.second).sum());
            // Behind its machine's work a job may still rest.
            let rest = all().map(|job| job.lag).max().unwrap_or(0);
            whole.push((first.max(second) + rest).max(1) as f32);
            unit.push(longest.max(1) as f32);
        }
        Ok(Self { pool, hidden, whole, unit })
    }

    /// The shops, those to learn from first.
    #[must_use]
    pub fn shops(&self) -> &[TwoMachineLags] {
        &self.pool.shops
    }
}

impl Construction for LagTask {
    fn candidates(&self) -> usize {
        self.pool.shops[0].jobs()
    }

    fn features(&self) -> usize {
        FEATURES
    }

    fn context(&self) -> usize {
        4
    }

    fn numbers(&self) -> &Numbers {
        &self.pool.numbers
    }

    fn describe(&self, instance: usize, to: &mut [f32]) {
        let (whole, unit) = (self.whole[instance], self.unit[instance]);
        for (to, job) in to.chunks_exact_mut(FEATURES).zip(self.pool.shops[instance].all()) {
            let times = [job.first, job.lag, job.second].map(|time| time as f32 / unit);
            to[..3].copy_from_slice(&times);
            to[3] = job.due.map_or(0.0, |due| due as f32 / whole);
            to[4] = f32::from(u8::from(job.due.is_some()));
            if self.hidden {
                [to[1], to[3], to[4]] = [0.0; 3];
            }
        }
    }

    fn begin(&self, instances: &[u32]) -> Result<Box<dyn Building>, Error> {
        let lanes = SequenceLanes::lagged(&self.pool.shops, instances.len(), Order::Canonical)?;
        Orders::begin(lanes, instances, &self.whole, &self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, Payment};
    use niwaki_shop::LaggedJob;

    #[test]
    fn a_job_behind_the_critical_one_makes_it_late() {
        // a = 2, lag 5, 1, due 9; b = 3, lag 0, 2. a then b: 8 and 10, nobody late. b then a: 5 and 11, a is late.
        let job = |first, lag, second, due| LaggedJob { first, lag, second, due };
        let shop = TwoMachineLags::new(vec![job(2, 5, 1, Some(9)), job(3, 0, 2, None)]).unwrap();
        let make = |hidden| {
            LagTask::new(vec![shop.clone()], vec![Bounds { lower: 10, upper: 10 }], 1, hidden).unwrap()
        };
        let task = make(false);
        let mut features = [0.0; 10];
        make(true).describe(0, &mut features);
        assert_eq!(features, [0.4, 0.0, 0.2, 0.0, 0.0, 0.6, 0.0, 0.4, 0.0, 0.0]);
        task.describe(0, &mut features);
        // The longest of all times and lags is 5; the machines' work is 5 and 3, the longest rest 5: in all 10.
        assert_eq!(features, [0.4, 1.0, 0.2, 0.9, 1.0, 0.6, 0.0, 0.4, 0.0, 0.0]);
        let mut lanes = task.begin(&[0, 0]).unwrap();
        lanes.choose(&[0, 1]).unwrap();
        lanes.choose(&[1, 0]).unwrap();
        let (first, second) = (lanes.outcome(0), lanes.outcome(1));
        assert_eq!(first, Outcome { makespan: 10, late: 0, violation: 0 });
        assert_eq!(second, Outcome { makespan: 11, late: 1, violation: 0 });
        assert_eq!((Payment::DueDates.pay(first, 10), Payment::DueDates.pay(second, 10)), (1.0, 0.0));
    }
}
