//! Correlation and the line through a cloud of points.
//!
//! Owns Pearson's r, its rank and within-group versions, Fisher's interval and the least-squares line. The
//! within-group version answers "does the win follow the dose once the task's difficulty is set aside?"; this file
//! does not know that question.

use std::collections::BTreeMap;

use crate::describe::{mean_of, squared_deviations, sum_of};
use crate::error::{Error, check_lengths, check_sample};
use crate::interval::Interval;
use crate::normal::half_width;

/// `x [n], y [n] -> scalar`. Pearson's correlation.
///
/// # Errors
/// Fewer than two points; lengths that differ; non-finite input; a constant slice.
pub fn pearson(x: &[f64], y: &[f64]) -> Result<f64, Error> {
    check_points(x, y)?;
    let (x, y) = (centred("x", x)?, centred("y", y)?);
    let norms = sum_of(x.iter().map(|v| v * v)).sqrt() * sum_of(y.iter().map(|v| v * v)).sqrt();
    Ok((sum_of(x.iter().zip(&y).map(|(a, b)| a * b)) / norms).clamp(-1.0, 1.0))
}

/// `x [n], y [n] -> scalar`. Spearman's rank correlation: [`pearson`] of the ranks, ties sharing their mean rank.
///
/// # Errors
/// As [`pearson`].
pub fn spearman(x: &[f64], y: &[f64]) -> Result<f64, Error> {
    check_points(x, y)?;
    pearson(&ranks(x), &ranks(y))
}

/// `values [n], groups [n] -> [n]`. z-scores within each group: (value − group mean) / group standard deviation,
/// with the group's size in the variance's denominator.
///
/// Paper: app:sched-win
///
/// # Errors
/// Empty or non-finite `values`; lengths that differ; a group whose values are all equal (a group of one is).
pub fn z_scores_within(values: &[f64], groups: &[usize]) -> Result<Vec<f64>, Error> {
    check_sample("values", values, 1)?;
    check_lengths("values", values.len(), "groups", groups.len())?;
    let mut members = BTreeMap::<usize, Vec<usize>>::new();
    for (i, &group) in groups.iter().enumerate() {
        members.entry(group).or_default().push(i);
    }
    let mut scores = vec![0.0; values.len()];
    for indices in members.values() {
        let group: Vec<f64> = indices.iter().map(|&i| values[i]).collect();
        if is_constant(&group) {
            return Err(Error::Constant { name: "values within a group" });
        }
        let centre = mean_of(&group);
        let spread = (squared_deviations(&group) / group.len() as f64).sqrt();
        for &i in indices {
            scores[i] = (values[i] - centre) / spread;
        }
    }
    Ok(scores)
}

/// `x [n], y [n], groups [n] -> scalar`. Correlation with the group partialled out: [`z_scores_within`] for both,
/// then [`pearson`] of the pooled scores.
///
/// This equals Σ n_g r_g / Σ n_g over the groups' own correlations. The paper does not say which denominator its
/// z-scores use; with n_g − 1 the weights would be n_g − 1, and both readings give its two pooled values (+0.32
/// and −0.03) from its per-configuration ones.
///
/// Paper: app:sched-win
///
/// # Errors
/// As [`z_scores_within`] and [`pearson`].
pub fn pearson_within(x: &[f64], y: &[f64], groups: &[usize]) -> Result<f64, Error> {
    check_points(x, y)?;
    pearson(&z_scores_within(x, groups)?, &z_scores_within(y, groups)?)
}

/// `r, points, controls, level -> interval`. Fisher's interval for a correlation of `points` points:
/// tanh(atanh r ± z / √(points − 3 − controls)).
///
/// `controls` is the number of variables partialled out: 0 for [`pearson`], groups − 1 for [`pearson_within`].
/// For [`spearman`] the interval is approximate and a little narrow.
///
/// # Errors
/// `r` outside [−1, 1]; fewer than `controls + 4` points; a level outside (0, 1).
pub fn fisher_interval(r: f64, points: usize, controls: usize, level: f64) -> Result<Interval, Error> {
    if !(-1.0..=1.0).contains(&r) {
        return Err(Error::OutOfRange { name: "r", expected: "between -1 and 1", found: r });
    }
    let needed = controls.saturating_add(4);
    if points < needed {
        return Err(Error::TooFew { name: "points", needed, found: points });
    }
    let reach = half_width(level)? / ((points - 3 - controls) as f64).sqrt();
    let z = r.atanh();
    Ok(Interval { low: (z - reach).tanh(), high: (z + reach).tanh(), level })
}

/// A straight line, `y = intercept + slope · x`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Rise per unit of `x`.
    pub slope: f64,
    /// Height at `x = 0`.
    pub intercept: f64,
}

impl Line {
    /// `x [n], y [n] -> line`. Least squares of `y` on `x`.
    ///
    /// # Errors
    /// Fewer than two points; lengths that differ; non-finite input; a constant `x`.
    pub fn fit(x: &[f64], y: &[f64]) -> Result<Self, Error> {
        check_points(x, y)?;
        if is_constant(x) {
            return Err(Error::Constant { name: "x" });
        }
        let (mean_x, mean_y) = (mean_of(x), mean_of(y));
        let shared = sum_of(x.iter().zip(y).map(|(a, b)| (a - mean_x) * (b - mean_y)));
        let slope = shared / squared_deviations(x);
        Ok(Self { slope, intercept: mean_y - slope * mean_x })
    }

    /// `x -> scalar`. Height of the line.
    #[must_use]
    pub fn at(&self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }
}

/// `values [n] -> [n]`. Ranks from 1, ties sharing their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    for tied in order.chunk_by(|&i, &j| values[i] == values[j]) {
        // Ranks start + 1 ..= start + len share their mean.
        let shared = start as f64 + 0.5 * (tied.len() + 1) as f64;
        tied.iter().for_each(|&i| ranks[i] = shared);
        start += tied.len();
    }
    ranks
}

fn check_points(x: &[f64], y: &[f64]) -> Result<(), Error> {
    check_sample("x", x, 2)?;
    check_lengths("x", x.len(), "y", y.len())?;
    check_sample("y", y, 2)
}

fn is_constant(values: &[f64]) -> bool {
    values.iter().all(|v| *v == values[0])
}

/// Deviations from the mean, divided by the largest of them so that no square over- or underflows.
fn centred(name: &'static str, values: &[f64]) -> Result<Vec<f64>, Error> {
    if is_constant(values) {
        return Err(Error::Constant { name });
    }
    let centre = mean_of(values);
    let largest = values.iter().fold(0.0_f64, |m, v| m.max((v - centre).abs()));
    Ok(values.iter().map(|v| (v - centre) / largest).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_by_hand() {
        // x deviations −1, 0, 1; y = 1, 3, 2 has deviations −1, 1, 0: shared 1; norms √2 · √2: r = 1/2.
        let (x, y) = ([1.0, 2.0, 3.0], [1.0, 3.0, 2.0]);
        assert!((pearson(&x, &y).unwrap() - 0.5).abs() < 1e-15);
        // Slope 1/2, through the means (2, 2): intercept 1.
        assert_eq!(Line::fit(&x, &y), Ok(Line { slope: 0.5, intercept: 1.0 }));
        assert_eq!(Line { slope: 0.5, intercept: 1.0 }.at(4.0), 3.0);
        // Sorted 1, 5, 5, 9: the fives share rank (2 + 3)/2.
        assert_eq!(ranks(&[5.0, 9.0, 1.0, 5.0]), [2.5, 4.0, 1.0, 2.5]);
        // A monotone curve has rank correlation 1.
        assert_eq!(spearman(&[1.0, 2.0, 3.0, 4.0], &[1.0, 8.0, 27.0, 64.0]), Ok(1.0));
        // Groups {0, 2} and {10, 30}: each −1 and +1 (standard deviation 1 and 10).
        assert_eq!(z_scores_within(&[0.0, 10.0, 2.0, 30.0], &[7, 4, 7, 4]), Ok(vec![-1.0, -1.0, 1.0, 1.0]));
    }

    #[test]
    fn scale_does_not_matter() {
        let (x, y) = ([1.0, 2.0, 4.0], [3.0, 1.0, 2.0]);
        let r = pearson(&x, &y).unwrap();
        for scale in [1e-200, 1e200] {
            assert!((pearson(&x.map(|v| v * scale), &y).unwrap() - r).abs() < 1e-14);
        }
    }

    #[test]
    fn fisher_at_the_ends() {
        let sure = fisher_interval(1.0, 10, 0, 0.95).unwrap();
        assert_eq!((sure.low, sure.high), (1.0, 1.0));
        // One control costs one point.
        assert_eq!(fisher_interval(0.3, 20, 1, 0.9), fisher_interval(0.3, 19, 0, 0.9));
        assert!(matches!(fisher_interval(0.3, 4, 1, 0.9), Err(Error::TooFew { needed: 5, .. })));
        assert!(fisher_interval(1.1, 9, 0, 0.9).is_err());
        assert!(fisher_interval(f64::NAN, 9, 0, 0.9).is_err());
    }

    #[test]
    fn bad_input_is_refused() {
        assert_eq!(pearson(&[0.1; 3], &[1.0, 2.0, 3.0]), Err(Error::Constant { name: "x" }));
        assert_eq!(spearman(&[1.0, 2.0], &[4.0, 4.0]), Err(Error::Constant { name: "y" }));
        assert!(matches!(Line::fit(&[1.0, 1.0], &[1.0, 2.0]), Err(Error::Constant { name: "x" })));
        assert!(matches!(pearson(&[1.0], &[1.0]), Err(Error::TooFew { .. })));
        assert!(matches!(pearson(&[1.0, 2.0], &[1.0]), Err(Error::Lengths { .. })));
        assert!(matches!(z_scores_within(&[1.0, 2.0], &[0, 1]), Err(Error::Constant { .. })));
        assert!(matches!(z_scores_within(&[1.0], &[]), Err(Error::Lengths { .. })));
    }
}
