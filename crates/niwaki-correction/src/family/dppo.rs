//! DPPO, a rival: a trust region of the probability itself in place of a clip of the ratio.

use super::written::{Acts, Shape, Steps, Terms};
use super::{Correction, MOST, Member, Parameter, Rule};
use crate::Error;

const LOW: Parameter =
    Parameter { name: "low", least: 0.0, most: f64::INFINITY, whole: false, default: Some(0.2) };
const HIGH: Parameter = Parameter { name: "high", ..LOW };
const CAP: Parameter =
    Parameter { name: "cap", least: 1.0, most: f64::INFINITY, whole: false, default: Some(3.0) };

static TV: Shape = Shape::new("dppo-tv", Acts::Term(total_variation));
static KL: Shape = Shape::new("dppo-kl", Acts::Term(binary_kl));

/// `min(r, cap) A ∇ log π` where `π − μ ≤ high` (gains) or `μ − π ≤ low` (losses), else nothing: the chosen action's share of
/// the total variation.
///
/// After DPPO (2026, arXiv 2602.04879), verl's `dppo_tv`: LOW and HIGH are its `clip_ratio_low` and `_high`, CAP its `clip_ratio_c`.
///
/// Paper: `sec:related-work`
pub(super) static DPPO_TV: Member = Member {
    name: "dppo-tv",
    title: "DPPO (TV)",
    summary: "DPPO: drop steps whose probability moved by more than LOW down or HIGH up; weigh the others by min(r, CAP).",
    formula: "w = min(r, cap) 1[π − μ within −low, high]",
    parameters: &[LOW, HIGH, CAP],
    rule: |values| Rule::written(&TV, values),
    aliases: &[],
    tried: &["dppo-tv:0.02,0.03,1.2"],
};

/// The same by the KL of the two-way split "this action or another": dropped where it exceeds the bound on the side that the
/// advantage pushes to.
///
/// Paper: `sec:related-work`
pub(super) static DPPO_KL: Member = Member {
    name: "dppo-kl",
    title: "DPPO (KL)",
    summary: "DPPO: drop steps whose two-way KL exceeds LOW or HIGH on the side they are pushed to; weigh the others by min(r, CAP).",
    formula: "w = min(r, cap) 1[kl(μ, π) within bounds]",
    parameters: &[LOW, HIGH, CAP],
    rule: |values| Rule::written(&KL, values),
    aliases: &[],
    tried: &["dppo-kl:0.002,0.003,1.2"],
};

fn total_variation(steps: &Steps<'_>, &[low, high, cap, ..]: &[f64; MOST]) -> Terms {
    masked(steps, cap, |step| {
        let moved = steps.log_prob[step].exp() - steps.rollout_log_prob[step].exp();
        if steps.advantage[step] > 0.0 { moved <= high } else { moved >= -low }
    })
}

fn binary_kl(steps: &Steps<'_>, &[low, high, cap, ..]: &[f64; MOST]) -> Terms {
    // Keeps both logs finite where a policy is certain; verl's guard.
    const GUARD: f64 = 1e-8;
    masked(steps, cap, |step| {
        let (new, old) = (steps.log_prob[step].exp(), steps.rollout_log_prob[step].exp());
        let kl = (1.0 - old) * ((1.0 - old + GUARD) / (1.0 - new + GUARD)).ln() - old * steps.ell(step);
        if steps.advantage[step] > 0.0 { kl <= high || new <= old } else { kl <= low || new >= old }
    })
}

/// The score step of the steps that are kept, weighed by their truncated ratios.
fn masked(steps: &Steps<'_>, cap: f64, keeps: impl Fn(usize) -> bool) -> Terms {
    let weight = |step| if keeps(step) { steps.ell(step).exp().min(cap) } else { 0.0 };
    steps.score_step((0..steps.len()).map(weight).collect())
}

impl Correction {
    /// DPPO by total variation.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn dppo_tv(low: f64, high: f64, cap: f64) -> Result<Self, Error> {
        Self::of(&DPPO_TV, &[low, high, cap])
    }

    /// DPPO by the two-way KL.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn dppo_kl(low: f64, high: f64, cap: f64) -> Result<Self, Error> {
        Self::of(&DPPO_KL, &[low, high, cap])
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Rows, Surrogate, Workspace};

    #[test]
    fn worked() {
        // μ = ½ everywhere, π = 0.8, 0.6, 0.2, 0.6; A = 1, 1, −1, −1. Bounds of 0.2: 0.3 up is too far for a gain, 0.3 down too
        // far for a loss; the others weigh their ratio 1.2.
        let current = [0.8_f64, 0.6, 0.2, 0.6].map(f64::ln);
        let rollout = [0.5_f64.ln(); 4];
        let batch = Batch::new(Rows::uniform(1), &current, &rollout, &[1.0, 1.0, -1.0, -1.0]);
        let cotangent = |loss: &str| {
            let mut workspace = Workspace::default();
            let surrogate: Surrogate = loss.parse().unwrap();
            surrogate.evaluate(&batch, &mut workspace).unwrap().cotangent.to_vec()
        };
        let near = |came: Vec<f64>, expected: [f64; 4]| {
            assert!(
                came.iter().zip(expected).all(|(came, want)| (4.0 * came - want).abs() < 1e-6),
                "{came:?}"
            );
        };
        near(cotangent("dppo-tv"), [0.0, 1.2, 0.0, -1.2]);
        // kl(½, 0.8) = ½ ln(0.5/0.8) + ½ ln(0.5/0.2) = 0.223, kl(½, 0.6) = 0.020: 0.1 parts them.
        near(cotangent("dppo-kl:0.1,0.1"), [0.0, 1.2, 0.0, -1.2]);
        near(cotangent("dppo-kl:0.3,0.3,1.1"), [1.1, 1.1, -0.4, -1.1]);
    }
}
