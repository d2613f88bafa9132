//! Paired comparisons: two arms that share their seeds.
//!
//! Owns the step from two aligned columns of endpoints to a mean difference with its uncertainty. Knows nothing of
//! what the endpoint measures.

use crate::decision::Decision;
use crate::describe::{mean_of, sem};
use crate::error::{Error, check_finite};
use crate::interval::Interval;
use crate::normal::half_width;
use crate::sign_test::SignTest;

/// Differences `first − second`, pair by pair, checked once.
///
/// ```
/// # fn main() -> Result<(), niwaki_stats::Error> {
/// use niwaki_stats::Paired;
/// let corrected = [0.61, 0.72, 0.58, 0.66, 0.70, 0.63];
/// let control = [0.55, 0.70, 0.60, 0.57, 0.66, 0.60];
/// let paired = Paired::new(&corrected, &control)?;
/// let found = paired.decide(0.95)?;
/// println!("{:+.3}: {} (p = {:.3})", found.mean, found.verdict, found.p);
/// assert_eq!(paired.sign_test().wins, 5);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Paired {
    differences: Vec<f64>,
    signs: SignTest,
}

impl Paired {
    /// `first [n], second [n] -> differences [n]`. Subtracts pair by pair.
    ///
    /// # Errors
    /// Empty or non-finite input; lengths that differ; a difference that overflows.
    pub fn new(first: &[f64], second: &[f64]) -> Result<Self, Error> {
        // Signs come from the values, not from the differences, so that no rounding can make a tie.
        let signs = SignTest::of_pairs(first, second)?;
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
        check_finite("first - second", &differences)?;
        Ok(Self { differences, signs })
    }

    /// `-> [n]`. The differences, in the order of the pairs.
    #[must_use]
    pub fn differences(&self) -> &[f64] {
        &self.differences
    }

    /// `-> scalar`. Mean difference.
    #[must_use]
    pub fn mean(&self) -> f64 {
        mean_of(&self.differences)
    }

    /// `-> scalar`. Standard error of the mean difference, with n − 1 in the variance.
    ///
    /// # Errors
    /// Fewer than two pairs.
    pub fn sem(&self) -> Result<f64, Error> {
        sem(&self.differences)
    }

    /// `level -> interval`. Normal interval of the mean difference: mean ± Φ⁻¹((1 + level)/2) · SEM.
    ///
    /// With few pairs it is narrower than Student's: at level 0.95 and 10 pairs it covers about 0.918.
    ///
    /// Paper: app:pretrained
    ///
    /// # Errors
    /// Fewer than two pairs; a level outside (0, 1).
    pub fn normal_interval(&self, level: f64) -> Result<Interval, Error> {
        let reach = half_width(level)? * self.sem()?;
        let centre = self.mean();
        Ok(Interval { low: centre - reach, high: centre + reach, level })
    }

    /// `level -> decision`. Which arm is ahead, by the rule of [`Decision`].
    ///
    /// # Errors
    /// A level outside (0, 1).
    pub fn decide(&self, level: f64) -> Result<Decision, Error> {
        Decision::of(&self.differences, level)
    }

    /// `-> counts`. Wins, losses and ties, with their exact p-values.
    #[must_use]
    pub fn sign_test(&self) -> SignTest {
        self.signs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_by_hand() {
        // Differences 1, 3, −1, 1: mean 1; squared deviations 0 + 4 + 4 + 0 = 8; variance 8/3; SEM √(2/3).
        let paired = Paired::new(&[2.0, 5.0, 0.0, 1.0], &[1.0, 2.0, 1.0, 0.0]).unwrap();
        assert_eq!(paired.differences(), [1.0, 3.0, -1.0, 1.0]);
        assert_eq!(paired.mean(), 1.0);
        assert!((paired.sem().unwrap() - (2.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert_eq!(paired.sign_test(), SignTest { wins: 3, losses: 1, ties: 0 });
        // ±1.959964 · 0.8164966 = ±1.600304.
        assert!((paired.normal_interval(0.95).unwrap().half_width() - 1.600_304).abs() < 1e-6);
    }

    #[test]
    fn bad_input_is_refused() {
        assert!(matches!(Paired::new(&[1.0], &[]), Err(Error::Empty { .. })));
        assert!(matches!(Paired::new(&[1.0, 2.0], &[1.0]), Err(Error::Lengths { .. })));
        assert!(matches!(Paired::new(&[f64::MAX], &[-f64::MAX]), Err(Error::NotFinite { .. })));
        let single = Paired::new(&[1.0], &[0.0]).unwrap();
        assert!(matches!(single.sem(), Err(Error::TooFew { .. })));
        assert!(single.normal_interval(0.95).is_err());
    }
}
