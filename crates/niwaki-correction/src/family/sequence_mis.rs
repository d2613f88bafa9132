//! Masked importance sampling per sequence.

use super::{Alias, Bound, Correction, Member, Parameter, Reads, Rule};
use crate::Error;

/// `w_t = Π_i r_i` where `low ≤ Π_i r_i ≤ high`, else 0, for every step, without a gradient of its own.
///
/// Dropped trajectories stay in the count; see [`super::Form::Weigh`] for the two policies it compares.
///
/// Paper: `sec:related-work`
pub(super) static MEMBER: Member = Member {
    name: "sequence-mis",
    title: "Sequence MIS",
    summary: "Masked importance sampling per sequence: the product of ratios inside [LOW, HIGH], else 0.",
    formula: "w = Πr·1[low ≤ Πr ≤ high]",
    parameters: &[Parameter::LOW, Parameter::HIGH],
    rule: |[low, high, ..]| Rule::weighing(Reads::SequenceSum, Bound::Drop(low.ln(), high.ln())),
    aliases: &[Alias {
        name: "sequence-mask",
        note: "TRL's mode and default; LOW and HIGH are its clip_min and clip_max",
    }],
    tried: &["sequence-mis:0.7,1.3"],
};

impl Correction {
    /// Masked importance sampling per sequence, for weights inside `[low, high]`.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn sequence_mis(low: f64, high: f64) -> Result<Self, Error> {
        Self::of(&MEMBER, &[low, high])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked() {
        // Ratios 1.5 and 1.2 multiply to 1.8 and pass; 1.5 and 1.5 to 2.25 > 2 and drop.
        let rule = MEMBER.at(&[0.5, 2.0]);
        let weight = |ratios: [f64; 2]| rule.factor(ratios[0].ln() + ratios[1].ln()).log_factor.exp();
        assert!((weight([1.5, 1.2]) - 1.8).abs() < 1e-15);
        assert_eq!(weight([1.5, 1.5]), 0.0);
    }
}
