//! The tempered correction, the one the paper uses throughout.

use super::{Member, Parameter, Rule};

/// `g_t = exp(α L_t)`: PPO at α = 0, the full correction at α = 1.
///
/// Paper: `tab:variants` (Tempered), `alg:tempered`
pub(super) static MEMBER: Member = Member {
    name: "tempered",
    title: "Tempered",
    summary: "The prefix ratio to the power alpha, between PPO (0) and full (1).",
    formula: "exp(αL)",
    parameters: &[Parameter::ALPHA],
    rule: |[alpha, _]| Rule::tempered(alpha),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked() {
        // α = 0.25, L = 0.8: log g = 0.2, slope 0.25.
        let factor = (MEMBER.rule)([0.25, 0.0]).factor(0.8);
        assert_eq!((factor.log_factor, factor.slope), (0.2, 0.25));
    }
}
