//! What one iteration of one member leaves behind: a line of its curve, and its batch.

use niwaki_correction::Diagnostics;
use niwaki_policies::{Rollout, RolloutShape};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an evaluation says of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// As [`Record::eta`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub eta: Option<f64>,
    /// As [`Record::greedy`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub greedy: Option<f64>,
    /// As [`Record::gap`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gap: Option<f64>,
}

/// A line of a run's curve. Nothing in it depends on the clock or the machine's load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Iterations done, from 1.
    pub iteration: usize,
    /// Return of the trained policy: exact where the process is enumerated, else the mean of fresh trajectories.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub eta: Option<f64>,
    /// Reward of the likeliest trajectory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub greedy: Option<f64>,
    /// How far the makespans of the likeliest schedules are above the optima, over those, on average: of graphs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gap: Option<f64>,
    /// What the untrained policy was measured to do; in the first record, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub initial: Option<Measured>,
    /// Mean reward of the batch that was learned from.
    pub batch_reward: f64,
    /// Whether no trajectory of the batch was rewarded. Paper: `tab:conditions` (C3)
    pub zero_reward: bool,
    /// Share of trajectories without any advantage.
    pub zero_signal: f64,
    /// σ²T between the rollout policy and the one after the whole update. Paper: `sec:scheduling`
    pub drift: f64,
    /// `Σ_t E[Var(ℓ_t | s_t)]` of the same two policies over all states, where it was asked for. Paper: `sec:correction`
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub conditional_drift: Option<f64>,
    /// Variance of the log-ratio of all steps but the last, likewise. Paper: `app:pretrained`
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub prefix_variance: Option<f64>,
    /// Share of steps on the flat side of the clip after the update.
    pub clip_fraction: f64,
    /// ESS of the full prefix ratio at the last position.
    pub prefix_ess: f64,
    /// ESS of the member's own factors.
    pub ess: f64,
    /// Σ|b_t|. Paper: `eq:bias-witness`
    pub dose: f64,
    /// Σ|b_t| with r_t = 1.
    pub rollout_dose: f64,
    /// KL(rollout ‖ current) per step, k3.
    pub kl: f64,
    /// Mean entropy of the visited states.
    pub entropy: f64,
    /// Norm of the last gradient.
    pub gradient_norm: f64,
    /// The strength that the member's rule came to, where it chooses one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub alpha: Option<f64>,
    /// How often each token came first, `[vocab]`.
    pub first: Vec<f64>,
    /// How often each token came last, `[vocab]`.
    pub last: Vec<f64>,
    /// Numbers of another trainer's, by its own names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub own: BTreeMap<String, f64>,
}

impl Record {
    /// The batch's side of a record.
    #[must_use]
    pub fn of_batch(iteration: usize, member: usize, rollout: &Rollout) -> Self {
        let reward = rollout.reward_of(member);
        let share = |pick: fn(&[i32]) -> Option<&i32>| {
            let mut share = vec![0.0; rollout.choices];
            for &action in rollout.trajectories(member).filter_map(pick) {
                share[action as usize] += 1.0 / reward.len() as f64;
            }
            share
        };
        Self {
            iteration,
            batch_reward: reward.iter().sum::<f64>() / reward.len() as f64,
            zero_reward: reward.iter().all(|&reward| reward == 0.0),
            first: share(<[i32]>::first),
            last: share(<[i32]>::last),
            ..Self::default()
        }
    }

    /// The same with what the correction measured after the update.
    #[must_use]
    pub fn measured(self, diagnostics: &Diagnostics) -> Self {
        Self {
            zero_signal: diagnostics.zero_signal,
            drift: diagnostics.drift,
            clip_fraction: diagnostics.clip_fraction,
            prefix_ess: diagnostics.prefix_ess.last().copied().unwrap_or(1.0),
            ess: diagnostics.ess,
            dose: diagnostics.dose,
            rollout_dose: diagnostics.rollout_dose,
            kl: diagnostics.kl_k3,
            ..self
        }
    }

    /// The record as files hold it and give it back. JSON has no infinity, and a prefix ratio after a wild update
    /// overflows: such a number becomes the largest one. A return that is not a number was not measured. Candidates of a
    /// pointer and words of a language are `uncounted`: how often each came first or last says nothing and would be most of
    /// the file.
    #[must_use]
    pub fn storable(mut self, uncounted: bool) -> Self {
        let numbers = [
            &mut self.batch_reward,
            &mut self.zero_signal,
            &mut self.drift,
            &mut self.clip_fraction,
            &mut self.prefix_ess,
            &mut self.ess,
            &mut self.dose,
            &mut self.rollout_dose,
            &mut self.kl,
            &mut self.entropy,
            &mut self.gradient_norm,
        ];
        numbers.into_iter().chain(self.own.values_mut()).for_each(|number| *number = finite(*number));
        let initial = self.initial.as_mut().map(|at| [&mut at.eta, &mut at.greedy, &mut at.gap]);
        let spread = [&mut self.conditional_drift, &mut self.prefix_variance];
        let own = [&mut self.eta, &mut self.greedy, &mut self.gap, &mut self.alpha].into_iter().chain(spread);
        for number in own.chain(initial.into_iter().flatten()) {
            *number = number.filter(|number| number.is_finite());
        }
        if uncounted {
            self.first.clear();
            self.last.clear();
        }
        self
    }
}

/// A number that JSON can hold: what is not finite becomes the largest one.
pub(crate) fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { f64::MAX }
}

/// One member's batch after an iteration, `[lane, step]` each but for the rewards.
#[derive(Clone, Debug, PartialEq)]
pub struct LastBatch {
    /// Iterations done.
    pub iteration: usize,
    /// Where its trajectories lie.
    pub shape: RolloutShape,
    /// Log-probabilities at rollout.
    pub rollout: Vec<f64>,
    /// Log-probabilities after the update: those that the record's drift is of.
    pub log_prob: Vec<f64>,
    /// Advantages.
    pub advantage: Vec<f64>,
    /// What the trajectories earned, `[lane]`.
    pub reward: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overflowed_reads_back() {
        let wild = Record {
            dose: f64::INFINITY,
            kl: f64::NAN,
            drift: 2.0,
            eta: Some(f64::NAN),
            greedy: Some(0.5),
            first: vec![1.0],
            ..Record::default()
        };
        let stored = wild.storable(false);
        let text = serde_json::to_string(&stored).unwrap();
        let back: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(back, stored);
        assert_eq!((back.dose, back.kl, back.drift), (f64::MAX, f64::MAX, 2.0));
        assert_eq!((back.eta, back.greedy, &back.first[..]), (None, Some(0.5), &[1.0][..]));
        assert_eq!(back.storable(true).first, [0.0; 0]);
    }
}
