//! Importance sampling per sequence, truncated from both sides.

use super::{Alias, Bound, Correction, Member, Parameter, Reads, Rule};
use crate::Error;

/// `w_t = clip(Π_i r_i, low, high)` for every step of the trajectory, without a gradient of its own.
///
/// TRL's `vllm_importance_sampling_mode = "sequence_truncate"` with `clip_min` LOW and `clip_max` HIGH. See
/// [`super::Form::Weigh`] for the two policies it compares.
///
/// Paper: `sec:related-work`
pub(super) static MEMBER: Member = Member {
    name: "sequence-clamp",
    title: "Sequence clamp",
    summary: "Importance sampling per sequence, truncated from both sides: the product of ratios held in [LOW, HIGH].",
    formula: "w = clip(Π r, low, high)",
    parameters: &[
        Parameter { default: Some(0.0), ..Parameter::LOW },
        Parameter { default: Some(3.0), ..Parameter::HIGH },
    ],
    rule: |[low, high, ..]| Rule::weighing(Reads::SequenceSum, Bound::Clamp(low.ln(), high.ln())),
    aliases: &[Alias {
        name: "sequence-truncate",
        note: "TRL's mode; LOW and HIGH are its clip_min and clip_max",
    }],
    tried: &["sequence-clamp:0.9,1.2"],
};

impl Correction {
    /// Importance sampling per sequence with weights in `[low, high]`.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn sequence_clamp(low: f64, high: f64) -> Result<Self, Error> {
        Self::of(&MEMBER, &[low, high])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked() {
        // Products 0.3, 1.5 and 4 in [½, 3]: held at ½, as it is, held at 3. No lower bound: 0.3 as it is.
        let weight = |rule: Rule, product: f64| rule.factor(product.ln()).log_factor.exp();
        let held = [0.3, 1.5, 4.0].map(|product| weight(MEMBER.at(&[0.5, 3.0]), product));
        assert!(held.iter().zip([0.5, 1.5, 3.0]).all(|(came, want)| (came - want).abs() < 1e-15));
        assert!((weight(MEMBER.at(&[0.0, 3.0]), 0.3) - 0.3).abs() < 1e-15);
    }
}
