//! Fisher's exact test of two shares.

use crate::claim::{Judgement, LEVEL};

/// Two-sided p-value of `k` of `n` against `l` of `m`: the probability, with both margins fixed, of tables no likelier
/// than the one seen.
#[must_use]
pub fn fisher_exact(k: u64, n: u64, l: u64, m: u64) -> f64 {
    let hits = k + l;
    let log_choose = |n: u64, k: u64| -> f64 {
        (0..k.min(n - k)).map(|i| ((n - i) as f64).ln() - ((i + 1) as f64).ln()).sum()
    };
    let log_weight = |k: u64| log_choose(n, k) + log_choose(m, hits - k) - log_choose(n + m, hits);
    let seen = log_weight(k);
    let possible = hits.saturating_sub(m)..=hits.min(n);
    // Tables of equal weight must count as equal in spite of rounding.
    possible.map(log_weight).filter(|&weight| weight <= seen + 1e-9).map(f64::exp).sum::<f64>().min(1.0)
}

/// Whether `k` of `n` bears out `l` of `m`: open where not even all or none of `n` would have differed from it.
#[must_use]
pub(crate) fn shares(k: u64, n: u64, l: u64, m: u64) -> (f64, Judgement) {
    let p = fisher_exact(k, n, l, m);
    let farthest = fisher_exact(0, n, l, m).min(fisher_exact(n, n, l, m));
    let judgement = match p > LEVEL {
        false => Judgement::Disagrees,
        true if farthest > LEVEL => Judgement::Open,
        true => Judgement::Agrees,
    };
    (p, judgement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_by_hand() {
        // Margins 4 + 4, four hits: weights 1, 16, 36, 16, 1 of 70. 3 against 1: (1 + 16 + 16 + 1)/70.
        assert!((fisher_exact(3, 4, 1, 4) - 34.0 / 70.0).abs() < 1e-12);
        assert!((fisher_exact(4, 4, 0, 4) - 2.0 / 70.0).abs() < 1e-12);
        assert!((fisher_exact(2, 4, 2, 4) - 1.0).abs() < 1e-12);
        // Two of three beside 5 of 10: even 0 of 3 has p = 0.23, so three decide nothing; ten do.
        assert_eq!(shares(2, 3, 5, 10).1, Judgement::Open);
        assert_eq!(shares(6, 10, 5, 10).1, Judgement::Agrees);
        assert_eq!(shares(0, 10, 7, 10).1, Judgement::Disagrees);
        // No hits at all say nothing.
        assert!((fisher_exact(0, 5, 0, 7) - 1.0).abs() < 1e-12);
        // scipy.stats.fisher_exact([[10, 0], [7, 3]]) = 0.21052631578947367
        assert!((fisher_exact(10, 10, 7, 10) - 0.210_526_315_789_473_67).abs() < 1e-12);
    }
}
