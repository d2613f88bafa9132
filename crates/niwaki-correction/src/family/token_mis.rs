//! Masked importance sampling per token.

use super::{Alias, Bound, Correction, Member, Parameter, Reads, Rule};
use crate::Error;

/// `w_t = r_t` where `low ≤ r_t ≤ high`, else 0, without a gradient of its own.
///
/// Dropped steps stay in the count. Trainers differ there; some divide by the steps that were kept.
///
/// Paper: `sec:related-work`
pub(super) static MEMBER: Member = Member {
    name: "token-mis",
    title: "Token MIS",
    summary: "Masked importance sampling per token: the ratio inside [LOW, HIGH], else 0.",
    formula: "w = r·1[low ≤ r ≤ high]",
    parameters: &[Parameter::LOW, Parameter::HIGH],
    rule: |[low, high, ..]| Rule::weighing(Reads::Step, Bound::Drop(low.ln(), high.ln())),
    aliases: &[
        Alias {
            name: "icepop",
            note: "tokens whose ratio lies outside the band do not count; verl writes rollout_is_threshold 0.5_2.0",
        },
        Alias { name: "token-mask", note: "TRL's mode; LOW and HIGH are its clip_min and clip_max" },
    ],
    tried: &["token-mis:0.8,1.2"],
};

impl Correction {
    /// Masked importance sampling per token, for weights inside `[low, high]`.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn token_mis(low: f64, high: f64) -> Result<Self, Error> {
        Self::of(&MEMBER, &[low, high])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked() {
        // [0.5, 2]: 1.5 passes with weight 1.5; 2.5 and 0.4 are dropped.
        let rule = MEMBER.at(&[0.5, 2.0]);
        let weight = |ratio: f64| rule.factor(ratio.ln()).log_factor.exp();
        assert_eq!((weight(1.5), weight(2.5), weight(0.4)), (1.5, 0.0, 0.0));
    }
}
