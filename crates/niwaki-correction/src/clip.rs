//! The clip-min of the objective: its value and its gate.
//!
//! Owns what happens to one corrected ratio and one advantage; knows nothing of prefixes.

use crate::{Error, Real};

/// The clip range around one, as ratios.
///
/// Paper: `eq:pcppo-objective` (symmetric, `low = high = ε`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clip {
    /// Ratios below `1 − low` are flat where the advantage is negative.
    pub low: f64,
    /// Ratios above `1 + high` are flat where the advantage is positive.
    pub high: f64,
    /// Dual clip: where the advantage is negative, ratios above this are flat too (a common choice is 3).
    pub dual: Option<f64>,
}

impl Clip {
    /// The paper's and PPO's default, ε = 0.2 on both sides.
    pub const PPO: Self = Self::symmetric(0.2);

    /// The range `[1 − low, 1 + high]`.
    ///
    /// # Errors
    /// Where the lower width is not in `[0, 1]` or the upper one is negative.
    pub fn new(low: f64, high: f64) -> Result<Self, Error> {
        if (0.0..=1.0).contains(&low) && high >= 0.0 {
            Ok(Self { low, high, dual: None })
        } else {
            Err(Error::Clip { low, high })
        }
    }

    /// The same range on both sides.
    #[must_use]
    pub const fn symmetric(epsilon: f64) -> Self {
        Self { low: epsilon, high: epsilon, dual: None }
    }

    /// The bounds at policy step `step` (from 0); a growing range widens in log space with √(step + 1).
    ///
    /// Paper: `sec:family` (CTPO's stabiliser).
    #[must_use]
    pub fn bounds<F: Real>(self, step: usize, growing: bool) -> Bounds<F> {
        let stretch = ((step + 1) as f64).sqrt();
        let scaled = |bound: f64| if growing { bound.powf(stretch) } else { bound };
        Bounds {
            low: F::from_f64(scaled(1.0 - self.low)),
            high: F::from_f64(scaled(1.0 + self.high)),
            dual: F::from_f64(self.dual.unwrap_or(f64::INFINITY)),
        }
    }
}

/// The clip range at one step, as ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds<F> {
    /// Where losses go flat from below.
    pub low: F,
    /// Where gains go flat.
    pub high: F,
    /// Where losses go flat from above.
    pub dual: F,
}

impl<F: Real> Bounds<F> {
    /// No clip at all: the surrogate that the paper's analysis treats.
    #[must_use]
    pub fn open() -> Self {
        let infinite = F::from_f64(f64::INFINITY);
        Self { low: -infinite, high: infinite, dual: infinite }
    }

    /// Value and gate of `min(r·A, clip(r)·A)`; the gate is false where the min selects the flat branch.
    ///
    /// Paper: `eq:pcppo-objective`.
    #[inline(always)]
    pub fn term(&self, ratio: F, advantage: F) -> (F, bool) {
        let gain = advantage > F::ZERO;
        // One flat side per sign: above `high` for gains, below `low` or above `dual` for losses.
        let floor = if gain { F::ZERO } else { self.low };
        let ceiling = if gain { self.high } else { self.dual };
        let clipped = ratio.larger(floor).smaller(ceiling);
        (clipped * advantage, clipped == ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn term_by_hand() {
        let bounds: Bounds<f64> = Clip { dual: Some(3.0), ..Clip::PPO }.bounds(4, false);
        // A = 2: r = 1.5 is above 1.2, so min(3.0, 2.4) = 2.4, flat. r = 0.5: min(1.0, 1.6) = 1.0, live.
        assert_eq!(bounds.term(1.5, 2.0), (2.4, false));
        assert_eq!(bounds.term(0.5, 2.0), (1.0, true));
        // A = −2: r = 0.5 is below 0.8, min(−1.0, −1.6) = −1.6, flat. r = 1.5: min(−3.0, −2.4) = −3.0, live.
        assert_eq!(bounds.term(0.5, -2.0), (-1.6, false));
        assert_eq!(bounds.term(1.5, -2.0), (-3.0, true));
        // r = 5, A = −2: min is −10, the dual clip lifts it to 3·(−2) = −6 and it is flat.
        assert_eq!(bounds.term(5.0, -2.0), (-6.0, false));
    }

    #[test]
    fn ranges_that_are_none_are_refused() {
        assert_eq!(Clip::new(0.2, 0.2), Ok(Clip::PPO));
        for (low, high) in [(1.5, 0.2), (-0.1, 0.2), (0.2, -0.2), (f64::NAN, 0.2), (0.2, f64::NAN)] {
            assert!(Clip::new(low, high).is_err(), "{low} {high}");
        }
        assert_eq!(
            Clip::new(1.5, 0.2).unwrap_err().to_string(),
            "clip 1.5 0.2: the lower width lies in [0, 1], the upper one is not negative"
        );
    }

    #[test]
    fn term_is_the_min_of_the_paper() {
        let clip = Clip { low: 0.2, high: 0.28, dual: None };
        let bounds: Bounds<f64> = clip.bounds(0, false);
        for step in 0..400 {
            let ratio = f64::from(step) * 0.01;
            for advantage in [-1.5, -0.1, 0.0, 0.3, 2.0] {
                let expected = (ratio * advantage).min(ratio.clamp(0.8, 1.28) * advantage);
                assert_eq!(bounds.term(ratio, advantage).0, expected, "r {ratio}, A {advantage}");
            }
        }
    }

    #[test]
    fn a_growing_clip_starts_as_ppo_and_widens_in_log_space() {
        let (first, fourth): (Bounds<f64>, Bounds<f64>) =
            (Clip::PPO.bounds(0, true), Clip::PPO.bounds(3, true));
        assert_eq!(first, Clip::PPO.bounds(0, false));
        // √4 = 2: ln bounds double, so the bounds are 0.8² = 0.64 and 1.2² = 1.44.
        assert!((fourth.low - 0.64).abs() < 1e-15 && (fourth.high - 1.44).abs() < 1e-15);
    }
}
