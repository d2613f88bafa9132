//! The largest or smallest of some seeds beside a printed one: exact whatever the distribution is.

use crate::claim::{Judgement, LEVEL};
use serde::Deserialize;

/// Which of the seeds a printed number is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extreme {
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

impl Extreme {
    /// How statements call it.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Max => "largest",
            Self::Min => "smallest",
        }
    }

    /// The extreme of some seeds, of which there is one at least.
    pub(super) fn of(self, seeds: &[f64]) -> f64 {
        match self {
            Self::Max => seeds.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Self::Min => seeds.iter().copied().fold(f64::INFINITY, f64::min),
        }
    }

    /// How many seeds lie beyond a printed extreme of `count` others, and the chance of so many where all are of one
    /// distribution. That decides against the print where it is small. A print beyond all of ours is left open: nothing says
    /// how far an extreme may lie out.
    pub(super) fn beside(self, seeds: &[f64], printed: (f64, f64), count: u64) -> (usize, f64, Judgement) {
        let (value, half_unit) = printed;
        let beyond = |seed: &&f64| match self {
            Self::Max => **seed > value + half_unit,
            Self::Min => **seed < value - half_unit,
        };
        let out = seeds.iter().filter(beyond).count();
        let p = chance_beyond(out as u64, seeds.len() as u64, count);
        let inside = match self {
            Self::Max => value - half_unit <= self.of(seeds),
            Self::Min => value + half_unit >= self.of(seeds),
        };
        let judgement = match p > LEVEL {
            false => Judgement::Disagrees,
            true if inside && seeds.len() > 1 => Judgement::Agrees,
            true => Judgement::Open,
        };
        (out, p, judgement)
    }
}

/// The chance that at least `out` of `n` lie beyond all of `m` others of the same distribution.
fn chance_beyond(out: u64, n: u64, m: u64) -> f64 {
    (0..out).map(|k| (n - k) as f64 / (n + m - k) as f64).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_is_that_of_every_order() {
        // All orders of 3 ours and 2 theirs are alike: of the 10 places that theirs can take, the top one is ours in 6, the top
        // two in 3, all three in 1.
        for (out, expected) in [(0, 1.0), (1, 0.6), (2, 0.3), (3, 0.1)] {
            assert!((chance_beyond(out, 3, 2) - expected).abs() < 1e-15, "{out}");
        }
    }

    #[test]
    fn prints_are_decided_against_inside_only() {
        let seeds: Vec<f64> = (0..16).map(|place| f64::from(place) / 10.0).collect();
        // Five of 16 above the largest of 16 others: 16·15·14·13·12 of 32·31·30·29·28, .022.
        let (out, p, judgement) = Extreme::Max.beside(&seeds, (1.05, 0.005), 16);
        assert!(out == 5 && (p - 0.0217).abs() < 1e-4 && judgement == Judgement::Disagrees, "{out} {p}");
        assert_eq!(Extreme::Max.beside(&seeds, (1.45, 0.005), 16).2, Judgement::Agrees);
        // The print's rounding counts for it.
        assert_eq!(Extreme::Max.beside(&seeds, (1.499, 0.0005), 16).2, Judgement::Agrees);
        assert_eq!(Extreme::Max.beside(&seeds, (2.0, 0.05), 16).2, Judgement::Open);
        assert_eq!(Extreme::Min.beside(&seeds, (0.0, 0.005), 16).2, Judgement::Agrees);
        assert_eq!(Extreme::Min.beside(&seeds, (0.6, 0.005), 16).2, Judgement::Disagrees);
        assert_eq!((Extreme::Min.of(&seeds), Extreme::Max.of(&seeds)), (0.0, 1.5));
    }
}
