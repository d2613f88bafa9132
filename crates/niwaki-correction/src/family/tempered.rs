//! The tempered correction, the one the paper uses throughout.

use super::{Correction, Member, Parameter, Rule};
use crate::Error;

/// `g_t = exp(α L_t)`: PPO at α = 0, the full correction at α = 1.
///
/// Paper: `tab:variants` (Tempered), `alg:tempered`
pub(super) static MEMBER: Member = Member {
    name: "tempered",
    title: "Tempered",
    summary: "The prefix ratio to the power alpha, between PPO (0) and full (1).",
    formula: "exp(αL)",
    parameters: &[Parameter::ALPHA],
    rule: |[alpha, ..]| Rule::tempered(alpha),
    aliases: &[],
    tried: &["tempered:0.3"],
};

impl Correction {
    /// The prefix ratio to the power α ∈ [0, 1].
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn tempered(alpha: f64) -> Result<Self, Error> {
        Self::of(&MEMBER, &[alpha])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked() {
        // α = 0.25, L = 0.8: log g = 0.2, slope 0.25.
        let factor = MEMBER.at(&[0.25]).factor(0.8);
        assert_eq!((factor.log_factor, factor.slope), (0.2, 0.25));
    }
}
