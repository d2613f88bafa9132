//! SAPO, a rival: a soft gate in place of the clip.

use super::written::{Acts, Shape, Steps, Terms};
use super::{Alias, Correction, MOST, Member, Parameter, Rule};
use crate::Error;

const fn temperature(name: &'static str, default: f64) -> Parameter {
    Parameter { name, least: f64::MIN_POSITIVE, most: f64::INFINITY, whole: false, default: Some(default) }
}

static SHAPE: Shape = Shape::new("sapo", Acts::Term(terms));

/// `(4/τ) σ(τ (r − 1)) A` in place of the clip-min, with `τ` by the sign of the advantage: the gradient is PPO's at `r = 1` and
/// fades on both sides of it.
///
/// After Qwen's Soft Adaptive Policy Optimization (2025); TRL's and verl's `sapo`, whose mean is over trajectories.
///
/// Paper: `sec:related-work`
pub(super) static MEMBER: Member = Member {
    name: "sapo",
    title: "SAPO",
    summary: "SAPO: a soft gate around a ratio of one in place of the clip; TAU by the sign of the advantage.",
    formula: "4σ(τ(r−1))/τ",
    parameters: &[temperature("gain", 1.0), temperature("loss", 1.05)],
    rule: |values| Rule::written(&SHAPE, values),
    aliases: &[Alias {
        name: "soft-gate",
        note: "SAPO by what it does; GAIN and LOSS are TRL's sapo_temperature_pos and _neg",
    }],
    tried: &["sapo", "sapo:3,5"],
};

fn terms(steps: &Steps<'_>, &[gain, loss, ..]: &[f64; MOST]) -> Terms {
    steps.each(|step| {
        let (advantage, ratio) = (steps.advantage[step], steps.ell(step).exp());
        let tau = if advantage > 0.0 { gain } else { loss };
        let gate = 1.0 / (1.0 + (-tau * (ratio - 1.0)).exp());
        (4.0 / tau * gate * advantage, 4.0 * gate * (1.0 - gate) * ratio * advantage)
    })
}

impl Correction {
    /// SAPO at a temperature for gains and one for losses.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn sapo(gain: f64, loss: f64) -> Result<Self, Error> {
        Self::of(&MEMBER, &[gain, loss])
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Rows, Surrogate, Workspace};

    #[test]
    fn worked() {
        // At r = 1 the gate is ½: the value is (4/τ)·½·A = 2A at τ = 1, and the gradient 4·½·½·A = A is PPO's.
        // At r = 3, τ = 1: σ(2) = 0.880797, so 4σ(1 − σ)·3 = 1.259923 of A = 1.
        let current = [-1.0, 3.0_f64.ln() - 1.0];
        let surrogate: Surrogate = "sapo".parse().unwrap();
        let mut workspace = Workspace::default();
        let batch = Batch::new(Rows::uniform(1), &current, &[-1.0; 2], &[1.0; 2]);
        let evaluation = surrogate.evaluate(&batch, &mut workspace).unwrap();
        assert_eq!(evaluation.cotangent[0], 0.5);
        assert!((2.0 * evaluation.cotangent[1] - 1.259_923).abs() < 1e-6);
        assert!((evaluation.objective - (2.0 + 4.0 * 0.880_797_078) / 2.0).abs() < 1e-9);
    }
}
