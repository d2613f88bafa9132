//! The full correction.

use super::{Correction, Member, Rule};

/// `g_t = exp(L_t)`: unbiased on trees, with the whole variance of trajectory importance sampling.
///
/// Paper: `tab:variants` (Full), `eq:full-corrected`
pub(super) static MEMBER: Member = Member {
    name: "full",
    title: "Full",
    summary: "The whole state-visitation ratio: unbiased, with full trajectory variance.",
    formula: "exp(L)",
    parameters: &[],
    rule: |_| Rule::tempered(1.0),
    aliases: &[],
    tried: &["full"],
};

impl Correction {
    /// The whole correction.
    #[must_use]
    pub const fn full() -> Self {
        Self::plain(&MEMBER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked() {
        // L = 0.3 − 0.1 = 0.2: log g = 0.2, slope 1.
        let factor = MEMBER.at(&[]).factor(0.2);
        assert_eq!((factor.log_factor, factor.slope), (0.2, 1.0));
    }
}
