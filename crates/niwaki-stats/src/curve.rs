//! Learning curves: area, halves, leads, and the iteration at which a level is reached.
//!
//! A curve is a plain slice; element `i` is the value at iteration `i`. Knows nothing of what is learned.

use crate::describe::{mean_of, sum_of};
use crate::error::{Error, check_lengths, check_sample};

/// `curve [n] -> scalar`. Area under a curve recorded at every iteration, per iteration: its mean. ΔAUC is the
/// difference of two of these.
///
/// Paper: sec:scheduling
///
/// # Errors
/// Empty or non-finite `curve`.
pub fn auc(curve: &[f64]) -> Result<f64, Error> {
    check_sample("curve", curve, 1)?;
    Ok(mean_of(curve))
}

/// `x [n], y [n] -> scalar`. Area under the broken line through the points, by the trapezoid rule, divided by the
/// length of the `x` range: the mean height over an uneven grid.
///
/// # Errors
/// Fewer than two points; lengths that differ; non-finite input; `x` not strictly increasing.
pub fn auc_over(x: &[f64], y: &[f64]) -> Result<f64, Error> {
    trapezoid(x, y).map(|area| area / (x[x.len() - 1] - x[0]))
}

/// `x [n], y [n] -> scalar`. Area under the broken line through the points, by the trapezoid rule.
///
/// # Errors
/// Fewer than two points; lengths that differ; non-finite input; `x` not strictly increasing.
pub fn trapezoid(x: &[f64], y: &[f64]) -> Result<f64, Error> {
    check_sample("x", x, 2)?;
    check_lengths("x", x.len(), "y", y.len())?;
    check_sample("y", y, 2)?;
    if let Some(before) = x.windows(2).position(|w| w[1] <= w[0]) {
        return Err(Error::NotIncreasing { name: "x", index: before + 1 });
    }
    Ok(sum_of(x.windows(2).zip(y.windows(2)).map(|(x, y)| 0.5 * (y[0] + y[1]) * (x[1] - x[0]))))
}

/// A quantity for each half of training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Halves {
    /// Over elements `0..n/2`.
    pub first: f64,
    /// Over elements `n/2..n`; with odd `n` the middle element is here.
    pub second: f64,
}

/// `curve [n] -> 2`. Mean over the first half (`⌊n/2⌋` elements) and over the rest.
///
/// # Errors
/// Fewer than two, or non-finite, elements.
pub fn half_means(curve: &[f64]) -> Result<Halves, Error> {
    check_sample("curve", curve, 2)?;
    let (first, second) = curve.split_at(curve.len() / 2);
    Ok(Halves { first: mean_of(first), second: mean_of(second) })
}

/// `first [n], second [n] -> 2`. Lead of the first curve over the second, paired by seed: the difference of their
/// [`half_means`].
///
/// Paper: app:sched-win
///
/// # Errors
/// Fewer than two, or non-finite, elements; lengths that differ.
pub fn half_leads(first: &[f64], second: &[f64]) -> Result<Halves, Error> {
    check_sample("first", first, 2)?;
    check_lengths("first", first.len(), "second", second.len())?;
    check_sample("second", second, 2)?;
    let (a, b) = (half_means(first)?, half_means(second)?);
    Ok(Halves { first: a.first - b.first, second: a.second - b.second })
}

/// `curves [seeds][n] -> [n]`. Mean over seeds at each iteration.
///
/// # Errors
/// No curve; an empty or non-finite curve; curves of different lengths.
pub fn mean_curve<C: AsRef<[f64]>>(curves: &[C]) -> Result<Vec<f64>, Error> {
    let Some(head) = curves.first() else {
        return Err(Error::Empty { name: "curves" });
    };
    let length = head.as_ref().len();
    for curve in curves {
        check_lengths("curves[0]", length, "curve", curve.as_ref().len())?;
        check_sample("curve", curve.as_ref(), 1)?;
    }
    Ok((0..length).map(|i| sum_of(curves.iter().map(|c| c.as_ref()[i])) / curves.len() as f64).collect())
}

/// `curve [n], threshold -> index`. The first iteration at which the curve is at least `threshold`; `None` if it
/// never is.
///
/// # Errors
/// Empty or non-finite `curve`; a threshold that is not finite.
pub fn first_reaching(curve: &[f64], threshold: f64) -> Result<Option<usize>, Error> {
    first_multiple_reaching(curve, 1, threshold)
}

/// `curve [n], stride, threshold -> index`. The first multiple of `stride` (0 included) at which the curve is at
/// least `threshold`; `None` if there is none. With [`mean_curve`] and a stride of 5 this is the paper's "iteration
/// to η = 1" (at a threshold of 0.95).
///
/// # Errors
/// Empty or non-finite `curve`; a threshold that is not finite; a stride of 0.
pub fn first_multiple_reaching(curve: &[f64], stride: usize, threshold: f64) -> Result<Option<usize>, Error> {
    check_sample("curve", curve, 1)?;
    check_sample("threshold", &[threshold], 1)?;
    if stride == 0 {
        return Err(Error::OutOfRange { name: "stride", expected: "at least 1", found: 0.0 });
    }
    Ok((0..curve.len()).step_by(stride).find(|&i| curve[i] >= threshold))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_by_hand() {
        assert_eq!(auc(&[0.0, 1.0, 2.0, 5.0]), Ok(2.0));
        // (0 + 2)/2 · 1 + (2 + 4)/2 · 3 = 1 + 9 = 10; over a range of 4: 2.5.
        assert_eq!(trapezoid(&[0.0, 1.0, 4.0], &[0.0, 2.0, 4.0]), Ok(10.0));
        assert_eq!(auc_over(&[0.0, 1.0, 4.0], &[0.0, 2.0, 4.0]), Ok(2.5));
    }

    #[test]
    fn halves_by_hand() {
        // First ⌊5/2⌋ = 2 elements: (0 + 2)/2 = 1; the rest: (4 + 6 + 8)/3 = 6.
        let rising = [0.0, 2.0, 4.0, 6.0, 8.0];
        assert_eq!(half_means(&rising), Ok(Halves { first: 1.0, second: 6.0 }));
        // Against a flat curve at 3: 1 − 3 and 6 − 3.
        assert_eq!(half_leads(&rising, &[3.0; 5]), Ok(Halves { first: -2.0, second: 3.0 }));
    }

    #[test]
    fn thresholds_by_hand() {
        let mean = mean_curve(&[[0.0, 0.5, 1.0, 0.2, 0.6], [0.0, 0.7, 1.0, 0.4, 1.0]]).unwrap();
        // Means 0, 0.6, 1, 0.3, 0.8.
        assert_eq!(first_reaching(&mean, 0.6), Ok(Some(1)));
        // Of the multiples of 4 (0 and 4) only 4 reaches 0.6; of those of 3 (0 and 3) none does.
        assert_eq!(first_multiple_reaching(&mean, 4, 0.6), Ok(Some(4)));
        assert_eq!(first_multiple_reaching(&mean, 3, 0.6), Ok(None));
        // A level that holds at the start is reached at iteration 0.
        assert_eq!(first_multiple_reaching(&mean, 5, 0.0), Ok(Some(0)));
    }

    #[test]
    fn bad_input_is_refused() {
        assert!(matches!(half_means(&[1.0]), Err(Error::TooFew { .. })));
        assert!(matches!(half_leads(&[1.0, 2.0], &[1.0]), Err(Error::Lengths { .. })));
        assert!(matches!(trapezoid(&[0.0, 0.0], &[1.0, 1.0]), Err(Error::NotIncreasing { index: 1, .. })));
        assert!(matches!(mean_curve::<[f64; 1]>(&[]), Err(Error::Empty { .. })));
        assert!(matches!(mean_curve(&[vec![1.0], vec![]]), Err(Error::Lengths { .. })));
        assert!(first_reaching(&[1.0], f64::NAN).is_err());
        assert!(first_multiple_reaching(&[1.0], 0, 1.0).is_err());
        assert!(auc(&[f64::NAN]).is_err());
    }
}
