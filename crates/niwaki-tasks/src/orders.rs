//! Orders of jobs under construction: what flow shops, with lags or without, show of themselves between two choices.

use crate::{Building, Error, Outcome};
use niwaki_shop::Schedule;
use niwaki_shop::construct::{Lanes, SequenceLanes};

/// What an instance's times are divided by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// The longest time.
    pub(crate) time: f32,
    /// The work of the busiest machine.
    pub(crate) load: f32,
}

/// Lanes over orders, each with the scale of its instance.
pub(crate) struct Orders {
    lanes: SequenceLanes,
    scales: Vec<Scale>,
    actions: Vec<u32>,
}

impl Orders {
    /// Empty orders of the instances named, one lane each; `scales` has one entry per instance of the pool.
    pub(crate) fn begin(
        mut lanes: SequenceLanes,
        instances: &[u32],
        scales: &[Scale],
    ) -> Result<Box<dyn Building>, Error> {
        lanes.reset(instances)?;
        let scales = instances.iter().map(|&instance| scales[instance as usize]).collect();
        Ok(Box::new(Self { lanes, scales, actions: Vec::new() }))
    }
}

impl Building for Orders {
    /// When each machine is done, over the work of the busiest one; then how long after the machine before it, over
    /// the longest time.
    fn context(&self, lane: usize, to: &mut [f32]) {
        let (front, scale) = (self.lanes.front(lane), self.scales[lane]);
        let (absolute, relative) = to.split_at_mut(front.len());
        let mut before = front[0];
        for (machine, &done) in front.iter().enumerate() {
            absolute[machine] = done as f32 / scale.load;
            relative[machine] = (done - before) as f32 / scale.time;
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
        Outcome { makespan: self.lanes.makespan(lane), late: self.lanes.late(lane) }
    }

    fn schedule(&self, lane: usize) -> Schedule {
        self.lanes.schedule(lane)
    }
}
