//! Performance profiles: the share of scores above a threshold, as the threshold moves.
//!
//! Owns the curve and its pointwise bootstrap band. Knows nothing of how it is drawn.

use crate::bootstrap::Bootstrap;
use crate::draws::Draws;
use crate::error::{Error, check_sample};
use crate::interval::Interval;
use crate::scores::Scores;

/// Which scores a profile counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Every run of every task: the run-score distribution, an unbiased profile with a narrow band.
    RunScores,
    /// The mean over runs of each task: the average-score distribution.
    TaskMeans,
}

/// Shares that a band may hold.
const MOST_SHARES: usize = 100_000_000;

impl Profile {
    /// `scores [runs, tasks], thresholds [k] -> [k]`. The share of counted scores strictly above each threshold.
    ///
    /// # Errors
    /// Empty or non-finite `thresholds`.
    pub fn of(self, scores: Scores<'_>, thresholds: &[f64]) -> Result<Vec<f64>, Error> {
        check_sample("thresholds", thresholds, 1)?;
        Ok(self.shares(scores, thresholds))
    }

    /// `scores [runs, tasks], thresholds [k] -> [k]`. Pointwise percentile intervals of [`Profile::of`] under the
    /// stratified bootstrap; one resample serves all thresholds.
    ///
    /// # Errors
    /// Empty or non-finite `thresholds`; settings out of range.
    pub fn band(
        self,
        scores: Scores<'_>,
        thresholds: &[f64],
        bootstrap: &Bootstrap,
    ) -> Result<Vec<Interval>, Error> {
        check_sample("thresholds", thresholds, 1)?;
        bootstrap.check()?;
        let held = thresholds.len().saturating_mul(bootstrap.resamples);
        if held > MOST_SHARES {
            let (expected, found) = ("at most 100 million over all thresholds", held as f64);
            return Err(Error::OutOfRange { name: "resamples", expected, found });
        }
        let mut drawn = Vec::new();
        let mut columns = vec![Vec::with_capacity(bootstrap.resamples); thresholds.len()];
        for replicate in 0..bootstrap.resamples {
            let resample = scores.resample(&mut Draws::open(bootstrap.seed, replicate), &mut drawn);
            for (column, share) in columns.iter_mut().zip(self.shares(resample, thresholds)) {
                column.push(share);
            }
        }
        Ok(columns
            .iter_mut()
            .map(|column| {
                column.sort_unstable_by(f64::total_cmp);
                bootstrap.percentile_of_sorted(column)
            })
            .collect())
    }

    fn shares(self, scores: Scores<'_>, thresholds: &[f64]) -> Vec<f64> {
        let mut counted = match self {
            Self::RunScores => scores.values().to_vec(),
            Self::TaskMeans => scores.task_means(),
        };
        counted.sort_unstable_by(f64::total_cmp);
        let above = |t: &f64| counted.len() - counted.partition_point(|v| v <= t);
        thresholds.iter().map(|t| above(t) as f64 / counted.len() as f64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_by_hand() {
        // Runs (0, 1) and (1, 3): task means 0.5 and 2.
        let values = [0.0, 1.0, 1.0, 3.0];
        let scores = Scores::new(&values, 2, 2).unwrap();
        // Strictly above −1: 4 of 4; above 0: 3; above 1: 1 (the two ones are not above themselves); above 3: 0.
        assert_eq!(Profile::RunScores.of(scores, &[-1.0, 0.0, 1.0, 3.0]), Ok(vec![1.0, 0.75, 0.25, 0.0]));
        assert_eq!(Profile::TaskMeans.of(scores, &[0.4, 0.5, 2.0]), Ok(vec![1.0, 0.5, 0.0]));
    }

    #[test]
    fn bad_input_is_refused() {
        let scores = Scores::new(&[1.0], 1, 1).unwrap();
        assert!(matches!(Profile::RunScores.of(scores, &[]), Err(Error::Empty { .. })));
        assert!(Profile::TaskMeans.of(scores, &[f64::NAN]).is_err());
        let none = Bootstrap { resamples: 0, ..Bootstrap::from_seed(0) };
        assert!(Profile::RunScores.band(scores, &[0.0], &none).is_err());
        // Each within its own limit, and together 8 terabytes.
        let many = Bootstrap { resamples: 10_000_000, ..Bootstrap::from_seed(0) };
        let said = Profile::RunScores.band(scores, &[0.0; 100_000], &many).unwrap_err().to_string();
        assert_eq!(said, "`resamples` must be at most 100 million over all thresholds, found 1000000000000");
    }
}
