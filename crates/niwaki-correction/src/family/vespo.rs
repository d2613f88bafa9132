//! VESPO, a rival: a gamma-shaped weight of the whole sequence's ratio.

use super::written::{Acts, Shape, Steps, Terms};
use super::{Correction, MOST, Member, Parameter, Rule};
use crate::Error;

/// Ratios are held in this range of logs, as TRL holds them.
const RANGE: (f64, f64) = (-18.420_680_743_952_367, 20.0);

const fn power(name: &'static str, default: f64) -> Parameter {
    Parameter { name, least: 0.0, most: f64::INFINITY, whole: false, default: Some(default) }
}

static SHAPE: Shape = Shape::new("vespo", Acts::Term(terms));

/// `φ(w) A ∇ log π` with `φ(w) = w^k e^{λ(1 − w)}` of the whole sequence's ratio `w`; `k` and `λ` by the sign of the advantage.
///
/// After Variational Sequence-level Soft Policy Optimization (2026), TRL's `vespo`. `φ(1) = 1`, and it is largest at `w = k/λ`.
/// The ratio is that of the trainable policy to the one that sampled.
///
/// Paper: `sec:related-work`
pub(super) static MEMBER: Member = Member {
    name: "vespo",
    title: "VESPO",
    summary: "VESPO: a gamma-shaped constant weight of the sequence's ratio, by the sign of the advantage.",
    formula: "w = (Πr)^k exp(λ(1 − Πr))",
    parameters: &[
        power("k_gain", 2.0),
        power("rate_gain", 3.0),
        power("k_loss", 3.0),
        power("rate_loss", 2.0),
    ],
    rule: |values| Rule::written(&SHAPE, values),
    aliases: &[],
    tried: &["vespo"],
};

fn terms(steps: &Steps<'_>, &[k_gain, rate_gain, k_loss, rate_loss]: &[f64; MOST]) -> Terms {
    let mut factor = vec![0.0; steps.len()];
    for row in steps.rows() {
        let log = row.clone().map(|step| steps.since_sampled(step)).sum::<f64>().clamp(RANGE.0, RANGE.1);
        for step in row {
            let gain = steps.advantage[step] >= 0.0;
            let (k, rate) = if gain { (k_gain, rate_gain) } else { (k_loss, rate_loss) };
            // TRL holds the rate at 1e-4 at least.
            let rate = rate.max(1e-4);
            factor[step] = (rate + k * log - rate * log.exp()).exp();
        }
    }
    steps.score_step(factor)
}

impl Correction {
    /// VESPO: power and rate for gains, power and rate for losses.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn vespo(k_gain: f64, rate_gain: f64, k_loss: f64, rate_loss: f64) -> Result<Self, Error> {
        Self::of(&MEMBER, &[k_gain, rate_gain, k_loss, rate_loss])
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Rows, Surrogate, Workspace};

    #[test]
    fn worked() {
        // Ratios 2 and ½: the product is 1, φ = 1, plain REINFORCE. Ratios 2 and 1: w = 2, gains weigh 2² e^{3 − 6} = 0.199148.
        let ell = |ratio: f64| ratio.ln() - 1.0;
        let current = [ell(2.0), ell(0.5), ell(2.0), ell(1.0)];
        let surrogate: Surrogate = "vespo".parse().unwrap();
        let mut workspace = Workspace::default();
        let batch = Batch::new(Rows::uniform(2), &current, &[-1.0; 4], &[1.0; 4]);
        let evaluation = surrogate.evaluate(&batch, &mut workspace).unwrap();
        assert!((4.0 * evaluation.cotangent[0] - 1.0).abs() < 1e-12);
        assert!((4.0 * evaluation.cotangent[3] - 0.199_148_273).abs() < 1e-8);
    }
}
