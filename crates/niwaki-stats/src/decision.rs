//! Whether one of two paired arms is ahead: the one rule, for every page, command and program.
//!
//! Two tests must agree. The sign-flip test asks how often the mean difference would be as far from zero if every
//! difference had come with either sign; it is exact where the arms are alike, whatever they are distributed like. Hall's
//! (1992) test takes the skewness out of Student's t; it answers for differences that are skewed around a mean of zero, which
//! the first test takes for a difference too often. The p-value is the larger of the two, and the interval holds every
//! mean difference that either test would leave standing, so that the interval excludes zero exactly where p is small enough.

use crate::describe::{mean_of, squared_deviations, sum_of};
use crate::draws::Draws;
use crate::error::{Error, check_level, check_sample};
use crate::interval::Interval;
use crate::student;
use std::fmt;

/// Pairs up to which all 2ⁿ patterns of signs are counted; beyond, as many are drawn from one fixed stream.
const COUNTED: usize = 16;

/// Seed of the patterns that are drawn.
const SEED: u64 = 0;

/// Share of the sum of |differences| below which a sum of some of them is zero but for rounding.
const ROUNDING: f64 = 1e-12;

/// What paired differences say of the first arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The first arm has more.
    Ahead,
    /// The first arm has less.
    Behind,
    /// Either is possible.
    Undecided,
    /// So few pairs that no differences could decide: below six at the level 0.95.
    TooFew,
}

impl Verdict {
    /// What it is called, on pages and in documents.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Ahead => "ahead",
            Self::Behind => "behind",
            Self::Undecided => "undecided",
            Self::TooFew => "too few pairs to decide",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// The verdict on paired differences, with the numbers that it follows from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// Pairs, those that tie included.
    pub pairs: usize,
    /// Mean difference, first − second.
    pub mean: f64,
    /// Two-sided p-value.
    pub p: f64,
    /// Mean differences that the pairs leave possible; it holds zero exactly where the verdict is open. Nothing where the
    /// pairs are too few for an interval with two ends.
    pub interval: Option<Interval>,
    /// The verdict.
    pub verdict: Verdict,
}

impl Decision {
    /// `differences [n], level -> decision`. Decides at 1 − level, two-sided; the same differences always give the same
    /// decision.
    ///
    /// Where the arms are alike, at most 1 − level of all verdicts are wrong: exactly so for any two arms that could
    /// change places, and to within a percent for differences with the skewness of an exponential around zero.
    ///
    /// # Errors
    /// Empty or non-finite input; a level outside (0, 1).
    pub fn of(differences: &[f64], level: f64) -> Result<Self, Error> {
        check_sample("differences", differences, 1)?;
        check_level(level)?;
        let (pairs, mean) = (differences.len(), mean_of(differences));
        let flips = flips(differences, level);
        let (p, interval) = match (&flips.interval, hall(differences, level)?) {
            (Some(flipped), Some((p, hall))) => {
                let (low, high) = (flipped.low.min(hall.low), flipped.high.max(hall.high));
                (flips.p.max(p), Some(Interval { low, high, level }))
            }
            _ => (flips.p, None),
        };
        let verdict = match interval {
            None => Verdict::TooFew,
            Some(interval) if interval.low > 0.0 => Verdict::Ahead,
            Some(interval) if interval.high < 0.0 => Verdict::Behind,
            Some(_) => Verdict::Undecided,
        };
        Ok(Self { pairs, mean, p, interval, verdict })
    }
}

/// What one test says.
struct Tested {
    p: f64,
    interval: Option<Interval>,
}

/// The sign-flip test and its inverse.
///
/// Flipping the signs of a subset leaves a mean at least as large exactly where the subset's own mean is not above zero;
/// so the p-value counts subsets whose mean is on the other side of zero, and the interval's ends are quantiles of the
/// subsets' means (Hartigan 1969). Differences of zero change neither.
fn flips(differences: &[f64], level: f64) -> Tested {
    let mut means = subset_means(differences);
    let patterns = (means.len() + 1) as f64;
    let below = 1 + means.iter().filter(|mean| **mean <= 0.0).count();
    let above = 1 + means.iter().filter(|mean| **mean >= 0.0).count();
    let p = (2.0 * below.min(above) as f64 / patterns).min(1.0);
    // The margin keeps a whole number whole that rounding has put a hair below it.
    let tail = (0.5 * (1.0 - level) * patterns + 1e-9).floor() as usize;
    let interval = tail.checked_sub(1).map(|place| {
        let low = *means.select_nth_unstable_by(place, f64::total_cmp).1;
        let from_above = means.len() - 1 - place;
        let high = *means.select_nth_unstable_by(from_above, f64::total_cmp).1;
        Interval { low, high, level }
    });
    Tested { p, interval }
}

/// The means of all subsets but the empty one, or of as many as 16 pairs have.
fn subset_means(differences: &[f64]) -> Vec<f64> {
    let nothing = ROUNDING * sum_of(differences.iter().map(|d| d.abs()));
    // Sums of every subset of eight differences, so that a subset of all costs one look per eight.
    let tables: Vec<[f64; 256]> = differences.chunks(8).map(table).collect();
    let last = differences.len() % 8;
    let mean = |word: &dyn Fn(usize) -> u64| -> Option<f64> {
        let (mut sum, mut count) = (0.0, 0);
        for (place, table) in tables.iter().enumerate() {
            let mut byte = (word(place / 8) >> (8 * (place % 8))) as usize & 0xff;
            if place + 1 == tables.len() && last > 0 {
                byte &= (1 << last) - 1;
            }
            sum += table[byte];
            count += byte.count_ones();
        }
        let sum = if sum.abs() <= nothing { 0.0 } else { sum };
        (count > 0).then(|| sum / f64::from(count))
    };
    if differences.len() <= COUNTED {
        return (1..1_u64 << differences.len()).filter_map(|subset| mean(&|_| subset)).collect();
    }
    let mut draws = Draws::open(SEED, 0);
    let mut words = vec![0; differences.len().div_ceil(64)];
    let mut means = Vec::with_capacity((1 << COUNTED) - 1);
    while means.len() < means.capacity() {
        words.fill_with(|| draws.bits());
        means.extend(mean(&|place| words[place]));
    }
    means
}

/// Sums of the subsets of up to eight differences, by the bits of their number.
fn table(differences: &[f64]) -> [f64; 256] {
    let mut sums = [0.0; 256];
    for subset in 1..1_usize << differences.len() {
        sums[subset] = sums[subset & (subset - 1)] + differences[subset.trailing_zeros() as usize];
    }
    sums
}

/// Student's test of the mean with Hall's transformation, which is monotone and takes the skewness out; its p-value and
/// its interval. Nothing for fewer than three pairs.
fn hall(differences: &[f64], level: f64) -> Result<Option<(f64, Interval)>, Error> {
    let n = differences.len() as f64;
    if differences.len() < 3 {
        return Ok(None);
    }
    let mean = mean_of(differences);
    let spread = (squared_deviations(differences) / (n - 1.0)).sqrt();
    if spread == 0.0 {
        let p = if mean == 0.0 { 1.0 } else { 0.0 };
        return Ok(Some((p, Interval { low: mean, high: mean, level })));
    }
    let cubes = sum_of(differences.iter().map(|d| ((d - mean) / spread).powi(3)));
    let skewness = n / ((n - 1.0) * (n - 2.0)) * cubes;
    let shift = skewness / (6.0 * n);
    let straight = skewness.abs() < 1e-6;
    let transformed =
        |t: f64| shift + if straight { t } else { ((1.0 + skewness * t / 3.0).powi(3) - 1.0) / skewness };
    let back = |u: f64| {
        if straight { u - shift } else { 3.0 / skewness * ((1.0 + skewness * (u - shift)).cbrt() - 1.0) }
    };
    let p = student::both_tails(n.sqrt() * transformed(mean / spread), differences.len() - 1);
    let reach = student::quantile(level, differences.len() - 1)? / n.sqrt();
    let (low, high) = (mean - spread * back(reach), mean - spread * back(-reach));
    Ok(Some((p, Interval { low, high, level })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flips_by_hand() {
        // Subsets of {1, 2, −1}: means 1, 2, 1.5, −1, 0, 0.5, 2/3. Not above zero: −1 and 0, with the empty one 3 of 8;
        // two-sided 6/8. (Flips with |sum| ≥ 2: ±2, ±2 and ±4, six of eight.)
        let found = flips(&[1.0, 2.0, -1.0], 0.5);
        assert_eq!(found.p, 0.75);
        // A quarter of 8 patterns is 2: the second smallest and the second largest mean.
        let interval = found.interval.unwrap();
        assert_eq!((interval.low, interval.high), (0.0, 1.5));
    }

    #[test]
    fn zeros_and_rounding_change_no_p() {
        let plain = flips(&[3.0, 1.0, -2.0, 4.0], 0.5).p;
        assert_eq!(flips(&[3.0, 0.0, 1.0, -2.0, 0.0, 4.0], 0.5).p, plain);
        // 0.1 + 0.2 − 0.3 is 5.6e-17 in binary, and counts as zero like 1 + 2 − 3.
        assert_eq!(flips(&[0.1, 0.2, -0.3, 0.5], 0.5).p, flips(&[1.0, 2.0, -3.0, 5.0], 0.5).p);
    }

    #[test]
    fn five_pairs_cannot_decide_and_six_can() {
        // 2/2⁵ = 0.0625, 2/2⁶ = 0.03125.
        let five = Decision::of(&[0.1, 0.11, 0.12, 0.13, 0.14], 0.95).unwrap();
        assert_eq!((five.verdict, five.p, five.interval), (Verdict::TooFew, 0.0625, None));
        let six = Decision::of(&[0.1, 0.11, 0.12, 0.13, 0.14, 0.15], 0.95).unwrap();
        assert_eq!((six.verdict, six.p), (Verdict::Ahead, 0.03125));
        let behind = Decision::of(&[-1.0; 7], 0.95).unwrap();
        assert_eq!((behind.verdict, behind.p), (Verdict::Behind, 2.0 / 128.0));
        let same = Decision::of(&[0.0; 9], 0.95).unwrap();
        assert_eq!((same.verdict, same.p), (Verdict::Undecided, 1.0));
        assert!(Decision::of(&[], 0.95).is_err() && Decision::of(&[1.0], 1.0).is_err());
    }
}
