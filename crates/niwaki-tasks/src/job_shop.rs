//! The job shop as a construction: which operation runs next on the machine that next becomes free.
//!
//! Candidates are operations, job after job along the routes. Open are the next operations of those jobs that the order
//! of construction lets have the machine at hand; [`JobOrder`] says what the orders are, and that all but the list are
//! trees. How often one of 2,048 random constructions of 64 of the paper's shops (8 × 5, all optima proven) is on time,
//! and whether the best of them is optimal (`examples/reach.rs` repeats it):
//!
//! | order | 1.05 · C* | 1.10 · C* | 1.15 · C* | best = C* |
//! |---|---|---|---|---|
//! | machine | .124 | .285 | .448 | .953 |
//! | non-delay | .361 | .602 | .788 | .953 |
//! | active | .114 | .274 | .458 | 1.000 |
//! | list | .041 | .102 | .194 | .875 |

use crate::numbered::Numbered;
use crate::{Building, Construction, Error, Numbers, Outcome, Routes};
use niwaki_shop::construct::{JobLanes, JobOrder, Lanes};
use niwaki_shop::{Bounds, JobShop, Schedule};
use std::sync::Arc;

/// A pool of job shops with their optima.
///
/// Paper: `app:sched-win`
#[derive(Clone, Debug)]
pub struct JobTask {
    pool: Numbered<JobShop>,
    /// `[instance, operation, feature]`
    features: Vec<f32>,
    /// What a device reads of the shops; times are measured in the longest one of each instance.
    routes: Routes,
}

impl JobTask {
    /// A task over given shops with equally many jobs, machines and operations, of which the first `training` are to
    /// learn from.
    ///
    /// # Errors
    /// If there is no shop to learn from, shapes differ, or there is not one pair of bounds for each shop.
    pub fn new(
        shops: Vec<JobShop>,
        bounds: Vec<Bounds>,
        training: usize,
        order: JobOrder,
    ) -> Result<Self, Error> {
        let shape = |shop: &JobShop| (shop.jobs(), shop.machines(), shop.operations());
        let pool = Numbered::new("job-shop", shops, bounds, training, shape)?;
        let longest =
            |shop: &JobShop| shop.flat().iter().map(|step| step.time).max().unwrap_or(0).max(1) as f32;
        let longest: Vec<f32> = pool.shops.iter().map(longest).collect();
        let features =
            pool.shops.iter().zip(&longest).flat_map(|(shop, &longest)| describe(shop, longest)).collect();
        let (mut steps, mut starts) = (Vec::new(), Vec::new());
        for shop in pool.shops.iter() {
            for (job, range) in shop.starts().windows(2).enumerate() {
                let route = &shop.flat()[range[0] as usize..range[1] as usize];
                steps.extend(
                    route.iter().flat_map(|step| [step.machine as i32, step.time as i32, job as i32]),
                );
            }
            starts.extend(shop.starts().iter().map(|&start| start as i32));
        }
        let (jobs, machines) = (pool.shops[0].jobs(), pool.shops[0].machines());
        let routes = Routes { machines, jobs, order, steps, starts, unit: longest };
        Ok(Self { pool, features, routes })
    }

    /// The shops, those to learn from first.
    #[must_use]
    pub fn shops(&self) -> &[JobShop] {
        &self.pool.shops
    }
}

/// Time, machine, job, how much of the route lies behind, and the job's work from here on over that of the longest job.
///
/// Shapes: `[operation, 1 + machines + jobs + 2]`
fn describe(shop: &JobShop, longest: f32) -> Vec<f32> {
    let (jobs, machines) = (shop.jobs(), shop.machines());
    let work = |job: usize| shop.route(job).iter().map(|step| step.time).sum::<u32>();
    let most = (0..jobs).map(work).max().unwrap_or(0).max(1) as f32;
    let mut features = Vec::with_capacity(shop.operations() * (machines + jobs + 3));
    for job in 0..jobs {
        let (route, mut left) = (shop.route(job), work(job));
        for (place, step) in route.iter().enumerate() {
            let one = |at: usize, of: usize| (0..of).map(move |here| f32::from(u8::from(here == at)));
            features.push(step.time as f32 / longest);
            features.extend(one(step.machine as usize, machines).chain(one(job, jobs)));
            features.extend([place as f32 / route.len() as f32, left as f32 / most]);
            left -= step.time;
        }
    }
    features
}

impl Construction for JobTask {
    fn candidates(&self) -> usize {
        self.pool.shops[0].operations()
    }

    fn features(&self) -> usize {
        self.pool.shops[0].machines() + self.pool.shops[0].jobs() + 3
    }

    fn context(&self) -> usize {
        2 * self.pool.shops[0].machines() + self.pool.shops[0].jobs()
    }

    fn numbers(&self) -> &Numbers {
        &self.pool.numbers
    }

    fn describe(&self, instance: usize, to: &mut [f32]) {
        let size = to.len();
        to.copy_from_slice(&self.features[instance * size..(instance + 1) * size]);
    }

    fn routes(&self) -> Option<&Routes> {
        Some(&self.routes)
    }

    fn begin(&self, instances: &[u32]) -> Result<Box<dyn Building>, Error> {
        let mut lanes = JobLanes::new(&self.pool.shops, instances.len(), self.routes.order)?;
        lanes.reset(instances)?;
        Ok(Box::new(Dispatch {
            lanes,
            shops: self.pool.shops.clone(),
            longest: instances.iter().map(|&instance| self.routes.unit[instance as usize]).collect(),
            instances: instances.to_vec(),
            actions: Vec::new(),
        }))
    }
}

/// Job shops under construction.
struct Dispatch {
    lanes: JobLanes,
    shops: Arc<[JobShop]>,
    /// `[lane]`, as are the longest times.
    instances: Vec<u32>,
    longest: Vec<f32>,
    actions: Vec<u32>,
}

impl Dispatch {
    /// Where the jobs of a lane's instance start among its operations, and the end: `[job + 1]`.
    fn starts(&self, lane: usize) -> &[u32] {
        self.shops[self.instances[lane] as usize].starts()
    }

    /// The job whose next operation this is; a number beyond all jobs, which the lanes refuse, where it is nobody's.
    fn job(&self, lane: usize, choice: i32) -> u32 {
        let starts = self.starts(lane);
        let Ok(operation) = u32::try_from(choice) else { return u32::MAX };
        let job = starts.partition_point(|&start| start <= operation) - 1;
        match self.lanes.next(lane).get(job) {
            Some(done) if starts[job] + done == operation => job as u32,
            _ => u32::MAX,
        }
    }
}

impl Building for Dispatch {
    /// How long each machine, then each job, is still busy once something can start again, over the longest time; then
    /// the machine that is decided. What ended before that time can no longer matter.
    fn context(&self, lane: usize, to: &mut [f32]) {
        let (free, ready, clock) = (self.lanes.free(lane), self.lanes.ready(lane), self.lanes.clock(lane));
        let (busy, machine) = to.split_at_mut(free.len() + ready.len());
        for (to, &end) in busy.iter_mut().zip(free.iter().chain(ready)) {
            *to = end.saturating_sub(clock) as f32 / self.longest[lane];
        }
        machine.fill(0.0);
        machine[self.lanes.machine(lane) as usize] = 1.0;
    }

    fn open(&self, lane: usize, to: &mut [u8]) {
        to.fill(0);
        let (legal, starts) = (self.lanes.legal(lane), self.starts(lane));
        for (job, &done) in self.lanes.next(lane).iter().enumerate() {
            if legal[job / 64] >> (job % 64) & 1 == 1 {
                to[(starts[job] + done) as usize] = 1;
            }
        }
    }

    fn choose(&mut self, choices: &[i32]) -> Result<(), Error> {
        let mut actions = std::mem::take(&mut self.actions);
        actions.clear();
        actions.extend(
            choices
                .iter()
                .take(self.instances.len())
                .enumerate()
                .map(|(lane, &choice)| self.job(lane, choice)),
        );
        // Too many choices are the lanes' to refuse.
        actions.resize(choices.len(), u32::MAX);
        self.actions = actions;
        Ok(self.lanes.step(&self.actions)?)
    }

    fn outcome(&self, lane: usize) -> Outcome {
        Outcome { makespan: self.lanes.makespan(lane), ..Outcome::default() }
    }

    fn schedule(&self, lane: usize) -> Schedule {
        self.lanes.schedule(lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reading;
    use niwaki_shop::Operation;

    #[test]
    fn the_state_in_numbers() {
        // Job 0: machine 0 for 3, machine 1 for 2. Job 1: machine 1 for 4. Job 2: machine 0 for 1.
        let op = |machine, time| Operation { machine, time };
        let shop = JobShop::new(2, &[vec![op(0, 3), op(1, 2)], vec![op(1, 4)], vec![op(0, 1)]]).unwrap();
        let (bounds, order) = (vec![Bounds { lower: 6, upper: 6 }], Reading::default().order);
        let task = JobTask::new(vec![shop], bounds, 1, order).unwrap();
        assert_eq!((task.candidates(), task.horizon(), task.features(), task.context()), (4, 4, 8, 7));
        let mut features = [0.0; 32];
        task.describe(0, &mut features);
        // The longest time is 4, the most work of a job 5: time, machine, job, place, work left.
        assert_eq!(features[..8], [0.75, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(features[8..16], [0.5, 0.0, 1.0, 1.0, 0.0, 0.0, 0.5, 0.4]);
        assert_eq!(features[24..], [0.25, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.2]);
        let (mut context, mut open) = ([0.0; 7], [0; 4]);
        let mut lanes = task.begin(&[0]).unwrap();
        lanes.open(0, &mut open);
        // Both machines are free at 0, the first decides: operation 0 of job 0, or job 2's.
        assert_eq!(open, [1, 0, 0, 1]);
        for closed in [1, 2, 4, -1] {
            assert!(lanes.choose(&[closed]).is_err(), "{closed}");
        }
        assert!(lanes.choose(&[]).is_err() && lanes.choose(&[0, 0]).is_err());
        lanes.choose(&[0]).unwrap();
        lanes.context(0, &mut context);
        lanes.open(0, &mut open);
        // Machine 0 and job 0 are busy until 3; at 0 machine 1 decides, and only job 1 waits for it.
        assert_eq!((context, open), ([0.75, 0.0, 0.75, 0.0, 0.0, 0.0, 1.0], [0, 0, 1, 0]));
        for choice in [2, 3, 1] {
            lanes.choose(&[choice]).unwrap();
        }
        lanes.open(0, &mut open);
        // Job 1 runs from 0 to 4, job 2 from 3 to 4, job 0 again from 4 to 6.
        assert_eq!((open, lanes.outcome(0).makespan, lanes.schedule(0).makespan()), ([0; 4], 6, 6));
    }
}
