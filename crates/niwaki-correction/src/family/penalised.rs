//! Losses with a penalty for moving: DRO's square, and TRL's KL to a reference, plain and corrected for its bias.

use super::written::{Acts, Shape, Steps, Terms};
use super::{Correction, MOST, Member, Parameter, Rule};
use crate::Error;

const BETA: Parameter =
    Parameter { name: "beta", least: 0.0, most: f64::INFINITY, whole: false, default: None };

static SQUARE: Shape = Shape { pulls_always: true, ..Shape::new("dro", Acts::Term(square)) };
static PLAIN: Shape = Shape { pulls_always: true, ..Shape::new("kl-penalty", Acts::Term(plain)) };
static CORRECTED: Shape = Shape { pulls_always: true, ..Shape::new("kl-corrected", Acts::Term(corrected)) };

/// `A log π − (β/2) ℓ²`: no ratio, no clip, and a square that pulls back to the rollout policy.
///
/// After Richemond et al. 2024 (Direct Reward Optimisation); verl's `dro`, BETA its `dro_beta`. At β = 0 it is GPG.
///
/// Paper: `sec:related-work`
pub(super) static DRO: Member = Member {
    name: "dro",
    title: "DRO",
    summary: "DRO: the plain policy gradient with half of BETA times the squared log-ratio as a penalty.",
    formula: "A log π − βℓ²/2",
    parameters: &[BETA],
    rule: |values| Rule::written(&SQUARE, values),
    aliases: &[],
    tried: &["dro:0.5"],
};

/// PPO less `β k3`, `k3 = e^{ref − log π} − (ref − log π) − 1` of a reference policy: TRL's `beta` with `use_bias_correction_kl = False`.
///
/// The reference is the rollout policy where the batch names none. Its gradient is biased off policy: k3 is averaged over what the
/// rollout policy drew.
///
/// Paper: `sec:related-work`
pub(super) static KL_PENALTY: Member = Member {
    name: "kl-penalty",
    title: "PPO, KL penalty",
    summary: "PPO less BETA times k3 of a reference policy (of the rollout policy, where there is none).",
    formula: "PPO − β k3",
    parameters: &[BETA],
    rule: |values| Rule::written(&PLAIN, values),
    aliases: &[],
    tried: &["kl-penalty:0.3"],
};

/// PPO less `β r k3`: the same penalty, weighed by the step's ratio, so that its mean over the rollout policy's draws is the KL of
/// the trainable policy at each step, and its gradient that KL's gradient.
///
/// TRL's `beta` as it is by default (`use_bias_correction_kl`), after DeepSeek-V3.2.
///
/// Paper: `sec:related-work`
pub(super) static KL_CORRECTED: Member = Member {
    name: "kl-corrected",
    title: "PPO, corrected KL",
    summary: "PPO less BETA times the ratio times k3 of a reference policy: the KL penalty without its off-policy bias.",
    formula: "PPO − β r k3",
    parameters: &[BETA],
    rule: |values| Rule::written(&CORRECTED, values),
    aliases: &[],
    tried: &["kl-corrected:0.3"],
};

fn square(steps: &Steps<'_>, &[beta, ..]: &[f64; MOST]) -> Terms {
    steps.each(|step| {
        let (ell, advantage) = (steps.ell(step), steps.advantage[step]);
        (advantage - 0.5 * beta * ell * ell, advantage - beta * ell)
    })
}

fn plain(steps: &Steps<'_>, &[beta, ..]: &[f64; MOST]) -> Terms {
    steps.each(|step| {
        let ((value, own), (k3, slope)) = (steps.ppo(step), k3(steps, step));
        (value - beta * k3, own - beta * slope)
    })
}

fn corrected(steps: &Steps<'_>, &[beta, ..]: &[f64; MOST]) -> Terms {
    steps.each(|step| {
        let ((value, own), (k3, slope)) = (steps.ppo(step), k3(steps, step));
        let ratio = steps.ell(step).exp();
        (value - beta * ratio * k3, own - beta * ratio * (k3 + slope))
    })
}

/// k3 of the reference, and its derivative with respect to the log-prob.
fn k3(steps: &Steps<'_>, step: usize) -> (f64, f64) {
    let away = steps.reference_log_prob.unwrap_or(steps.rollout_log_prob)[step] - steps.log_prob[step];
    (away.exp_m1() - away, -away.exp_m1())
}

impl Correction {
    /// DRO with a square of weight `beta`.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn dro(beta: f64) -> Result<Self, Error> {
        Self::of(&DRO, &[beta])
    }

    /// PPO with a KL penalty.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn kl_penalty(beta: f64) -> Result<Self, Error> {
        Self::of(&KL_PENALTY, &[beta])
    }

    /// PPO with a KL penalty that is corrected for its bias.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn kl_corrected(beta: f64) -> Result<Self, Error> {
        Self::of(&KL_CORRECTED, &[beta])
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Rows, Surrogate, Workspace};

    #[test]
    fn worked() {
        // ℓ = ln 2, A = 1, β = ½: DRO pulls 1 − ½ ln 2.
        let (current, rollout) = ([0.5_f64.ln()], [0.25_f64.ln()]);
        let batch = Batch::new(Rows::uniform(1), &current, &rollout, &[1.0]);
        let cotangent = |loss: &str, batch: &Batch<'_, f64>| {
            let mut workspace = Workspace::default();
            let surrogate = loss.parse::<Surrogate>().unwrap().without_clip();
            surrogate.evaluate(batch, &mut workspace).unwrap().cotangent[0]
        };
        assert!((cotangent("dro:0.5", &batch) - (1.0 - 0.5 * 2.0_f64.ln())).abs() < 1e-15);
        // ref − log π = −ln 2: k3 = ½ + ln 2 − 1, slope −(½ − 1) = ½. PPO pulls r A = 2.
        assert!((cotangent("kl-penalty:0.5", &batch) - (2.0 - 0.5 * 0.5)).abs() < 1e-15);
        let k3 = 2.0_f64.ln() - 0.5;
        assert!((cotangent("kl-corrected:0.5", &batch) - (2.0 - 0.5 * 2.0 * (k3 + 0.5))).abs() < 1e-15);
        // A reference that is the policy itself does not pull at all.
        let own = batch.held_to(&current);
        assert_eq!((cotangent("kl-penalty:9", &own), cotangent("kl-corrected:9", &own)), (2.0, 2.0));
    }

    #[test]
    fn the_corrected_penalty_has_the_gradient_of_the_kl() {
        // One step, three actions. The mean over the rollout policy's draws of the corrected penalty's score weight, pulled back
        // to logits, is the gradient of Σ π ln(π/ref); the plain penalty's is not.
        let normal = |logits: [f64; 3]| {
            let sum: f64 = logits.iter().map(|x| x.exp()).sum();
            logits.map(|x| x - sum.ln())
        };
        let (logits, rollout, reference) =
            ([0.3, -0.2, 0.5], normal([0.0, 0.4, -0.3]), normal([0.1, 0.1, 0.2]));
        let kl = |logits: [f64; 3]| {
            let new = normal(logits);
            (0..3).map(|a| new[a].exp() * (new[a] - reference[a])).sum::<f64>()
        };
        let new = normal(logits);
        let chance = rollout.map(f64::exp);
        let gradient = |loss: &str| {
            let mut workspace = Workspace::default();
            let batch =
                Batch::new(Rows::uniform(1), &new, &rollout, &[0.0; 3]).held_to(&reference).weighted(&chance);
            let surrogate: Surrogate = loss.parse().unwrap();
            let weight = surrogate.evaluate(&batch, &mut workspace).unwrap().cotangent.to_vec();
            let all: f64 = weight.iter().sum();
            [0, 1, 2].map(|a| weight[a] - new[a].exp() * all)
        };
        let far = |came: [f64; 3]| -> f64 {
            (0..3)
                .map(|a| {
                    let at = |shift: f64| {
                        let mut moved = logits;
                        moved[a] += shift;
                        kl(moved)
                    };
                    (came[a] + (at(1e-5) - at(-1e-5)) / 2e-5).abs()
                })
                .fold(0.0, f64::max)
        };
        assert!(far(gradient("kl-corrected:1")) < 1e-9);
        assert!(far(gradient("kl-penalty:1")) > 1e-2);
    }
}
