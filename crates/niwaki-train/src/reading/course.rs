//! How a run went: its curve, as far as it came, and what counts where it came no further.

use super::{Endpoint, Judged};
use crate::Record;

/// How a run went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// Iterations asked for; the curve is shorter where training diverged, or goes on.
    pub iterations: usize,
    /// One record per iteration.
    pub curve: Vec<Record>,
    /// What was read off the curve, where that is all that is left of it.
    pub kept: Option<Vec<(Endpoint, f64)>>,
}

impl Course {
    /// Iterations done.
    #[must_use]
    pub fn done(&self) -> usize {
        self.curve.last().map_or(0, |record| record.iteration)
    }

    /// What it is judged by: the reward of the likeliest trajectory where that was measured, else η, else its batches.
    #[must_use]
    pub fn judged(&self) -> Judged {
        let measured = |what: &Judged| self.curve.iter().any(|record| what.of(record).is_some());
        [Judged::Likeliest, Judged::Eta].into_iter().find(measured).unwrap_or(Judged::Batch)
    }

    /// Iterations and values where they were measured.
    #[must_use]
    pub fn measured(&self, judged: Judged) -> Vec<(usize, f64)> {
        let point = |record: &Record| judged.of(record).map(|value| (record.iteration, value));
        self.curve.iter().filter_map(point).collect()
    }

    /// The same of a run that is over: where it diverged, what it could not earn any more counts as well.
    #[must_use]
    pub fn points(&self, judged: Judged) -> Vec<(usize, f64)> {
        let mut points = self.measured(judged);
        if self.kept.is_some() {
            return points;
        }
        let (every, lost) = (points.first().map_or(1, |point| point.0), self.lost(judged));
        let missing =
            (self.done() + 1..=self.iterations).filter(|i| i.is_multiple_of(every) || *i == self.iterations);
        points.extend(missing.map(|iteration| (iteration, lost)));
        points
    }

    /// What an iteration counts as that a diverged run did not come to: nothing, or the least that it ever earned where
    /// returns are below zero, so that no run gains by diverging.
    pub(super) fn lost(&self, judged: Judged) -> f64 {
        self.measured(judged).into_iter().map(|point| point.1).fold(0.0, f64::min)
    }

    /// [`Course::points`] with the untrained policy at iteration 0, where that was measured.
    #[must_use]
    pub fn points_from_start(&self, judged: Judged) -> Vec<(usize, f64)> {
        let first = self.curve.first().and_then(|record| record.initial);
        let value = first.and_then(|measured| match judged {
            Judged::Likeliest => measured.greedy,
            Judged::Eta => measured.eta,
            Judged::Batch => None,
        });
        value.map(|value| (0, value)).into_iter().chain(self.points(judged)).collect()
    }
}

/// The mean over runs at every iteration that all of them measured.
#[must_use]
pub fn mean_curve(runs: &[&Course], judged: Judged) -> Vec<(usize, f64)> {
    mean_of(&runs.iter().map(|run| run.points(judged)).collect::<Vec<_>>())
}

/// The mean of some curves wherever all of them have a point.
#[must_use]
pub fn mean_of(curves: &[Vec<(usize, f64)>]) -> Vec<(usize, f64)> {
    let Some(head) = curves.first() else { return Vec::new() };
    let at = |curve: &[(usize, f64)], iteration: usize| {
        curve.binary_search_by_key(&iteration, |point| point.0).ok().map(|place| curve[place].1)
    };
    head.iter()
        .filter_map(|&(iteration, _)| {
            let values: Option<Vec<f64>> = curves.iter().map(|curve| at(curve, iteration)).collect();
            Some((iteration, niwaki_stats::mean(&values?).ok()?))
        })
        .collect()
}
