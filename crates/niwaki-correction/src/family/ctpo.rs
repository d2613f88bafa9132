//! CTPO, a rival: the full correction behind a clip that widens with √t.

use super::{Correction, Member, Rule};

/// `g_t = exp(L_t)` with the clip range widened in log space: `[(1 − ε)^√(t+1), (1 + ε)^√(t+1)]`.
///
/// Reading of the CTPO abstract ("position-adaptive clipping that scales log-space clip bounds according to the
/// natural √t growth of the cumulative log-ratio"). Not certain: the bound's constant (here it starts as PPO's
/// own range at the first step) and whether the position counts from 0 or 1. Without a clip it is the full
/// correction.
///
/// Paper: `sec:family`, `sec:related-work` (CTPO)
pub(super) static MEMBER: Member = Member {
    name: "ctpo",
    title: "CTPO",
    summary: "CTPO: the full correction with a clip range that grows with √t in log space.",
    formula: "exp(L), clip ∝ √t",
    parameters: &[],
    rule: |_| Rule { growing_clip: true, ..Rule::tempered(1.0) },
    aliases: &[],
    tried: &["ctpo"],
};

impl Correction {
    /// CTPO.
    #[must_use]
    pub const fn ctpo() -> Self {
        Self::plain(&MEMBER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Rows, Surrogate, Workspace};

    #[test]
    fn worked() {
        // Four steps, ℓ = 0.1 each, A = 1: corrected log-ratios 0.1, 0.2, 0.3, 0.4 against upper bounds
        // ln 1.2 · √(1, 2, 3, 4) = 0.182, 0.258, 0.316, 0.365: only the last is flat.
        let rollout = [-1.0_f64; 4];
        let current = rollout.map(|log_prob| log_prob + 0.1);
        let surrogate: Surrogate = "ctpo".parse().unwrap();
        let mut workspace = Workspace::default();
        let batch = Batch::new(Rows::uniform(4), &current, &rollout, &[1.0; 4]);
        let evaluation = surrogate.evaluate(&batch, &mut workspace).unwrap();
        let live: Vec<bool> = evaluation.own.iter().map(|&own| own != 0.0).collect();
        assert_eq!(live, [true, true, true, false]);
        assert_eq!(MEMBER.at(&[]).factor(0.3).slope, 1.0);
    }
}
