//! Losses that look for the steps which cost the most entropy: a high covariance of log-prob and advantage.
//!
//! After Cui et al. 2025 (the entropy mechanism of RL); verl's `clip_cov` and `kl_cov`.

use super::written::{Acts, Shape, Steps, Terms};
use super::{Correction, MOST, Member, Parameter, Rule};
use crate::Error;

const SHARE: Parameter =
    Parameter { name: "share", least: 0.0, most: 1.0, whole: false, default: Some(0.0002) };

static CLIPS: Shape = Shape { coupled: true, ..Shape::new("clip-cov", Acts::Term(clipped)) };
static PENALISES: Shape =
    Shape { coupled: true, pulls_always: true, ..Shape::new("kl-cov", Acts::Term(penalised)) };

/// PPO without a random SHARE of the steps whose covariance lies between LOW and HIGH and which the clip leaves live.
///
/// verl draws which of them to drop. Here each of them keeps the share of its term that it has on average over that draw, so that
/// a loss stays a function of its batch. LOW, HIGH and SHARE are verl's `clip_cov_lb`, `clip_cov_ub` and `clip_cov_ratio`.
///
/// Paper: `sec:related-work`
pub(super) static CLIP_COV: Member = Member {
    name: "clip-cov",
    title: "Clip-Cov",
    summary: "PPO without a random SHARE of the steps whose covariance of log-prob and advantage lies within (LOW, HIGH), averaged over the draw.",
    formula: "w = 1 − p[low < cov < high]",
    parameters: &[
        SHARE,
        Parameter {
            name: "low",
            least: f64::NEG_INFINITY,
            most: f64::INFINITY,
            whole: false,
            default: Some(1.0),
        },
        Parameter {
            name: "high",
            least: f64::NEG_INFINITY,
            most: f64::INFINITY,
            whole: false,
            default: Some(5.0),
        },
    ],
    rule: |values| Rule::written(&CLIPS, values),
    aliases: &[],
    tried: &["clip-cov:0.1,0.05,0.5"],
};

/// PPO without a clip, less `β |ℓ|` at the SHARE of steps with the highest covariance.
///
/// SHARE and BETA are verl's `kl_cov_ratio` and `ppo_kl_coef`.
///
/// Paper: `sec:related-work`
pub(super) static KL_COV: Member = Member {
    name: "kl-cov",
    title: "KL-Cov",
    summary: "PPO without a clip, less BETA·|ℓ| at the SHARE of steps with the highest covariance of log-prob and advantage.",
    formula: "r A − β|ℓ| [top cov]",
    parameters: &[
        SHARE,
        Parameter { name: "beta", least: 0.0, most: f64::INFINITY, whole: false, default: Some(1.0) },
    ],
    rule: |values| Rule::written(&PENALISES, values),
    aliases: &[],
    tried: &["kl-cov:0.2,0.5"],
};

/// The steps' terms of the covariance of log-prob and advantage over the batch.
fn covariance(steps: &Steps<'_>) -> Vec<f64> {
    let advantage = steps.mean(|step| steps.advantage[step]);
    let log_prob = steps.mean(|step| steps.log_prob[step]);
    let part = |step| (steps.advantage[step] - advantage) * (steps.log_prob[step] - log_prob);
    (0..steps.len()).map(part).collect()
}

fn clipped(steps: &Steps<'_>, &[share, low, high, ..]: &[f64; MOST]) -> Terms {
    let covariance = covariance(steps);
    let eligible = |step: usize| {
        let (value, live) = steps.ppo(step);
        value == live && low < covariance[step] && covariance[step] < high
    };
    let all: f64 = steps.mass.iter().sum();
    let among: f64 = (0..steps.len()).filter(|&step| eligible(step)).map(|step| steps.mass[step]).sum();
    // Whole steps where all count alike, one at least.
    let budget = if steps.weighted { share * all } else { (share * all).floor().max(1.0) };
    let kept = 1.0 - (budget / among).min(1.0);
    steps.ppo_times((0..steps.len()).map(|step| if eligible(step) { kept } else { 1.0 }).collect())
}

fn penalised(steps: &Steps<'_>, &[share, beta, ..]: &[f64; MOST]) -> Terms {
    let chosen = steps.top(&covariance(steps), share);
    steps.each(|step| {
        let (ell, gain) = (steps.ell(step), steps.ell(step).exp() * steps.advantage[step]);
        let beta = if chosen[step] { beta } else { 0.0 };
        let side = if ell == 0.0 { 0.0 } else { ell.signum() };
        (gain - beta * ell.abs(), gain - beta * side)
    })
}

impl Correction {
    /// Clip-Cov: a share of the steps whose covariance lies within (low, high) is dropped.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn clip_cov(share: f64, low: f64, high: f64) -> Result<Self, Error> {
        Self::of(&CLIP_COV, &[share, low, high])
    }

    /// KL-Cov: a share of the steps is held back with `beta`.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn kl_cov(share: f64, beta: f64) -> Result<Self, Error> {
        Self::of(&KL_COV, &[share, beta])
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Rows, Surrogate, Workspace};

    #[test]
    fn worked() {
        // Log-probs −1, −2, −3, −2 (mean −2) and advantages 2, 0, 0, −2 (mean 0): covariances 2, 0, 0, 0. No step has moved.
        let (current, advantage) = ([-1.0, -2.0, -3.0, -2.0], [2.0, 0.0, 0.0, -2.0]);
        let moved = [-1.1, -2.0, -3.0, -2.0];
        let cotangent = |loss: &str, rollout: &[f64]| {
            let mut workspace = Workspace::default();
            let surrogate: Surrogate = loss.parse().unwrap();
            let batch = Batch::new(Rows::uniform(1), &current, rollout, &advantage);
            surrogate.evaluate(&batch, &mut workspace).unwrap().cotangent.to_vec()
        };
        // One step is dropped, the only one between 1 and 5; at (−1, 5) it is one of four, and each keeps ¾.
        assert_eq!(cotangent("clip-cov", &current), [0.0, 0.0, 0.0, -0.5]);
        assert_eq!(cotangent("clip-cov:0.25,-1,5", &current), [0.375, 0.0, 0.0, -0.375]);
        // The first has the highest covariance: its ratio is e^0.1, and it is held back by β = 1.
        let came = cotangent("kl-cov", &moved);
        assert!((4.0 * came[0] - (2.0 * 0.1_f64.exp() - 1.0)).abs() < 1e-12);
        assert_eq!(came[1..], [0.0, 0.0, -0.5]);
    }
}
