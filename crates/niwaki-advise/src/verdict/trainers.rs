//! The answer in the settings of the trainers that people run.
//!
//! Names are those of TRL 1.16 (`GRPOConfig`) and verl 0.9.1; `python/tests` holds them to the installed packages.

use super::Action;
use super::decide::{Decision, Ground};
use super::known::text;
use serde::Serialize;

/// A trainer whose settings are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trainer {
    /// Hugging Face's TRL.
    Trl,
    /// verl.
    Verl,
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
    pub const ALL: [Self; 2] = [Self::Trl, Self::Verl];

    /// Its name as its users write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trl => "TRL",
            Self::Verl => "verl",
        }
    }

    /// The decision in its settings.
    pub(super) fn advise(self, decision: &Decision) -> Advised {
        let what = match (decision.action, decision.ground) {
            (Action::ShortWarmup { alpha }, _) => self.warmup(alpha),
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
        }
    }

    const fn gather(self) -> &'static str {
        match self {
            Self::Trl => {
                "change nothing yet: dump more steps, the last use of each batch only (docs/advise.md)"
            }
            Self::Verl => "change nothing yet: dump more steps, after the actor's update (docs/advise.md)",
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
        }
    }

    const fn more(self) -> &'static str {
        match self {
            Self::Trl => "leave the loss as it is; there is room for a higher `num_iterations`",
            Self::Verl => "leave the loss as it is; there is room for a higher `actor.ppo_epochs`",
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
        }
    }

    const fn leave(self) -> &'static str {
        match self {
            Self::Trl => "leave `num_iterations`, `epsilon` and `importance_sampling_level` as they are",
            Self::Verl => {
                "leave `actor.ppo_epochs`, `actor.clip_ratio` and `algorithm.rollout_correction` as they are"
            }
        }
    }
}
