//! CISPO, a rival: the clipped ratio as a constant weight.

use super::{Bound, Correction, Member, Parameter, Reads, Rule};
use crate::Error;

/// `w_t = clip(r_t, 1 − low, 1 + high)` as a constant weight on `A_t ∇ log π`: no step ever goes flat.
///
/// After MiniMax-M1 (2025). Their experiments leave the lower side open, which is the default here
/// (`low = 1`); the upper width is theirs to tune and 0.2 here unless told. verl's is `cispo:0.2,0.2`, TRL's `cispo:1,4` at
/// its `epsilon_high = 5`. With behaviour log-probs it is truncation from both sides: TRL's `vllm_importance_sampling_clip_min` m
/// and `clip_max` M are `cispo:1−m,M−1`.
///
/// Paper: `sec:related-work`
pub(super) static MEMBER: Member = Member {
    name: "cispo",
    title: "CISPO",
    summary: "CISPO: the clipped ratio as a constant weight on the score, so that no step goes flat.",
    formula: "w = clip(r, 1−low, 1+high)",
    parameters: &[
        Parameter { name: "low", least: 0.0, most: 1.0, whole: false, default: Some(1.0) },
        Parameter { name: "high", least: 0.0, most: f64::INFINITY, whole: false, default: Some(0.2) },
    ],
    rule: |[low, high, ..]| Rule::weighing(Reads::Step, Bound::Clamp((1.0 - low).ln(), (1.0 + high).ln())),
    aliases: &[],
    tried: &["cispo:0.2,0.1"],
};

impl Correction {
    /// CISPO with the clip range `[1 − low, 1 + high]`.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn cispo(low: f64, high: f64) -> Result<Self, Error> {
        Self::of(&MEMBER, &[low, high])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked() {
        // Defaults: a ratio of 0.3 passes (the lower side is open), a ratio of 3 is held at 1.2.
        let rule = MEMBER.at(&[1.0, 0.2]);
        assert!((rule.factor(0.3_f64.ln()).log_factor.exp() - 0.3).abs() < 1e-15);
        assert!((rule.factor(3.0_f64.ln()).log_factor.exp() - 1.2).abs() < 1e-15);
    }
}
