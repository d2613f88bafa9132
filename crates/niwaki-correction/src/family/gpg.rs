//! GPG: the plain policy gradient.

use super::{Alias, Bound, Correction, Member, Reads, Rule};

/// `w_t = 1`: the gradient `A_t ∇ log π`, without a ratio and without a clip.
///
/// After Chu et al. 2025 (Group Policy Gradient). With behaviour log-probs in the batch it is PPO: nothing is weighed.
///
/// Paper: `sec:related-work`
pub(super) static MEMBER: Member = Member {
    name: "gpg",
    title: "GPG",
    summary: "The plain policy gradient: no ratio, no clip, whatever the data's age.",
    formula: "w = 1",
    parameters: &[],
    rule: |_| Rule::weighing(Reads::Step, Bound::Clamp(0.0, 0.0)),
    aliases: &[Alias {
        name: "reinforce",
        note: "verl's bypass mode with loss_type reinforce and no rollout_is",
    }],
    tried: &["gpg"],
};

impl Correction {
    /// GPG.
    #[must_use]
    pub const fn gpg() -> Self {
        Self::plain(&MEMBER)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Rows, Surrogate, Workspace};

    #[test]
    fn worked() {
        // Ratios 2 and 0.1 leave no trace: terms 1 and −3, objective −1, cotangents A / 2.
        let current = [2.0_f64.ln() - 2.0, 0.1_f64.ln() - 2.0];
        let surrogate: Surrogate = "gpg".parse().unwrap();
        let mut workspace = Workspace::default();
        let batch = Batch::new(Rows::uniform(2), &current, &[-2.0; 2], &[1.0, -3.0]);
        let evaluation = surrogate.evaluate(&batch, &mut workspace).unwrap();
        assert!((evaluation.objective + 1.0).abs() < 1e-15);
        assert_eq!(evaluation.cotangent, [0.5, -1.5]);
    }
}
