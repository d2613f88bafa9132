//! The tempered correction at the strength that the lengths of the batch allow.

use super::{Correction, Member, Parameter, Rule};
use crate::Error;

/// `g_t = exp(α L_t)` with the largest α ∈ [0, 1] that makes the gradient of a trajectory whose advantage is constant at most
/// LIMIT times PPO's on fresh data ([`Rule::at_lengths`]).
///
/// α depends on nothing but lengths: about `1.9 / T` at a limit of 2. So the correction of a long completion is as gentle as that of a
/// short one, which no fixed α is.
///
/// Paper: `sec:disc` (α must be matched to the horizon)
pub(super) static MEMBER: Member = Member {
    name: "by-length",
    title: "By length",
    summary: "The tempered member with the largest alpha that makes a fresh gradient at most LIMIT times PPO's, from the batch's lengths.",
    formula: "exp(α*L), α* = max{α : Σ(1 + αj)² ≤ limit²·T}",
    parameters: &[Parameter { name: "limit", least: 1.0, most: 1e6, whole: false, default: Some(2.0) }],
    rule: |[limit, ..]| Rule { amplification: Some(limit), ..Rule::tempered(1.0) },
    aliases: &[],
    tried: &["by-length:1.3"],
};

impl Correction {
    /// The tempered member at the strength that lengths allow: a fresh gradient is at most `limit` times PPO's.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn by_length(limit: f64) -> Result<Self, Error> {
        Self::of(&MEMBER, &[limit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Rows, Surrogate, Workspace};

    #[test]
    fn worked() {
        // Three steps at α = 0.5 weigh 1, 1.5 and 2: (1 + 2.25 + 4) / 3 is the square of the limit. At 5, 3 + 6α + 5α² = 75 has α above 1.
        let rule = MEMBER.at(&[(7.25_f64 / 3.0).sqrt()]).at_lengths([3].into_iter());
        assert!((rule.strength - 0.5).abs() < 1e-12);
        assert_eq!(MEMBER.at(&[5.0]).at_lengths([3].into_iter()).strength, 1.0);
        assert_eq!(rule.factor(2.0).slope, rule.strength);
    }

    #[test]
    fn a_fresh_gradient_is_as_large_as_the_limit_says() {
        let offsets = [0, 40, 43, 143];
        let log_prob = [-0.7_f64; 143];
        let advantage: Vec<f64> = [(2.0, 40), (-2.0, 3), (2.0, 100)]
            .into_iter()
            .flat_map(|(value, length)| vec![value; length])
            .collect();
        let batch = Batch::new(Rows::ragged(&offsets), &log_prob, &log_prob, &advantage);
        let size = |correction: Correction| -> f64 {
            let surrogate = Surrogate::new(correction);
            let mut workspace = Workspace::default();
            let cotangent = surrogate.cotangent(&batch, &mut workspace).unwrap();
            cotangent.iter().map(|value| value * value).sum::<f64>().sqrt()
        };
        let ratio = size(Correction::by_length(2.0).unwrap()) / size(Correction::ppo());
        assert!((ratio - 2.0).abs() < 1e-12, "{ratio}");
    }
}
