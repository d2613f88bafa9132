//! The answer in the settings of the trainers that people run.
//!
//! Names are those of TRL 1.16 (`GRPOConfig`), verl 0.9.1 and our own specs; `python/tests` holds them to the installed packages.

use super::Action;
use super::decide::{Decision, Ground};
use super::known::text;
use serde::Serialize;
use std::path::Path;

/// A trainer whose settings are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trainer {
    /// Hugging Face's TRL.
    Trl,
    /// verl.
    Verl,
    /// Our own.
    Niwaki,
}

/// What to set in one trainer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advised {
    /// The trainer.
    pub trainer: Trainer,
    /// What to set there.
    pub what: String,
}

impl Trainer {
    /// Every trainer.
    pub const ALL: [Self; 3] = [Self::Trl, Self::Verl, Self::Niwaki];

    /// The trainer whose names a dump speaks, or whose folder it lies in; none where both could be anybody's.
    pub(crate) fn of(names: &[String], folder: Option<&Path>) -> Option<Self> {
        let speaks = |own: &[&str]| names.iter().any(|name| own.contains(&name.as_str()));
        if speaks(&["old_per_token_logps", "per_token_logps", "sampling_per_token_logps", "completion_mask"])
        {
            return Some(Self::Trl);
        }
        if speaks(&["response_mask", "rollout_log_probs", "token_level_scores", "token_level_rewards"]) {
            return Some(Self::Verl);
        }
        // A run's folder holds the spec that it was made from.
        folder.is_some_and(|folder| folder.join("spec.toml").is_file()).then_some(Self::Niwaki)
    }

    /// Its name as its users write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trl => "TRL",
            Self::Verl => "verl",
            Self::Niwaki => "Niwaki",
        }
    }

    /// The decision in its settings.
    pub(super) fn advise(self, decision: &Decision) -> Advised {
        let what = match (decision.action, decision.ground) {
            (Action::ShortWarmup { alpha, .. }, Ground::Slight) => {
                format!("first {}; if the bias is there too, {}", self.keep_out(), self.warmup(alpha))
            }
            (Action::ShortWarmup { alpha, .. }, _) => self.warmup(alpha),
            (Action::ReduceReuse, _) => self.less().to_owned(),
            (Action::NotEnoughData { .. }, _) => self.gather().to_owned(),
            (Action::NoSignal, _) => self.signal().to_owned(),
            (Action::CorrectionWasted, Ground::Fresh) => self.more().to_owned(),
            (Action::CorrectionWasted, Ground::Ceiling) => self.harder().to_owned(),
            (Action::CorrectionWasted, _) => self.leave().to_owned(),
        };
        Advised { trainer: self, what }
    }

    fn warmup(self, alpha: f64) -> String {
        let alpha = text(alpha);
        match self {
            Self::Trl => format!(
                "for the first iterations `niwaki.trl.GRPOTrainer(…, correction=\"tempered:{alpha}\")`, then TRL's own; \
                 keep `num_iterations` and `epsilon`"
            ),
            Self::Verl => format!(
                "for the first iterations `niwaki.verl.register(correction=\"tempered:{alpha}\")` with \
                 `actor.policy_loss.loss_mode=niwaki`, then `vanilla`; keep `actor.ppo_epochs` and `actor.clip_ratio`"
            ),
            Self::Niwaki => format!(
                "`warmup.correction = \"tempered:{alpha}\"` with a `warmup.iterations` of a tenth or two of the run; keep \
                 `update.reuse` and `update.clip`"
            ),
        }
    }

    const fn keep_out(self) -> &'static str {
        match self {
            Self::Trl => {
                "keep a quarter of the prompts out of the update and dump those (`KEPT = 0.25`, docs/advise.md)"
            }
            Self::Verl => "keep a quarter of the prompts out of the update and dump those (docs/advise.md)",
            Self::Niwaki => "look at a run with larger `rollout.lanes`, which are fitted less",
        }
    }

    const fn less(self) -> &'static str {
        match self {
            Self::Trl => {
                "lower `num_iterations` (halve it and look again), or `steps_per_generation`; a lower `learning_rate` or \
                 `epsilon` drifts less too"
            }
            Self::Verl => {
                "lower `actor.ppo_epochs` (halve it and look again), or raise `actor.ppo_mini_batch_size` towards \
                 `data.train_batch_size`; a lower `actor.optim.lr` or `actor.clip_ratio` drifts less too"
            }
            Self::Niwaki => {
                "lower `update.reuse` (halve it and look again); a lower `optimiser.rate` or `update.clip` drifts less too"
            }
        }
    }

    const fn gather(self) -> &'static str {
        match self {
            Self::Trl => {
                "change nothing yet: dump more steps, the last use of each batch only (docs/advise.md)"
            }
            Self::Verl => "change nothing yet: dump more steps, after the actor's update (docs/advise.md)",
            Self::Niwaki => "change nothing yet: let the run go on with `dump.every`, and look again",
        }
    }

    const fn signal(self) -> &'static str {
        match self {
            Self::Trl => {
                "look at the rewards: raise `num_generations`, or `temperature`, until groups differ"
            }
            Self::Verl => {
                "look at the rewards: raise `actor_rollout_ref.rollout.n`, or its `temperature`, until groups differ"
            }
            Self::Niwaki => {
                "look at the rewards: raise `rollout.lanes`, or ease the task, until trajectories differ"
            }
        }
    }

    const fn more(self) -> &'static str {
        match self {
            Self::Trl => "leave the loss as it is; there is room for a higher `num_iterations`",
            Self::Verl => "leave the loss as it is; there is room for a higher `actor.ppo_epochs`",
            Self::Niwaki => "leave the loss as it is; there is room for a higher `update.reuse`",
        }
    }

    const fn harder(self) -> &'static str {
        match self {
            Self::Trl => {
                "leave the loss as it is; harder prompts or a finer reward would give more to learn from"
            }
            Self::Verl => {
                "leave the loss as it is; harder prompts, a finer reward or `algorithm.filter_groups.enable` would give \
                 more to learn from"
            }
            Self::Niwaki => {
                "leave the loss as it is; a harder task (a tighter deadline, a longer horizon) would give more to learn from"
            }
        }
    }

    const fn leave(self) -> &'static str {
        match self {
            Self::Trl => "leave `num_iterations`, `epsilon` and `importance_sampling_level` as they are",
            Self::Verl => {
                "leave `actor.ppo_epochs`, `actor.clip_ratio` and `algorithm.rollout_correction` as they are"
            }
            Self::Niwaki => "leave `update.reuse`, `update.clip` and `update.correction` as they are",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_speaks_the_words_of_its_trainer() {
        let of = |names: &[&str]| {
            Trainer::of(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(), None)
        };
        assert_eq!(of(&["old_per_token_logps", "per_token_logps", "advantages"]), Some(Trainer::Trl));
        assert_eq!(of(&["old_log_probs", "log_probs", "response_mask", "uid"]), Some(Trainer::Verl));
        assert_eq!(of(&["old_log_prob", "new_log_prob", "advantage"]), None);
    }
}
