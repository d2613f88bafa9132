//! Resampling: how many, how sure, from which seed; percentile and BCa intervals of a one-sample statistic.
//!
//! Owns the settings and the replicate loop that the stratified and the unpaired bootstrap share. Knows nothing of
//! the statistic, which is a closure.

use crate::describe::{mean_of, quantile_of_sorted, sum_of};
use crate::draws::Draws;
use crate::error::{Error, check_level, check_sample};
use crate::interval::Interval;
use crate::normal::{normal_cdf, normal_quantile};

/// Resamples beyond which an interval's ends no longer move, and memory runs out.
const MOST_RESAMPLES: usize = 10_000_000;

/// Settings of a bootstrap; its results are a pure function of them and of the data.
///
/// ```
/// # fn main() -> Result<(), niwaki_stats::Error> {
/// use niwaki_stats::{Bootstrap, median};
/// let leads = [0.02, 0.05, -0.01, 0.04, 0.03, 0.07];
/// let bootstrap = Bootstrap { level: 0.9, ..Bootstrap::from_seed(7) };
/// let interval = bootstrap.percentile(&leads, |x| median(x).unwrap_or(f64::NAN))?;
/// assert!(interval.contains(median(&leads)?));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Seed of the resamples.
    pub seed: u64,
    /// Number of resamples, at least 1 and at most 10 million.
    pub resamples: usize,
    /// Nominal coverage, strictly between 0 and 1.
    pub level: f64,
}

impl Bootstrap {
    /// `seed -> settings`. 10 000 resamples at level 0.95.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self { seed, resamples: 10_000, level: 0.95 }
    }

    /// `sample [n] -> interval`. Percentile interval of `statistic`: the quantiles of its values on resamples of
    /// the sample with replacement.
    ///
    /// # Errors
    /// Empty or non-finite `sample`; settings out of range; a resample whose statistic is not finite.
    pub fn percentile(&self, sample: &[f64], statistic: impl Fn(&[f64]) -> f64) -> Result<Interval, Error> {
        let sorted = self.of_sample(sample, 1, &statistic)?;
        Ok(self.percentile_of_sorted(&sorted))
    }

    /// `sample [n] -> interval`. Bias-corrected and accelerated interval of `statistic` (Efron 1987), with the
    /// acceleration from the jackknife. A statistic that no resample changes gives an interval of zero width.
    ///
    /// # Errors
    /// As [`Bootstrap::percentile`]; fewer than two values; replicates that all lie on one side of the estimate.
    pub fn bca(&self, sample: &[f64], statistic: impl Fn(&[f64]) -> f64) -> Result<Interval, Error> {
        let sorted = self.of_sample(sample, 2, &statistic)?;
        let estimate = finite("statistic", 0, statistic(sample))?;
        if sorted[0] == estimate && sorted[sorted.len() - 1] == estimate {
            return Ok(Interval { low: estimate, high: estimate, level: self.level });
        }
        // Replicates equal to the estimate count half, so that ties do not bias the correction.
        let below = sorted.partition_point(|&r| r < estimate);
        let up_to = sorted.partition_point(|&r| r <= estimate);
        let share = 0.5 * (below + up_to) as f64 / sorted.len() as f64;
        let shift = normal_quantile(share).map_err(|_| Error::OneSided { estimate })?;
        let acceleration = acceleration(sample, &statistic)?;
        let end = |probability: f64| -> Result<f64, Error> {
            let z = shift + normal_quantile(probability)?;
            let adjusted = normal_cdf(shift + z / (1.0 - acceleration * z));
            Ok(quantile_of_sorted(&sorted, adjusted))
        };
        let tail = 0.5 * (1.0 - self.level);
        let (a, b) = (end(tail)?, end(1.0 - tail)?);
        // A strong acceleration can swap the ends.
        Ok(Interval { low: a.min(b), high: a.max(b), level: self.level })
    }

    /// Refuses settings out of range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_level(self.level)?;
        if self.resamples == 0 {
            return Err(Error::OutOfRange { name: "resamples", expected: "at least 1", found: 0.0 });
        }
        if self.resamples > MOST_RESAMPLES {
            let found = self.resamples as f64;
            return Err(Error::OutOfRange { name: "resamples", expected: "at most 10 million", found });
        }
        Ok(())
    }

    /// The values of one replicate function over all replicates, sorted.
    pub(crate) fn replicates(&self, mut one: impl FnMut(&mut Draws) -> f64) -> Result<Vec<f64>, Error> {
        self.check()?;
        let mut values = (0..self.resamples)
            .map(|i| finite("replicate", i, one(&mut Draws::open(self.seed, i))))
            .collect::<Result<Vec<_>, _>>()?;
        values.sort_unstable_by(f64::total_cmp);
        Ok(values)
    }

    /// The equal-tailed interval of sorted replicates.
    pub(crate) fn percentile_of_sorted(&self, sorted: &[f64]) -> Interval {
        let tail = 0.5 * (1.0 - self.level);
        Interval {
            low: quantile_of_sorted(sorted, tail),
            high: quantile_of_sorted(sorted, 1.0 - tail),
            level: self.level,
        }
    }

    fn of_sample(
        &self,
        sample: &[f64],
        needed: usize,
        statistic: impl Fn(&[f64]) -> f64,
    ) -> Result<Vec<f64>, Error> {
        check_sample("sample", sample, needed)?;
        let mut drawn = sample.to_vec();
        self.replicates(|draws| {
            drawn.fill_with(|| sample[draws.index(sample.len())]);
            statistic(&drawn)
        })
    }
}

/// Skewness of the jackknife over six; 0 when leaving out any one value changes nothing.
fn acceleration(sample: &[f64], statistic: impl Fn(&[f64]) -> f64) -> Result<f64, Error> {
    let mut rest = sample[1..].to_vec();
    let mut left_out = Vec::with_capacity(sample.len());
    for i in 0..sample.len() {
        left_out.push(finite("jackknife", i, statistic(&rest))?);
        if i < rest.len() {
            // `rest` holds all values but i; this makes it all but i + 1.
            rest[i] = sample[i];
        }
    }
    let centre = mean_of(&left_out);
    let squares = sum_of(left_out.iter().map(|v| (centre - v).powi(2)));
    let cubes = sum_of(left_out.iter().map(|v| (centre - v).powi(3)));
    Ok(if squares > 0.0 { cubes / (6.0 * squares.powf(1.5)) } else { 0.0 })
}

fn finite(name: &'static str, index: usize, value: f64) -> Result<f64, Error> {
    if value.is_finite() { Ok(value) } else { Err(Error::NotFinite { name, index, value }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pure_function_of_the_seed() {
        let sample = [1.0, 4.0, 2.0, 8.0, 5.0];
        let run =
            |seed| Bootstrap { resamples: 200, ..Bootstrap::from_seed(seed) }.bca(&sample, mean_of).unwrap();
        assert_eq!(run(3), run(3));
        assert_ne!(run(3), run(4));
    }

    #[test]
    fn jackknife_acceleration_by_hand() {
        // Leaving one out of {0, 0, 3}: means 1.5, 1.5, 0; their mean is 1; deviations −0.5, −0.5, 1.
        // Squares 0.25 + 0.25 + 1 = 1.5; cubes −0.125 − 0.125 + 1 = 0.75; 0.75 / (6 · 1.5^1.5).
        let expected = 0.75 / (6.0 * 1.5_f64.powf(1.5));
        assert!((acceleration(&[0.0, 0.0, 3.0], mean_of).unwrap() - expected).abs() < 1e-15);
        assert_eq!(acceleration(&[2.0, 2.0], mean_of), Ok(0.0));
    }

    #[test]
    fn ties_with_the_estimate_count_half() {
        // Medians of resamples of {−1, 0, 1}: −1, 0, 1 with chances 7/27, 13/27, 7/27, and the estimate is 0. With
        // ties halved the share is 1/2 and the shift nought; the jackknife (0.5, 0, −0.5) has no skew. So BCa is the
        // percentile interval, whose tails of 0.3 are beyond 7/27 = 0.26 on both sides.
        let bootstrap = Bootstrap { level: 0.4, ..Bootstrap::from_seed(2) };
        let found = bootstrap.bca(&[-1.0, 0.0, 1.0], |x| crate::median(x).unwrap()).unwrap();
        assert_eq!((found.low, found.high), (0.0, 0.0));
    }

    #[test]
    fn degenerate_samples_and_bad_settings() {
        let bootstrap = Bootstrap { resamples: 50, ..Bootstrap::from_seed(1) };
        let same = bootstrap.bca(&[2.0; 4], mean_of).unwrap();
        assert_eq!((same.low, same.high), (2.0, 2.0));
        // A closure that knows the sample by its address puts every replicate above the estimate.
        let sample = [1.0, 2.0, 3.0];
        let lopsided = bootstrap.bca(&sample, |x| if x.as_ptr() == sample.as_ptr() { 0.0 } else { 1.0 });
        assert_eq!(lopsided, Err(Error::OneSided { estimate: 0.0 }));
        assert!(matches!(bootstrap.percentile(&[1.0], |_| f64::NAN), Err(Error::NotFinite { .. })));
        assert!(bootstrap.bca(&[1.0], mean_of).is_err());
        assert!(Bootstrap { resamples: 0, ..bootstrap }.percentile(&[1.0], mean_of).is_err());
        assert!(Bootstrap { level: 1.0, ..bootstrap }.percentile(&[1.0], mean_of).is_err());
        // As many resamples as no memory holds.
        let many = |resamples| {
            Bootstrap { resamples, ..bootstrap }.bca(&[1.0, 2.0], mean_of).unwrap_err().to_string()
        };
        assert_eq!(many(10_000_001), "`resamples` must be at most 10 million, found 10000001");
        assert!(
            many(usize::MAX).starts_with("`resamples` must be at most 10 million, found 1844674407370955")
        );
    }
}
