//! How trajectories are judged: an advantage for every step, and what a critic should have said.
//!
//! Rewards are terminal and undiscounted, so the return-to-go of every step is the trajectory's reward.

use crate::spec::{AdvantageKind, AdvantageSpec};

/// Advantages `[lane, step]` of one member's batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// Advantages.
    pub advantage: Vec<f64>,
    /// What the critic should estimate; empty without a critic.
    pub target: Vec<f64>,
}

/// What there is to judge by.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// `[lane]`
    pub reward: &'a [f64],
    /// Steps per trajectory.
    pub horizon: usize,
    /// Trajectories per group.
    pub group: usize,
    /// Exact advantages `[lane, step]`, where asked for and known.
    pub exact: Option<&'a [f64]>,
    /// The critic's estimates `[lane, step]`; empty without one.
    pub value: &'a [f64],
}

/// Judges a batch.
///
/// Paper: `alg:tempered` (line 2), `app:testbed-protocol` (returns with a batch-mean baseline), `sec:mechanism`
/// (centring)
#[must_use]
pub fn judge(spec: &AdvantageSpec, evidence: Evidence<'_>) -> Judged {
    let Evidence { reward, horizon, group, .. } = evidence;
    let mut judged = Judged::default();
    match (spec.kind, evidence.exact) {
        (AdvantageKind::Exact, Some(exact)) => judged.advantage.extend_from_slice(exact),
        (AdvantageKind::Returns | AdvantageKind::Exact, _) => {
            centred(reward, spec.standardise, horizon, &mut judged.advantage);
        }
        (AdvantageKind::Group, _) => {
            for group in reward.chunks(group) {
                centred(group, spec.standardise, horizon, &mut judged.advantage);
            }
        }
        (AdvantageKind::Critic, _) => {
            for (&reward, value) in reward.iter().zip(evidence.value.chunks_exact(horizon)) {
                estimate(reward, value, spec.lambda, &mut judged);
            }
            if spec.standardise {
                standardise(&mut judged.advantage);
            }
        }
    }
    judged
}

/// Rewards minus their mean, constant along each trajectory.
fn centred(reward: &[f64], standardised: bool, horizon: usize, out: &mut Vec<f64>) {
    let mut centred = reward.to_vec();
    let mean = reward.iter().sum::<f64>() / reward.len() as f64;
    centred.iter_mut().for_each(|reward| *reward -= mean);
    if standardised {
        standardise(&mut centred);
    }
    out.extend(centred.iter().flat_map(|&advantage| std::iter::repeat_n(advantage, horizon)));
}

/// Centres, and divides by the sample's deviation; where all are alike there is no signal, and it stays zero.
fn standardise(values: &mut [f64]) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    for value in values {
        *value = (*value - mean) / (variance.sqrt() + 1e-6);
    }
}

/// Generalised advantage estimation of one trajectory with a terminal reward and no discount:
/// `δ_t = V_{t+1} − V_t` (the reward stands for the last `V_{t+1}`), `A_t = δ_t + λ A_{t+1}`, target `A_t + V_t`.
fn estimate(reward: f64, value: &[f64], lambda: f64, judged: &mut Judged) {
    let start = judged.advantage.len();
    judged.advantage.resize(start + value.len(), 0.0);
    let mut later = 0.0;
    for step in (0..value.len()).rev() {
        let next = value.get(step + 1).copied().unwrap_or(reward);
        later = next - value[step] + lambda * later;
        judged.advantage[start + step] = later;
    }
    let advantages = &judged.advantage[start..];
    judged.target.extend(advantages.iter().zip(value).map(|(advantage, value)| advantage + value));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence<'a>(reward: &'a [f64], value: &'a [f64]) -> Evidence<'a> {
        Evidence { reward, horizon: 2, group: 2, exact: None, value }
    }

    fn spec(kind: AdvantageKind, standardise: bool) -> AdvantageSpec {
        AdvantageSpec { kind, standardise, lambda: 0.5 }
    }

    #[test]
    fn returns_are_centred_over_the_batch_and_groups_within() {
        let reward = [1.0, 0.0, 1.0, 1.0];
        let returns = judge(&spec(AdvantageKind::Returns, false), evidence(&reward, &[]));
        assert_eq!(returns.advantage, [0.25, 0.25, -0.75, -0.75, 0.25, 0.25, 0.25, 0.25]);
        let group = judge(&spec(AdvantageKind::Group, false), evidence(&reward, &[]));
        assert_eq!(group.advantage, [0.5, 0.5, -0.5, -0.5, 0.0, 0.0, 0.0, 0.0]);
        let scaled = judge(&spec(AdvantageKind::Group, true), evidence(&reward, &[]));
        // The sample's deviation of 1 and 0 is √0.5: 0.5 / √0.5 = √0.5; a group without variance stays silent.
        assert!((scaled.advantage[0] - 0.5_f64.sqrt()).abs() < 1e-5);
        assert_eq!(scaled.advantage[4..], [0.0; 4]);
    }

    #[test]
    fn a_critic_bootstraps() {
        // δ₁ = 1 − 0.4 = 0.6, A₁ = 0.6; δ₀ = 0.4 − 0.2 = 0.2, A₀ = 0.2 + 0.5·0.6 = 0.5; targets 0.7 and 1.0.
        let judged = judge(&spec(AdvantageKind::Critic, false), evidence(&[1.0], &[0.2, 0.4]));
        for (came, expected) in judged.advantage.iter().chain(&judged.target).zip([0.5, 0.6, 0.7, 1.0]) {
            assert!((came - expected).abs() < 1e-15);
        }
    }
}
