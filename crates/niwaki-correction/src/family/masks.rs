//! Masks over PPO's terms: the off-policy sequence mask and the top-entropy mask.

use super::written::{Acts, Shape, Steps, Terms};
use super::{Alias, Correction, MOST, Member, Parameter, Rule};
use crate::Error;

static OFF_POLICY: Shape = Shape::new("off-policy-mask", Acts::Term(off_policy));
static ENTROPY: Shape =
    Shape { coupled: true, needs_entropy: true, ..Shape::new("top-entropy", Acts::Term(top_entropy)) };

/// PPO without the losses of trajectories whose mean `log μ − log π` exceeds MOST; `μ` is the policy that sampled.
///
/// After DeepSeek-V3.2; TRL's `off_policy_mask_threshold`. What is dropped stays in the count, as there.
///
/// Paper: `sec:related-work`
pub(super) static OFF_POLICY_MASK: Member = Member {
    name: "off-policy-mask",
    title: "Off-policy mask",
    summary: "PPO that drops the losses (A < 0) of sequences whose mean log-ratio has fallen by more than MOST.",
    formula: "w = 1[A ≥ 0 or −mean ℓ ≤ most]",
    parameters: &[Parameter {
        name: "most",
        least: 0.0,
        most: f64::INFINITY,
        whole: false,
        default: Some(0.5),
    }],
    rule: |values| Rule::written(&OFF_POLICY, values),
    aliases: &[Alias {
        name: "opsm",
        note: "TRL's off_policy_mask_threshold = MOST; its comments call it OPSM",
    }],
    tried: &["off-policy-mask:0.03"],
};

/// PPO at the SHARE of steps where the policy's entropy is highest.
///
/// After Wang et al. 2025 (the 80/20 rule); TRL's `top_entropy_quantile`, whose linear interpolation of the quantile is kept where
/// all trajectories count alike. What is dropped stays in the count, as there.
///
/// Paper: `sec:related-work`
pub(super) static TOP_ENTROPY: Member = Member {
    name: "top-entropy",
    title: "Top entropy",
    summary: "PPO at the SHARE of steps with the highest entropy only; the batch must know the entropies.",
    formula: "w = 1[entropy ≥ quantile]",
    parameters: &[Parameter { name: "share", least: 0.0, most: 1.0, whole: false, default: Some(0.2) }],
    rule: |values| Rule::written(&ENTROPY, values),
    aliases: &[Alias { name: "top-entropy-quantile", note: "TRL's setting of that name = SHARE" }],
    tried: &["top-entropy:0.4"],
};

fn off_policy(steps: &Steps<'_>, &[most, ..]: &[f64; MOST]) -> Terms {
    let mut factor = vec![1.0; steps.len()];
    for row in steps.rows() {
        let fallen = -row.clone().map(|step| steps.since_sampled(step)).sum::<f64>() / row.len() as f64;
        if fallen > most {
            row.filter(|&step| steps.advantage[step] < 0.0).for_each(|step| factor[step] = 0.0);
        }
    }
    steps.ppo_times(factor)
}

fn top_entropy(steps: &Steps<'_>, &[share, ..]: &[f64; MOST]) -> Terms {
    let entropy = steps.entropy.unwrap_or_default();
    let threshold = quantile(steps, entropy, 1.0 - share);
    steps.ppo_times(entropy.iter().map(|&entropy| if entropy >= threshold { 1.0 } else { 0.0 }).collect())
}

/// The quantile of the steps' values: interpolated where all count alike, else the first value that so much mass reaches.
fn quantile(steps: &Steps<'_>, values: &[f64], level: f64) -> f64 {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&one, &other| values[one].total_cmp(&values[other]));
    let sorted = |rank: usize| order.get(rank).map_or(f64::NEG_INFINITY, |&step| values[step]);
    if !steps.weighted {
        let place = level * values.len().saturating_sub(1) as f64;
        let (below, above) = (sorted(place.floor() as usize), sorted(place.ceil() as usize));
        return below + (above - below) * place.fract();
    }
    let wanted = level * steps.mass.iter().sum::<f64>();
    let mut reached = 0.0;
    let first = order.iter().find(|&&step| {
        reached += steps.mass[step];
        reached >= wanted
    });
    first.map_or_else(|| sorted(values.len().saturating_sub(1)), |&step| values[step])
}

impl Correction {
    /// The off-policy sequence mask.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn off_policy_mask(most: f64) -> Result<Self, Error> {
        Self::of(&OFF_POLICY_MASK, &[most])
    }

    /// The top-entropy mask.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn top_entropy(share: f64) -> Result<Self, Error> {
        Self::of(&TOP_ENTROPY, &[share])
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Error, Rows, Surrogate, Workspace};

    fn cotangent(loss: &str, batch: &Batch<'_, f64>) -> Result<Vec<f64>, Error> {
        let mut workspace = Workspace::default();
        loss.parse::<Surrogate>()
            .unwrap()
            .evaluate(batch, &mut workspace)
            .map(|found| found.cotangent.to_vec())
    }

    #[test]
    fn worked() {
        // Two trajectories that fell by 0.1 on average: only the loss of the second is dropped, and below a bound of 0.1.
        let current = [-1.2, -1.0, -1.2, -1.0];
        let batch = Batch::new(Rows::uniform(2), &current, &[-1.0; 4], &[1.0, 1.0, -1.0, -1.0]);
        let ratio = (-0.2_f64).exp();
        let near = |came: Vec<f64>, expected: [f64; 4]| {
            assert!(
                came.iter().zip(expected).all(|(came, want)| (4.0 * came - want).abs() < 1e-12),
                "{came:?}"
            );
        };
        near(cotangent("off-policy-mask:0.05", &batch).unwrap(), [ratio, 1.0, 0.0, 0.0]);
        near(cotangent("off-policy-mask:0.15", &batch).unwrap(), [ratio, 1.0, -ratio, -1.0]);
        // The upper half of 0.1, 0.2, 0.3, 0.4: the median is 0.25.
        let known = batch.with_entropy(&[0.1, 0.4, 0.3, 0.2]);
        near(cotangent("top-entropy:0.5", &known).unwrap(), [0.0, 1.0, -ratio, 0.0]);
        near(cotangent("top-entropy:1", &known).unwrap(), [ratio, 1.0, -ratio, -1.0]);
        assert_eq!(
            cotangent("top-entropy", &batch).unwrap_err().to_string(),
            "loss 'top-entropy' needs entropy, which the batch does not have"
        );
    }
}
