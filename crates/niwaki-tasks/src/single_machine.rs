//! The single machine with due dates as a construction: which job comes next.
//!
//! Candidates are jobs, described by their time and due date; the state is when the machine is done. The order of
//! construction is canonical, so the process is a tree.

use crate::numbered::Numbered;
use crate::orders::Orders;
use crate::{Building, Construction, Error, Numbers};
use niwaki_shop::construct::{Order, SequenceLanes};
use niwaki_shop::{Bounds, SingleMachine};

/// Numbers that describe a job: its time and its due date.
const FEATURES: usize = 2;

/// A pool of single machines with their optima.
///
/// Paper: `app:sched-boundary`
#[derive(Clone, Debug)]
pub struct SingleMachineTask {
    pool: Numbered<SingleMachine>,
    /// Whether due dates are kept from the policy.
    hidden: bool,
    /// What times are divided by, `[instance]`: all the work, and the longest time.
    whole: Vec<f32>,
    unit: Vec<f32>,
}

impl SingleMachineTask {
    /// A task over given machines with as many jobs each, of which the first `training` are to learn from. Where due dates
    /// are `hidden`, nothing shows who has to hurry.
    ///
    /// # Errors
    /// If there is no instance to learn from, sizes differ, or there is not one pair of bounds for each.
    pub fn new(
        shops: Vec<SingleMachine>,
        bounds: Vec<Bounds>,
        training: usize,
        hidden: bool,
    ) -> Result<Self, Error> {
        let shape = |shop: &SingleMachine| (shop.jobs(), 1, shop.jobs());
        let pool = Numbered::new("single-machine", shops, bounds, training, shape)?;
        let (mut whole, mut unit) = (Vec::new(), Vec::new());
        for shop in pool.shops.iter() {
            whole.push(shop.times().iter().sum::<u32>().max(1) as f32);
            unit.push(shop.times().iter().copied().max().unwrap_or(0).max(1) as f32);
        }
        Ok(Self { pool, hidden, whole, unit })
    }
}

impl Construction for SingleMachineTask {
    fn candidates(&self) -> usize {
        self.pool.shops[0].jobs()
    }

    fn features(&self) -> usize {
        FEATURES
    }

    fn context(&self) -> usize {
        2
    }

    fn numbers(&self) -> &Numbers {
        &self.pool.numbers
    }

    fn describe(&self, instance: usize, to: &mut [f32]) {
        let (whole, unit) = (self.whole[instance], self.unit[instance]);
        let shop = &self.pool.shops[instance];
        for (to, (&time, &due)) in to.chunks_exact_mut(FEATURES).zip(shop.times().iter().zip(shop.due())) {
            to.copy_from_slice(&[time as f32 / unit, if self.hidden { 0.0 } else { due as f32 / whole }]);
        }
    }

    fn begin(&self, instances: &[u32]) -> Result<Box<dyn Building>, Error> {
        let lanes = SequenceLanes::single(&self.pool.shops, instances.len(), Order::Canonical)?;
        Orders::begin(lanes, instances, &self.whole, &self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, Payment};

    #[test]
    fn by_due_date_nobody_is_late() {
        // Times 2 and 3, due at 6 and 3: the second first ends at 3 and 5; the first first makes the second late.
        let shop = SingleMachine::new(vec![2, 3], vec![6, 3]).unwrap();
        let make = |hidden| {
            SingleMachineTask::new(vec![shop.clone()], vec![Bounds { lower: 5, upper: 5 }], 1, hidden)
                .unwrap()
        };
        let mut features = [0.0; 4];
        make(true).describe(0, &mut features);
        assert_eq!(features, [2.0 / 3.0, 0.0, 1.0, 0.0]);
        let task = make(false);
        task.describe(0, &mut features);
        assert_eq!(features, [2.0 / 3.0, 1.2, 1.0, 0.6]);
        let mut lanes = task.begin(&[0, 0]).unwrap();
        lanes.choose(&[1, 0]).unwrap();
        let mut context = [0.0; 2];
        lanes.context(0, &mut context);
        assert_eq!(context, [0.6, 0.0]);
        lanes.choose(&[0, 1]).unwrap();
        let (due_first, other) = (lanes.outcome(0), lanes.outcome(1));
        assert_eq!(due_first, Outcome { makespan: 5, late: 0, violation: 0 });
        assert_eq!(other, Outcome { makespan: 5, late: 1, violation: 0 });
        assert_eq!((Payment::DueDates.pay(due_first, 5), Payment::DueDates.pay(other, 5)), (1.0, 0.0));
    }
}
