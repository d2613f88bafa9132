//! Truncated importance sampling per token.

use super::{Alias, Bound, Correction, Member, Parameter, Reads, Rule};
use crate::Error;

/// `w_t = min(r_t, high)`, without a gradient of its own, outside the clip ([`super::Form::Weigh`]).
///
/// As LLM trainers use it against the mismatch of two engines, with the behaviour log-probs of the sampling
/// engine; see [`super::Form::Weigh`] for what happens without them.
///
/// Paper: `sec:related-work`
pub(super) static MEMBER: Member = Member {
    name: "token-tis",
    title: "Token TIS",
    summary: "Truncated importance sampling per token: min(ratio, HIGH) as a constant weight.",
    formula: "w = min(r, high)",
    parameters: &[Parameter::HIGH],
    rule: |[high, ..]| Rule::weighing(Reads::Step, Bound::Clamp(f64::NEG_INFINITY, high.ln())),
    aliases: &[
        Alias { name: "tis", note: "the usual short name; with a lower bound it is cispo" },
        Alias {
            name: "reinforce-is",
            note: "verl's bypass mode with loss_type reinforce and rollout_is token",
        },
        Alias { name: "token-truncate", note: "TRL's mode; HIGH is its clip_max, 3 there" },
    ],
    tried: &["token-tis:1.1"],
};

impl Correction {
    /// Truncated importance sampling per token, weights of at most `high`.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn token_tis(high: f64) -> Result<Self, Error> {
        Self::of(&MEMBER, &[high])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked() {
        // high = 2: a ratio of 1.5 passes, a ratio of 5 is held at 2.
        let rule = MEMBER.at(&[2.0]);
        assert_eq!(rule.factor(1.5_f64.ln()).log_factor.exp(), 1.5);
        assert_eq!(rule.factor(5.0_f64.ln()).log_factor.exp(), 2.0);
    }
}
