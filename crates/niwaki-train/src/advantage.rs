//! How trajectories are judged: an advantage for every step, and what a critic should have said.
//!
//! Rewards are terminal and undiscounted, so the return-to-go of every step is the trajectory's reward. Shaped by estimates, it is
//! that less what was to be expected at the step: the sum of what the steps from there on did to the estimate.

use crate::spec::{AdvantageKind, AdvantageSpec};
use niwaki_policies::RolloutShape;

/// Advantages `[lane, step]` of one member's batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advantages {
    /// Advantages.
    pub advantage: Vec<f64>,
    /// What the critic should estimate; empty without a critic.
    pub target: Vec<f64>,
}

/// What one member's advantages are estimated from.
#[derive(Clone, Copy, Debug)]
pub struct AdvantageInputs<'a> {
    /// `[lane]`
    pub reward: &'a [f64],
    /// The trajectories of all members.
    pub shape: &'a RolloutShape,
    /// Which member it is.
    pub member: usize,
    /// Trajectories per group.
    pub group: usize,
    /// Exact advantages `[lane, step]`, where asked for and known.
    pub exact: Option<&'a [f64]>,
    /// The critic's estimates `[lane, step]`; empty without one.
    pub value: &'a [f64],
    /// The reward to be expected before each step, `[lane, step]`, where returns are shaped by it.
    pub expected: Option<&'a [f64]>,
}

/// Estimates the advantages of one member's batch.
///
/// Paper: `alg:tempered` (line 2), `app:testbed-protocol` (returns with a batch-mean baseline), `sec:mechanism`
/// (centring)
#[must_use]
pub fn estimate(spec: &AdvantageSpec, inputs: AdvantageInputs<'_>) -> Advantages {
    let AdvantageInputs { reward, group, shape, member, .. } = inputs;
    let mut judged = Advantages::default();
    let along = |advantage: Vec<f64>| {
        let lengths = shape.lengths(member, 0..shape.lanes());
        advantage
            .into_iter()
            .zip(lengths)
            .flat_map(|(advantage, length)| std::iter::repeat_n(advantage, length))
    };
    match (spec.kind, inputs.exact) {
        (AdvantageKind::Exact, Some(exact)) => judged.advantage.extend_from_slice(exact),
        (AdvantageKind::Returns | AdvantageKind::Exact, _) => {
            judged.advantage.extend(along(centred(reward, spec.standardise)));
        }
        (AdvantageKind::Group, _) => {
            let groups = reward.chunks(group).flat_map(|group| centred(group, spec.standardise));
            judged.advantage.extend(along(groups.collect()));
        }
        (AdvantageKind::Best, _) => {
            let groups = reward.chunks(group).flat_map(labels);
            judged.advantage.extend(along(groups.collect()));
        }
        (AdvantageKind::Critic, _) => {
            let returns = returns(spec, inputs);
            let mut start = 0;
            for length in shape.lengths(member, 0..shape.lanes()) {
                let steps = start..start + length;
                generalised(&returns[steps.clone()], &inputs.value[steps], spec.lambda, &mut judged);
                start += length;
            }
            if spec.standardise {
                standardise(&mut judged.advantage);
            }
        }
    }
    judged
}

/// What a critic should say of every step if it knew how the trajectory goes on, `[lane, step]`.
fn returns(spec: &AdvantageSpec, inputs: AdvantageInputs<'_>) -> Vec<f64> {
    let AdvantageInputs { reward, shape, member, expected, .. } = inputs;
    let along = |reward: &[f64]| -> Vec<f64> {
        let lanes = reward.iter().zip(shape.lengths(member, 0..shape.lanes()));
        lanes.flat_map(|(&reward, length)| std::iter::repeat_n(reward, length)).collect()
    };
    let Some(expected) = expected else {
        return if spec.standard_returns { along(&centred(reward, true)) } else { along(reward) };
    };
    let mut returns = along(reward);
    returns.iter_mut().zip(expected).for_each(|(to_go, expected)| *to_go -= expected);
    if spec.standard_returns {
        standardise(&mut returns);
    }
    returns
}

/// One for the best reward, the first of several.
fn labels(reward: &[f64]) -> Vec<f64> {
    let best = reward.iter().enumerate().rev().max_by(|a, b| a.1.total_cmp(b.1)).map(|(place, _)| place);
    (0..reward.len()).map(|place| f64::from(u8::from(Some(place) == best))).collect()
}

/// Rewards minus their mean.
fn centred(reward: &[f64], standardised: bool) -> Vec<f64> {
    let mut centred = reward.to_vec();
    let mean = reward.iter().sum::<f64>() / reward.len() as f64;
    centred.iter_mut().for_each(|reward| *reward -= mean);
    if standardised {
        standardise(&mut centred);
    }
    centred
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

/// Generalised advantage estimation of one trajectory from its returns-to-go `G`, without discount: `δ_t = r_t + V_{t+1} − V_t` with
/// `r_t = G_t − G_{t+1}`, nothing behind the last step, `A_t = δ_t + λ A_{t+1}`, target `A_t + V_t`.
fn generalised(returns: &[f64], value: &[f64], lambda: f64, judged: &mut Advantages) {
    let start = judged.advantage.len();
    judged.advantage.resize(start + value.len(), 0.0);
    let mut later = 0.0;
    for step in (0..value.len()).rev() {
        let next = value.get(step + 1).map_or(returns[step], |next| returns[step] - returns[step + 1] + next);
        later = next - value[step] + lambda * later;
        judged.advantage[start + step] = later;
    }
    let advantages = &judged.advantage[start..];
    judged.target.extend(advantages.iter().zip(value).map(|(advantage, value)| advantage + value));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(
        kind: AdvantageKind,
        standardise: bool,
        shape: &RolloutShape,
        reward: &[f64],
        value: &[f64],
    ) -> Advantages {
        let inputs =
            AdvantageInputs { reward, shape, member: 0, group: 2, exact: None, value, expected: None };
        estimate(&AdvantageSpec { kind, standardise, lambda: 0.5, ..AdvantageSpec::default() }, inputs)
    }

    #[test]
    fn returns_are_centred_over_the_batch_and_groups_within() {
        let (reward, shape) = ([1.0, 0.0, 1.0, 1.0], RolloutShape::uniform(1, 4, 2));
        let returns = judge(AdvantageKind::Returns, false, &shape, &reward, &[]);
        assert_eq!(returns.advantage, [0.25, 0.25, -0.75, -0.75, 0.25, 0.25, 0.25, 0.25]);
        let group = judge(AdvantageKind::Group, false, &shape, &reward, &[]);
        assert_eq!(group.advantage, [0.5, 0.5, -0.5, -0.5, 0.0, 0.0, 0.0, 0.0]);
        let scaled = judge(AdvantageKind::Group, true, &shape, &reward, &[]);
        // The sample's deviation of 1 and 0 is √0.5: 0.5 / √0.5 = √0.5; a group without variance stays silent.
        assert!((scaled.advantage[0] - 0.5_f64.sqrt()).abs() < 1e-5);
        assert_eq!(scaled.advantage[4..], [0.0; 4]);
    }

    #[test]
    fn the_best_of_a_group_is_its_label() {
        let (reward, shape) = ([-1.5, -1.2, -1.3, -1.3], RolloutShape::uniform(1, 4, 1));
        // In pairs: the second of the first, and of two alike the first. No group is without one.
        let best = judge(AdvantageKind::Best, false, &shape, &reward, &[]);
        assert_eq!(best.advantage, [0.0, 1.0, 1.0, 0.0]);
    }

    #[test]
    fn every_trajectory_counts_once_however_long_it_is() {
        let shape = RolloutShape::ragged(2, 3, [1, 3]);
        // The mean of 1 and 0 is 0.5, whatever their lengths.
        let returns = judge(AdvantageKind::Returns, false, &shape, &[1.0, 0.0], &[]);
        assert_eq!(returns.advantage, [0.5, -0.5, -0.5, -0.5]);
        // A₀ of the first is 1 − 0.2; the second has δ = (0.3 − 0.1, 0.5 − 0.3, 0 − 0.5): A₂ = −0.5,
        // A₁ = 0.2 − 0.25 = −0.05, A₀ = 0.2 − 0.025 = 0.175.
        let critic = judge(AdvantageKind::Critic, false, &shape, &[1.0, 0.0], &[0.2, 0.1, 0.3, 0.5]);
        for (came, expected) in critic.advantage.iter().zip([0.8, 0.175, -0.05, -0.5]) {
            assert!((came - expected).abs() < 1e-15, "{came} {expected}");
        }
    }

    #[test]
    fn a_critic_bootstraps() {
        // δ₁ = 1 − 0.4 = 0.6, A₁ = 0.6; δ₀ = 0.4 − 0.2 = 0.2, A₀ = 0.2 + 0.5·0.6 = 0.5; targets 0.7 and 1.0.
        let shape = RolloutShape::uniform(1, 1, 2);
        let judged = judge(AdvantageKind::Critic, false, &shape, &[1.0], &[0.2, 0.4]);
        for (came, expected) in judged.advantage.iter().chain(&judged.target).zip([0.5, 0.6, 0.7, 1.0]) {
            assert!((came - expected).abs() < 1e-15);
        }
    }

    #[test]
    fn shaped_returns_are_what_is_still_to_come() {
        // Minus 1.0 and minus 1.1 were to be expected, minus 1.3 came: to go are −0.3 and −0.2, of which the first step did −0.1. With
        // λ = 0.5: δ₁ = −0.2 − 0.4, A₁ = −0.6; δ₀ = −0.1 + 0.4 − 0.2 = 0.1, A₀ = 0.1 − 0.3.
        let shape = RolloutShape::uniform(1, 1, 2);
        let inputs = AdvantageInputs {
            reward: &[-1.3],
            shape: &shape,
            member: 0,
            group: 1,
            exact: None,
            value: &[0.2, 0.4],
            expected: Some(&[-1.0, -1.1]),
        };
        let kind = AdvantageKind::Critic;
        let spec = AdvantageSpec { kind, lambda: 0.5, shaped: true, ..AdvantageSpec::default() };
        let judged = estimate(&spec, inputs);
        for (came, expected) in judged.advantage.iter().chain(&judged.target).zip([-0.2, -0.6, 0.0, -0.2]) {
            assert!((came - expected).abs() < 1e-15, "{came} {expected}");
        }
    }

    #[test]
    fn a_critic_of_standard_returns() {
        // Rewards 1 and 0 over the batch: ±0.5 / √0.5 = ±√0.5. With λ = 1 targets are those at every step.
        let (shape, value) = (RolloutShape::uniform(1, 2, 2), [0.2, 0.4, 0.0, 0.1]);
        let inputs = AdvantageInputs {
            reward: &[1.0, 0.0],
            shape: &shape,
            member: 0,
            group: 1,
            exact: None,
            value: &value,
            expected: None,
        };
        let kind = AdvantageKind::Critic;
        let spec = AdvantageSpec { kind, lambda: 1.0, standard_returns: true, ..AdvantageSpec::default() };
        let judged = estimate(&spec, inputs);
        let root = 0.5_f64.sqrt();
        for (came, expected) in judged.target.iter().zip([root, root, -root, -root]) {
            assert!((came - expected).abs() < 1e-5, "{came} {expected}");
        }
        assert!((judged.advantage[1] - (root - 0.4)).abs() < 1e-5);
    }

    #[test]
    fn songs_returns_are_silent_where_the_reward_is_terminal() {
        // Standardised within a trajectory, whose steps all have the same return, every return is zero: nothing to learn.
        // That is why returns are standardised over the batch here.
        for reward in [0.0, 1.0] {
            let mut returns = [reward; 5];
            standardise(&mut returns);
            assert_eq!(returns, [0.0; 5]);
        }
    }
}
