//! One sample: mean, variance, standard error and quantiles.
//!
//! The bottom of the crate. Sums are compensated (Neumaier's variant of Kahan's), so that a result does not depend
//! on the order of the runs beyond the last bit or two. Knows nothing of pairs, tasks or resampling.

use crate::error::{Error, check_sample};

/// `values [n] -> scalar`. The arithmetic mean.
///
/// # Errors
/// Empty or non-finite `values`.
pub fn mean(values: &[f64]) -> Result<f64, Error> {
    check_sample("values", values, 1)?;
    Ok(mean_of(values))
}

/// `values [n] -> scalar`. The sample variance, with n − 1 in the denominator.
///
/// # Errors
/// Fewer than two, or non-finite, `values`.
pub fn variance(values: &[f64]) -> Result<f64, Error> {
    check_sample("values", values, 2)?;
    Ok(squared_deviations(values) / (values.len() - 1) as f64)
}

/// `values [n] -> scalar`. The sample standard deviation, with n − 1 in the denominator.
///
/// # Errors
/// Fewer than two, or non-finite, `values`.
pub fn standard_deviation(values: &[f64]) -> Result<f64, Error> {
    variance(values).map(f64::sqrt)
}

/// `values [n] -> scalar`. The standard error of the mean, √(variance / n), with n − 1 in the variance.
///
/// # Errors
/// Fewer than two, or non-finite, `values`.
pub fn sem(values: &[f64]) -> Result<f64, Error> {
    variance(values).map(|v| (v / values.len() as f64).sqrt())
}

/// `values [n] -> scalar`. The middle value, or the mean of the two middle ones.
///
/// # Errors
/// Empty or non-finite `values`.
pub fn median(values: &[f64]) -> Result<f64, Error> {
    quantile(values, 0.5)
}

/// `values [n], probability -> scalar`. The quantile by linear interpolation at position (n − 1)·probability of
/// the sorted sample (Hyndman and Fan's type 7, NumPy's default).
///
/// # Errors
/// Empty or non-finite `values`; a probability outside [0, 1].
pub fn quantile(values: &[f64], probability: f64) -> Result<f64, Error> {
    quantiles(values, &[probability]).map(|q| q[0])
}

/// `values [n], probabilities [m] -> [m]`. [`quantile`] at several probabilities with one sort.
///
/// # Errors
/// Empty or non-finite `values`; a probability outside [0, 1].
pub fn quantiles(values: &[f64], probabilities: &[f64]) -> Result<Vec<f64>, Error> {
    check_sample("values", values, 1)?;
    for &p in probabilities {
        // Written so that NaN is refused too.
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::OutOfRange { name: "probability", expected: "between 0 and 1", found: p });
        }
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Ok(probabilities.iter().map(|&p| quantile_of_sorted(&sorted, p)).collect())
}

/// Type-7 quantile of a sorted, non-empty slice, with the probability in [0, 1].
pub(crate) fn quantile_of_sorted(sorted: &[f64], probability: f64) -> f64 {
    let last = sorted.len() - 1;
    let position = last as f64 * probability;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let share = position - below as f64;
    let (a, b) = (sorted[below], sorted[above]);
    // Interpolating from the nearer end keeps the result monotone in the probability.
    if share < 0.5 { a + (b - a) * share } else { b - (b - a) * (1.0 - share) }
}

/// Sum with Neumaier's compensation; when the sum itself overflows the result is the infinity of the plain sum.
pub(crate) fn sum_of(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
    for v in values {
        let next = sum + v;
        lost += if sum.abs() >= v.abs() { (sum - next) + v } else { (v - next) + sum };
        sum = next;
    }
    if sum.is_finite() { sum + lost } else { sum }
}

/// Mean of a non-empty slice.
pub(crate) fn mean_of(values: &[f64]) -> f64 {
    sum_of(values.iter().copied()) / values.len() as f64
}

/// Σ (x − mean)², less the square of what rounding left in Σ (x − mean).
pub(crate) fn squared_deviations(values: &[f64]) -> f64 {
    let centre = mean_of(values);
    let residue = sum_of(values.iter().map(|v| v - centre));
    let squares = sum_of(values.iter().map(|v| (v - centre) * (v - centre)));
    (squares - residue * residue / values.len() as f64).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_by_hand() {
        let x = [2.0, 4.0, 4.0, 10.0];
        // mean 20/4 = 5; deviations −3, −1, −1, 5; squares 9 + 1 + 1 + 25 = 36; variance 36/3 = 12;
        // standard error √(12/4) = √3.
        assert_eq!(mean(&x), Ok(5.0));
        assert_eq!(variance(&x), Ok(12.0));
        assert_eq!(standard_deviation(&x), Ok(12.0_f64.sqrt()));
        assert_eq!(sem(&x), Ok(3.0_f64.sqrt()));
        assert_eq!(median(&x), Ok(4.0));
        // Position 3 · 0.9 = 2.7: 4 + 0.7 · (10 − 4) = 8.2.
        assert!((quantile(&x, 0.9).unwrap() - 8.2).abs() < 1e-14);
        assert_eq!(quantiles(&x, &[0.0, 1.0]), Ok(vec![2.0, 10.0]));
    }

    #[test]
    fn sums_keep_what_a_plain_loop_loses() {
        // 1 + 1e100 + 1 − 1e100 = 2, and a plain loop gives 0.
        assert_eq!(sum_of([1.0, 1e100, 1.0, -1e100]), 2.0);
        // Offsets of 1e9 leave the variance of 0, 1, 2 unharmed: it is 1.
        assert_eq!(variance(&[1e9, 1e9 + 1.0, 1e9 + 2.0]), Ok(1.0));
        // Here the mean 1e16 + 4/3 rounds to 1e16 + 2: deviations −2, 0, 0, squares 4, less (−2)²/3, is 8/3; halved 4/3.
        assert!((variance(&[1e16, 1e16 + 2.0, 1e16 + 2.0]).unwrap() - 4.0 / 3.0).abs() < 1e-15);
        assert_eq!(sum_of([1e308, 1e308]), f64::INFINITY);
    }

    #[test]
    fn bad_input_is_refused() {
        assert_eq!(mean(&[]), Err(Error::Empty { name: "values" }));
        assert_eq!(variance(&[1.0]), Err(Error::TooFew { name: "values", needed: 2, found: 1 }));
        assert!(matches!(median(&[1.0, f64::INFINITY]), Err(Error::NotFinite { index: 1, .. })));
        assert!(matches!(quantile(&[1.0], 1.5), Err(Error::OutOfRange { .. })));
        assert!(quantile(&[1.0], f64::NAN).is_err());
    }
}
