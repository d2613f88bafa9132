//! GSPO, a rival: the length-normalised sequence ratio.

use super::{Alias, Correction, Form, Member, Reads, Rule};

/// `r̃_t = exp((1/T) Σ_i ℓ_i)` for every step of the trajectory, in place of the step's own ratio.
///
/// After Zheng et al. 2025. Their objective averages over trajectories; use [`crate::surrogate::Mean::Trajectories`]
/// for ragged batches. With routing off the gradient is that of their token-level variant. TRL's
/// `importance_sampling_level = "sequence"` is this member, verl's `gspo` is it without routing.
///
/// Paper: `sec:related-work` (GSPO)
pub(super) static MEMBER: Member = Member {
    name: "gspo",
    title: "GSPO",
    summary: "GSPO: one length-normalised ratio for the whole sequence.",
    formula: "r̃ = exp(mean ℓ)",
    parameters: &[],
    rule: |_| Rule { reads: Reads::SequenceMean, form: Form::Replace, ..Rule::tempered(1.0) },
    aliases: &[Alias { name: "luspo", note: "TRL: with the mean over steps, times the batch's mean length" }],
    tried: &["gspo"],
};

impl Correction {
    /// GSPO.
    #[must_use]
    pub const fn gspo() -> Self {
        Self::plain(&MEMBER)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Rows, Surrogate, Workspace};

    #[test]
    fn worked() {
        // ℓ = (0.3, −0.1): mean 0.1, ratio e^0.1. A = (1, 3): terms e^0.1 and 3e^0.1, objective 2e^0.1.
        // Each log-prob moves the mean by ½, and the mean moves the objective by 2e^0.1: cotangent e^0.1 each.
        let surrogate: Surrogate = "gspo".parse::<Surrogate>().unwrap().without_clip();
        let mut workspace = Workspace::default();
        let batch = Batch::new(Rows::uniform(2), &[-0.7, -1.1], &[-1.0, -1.0], &[1.0, 3.0]);
        let evaluation = surrogate.evaluate(&batch, &mut workspace).unwrap();
        let ratio = 0.1_f64.exp();
        assert!((evaluation.objective - 2.0 * ratio).abs() < 1e-15);
        assert!(evaluation.cotangent.iter().all(|came: &f64| (came - ratio).abs() < 1e-15));
    }
}
