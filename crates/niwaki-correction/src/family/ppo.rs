//! PPO: no correction.

use super::{Alias, Correction, Member, Rule};

/// `g_t = 1`: biased, since it ignores the prefix; no added variance.
///
/// The same rule as the tempered member at α = 0, so the two agree to the bit.
///
/// Paper: `tab:variants` (PPO)
pub(super) static MEMBER: Member = Member {
    name: "ppo",
    title: "PPO",
    summary: "No correction: PPO, TRPO and GRPO as they are used.",
    formula: "1",
    parameters: &[],
    rule: |_| Rule::tempered(0.0),
    aliases: &[
        Alias {
            name: "grpo",
            note: "TRL and others: the same with the advantage of a group; its mean is over trajectories",
        },
        Alias {
            name: "dapo",
            note: "TRL's default: the mean over all tokens, a wider clip above (0.2 0.28)",
        },
        Alias { name: "bnpo", note: "TRL: the mean over the tokens of a local batch" },
        Alias { name: "dr-grpo", note: "TRL: the sum over tokens divided by a constant length" },
    ],
    tried: &["ppo"],
};

impl Correction {
    /// PPO: no correction.
    #[must_use]
    pub const fn ppo() -> Self {
        Self::plain(&MEMBER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked() {
        // log g = 0 · L whatever L is, and its slope is 0.
        let factor = MEMBER.at(&[]).factor(2.5);
        assert_eq!((factor.log_factor, factor.slope), (0.0, 0.0));
    }
}
