//! Schedules as choices: how a construction takes the way of a schedule, and a better way by local search.

use super::lanes::GraphLanes;
use super::task::GraphTask;
use crate::{Error, Outcome};
use niwaki_shop::Schedule;
use niwaki_shop::optimum::flexible;

impl GraphTask {
    /// The choices that come nearest to a schedule of an instance, and how they turn out: of the open pairs, one on the schedule's own
    /// machine before others, the one that starts first there. Where the order of construction reaches the schedule, that is it.
    ///
    /// # Errors
    /// If there is no such instance.
    pub fn follow(&self, instance: u32, schedule: &Schedule) -> Result<(Vec<i32>, Outcome), Error> {
        let (mut lanes, machines) = (self.begin(&[instance])?, self.sizes().machines);
        let shop = lanes.shop(0);
        // What the schedule does not hold comes last.
        let mut planned = vec![(u32::MAX, u32::MAX); shop.operations()];
        for placed in &schedule.operations {
            let job = (placed.job as usize) < shop.jobs();
            let operation = job.then(|| shop.job(placed.job as usize).nth(placed.op as usize)).flatten();
            if let Some(operation) = operation {
                planned[operation] = (placed.start, placed.machine);
            }
        }
        let mut pairs = Vec::with_capacity(planned.len());
        while !lanes.done(0) {
            let next: Vec<Option<usize>> = lanes.next(0).collect();
            let rank = |pair: &usize| {
                let known =
                    next[pair / machines].map_or((u32::MAX, u32::MAX), |operation| planned[operation]);
                (known.1 as usize != pair % machines, known.0)
            };
            let Some(pair) = lanes.open(0).min_by_key(rank) else { break };
            pairs.push(pair as i32);
            lanes.choose(&[pair as i32])?;
        }
        Ok((pairs, lanes.outcome(0)))
    }

    /// A better way than these choices in an instance, by so many moves of local search from where they lead; nothing where none is
    /// found that this order of construction reaches.
    ///
    /// # Errors
    /// If there is no such instance, or a choice is closed.
    pub fn improved(
        &self,
        instance: u32,
        pairs: &[i32],
        moves: u64,
        seed: u64,
    ) -> Result<Option<Vec<i32>>, Error> {
        let mut lanes: GraphLanes = self.begin(&[instance])?;
        pairs.iter().try_for_each(|&pair| lanes.choose(&[pair]))?;
        let Some(schedule) = flexible::improve(lanes.shop(0), &lanes.schedule(0), moves, seed) else {
            return Ok(None);
        };
        let rank = |outcome: Outcome| (outcome.violation, outcome.makespan);
        let (better, outcome) = self.follow(instance, &schedule)?;
        Ok((rank(outcome) < rank(lanes.outcome(0))).then_some(better))
    }
}

#[cfg(test)]
mod tests {
    use crate::GraphTask;
    use niwaki_shop::{Alternative, Bounds, FlexibleShop, Instance};

    /// Fisher and Thompson's 6 × 6: machine and time of each operation. Its optimum is 55.
    const FT06: [[(u32, u32); 6]; 6] = [
        [(2, 1), (0, 3), (1, 6), (3, 7), (5, 3), (4, 6)],
        [(1, 8), (2, 5), (4, 10), (5, 10), (0, 10), (3, 4)],
        [(2, 5), (3, 4), (5, 8), (0, 9), (1, 1), (4, 7)],
        [(1, 5), (0, 5), (2, 5), (3, 3), (4, 8), (5, 9)],
        [(2, 9), (1, 3), (4, 5), (5, 4), (0, 3), (3, 1)],
        [(1, 3), (3, 3), (5, 9), (0, 10), (4, 4), (2, 1)],
    ];

    fn task(order: usize) -> GraphTask {
        let operation = |&(machine, time): &(u32, u32)| vec![Alternative { machine, time }];
        let jobs = FT06.map(|job| job.iter().map(operation).collect::<Vec<_>>());
        let shop = Instance::Flexible(FlexibleShop::new(6, &jobs).unwrap());
        GraphTask::new(vec![shop], vec![Bounds { lower: 55, upper: 55 }], 1, GraphTask::ORDERS[order].1)
            .unwrap()
    }

    #[test]
    fn what_was_built_is_followed_and_made_better() {
        for order in 0..3 {
            let task = task(order);
            let mut lanes = task.begin(&[0]).unwrap();
            let mut pairs = Vec::new();
            while let Some(pair) = lanes.open(0).last() {
                pairs.push(pair as i32);
                lanes.choose(&[pair as i32]).unwrap();
            }
            let (followed, outcome) = task.follow(0, &lanes.schedule(0)).unwrap();
            assert_eq!((followed.len(), outcome), (36, lanes.outcome(0)));
            let better = task.improved(0, &pairs, 2000, 0).unwrap().unwrap();
            let mut lanes = task.begin(&[0]).unwrap();
            better.iter().for_each(|&pair| lanes.choose(&[pair]).unwrap());
            let makespan = lanes.outcome(0).makespan;
            // An active schedule is optimal; of schedules without delay none need be.
            assert!(makespan < outcome.makespan && (order < 2 || makespan == 55), "{makespan}");
            assert!(task.improved(0, &better, 2000, 0).unwrap().is_none_or(|_| order < 2));
            assert_eq!(task.improved(0, &pairs, 2000, 0).unwrap(), Some(better), "the same again");
        }
    }
}
