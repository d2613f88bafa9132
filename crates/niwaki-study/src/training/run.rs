//! A finished run: which it is, and its curve.

use super::Endpoint;
use niwaki_train::Record;

/// A finished run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The arm's place in the study.
    pub arm: usize,
    /// The cell's place in the plan.
    pub cell: usize,
    /// The seed.
    pub seed: u64,
    /// Iterations asked for; the curve is shorter where training diverged.
    pub iterations: usize,
    /// Where it ran.
    pub device: String,
    /// One record per iteration.
    pub curve: Vec<Record>,
    /// What was read off the curve, where that is all that is left of it.
    pub kept: Option<Vec<(Endpoint, f64)>>,
}

impl Run {
    /// Iterations and returns where they were measured; after a divergence every return is 0.
    #[must_use]
    pub fn points(&self, greedy: bool) -> Vec<(usize, f64)> {
        if self.kept.is_some() {
            return Vec::new();
        }
        let value = |record: &Record| if greedy { record.greedy } else { record.eta };
        let measured = |record: &Record| value(record).map(|value| (record.iteration, value));
        let mut points: Vec<(usize, f64)> = self.curve.iter().filter_map(measured).collect();
        let done = self.curve.last().map_or(0, |record| record.iteration);
        let every = points.first().map_or(1, |point| point.0);
        let missing =
            (done + 1..=self.iterations).filter(|i| i.is_multiple_of(every) || *i == self.iterations);
        points.extend(missing.map(|iteration| (iteration, 0.0)));
        points
    }

    /// The same with the untrained policy at iteration 0, where that was measured.
    #[must_use]
    pub fn points_from_start(&self, greedy: bool) -> Vec<(usize, f64)> {
        let first = self.curve.first().and_then(|record| record.initial);
        let value = first.and_then(|measured| if greedy { measured.greedy } else { measured.eta });
        value.map(|value| (0, value)).into_iter().chain(self.points(greedy)).collect()
    }
}
