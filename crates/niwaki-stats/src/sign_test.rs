//! The exact sign test on paired outcomes.
//!
//! Owns the counting of wins, losses and ties, and the binomial tail at one half. Knows nothing of what was won.

use crate::double::Scaled;
use crate::error::{Error, check_lengths, check_sample};

/// Wins, losses and ties of a first arm against a second; ties carry no sign and are dropped from every p-value.
///
/// One-sided values answer a directional hypothesis that was stated beforehand; falsifiers and null comparisons
/// take the two-sided one. A p-value below the smallest positive `f64` (from about 1075 wins without a loss) is 0.
///
/// ```
/// let test = niwaki_stats::SignTest { wins: 59, losses: 36, ties: 1 };
/// assert_eq!(format!("{:.3}", test.greater()), "0.012");
/// ```
///
/// Paper: sec:scheduling
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignTest {
    /// Pairs in which the first arm is greater.
    pub wins: u64,
    /// Pairs in which the second arm is greater.
    pub losses: u64,
    /// Pairs that are equal.
    pub ties: u64,
}

impl SignTest {
    /// `first [n], second [n] -> counts`. Compares pair by pair.
    ///
    /// # Errors
    /// Empty or non-finite input, or lengths that differ.
    pub fn of_pairs(first: &[f64], second: &[f64]) -> Result<Self, Error> {
        check_sample("first", first, 1)?;
        check_sample("second", second, 1)?;
        check_lengths("first", first.len(), "second", second.len())?;
        let count =
            |keep: fn(&f64, &f64) -> bool| first.iter().zip(second).filter(|(a, b)| keep(a, b)).count();
        let (wins, losses) = (count(|a, b| a > b), count(|a, b| a < b));
        Ok(Self { wins: wins as u64, losses: losses as u64, ties: (first.len() - wins - losses) as u64 })
    }

    /// `-> count`. Pairs that carry a sign: the paper's denominator.
    #[must_use]
    pub fn untied(&self) -> u64 {
        self.wins + self.losses
    }

    /// `-> scalar`. One-sided p-value when the prediction is that the first arm is greater: the chance of at least
    /// this many wins from fair coins. 1 when every pair is a tie.
    #[must_use]
    pub fn greater(&self) -> f64 {
        fair_upper_tail(self.untied(), self.wins)
    }

    /// `-> scalar`. One-sided p-value when the prediction is that the first arm is smaller.
    #[must_use]
    pub fn less(&self) -> f64 {
        fair_upper_tail(self.untied(), self.losses)
    }

    /// `-> scalar`. Two-sided p-value: twice the smaller one-sided one, at most 1.
    #[must_use]
    pub fn two_sided(&self) -> f64 {
        (2.0 * self.greater().min(self.less())).min(1.0)
    }

    /// `-> scalar`. The share of pairs won, ties counted half: the paired probability of improvement. NaN without
    /// any pair.
    #[must_use]
    pub fn probability_of_improvement(&self) -> f64 {
        (self.wins as f64 + 0.5 * self.ties as f64) / (self.untied() + self.ties) as f64
    }
}

/// P(at least `k` heads in `n` fair tosses), to the last bit or two of an `f64` for every `n` up to 2⁵³.
///
/// Time grows with min(k, n − k). The terms come from exact recurrences in about 106 bits, since a difference of
/// log-gammas would lose log₂(n ln n) bits.
fn fair_upper_tail(n: u64, k: u64) -> f64 {
    if k == 0 {
        return 1.0;
    }
    if k <= n / 2 {
        // By symmetry P(X ≥ k) = 1 − P(X ≥ n − k + 1), at least one half: nothing cancels.
        return upper_half_tail(n, n - k + 1).complement();
    }
    upper_half_tail(n, k).to_f64()
}

/// The same tail for k > n/2, where successive terms fall.
fn upper_half_tail(n: u64, k: u64) -> Scaled {
    // C(n, k) = Π_{j=1}^{n−k} (k + j) / j.
    let mut term = Scaled::power_of_two(-(n as i64));
    for j in 1..=n - k {
        term = term.times((k + j) as f64).over(j as f64);
    }
    let mut total = term;
    for i in k..n {
        // C(n, i + 1) = C(n, i) · (n − i) / (i + 1).
        term = term.times((n - i) as f64).over((i + 1) as f64);
        if term.is_negligible_beside(&total) {
            break;
        }
        total = total.plus(&term);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn untied(wins: u64, losses: u64) -> SignTest {
        SignTest { wins, losses, ties: 0 }
    }

    #[test]
    fn worked_by_hand() {
        // 3 of 4: (C(4,3) + C(4,4)) / 16 = 5/16. Fewer losses than 1: P(X ≥ 1) = 15/16. Two-sided 10/16.
        let test = untied(3, 1);
        assert_eq!((test.greater(), test.less(), test.two_sided()), (5.0 / 16.0, 15.0 / 16.0, 10.0 / 16.0));
        // Ties change nothing but the paired probability of improvement: (3 + 2/2) / 6.
        let tied = SignTest { ties: 2, ..test };
        assert_eq!(tied.greater(), test.greater());
        assert_eq!(tied.probability_of_improvement(), 4.0 / 6.0);
        let nothing = SignTest { wins: 0, losses: 0, ties: 5 };
        assert_eq!((nothing.greater(), nothing.less(), nothing.two_sided()), (1.0, 1.0, 1.0));
    }

    #[test]
    fn counts_pairs() {
        let counted = SignTest::of_pairs(&[1.0, 2.0, 3.0, 0.0], &[0.0, 2.0, 4.0, -0.0]);
        assert_eq!(counted, Ok(SignTest { wins: 1, losses: 1, ties: 2 }));
        assert!(matches!(SignTest::of_pairs(&[1.0], &[1.0, 2.0]), Err(Error::Lengths { .. })));
        assert!(SignTest::of_pairs(&[], &[]).is_err());
        assert!(SignTest::of_pairs(&[f64::NAN], &[1.0]).is_err());
    }

    #[test]
    fn extremes() {
        // 2⁻¹⁰⁷⁴ is the smallest subnormal, and half of it rounds to even: zero.
        assert_eq!(untied(1074, 0).greater(), f64::from_bits(1));
        assert_eq!(untied(2000, 0).greater(), 0.0);
        assert_eq!(untied(0, 2000).greater(), 1.0);
        // An odd number of tosses splits evenly at the middle.
        assert_eq!(untied(50_001, 50_000).greater(), 0.5);
    }
}
