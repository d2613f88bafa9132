//! The adaptive correction.

use super::{Correction, Member, Parameter, Rule};
use crate::Error;

/// `g_t = exp(α L_t)` with the largest α ∈ [0, 1] whose weights keep a normalised ESS of at least FLOOR.
///
/// The ESS is taken over all (trajectory, step) pairs of the batch. α is a constant of the batch: no gradient
/// flows through its choice.
///
/// Paper: `app:family` (adaptive)
pub(super) static MEMBER: Member = Member {
    name: "adaptive",
    title: "Adaptive",
    summary: "The tempered member with the largest alpha that keeps the batch's ESS above FLOOR.",
    formula: "exp(α*L), α* = max{α : ESS ≥ floor}",
    parameters: &[Parameter { name: "floor", least: 0.0, most: 1.0, whole: false, default: Some(0.9) }],
    rule: |[floor, ..]| Rule { ess_floor: Some(floor), ..Rule::tempered(1.0) },
    aliases: &[],
    tried: &["adaptive:0.97"],
};

impl Correction {
    /// The tempered member with the largest α that keeps a normalised ESS of at least `floor`.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn adaptive(floor: f64) -> Result<Self, Error> {
        Self::of(&MEMBER, &[floor])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked() {
        // Weights e^{αx} and e^{−αx} in equal shares: ESS = cosh²(αx) / cosh(2αx). At αx = 0.5 that is
        // 1.27155 / 1.54308 = 0.82403, so with x = 2 and that floor the answer is α = 0.25.
        let ess = |alpha: f64| (2.0 * alpha).cosh().powi(2) / (4.0 * alpha).cosh();
        let rule = MEMBER.at(&[ess(0.25)]).resolve(ess);
        assert!((rule.strength - 0.25).abs() < 1e-10);
        assert_eq!(rule.factor(2.0).slope, rule.strength);
    }
}
