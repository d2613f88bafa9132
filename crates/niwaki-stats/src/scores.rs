//! The runs × tasks matrix and its aggregates: mean, median, interquartile mean, optimality gap.
//!
//! Follows Agarwal et al. 2021 ("Deep RL at the edge of the statistical precipice"): runs are resampled within each
//! task, never across tasks. Knows nothing of pairs or thresholds.

use crate::bootstrap::Bootstrap;
use crate::describe::{mean_of, quantile_of_sorted, sum_of};
use crate::draws::Draws;
use crate::error::{Error, check_sample};
use crate::interval::Interval;

/// Scores of one arm, `[run, task]` row by row, checked once.
///
/// ```
/// # fn main() -> Result<(), niwaki_stats::Error> {
/// use niwaki_stats::{Bootstrap, Scores};
/// // Three runs on two tasks.
/// let scores = Scores::new(&[0.1, 0.9, 0.2, 0.8, 0.3, 1.0], 3, 2)?;
/// let interval = scores.interval(&Bootstrap::from_seed(1), |s| s.iqm())?;
/// assert!(interval.contains(scores.iqm()));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores<'a> {
    values: &'a [f64],
    runs: usize,
    tasks: usize,
}

impl<'a> Scores<'a> {
    /// `values [runs · tasks], run-major -> [runs, tasks]`. Checks the shape and that every score is finite.
    ///
    /// # Errors
    /// No score; a length other than `runs · tasks`; a non-finite score.
    pub fn new(values: &'a [f64], runs: usize, tasks: usize) -> Result<Self, Error> {
        check_sample("scores", values, 1)?;
        if runs.checked_mul(tasks) != Some(values.len()) {
            return Err(Error::Shape { name: "scores", runs, tasks, found: values.len() });
        }
        Ok(Self { values, runs, tasks })
    }

    /// `-> count`. Length of the `runs` axis.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// `-> count`. Length of the `tasks` axis.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// `-> [runs · tasks]`. All scores, run by run.
    #[must_use]
    pub fn values(&self) -> &'a [f64] {
        self.values
    }

    /// `task -> [runs]`. The scores of one task, run by run. Panics if there is no such task.
    pub fn task(&self, task: usize) -> impl Iterator<Item = f64> + use<'a> {
        assert!(task < self.tasks, "task {task} of {}", self.tasks);
        self.values[task..].iter().copied().step_by(self.tasks)
    }

    /// `-> [tasks]`. Mean over runs, task by task.
    #[must_use]
    pub fn task_means(&self) -> Vec<f64> {
        (0..self.tasks).map(|m| sum_of(self.task(m)) / self.runs as f64).collect()
    }

    /// `-> scalar`. Mean over runs and tasks.
    #[must_use]
    pub fn mean(&self) -> f64 {
        mean_of(self.values)
    }

    /// `-> scalar`. Median over tasks of the mean over runs.
    #[must_use]
    pub fn median(&self) -> f64 {
        let mut means = self.task_means();
        means.sort_unstable_by(f64::total_cmp);
        quantile_of_sorted(&means, 0.5)
    }

    /// `-> scalar`. Interquartile mean: all runs of all tasks pooled, the lowest and the highest ⌊n/4⌋ scores
    /// dropped, the rest averaged.
    #[must_use]
    pub fn iqm(&self) -> f64 {
        let cut = self.values.len() / 4;
        let mut pooled = self.values.to_vec();
        if cut == 0 {
            return mean_of(&pooled);
        }
        // Two selections place the middle half without a full sort.
        pooled.select_nth_unstable_by(cut, f64::total_cmp);
        let kept = pooled.len() - 2 * cut;
        let upper = &mut pooled[cut..];
        upper.select_nth_unstable_by(kept, f64::total_cmp);
        mean_of(&upper[..kept])
    }

    /// `target -> scalar`. Optimality gap: how far the mean score, with scores above `target` counted as `target`,
    /// falls short of it. A target that is not finite gives a gap that is not finite.
    #[must_use]
    pub fn optimality_gap(&self, target: f64) -> f64 {
        target - sum_of(self.values.iter().map(|v| v.min(target))) / self.values.len() as f64
    }

    /// `-> interval`. Percentile interval of an aggregate under the stratified bootstrap: within each task, runs
    /// are drawn with replacement, independently of the other tasks.
    ///
    /// # Errors
    /// Settings out of range; a resample whose aggregate is not finite.
    pub fn interval(
        &self,
        bootstrap: &Bootstrap,
        aggregate: impl Fn(Scores<'_>) -> f64,
    ) -> Result<Interval, Error> {
        let mut drawn = Vec::new();
        let sorted = bootstrap.replicates(|draws| aggregate(self.resample(draws, &mut drawn)))?;
        Ok(bootstrap.percentile_of_sorted(&sorted))
    }

    /// One stratified resample, written into `drawn`.
    pub(crate) fn resample<'b>(&self, draws: &mut Draws, drawn: &'b mut Vec<f64>) -> Scores<'b> {
        drawn.clear();
        for i in 0..self.values.len() {
            let task = i % self.tasks;
            drawn.push(self.values[draws.index(self.runs) * self.tasks + task]);
        }
        Scores { values: drawn, runs: self.runs, tasks: self.tasks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_by_hand() {
        // Runs (0, 10, 2), (4, 20, 3), (8, 30, 1): task means 4, 20, 2; their median 4, their mean 26/3.
        let values = [0.0, 10.0, 2.0, 4.0, 20.0, 3.0, 8.0, 30.0, 1.0];
        let scores = Scores::new(&values, 3, 3).unwrap();
        assert_eq!(scores.task_means(), [4.0, 20.0, 2.0]);
        assert_eq!(scores.task(1).collect::<Vec<_>>(), [10.0, 20.0, 30.0]);
        assert_eq!(scores.median(), 4.0);
        assert!((scores.mean() - 26.0 / 3.0).abs() < 1e-15);
        // Nine scores, two dropped at each end (0, 1 and 20, 30): (2 + 3 + 4 + 8 + 10) / 5 = 5.4.
        assert_eq!(scores.iqm(), 5.4);
        // Target 5: min(score, 5) sums to 0 + 5 + 2 + 4 + 5 + 3 + 5 + 5 + 1 = 30; 5 − 30/9.
        assert!((scores.optimality_gap(5.0) - (5.0 - 30.0 / 9.0)).abs() < 1e-15);
        // With three scores nothing is dropped.
        assert_eq!(Scores::new(&[1.0, 2.0, 6.0], 3, 1).unwrap().iqm(), 3.0);
    }

    #[test]
    fn resamples_stay_within_their_task() {
        // Task m holds values in [10·m, 10·m + 1].
        let values = [0.0, 10.0, 20.0, 1.0, 11.0, 21.0];
        let scores = Scores::new(&values, 2, 3).unwrap();
        let mut drawn = Vec::new();
        for replicate in 0..50 {
            let resample = scores.resample(&mut Draws::open(1, replicate), &mut drawn);
            for task in 0..3 {
                assert!(resample.task(task).all(|v| (v / 10.0).floor() as usize == task));
            }
        }
    }

    #[test]
    fn bad_shapes_are_refused() {
        assert!(matches!(Scores::new(&[1.0, 2.0, 3.0], 2, 2), Err(Error::Shape { found: 3, .. })));
        assert!(matches!(Scores::new(&[], 0, 4), Err(Error::Empty { .. })));
        assert!(matches!(Scores::new(&[f64::NAN], 1, 1), Err(Error::NotFinite { .. })));
        assert!(Scores::new(&[1.0], usize::MAX, 2).is_err());
        let scores = Scores::new(&[1.0, 2.0], 2, 1).unwrap();
        assert!(scores.interval(&Bootstrap::from_seed(0), |s| s.optimality_gap(f64::NAN)).is_err());
    }
}
