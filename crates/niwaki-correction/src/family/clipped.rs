//! The clipped correction.

use super::{Bound, Correction, Member, Parameter, Rule};
use crate::Error;

/// `g_t = exp(clip(α L_t, −c, c))`: a hard cap in log space; the slope is 0 where the cap binds.
///
/// With `c = ∞` (write `inf`) it is the tempered member, to the bit.
///
/// Paper: `tab:variants` (Clipped)
pub(super) static MEMBER: Member = Member {
    name: "clipped",
    title: "Clipped",
    summary: "The tempered member with the log of its factor capped at ±CAP.",
    formula: "exp(clip(αL, −c, c))",
    parameters: &[
        Parameter::ALPHA,
        Parameter { name: "cap", least: 0.0, most: f64::INFINITY, whole: false, default: None },
    ],
    rule: |[alpha, cap, ..]| Rule { bound: Bound::Clamp(-cap, cap), ..Rule::tempered(alpha) },
    aliases: &[],
    tried: &["clipped:0.6,0.2", "clipped:0.25,inf"],
};

impl Correction {
    /// The tempered member with the log of its factor capped at ±`cap`.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn clipped(alpha: f64, cap: f64) -> Result<Self, Error> {
        Self::of(&MEMBER, &[alpha, cap])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked() {
        let rule = MEMBER.at(&[0.5, 1.0]);
        // αL = 0.5 · 1.6 = 0.8 lies inside; 0.5 · (−3) = −1.5 is held at −1 and goes flat.
        assert_eq!((rule.factor(1.6).log_factor, rule.factor(1.6).slope), (0.8, 0.5));
        assert_eq!((rule.factor(-3.0).log_factor, rule.factor(-3.0).slope), (-1.0, 0.0));
    }
}
