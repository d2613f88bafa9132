//! Orders of jobs under construction: what flow shops, with lags or without, show of themselves between two choices.

use crate::{Building, Error, Outcome};
use niwaki_shop::Schedule;
use niwaki_shop::construct::{Lanes, SequenceLanes};

/// Lanes over orders, each with what its instance's times are divided by.
pub(crate) struct Orders {
    lanes: SequenceLanes,
    /// `[lane]`: the work of the busiest machine, and the longest time.
    scales: Vec<(f32, f32)>,
    actions: Vec<u32>,
}

impl Orders {
    /// Empty orders of the instances named, one lane each; `whole` and `unit` have one entry per instance of the pool.
    pub(crate) fn begin(
        mut lanes: SequenceLanes,
        instances: &[u32],
        whole: &[f32],
        unit: &[f32],
    ) -> Result<Box<dyn Building>, Error> {
        lanes.reset(instances)?;
        let scale = |&instance: &u32| (whole[instance as usize], unit[instance as usize]);
        let scales = instances.iter().map(scale).collect();
        Ok(Box::new(Self { lanes, scales, actions: Vec::new() }))
    }
}

impl Building for Orders {
    /// When each machine is done, over the work of the busiest one; then how long after the machine before it, over
    /// the longest time.
    fn context(&self, lane: usize, to: &mut [f32]) {
        let (front, (whole, unit)) = (self.lanes.front(lane), self.scales[lane]);
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
        Outcome { makespan: self.lanes.makespan(lane), late: self.lanes.late(lane), violation: 0 }
    }

    fn schedule(&self, lane: usize) -> Schedule {
        self.lanes.schedule(lane)
    }
}
