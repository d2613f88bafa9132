//! A study file of this kind: what to measure, and what the paper printed of it.

use crate::Error;
use crate::shipped::Kind;
use niwaki_correction::Surrogate;
use niwaki_exact::diagnostics::{BATCH, Grid, Policies};
use niwaki_exact::{Process, Reward};
use serde::Deserialize;
use std::path::PathBuf;

/// A diagnostics study as its file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diagnostics {
    /// The label of the paper.
    pub label: String,
    /// What kind of study the file is.
    pub kind: Kind,
    /// Its place in the paper's order; the build reads it, and a study without one comes last.
    pub place: Option<u32>,
    /// A title for the page.
    pub title: String,
    /// What the study asks, in a sentence or two.
    pub question: String,
    /// Places where the paper contradicts itself or is silent, and how they are read here.
    #[serde(default)]
    pub readings: Vec<String>,
    /// Number of tokens.
    pub vocab: usize,
    /// Steps.
    pub horizon: usize,
    /// Standard deviation of the rollout policy's logits.
    pub rollout_scale: f64,
    /// How many perturbations per drift.
    pub seeds: u64,
    /// Rewards by name.
    pub rewards: Vec<String>,
    /// Sizes of the perturbation (δ).
    pub drifts: Vec<f64>,
    /// Losses by name.
    pub losses: Vec<String>,
    /// Numbers that the paper printed.
    #[serde(default)]
    pub value: Vec<ValueClaim>,
    /// Quantities that stay below a bound.
    #[serde(default)]
    pub bound: Vec<BoundClaim>,
    /// Orders of losses by a quantity, largest first.
    #[serde(default)]
    pub order: Vec<OrderClaim>,
    /// The loss with the lowest value of a quantity.
    #[serde(default)]
    pub lowest: Vec<LowestClaim>,
    /// A quantity that falls from drift to drift.
    #[serde(default)]
    pub falling: Vec<FallingClaim>,
    /// The share by which the best interior loss undercuts PPO's MSE.
    #[serde(default)]
    pub margin: Vec<MarginClaim>,
}

/// A printed number.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueClaim {
    pub measure: String,
    pub reward: String,
    pub drift: f64,
    pub loss: String,
    pub paper: String,
    pub sem: Option<String>,
    #[serde(default)]
    pub remark: String,
}

/// A bound that holds at every drift.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundClaim {
    pub measure: String,
    pub reward: String,
    pub loss: String,
    pub below: f64,
    pub paper: String,
}

/// An order of losses.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderClaim {
    pub measure: String,
    pub reward: String,
    pub drift: f64,
    pub losses: Vec<String>,
    #[serde(default)]
    pub remark: String,
}

/// The best loss.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LowestClaim {
    pub measure: String,
    pub reward: String,
    pub drift: f64,
    pub losses: Vec<String>,
    #[serde(default)]
    pub remark: String,
}

/// A quantity that falls with drift.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FallingClaim {
    pub measure: String,
    pub reward: String,
    pub loss: String,
}

/// The interior's margin over PPO.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarginClaim {
    pub reward: String,
    pub drift: f64,
    pub paper: Option<String>,
    #[serde(default)]
    pub remark: String,
}

impl Diagnostics {
    /// The grid that this study measures, with `seeds` in place of its own number where given.
    ///
    /// # Errors
    /// Where a name or size is refused.
    pub fn grid(&self, seeds: Option<u64>) -> Result<Grid, Error> {
        let process = Process::new(self.vocab, self.horizon)?;
        let rewards = self.rewards.iter().map(|name| {
            let reward: Reward = name.parse()?;
            Ok((name.clone(), reward.payoff(process)?))
        });
        let losses = self.losses.iter().map(|name| unclipped(name));
        Ok(Grid {
            process,
            rewards: rewards.collect::<Result<_, Error>>()?,
            drifts: self.drifts.clone(),
            policies: Policies::Drawn {
                rollout_scale: self.rollout_scale,
                seeds: (0..seeds.unwrap_or(self.seeds)).collect(),
            },
            losses: losses.collect::<Result<_, Error>>()?,
            batch: BATCH,
            drawn: 0,
            memory: Process::MEMORY,
        })
    }

    /// The folder of this study, below the folder of all studies.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.label.replace(':', "-").into()
    }
}

/// A loss by name, without its clip: the surrogate that the diagnostics treat.
pub(super) fn unclipped(name: &str) -> Result<Surrogate, Error> {
    Ok(name.parse::<Surrogate>()?.without_clip())
}
