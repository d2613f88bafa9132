//! Rejection by a divergence: verl's `rollout_rs`, each a mask without a weight.
//!
//! With `ℓ` the log of the trainer's over the engine's probability, verl estimates a divergence per token by k1 = −ℓ,
//! k2 = ℓ²/2 or k3 = e^ℓ − 1 − ℓ, and drops what exceeds a bound. Each of them is a band of ℓ. What is dropped stays in the
//! count here; verl divides by the tokens that were kept.

use super::{Alias, Bound, Correction, Member, Parameter, Reads, Rule};
use crate::Error;

const BOUND: Parameter =
    Parameter { name: "most", least: 0.0, most: f64::INFINITY, whole: false, default: Some(0.1) };

/// A mask over a band of what is read.
const fn mask(reads: Reads, low: f64, high: f64) -> Rule {
    Rule::weighing(reads, Bound::Keep(low, high))
}

/// `w_t = 1` where `low ≤ 1/r_t ≤ high`, else 0.
///
/// Paper: `sec:related-work`
pub(super) static TOKEN_K1: Member = Member {
    name: "token-k1",
    title: "Reject token k1",
    summary: "Drop tokens whose inverse ratio lies outside [LOW, HIGH]; keep the others as they are.",
    formula: "w = 1[low ≤ 1/r ≤ high]",
    parameters: &[Parameter::LOW, Parameter::HIGH],
    rule: |[low, high, ..]| mask(Reads::Step, -high.ln(), -low.ln()),
    aliases: &[],
    tried: &["token-k1:0.8,1.2"],
};

/// `w_t = 1` where `ℓ_t²/2 ≤ most`, else 0.
///
/// Paper: `sec:related-work`
pub(super) static TOKEN_K2: Member = Member {
    name: "token-k2",
    title: "Reject token k2",
    summary: "Drop tokens whose k2 = ℓ²/2 exceeds MOST.",
    formula: "w = 1[ℓ²/2 ≤ most]",
    parameters: &[BOUND],
    rule: |[most, ..]| mask(Reads::Step, -(2.0 * most).sqrt(), (2.0 * most).sqrt()),
    aliases: &[],
    tried: &["token-k2:0.02"],
};

/// `w_t = 1` where `r_t − 1 − ℓ_t ≤ most`, else 0.
///
/// Paper: `sec:related-work`
pub(super) static TOKEN_K3: Member = Member {
    name: "token-k3",
    title: "Reject token k3",
    summary: "Drop tokens whose k3 = r − 1 − ℓ exceeds MOST.",
    formula: "w = 1[r − 1 − ℓ ≤ most]",
    parameters: &[BOUND],
    rule: |[most, ..]| mask(Reads::Step, band_of_k3(most).0, band_of_k3(most).1),
    aliases: &[],
    tried: &["token-k3:0.02"],
};

/// `w_t = 1` for all steps of a trajectory where `low ≤ Π 1/r_i ≤ high`, else 0.
///
/// Paper: `sec:related-work`
pub(super) static SEQUENCE_K1: Member = Member {
    name: "sequence-k1",
    title: "Reject sequence k1",
    summary: "Drop sequences whose inverse product of ratios lies outside [LOW, HIGH].",
    formula: "w = 1[low ≤ Π1/r ≤ high]",
    parameters: &[Parameter::LOW, Parameter::HIGH],
    rule: |[low, high, ..]| mask(Reads::SequenceSum, -high.ln(), -low.ln()),
    aliases: &[Alias {
        name: "seq-sum-k1",
        note: "verl's rollout_rs of that name; bounds as it writes them, LOW_HIGH",
    }],
    tried: &["sequence-k1:0.7,1.3"],
};

/// `w_t = 1` for all steps of a trajectory where `low ≤ (Π 1/r_i)^{1/T} ≤ high`, else 0.
///
/// Paper: `sec:related-work`
pub(super) static MEAN_K1: Member = Member {
    name: "mean-k1",
    title: "Reject mean k1",
    summary: "Drop sequences whose inverse geometric mean of ratios lies outside [LOW, HIGH].",
    formula: "w = 1[low ≤ exp(−mean ℓ) ≤ high]",
    parameters: &[Parameter::LOW, Parameter::HIGH],
    rule: |[low, high, ..]| mask(Reads::SequenceMean, -high.ln(), -low.ln()),
    aliases: &[Alias {
        name: "seq-mean-k1",
        note: "verl's rollout_rs of that name; bounds as it writes them, LOW_HIGH",
    }],
    tried: &["mean-k1:0.95,1.05"],
};

/// Where `e^x − 1 − x` is at most `most`: from its negative to its positive root.
fn band_of_k3(most: f64) -> (f64, f64) {
    let k3 = |x: f64| x.exp_m1() - x;
    let root = |mut inside: f64, mut outside: f64| {
        for _ in 0..200 {
            let middle = f64::midpoint(inside, outside);
            if k3(middle) <= most { inside = middle } else { outside = middle }
        }
        inside
    };
    if !most.is_finite() {
        return (f64::NEG_INFINITY, f64::INFINITY);
    }
    // Below zero k3 exceeds −1 − x; above it exceeds x²/2.
    (root(0.0, -2.0 - most), root(0.0, (2.0 * most).sqrt()))
}

impl Correction {
    /// Rejection of tokens by k1.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn token_k1(low: f64, high: f64) -> Result<Self, Error> {
        Self::of(&TOKEN_K1, &[low, high])
    }

    /// Rejection of tokens by k2.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn token_k2(most: f64) -> Result<Self, Error> {
        Self::of(&TOKEN_K2, &[most])
    }

    /// Rejection of tokens by k3.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn token_k3(most: f64) -> Result<Self, Error> {
        Self::of(&TOKEN_K3, &[most])
    }

    /// Rejection of sequences by the sum of k1.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn sequence_k1(low: f64, high: f64) -> Result<Self, Error> {
        Self::of(&SEQUENCE_K1, &[low, high])
    }

    /// Rejection of sequences by the mean of k1.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn mean_k1(low: f64, high: f64) -> Result<Self, Error> {
        Self::of(&MEAN_K1, &[low, high])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked() {
        let weight = |rule: Rule, log: f64| rule.factor(log).log_factor.exp();
        // k1 in [0.5, 2]: ratios from ½ to 2 pass with weight 1, 2.1 and 0.4 do not.
        let k1 = TOKEN_K1.at(&[0.5, 2.0]);
        assert_eq!([0.6, 1.9, 2.1, 0.4].map(|ratio: f64| weight(k1, ratio.ln())), [1.0, 1.0, 0.0, 0.0]);
        // ℓ²/2 ≤ 0.08: |ℓ| ≤ 0.4.
        let k2 = TOKEN_K2.at(&[0.08]);
        assert_eq!([0.39, -0.39, 0.41, -0.41].map(|log| weight(k2, log)), [1.0, 1.0, 0.0, 0.0]);
        // e^0.4 − 1.4 = 0.0918, e^−0.4 − 0.6 = 0.0703: 0.08 lies between.
        let k3 = TOKEN_K3.at(&[0.08]);
        assert_eq!([0.37, -0.4, 0.4, -0.45].map(|log| weight(k3, log)), [1.0, 1.0, 0.0, 0.0]);
        let (low, high) = band_of_k3(0.5);
        assert!((low.exp_m1() - low - 0.5).abs() < 1e-12 && (high.exp_m1() - high - 0.5).abs() < 1e-12);
    }
}
