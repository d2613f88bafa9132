//! Truncated importance sampling per sequence.

use super::{Alias, Bound, Correction, Member, Parameter, Reads, Rule};
use crate::Error;

/// `w_t = min(Π_i r_i, high)` for every step of the trajectory, without a gradient of its own.
///
/// See [`super::Form::Weigh`] for the two policies it compares.
///
/// Paper: `sec:related-work`
pub(super) static MEMBER: Member = Member {
    name: "sequence-tis",
    title: "Sequence TIS",
    summary: "Truncated importance sampling per sequence: min(product of ratios, HIGH) as a constant weight.",
    formula: "w = min(Π r, high)",
    parameters: &[Parameter::HIGH],
    rule: |[high, ..]| Rule::weighing(Reads::SequenceSum, Bound::Clamp(f64::NEG_INFINITY, high.ln())),
    aliases: &[Alias {
        name: "reinforce-sequence-is",
        note: "verl's bypass mode with loss_type reinforce and rollout_is sequence",
    }],
    tried: &["sequence-tis:1.2"],
};

impl Correction {
    /// Truncated importance sampling per sequence, weights of at most `high`.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn sequence_tis(high: f64) -> Result<Self, Error> {
        Self::of(&MEMBER, &[high])
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Rows, Surrogate, Workspace};

    #[test]
    fn worked() {
        // Ratios 2 and 1.5: the product 3 is held at 2. A = 1 at both steps, so the objective is 2 and each
        // log-prob's cotangent is 2 / 2 = 1: the weight itself carries no gradient.
        let current = [2.0_f64.ln() - 2.0, 1.5_f64.ln() - 2.0];
        let surrogate: Surrogate = "sequence-tis:2".parse().unwrap();
        let mut workspace = Workspace::default();
        let batch = Batch::new(Rows::uniform(2), &current, &[-2.0; 2], &[1.0; 2]);
        let evaluation = surrogate.evaluate(&batch, &mut workspace).unwrap();
        assert!((evaluation.objective - 2.0).abs() < 1e-15);
        assert!(evaluation.cotangent.iter().all(|came| (came - 1.0).abs() < 1e-15));
    }
}
