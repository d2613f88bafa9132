//! MinPRO, a rival: the running minimum.

use super::{Correction, Member, Reads, Rule};

/// `g_t = min_{i<t} r_i`, and 1 at the first step: the smallest single-step ratio of the prefix.
///
/// Reading of Lei et al. 2026, whose abstract replaces the cumulative prefix ratio by "the minimum token-level
/// ratio observed in the preceding prefix". Not certain: whether their code lets a gradient flow through the
/// minimum (here it does, to the step that attains it; switch routing off for the other reading), and whether
/// the minimum is capped at 1.
///
/// Paper: `sec:family`, `sec:related-work` (MinPRO)
pub(super) static MEMBER: Member = Member {
    name: "minpro",
    title: "MinPRO",
    summary: "MinPRO: the smallest single-step ratio of the prefix in place of their product.",
    formula: "min over i<t of r_i",
    parameters: &[],
    rule: |_| Rule { reads: Reads::Minimum, ..Rule::tempered(1.0) },
    aliases: &[],
    tried: &["minpro"],
};

impl Correction {
    /// MinPRO.
    #[must_use]
    pub const fn minpro() -> Self {
        Self::plain(&MEMBER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_ratio::running_minimum;

    #[test]
    fn worked() {
        // ℓ = (0.2, −0.3, 0.1, −0.5): readings 0 (no prefix), 0.2, −0.3, −0.3, attained at steps 0, 1, 1.
        let (mut readings, mut attained) = ([0.0; 4], [0; 4]);
        running_minimum(&[0.2, -0.3, 0.1, -0.5], &mut readings, &mut attained);
        assert_eq!(readings, [0.0, 0.2, -0.3, -0.3]);
        assert_eq!(attained[1..], [0, 1, 1]);
        assert_eq!(MEMBER.at(&[]).factor(-0.3).slope, 1.0);
    }
}
