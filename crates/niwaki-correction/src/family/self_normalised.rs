//! The self-normalised correction.

use super::{Correction, Member, Parameter, Rule};
use crate::Error;

/// `g_t = exp(α L_t) / mean_batch exp(α L_t)`: the classical weighted importance-sampling estimator.
///
/// The mean runs over the trajectories of the batch that have a step `t`. Its bias is O(1/batch). The cotangent
/// goes through the mean too, so trajectories pull on one another.
///
/// Paper: `app:family` (self-normalised)
pub(super) static MEMBER: Member = Member {
    name: "self-normalised",
    title: "Self-normalised",
    summary: "The tempered member divided by its batch mean at each step.",
    formula: "exp(αL) / mean exp(αL)",
    parameters: &[Parameter { default: Some(1.0), ..Parameter::ALPHA }],
    rule: |[alpha, ..]| Rule { self_normalised: true, ..Rule::tempered(alpha) },
    aliases: &[],
    tried: &["self-normalised:0.7"],
};

impl Correction {
    /// The tempered member divided by its batch mean at each step.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn self_normalised(alpha: f64) -> Result<Self, Error> {
        Self::of(&MEMBER, &[alpha])
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Rows, Surrogate, Workspace};

    #[test]
    fn worked() {
        // Two trajectories of two steps, A = (0, 1) in each so that only the second step counts; ℓ_0 = ±ln 2.
        // Weights at t = 1: 2 and ½, mean 1.25, so g = 1.6 and 0.4. ℓ_1 = 0: the terms are 1.6 and 0.4.
        // Objective: (1.6 + 0.4) / 4 = 0.5 whatever ℓ_0 is, so nothing flows back to it.
        let two = std::f64::consts::LN_2;
        let current = [two - 2.0, -1.0, -two - 2.0, -1.0];
        let rollout = [-2.0, -1.0, -2.0, -1.0];
        let surrogate: Surrogate = "self-normalised".parse::<Surrogate>().unwrap().without_clip();
        let mut workspace = Workspace::default();
        let batch = Batch::new(Rows::uniform(2), &current, &rollout, &[0.0, 1.0, 0.0, 1.0]);
        let evaluation = surrogate.evaluate(&batch, &mut workspace).unwrap();
        assert!((evaluation.objective - 0.5).abs() < 1e-15);
        let expected = [0.0, 0.4, 0.0, 0.1];
        for (came, expected) in evaluation.cotangent.iter().zip(expected) {
            assert!((came - expected).abs() < 1e-15, "{:?}", evaluation.cotangent);
        }
    }
}
