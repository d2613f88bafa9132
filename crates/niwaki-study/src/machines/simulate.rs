//! How long a plan would take on so many machines: units in the plan's order, each on the first machine that is free.

use super::split::Split;
use crate::Error;

/// A plan on so many machines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simulated {
    /// Machines.
    pub machines: usize,
    /// Seconds until the last unit is done.
    pub seconds: f64,
    /// The share of the machines' time in which they had nothing to do.
    pub idle: f64,
}

/// How a plan scales.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// The work of all units, in seconds of one machine.
    pub work: f64,
    /// The longest chain of units that wait for each other: no number of machines is faster.
    pub chain: f64,
    /// For each number of machines.
    pub simulated: Vec<Simulated>,
}

impl Split {
    /// How long the plan takes on so many machines, with `overhead` seconds beside the work of each unit.
    ///
    /// # Errors
    /// Where a unit's time is not known.
    pub fn simulate(&self, machines: &[usize], overhead: f64) -> Result<Scaling, Error> {
        let mut seconds = Vec::with_capacity(self.units.len());
        for (number, unit) in self.units.iter().enumerate() {
            let known =
                unit.seconds.or_else(|| (unit.run_iterations == 0).then_some(0.0)).ok_or_else(|| {
                    Error::Unit {
                        unit: self.words(number),
                        mend: "how long it takes is not known; give the speed at which its study was made"
                            .to_owned(),
                    }
                })?;
            seconds.push(known + overhead);
        }
        let simulated = machines.iter().map(|&machines| self.on(machines.max(1), &seconds)).collect();
        // On as many machines as there are units nothing waits but for what comes before it.
        let chain = self.on(self.units.len().max(1), &seconds).seconds;
        Ok(Scaling { work: seconds.iter().sum(), chain, simulated })
    }

    fn on(&self, machines: usize, seconds: &[f64]) -> Simulated {
        let mut free = vec![0.0_f64; machines.min(self.units.len().max(1))];
        let mut ends: Vec<f64> = Vec::with_capacity(seconds.len());
        for (unit, takes) in self.units.iter().zip(seconds) {
            let ready = ends[unit.before()].iter().copied().fold(0.0, f64::max);
            // The machine that is free first; one that would wait takes it when it is ready.
            let first = (0..free.len()).min_by(|&a, &b| free[a].max(ready).total_cmp(&free[b].max(ready)));
            let machine = first.unwrap_or(0);
            let end = free[machine].max(ready) + takes;
            free[machine] = end;
            ends.push(end);
        }
        let seconds_all = ends.iter().copied().fold(0.0, f64::max);
        let work: f64 = seconds.iter().sum();
        let idle = if seconds_all > 0.0 { 1.0 - work / (seconds_all * machines as f64) } else { 0.0 };
        Simulated { machines, seconds: seconds_all, idle }
    }
}
