//! The tables of a run's file and their defaults.

use crate::policy::PolicyKind;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A training run as its file says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spec {
    /// The seed of every stream of the run.
    pub seed: u64,
    /// Iterations: rollout, then update.
    pub iterations: usize,
    /// What is played.
    pub task: TaskSpec,
    /// Who plays.
    pub policy: PolicySpec,
    /// How much is played per iteration.
    pub rollout: RolloutSpec,
    /// How trajectories are judged.
    pub advantage: AdvantageSpec,
    /// How a batch is used.
    pub update: UpdateSpec,
    /// What the first iterations do differently.
    pub warmup: WarmupSpec,
    /// How a gradient becomes a step.
    pub optimiser: OptimiserSpec,
    /// How progress is measured.
    pub evaluate: EvaluateSpec,
    /// What is kept on the way.
    pub checkpoint: CheckpointSpec,
    /// What is kept for `niwaki advise`.
    pub dump: DumpSpec,
    /// What another trainer says of its run, such as `niwaki.Run` of Python; this program reads such a run and trains none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<toml::Table>,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            seed: 0,
            iterations: 200,
            task: TaskSpec::default(),
            policy: PolicySpec::default(),
            rollout: RolloutSpec::default(),
            advantage: AdvantageSpec::default(),
            update: UpdateSpec::default(),
            warmup: WarmupSpec::default(),
            optimiser: OptimiserSpec::default(),
            evaluate: EvaluateSpec::default(),
            checkpoint: CheckpointSpec::default(),
            dump: DumpSpec::default(),
            own: None,
        }
    }
}

/// `[task]`: what is played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TaskSpec {
    /// The name of a task: a reward of the testbed, `choice`, `record`, `text`, or a kind of shop.
    pub kind: String,
    /// Tokens.
    pub vocab: usize,
    /// Steps.
    pub horizon: usize,
    /// What `choice` reads at the end: `chosen` or `modal`.
    pub terminal: String,
    /// For how many steps `choice` keeps a chosen token closed.
    pub busy: usize,
    /// Machines of a shop; 7 for flow shops, of which 1, 3, 5 and so on are bottlenecks, and 5 for job shops, flexible or not, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines: Option<usize>,
    /// Jobs of a shop; 20 for flow shops, 10 for flexible ones, 2 for two orders, 8 for the others if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<usize>,
    /// A schedule is paid if its makespan is at most this multiple of the optimum; 1.05 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<f64>,
    /// What a schedule is paid for: `deadline`; `makespan` for minus its makespan over the optimum; `due-dates` if nobody is late. Of a record, one of its file's rewards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reward: Option<String>,
    /// Whether both of `two-orders` have a due date; only the lag-critical one if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub both: Option<bool>,
    /// How long after its earliest end an order of `two-orders` is due; drawn if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slack: Option<u32>,
    /// Which operation of a `job-shop` is decided next: `machine`, `non-delay`, `active` or `list`; for a graph network `non-delay`, `free` or `active`; `non-delay` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// How `flexible-shop`s are drawn; `sd1-even` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draw: Option<String>,
    /// Whether `lags`, `single-machine` and `two-orders` keep lags and due dates from the policy; they do not if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<bool>,
    /// Instances to learn from; 256 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training: Option<usize>,
    /// Instances that the likeliest schedules are judged on; 128 if absent, or the last third of a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<usize>,
    /// Seed of the instances, which runs of all seeds share; 0 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<u64>,
    /// Folder of instance files to learn from instead of drawn ones, beside the spec or in the working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// File of a `record` or `text`, beside the spec or in the working directory; the paper's record if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Which of the record's primings a decoder reads first; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priming: Option<String>,
    /// Content of the folder's instances, or of record and model, in 16 digits; filled in, and refused where they have changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Seconds for which the optimum of one instance may be sought; 10 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<f64>,
}

impl Default for TaskSpec {
    fn default() -> Self {
        Self {
            kind: "two-branch".to_owned(),
            vocab: 4,
            horizon: 8,
            terminal: "chosen".to_owned(),
            busy: 0,
            machines: None,
            jobs: None,
            deadline: None,
            reward: None,
            both: None,
            slack: None,
            order: None,
            draw: None,
            hidden: None,
            training: None,
            validation: None,
            pool: None,
            folder: None,
            file: None,
            priming: None,
            digest: None,
            patience: None,
        }
    }
}

/// What a pointer compares with the candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GlimpseKind {
    /// The glimpse alone.
    Plain,
    /// The glimpse and the query it came from, added.
    Residual,
}

/// `[policy]`: the policy that plays and learns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicySpec {
    /// Which policy.
    pub kind: PolicyKind,
    /// Spread of a table's first logits.
    pub scale: f64,
    /// Width of a network; 128 for the causal transformer, 64 for the pointer, 32 for the bag and the dual graph network, 8 for Song's if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// Heads of the transformer.
    pub heads: usize,
    /// Blocks of the transformer.
    pub blocks: usize,
    /// Width inside a block; four times the width if absent, twice for the pointer and the dual graph network, sixteen times for Song's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<usize>,
    /// What the pointer compares with the candidates: its glimpse, `plain`, or with the query added, `residual`; `plain` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glimpse: Option<GlimpseKind>,
    /// Bound on the pointer's logits, `bound · tanh(score)`; 10 if absent, and the scores themselves where it is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
    /// Whether the dual graph network sees bounds of what is left of a schedule, and what each choice makes of them; no if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<bool>,
    /// The pretrained model of a `decoder`: a Hugging Face folder or a GGUF file, beside the spec or in the working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<PathBuf>,
    /// What a graph network starts from: the folder of a run or of an exported policy, beside the spec or in the working directory, or one that comes with the program (`builtin:NAME`); drawn if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<PathBuf>,
    /// Content of the weights in `start` in 16 digits; filled in, and refused where it has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What the logits of a `decoder` are divided by; 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// A wrong first choice to start from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prime: Option<PrimeSpec>,
}

impl Default for PolicySpec {
    fn default() -> Self {
        Self {
            kind: PolicyKind::Tabular,
            scale: 0.1,
            width: None,
            heads: 4,
            blocks: 4,
            hidden: None,
            glimpse: None,
            bound: None,
            bounds: None,
            model: None,
            start: None,
            digest: None,
            temperature: None,
            prime: None,
        }
    }
}

/// `[policy.prime]`: start by choosing one token first. Paper: `app:sched-controls` (FATAL)
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrimeSpec {
    /// The token.
    pub token: usize,
    /// The probability it starts with.
    pub mass: f64,
}

/// `[rollout]`: how much is played per iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RolloutSpec {
    /// Trajectories per iteration.
    pub lanes: usize,
    /// Trajectories that share a baseline where the advantage is `group`.
    pub group: usize,
    /// Iterations for which a set of a shop's instances is played before the next one; drawn anew in each if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<usize>,
}

impl Default for RolloutSpec {
    fn default() -> Self {
        Self { lanes: 256, group: 16, hold: None }
    }
}

/// Where advantages come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdvantageKind {
    /// Return-to-go minus the batch's mean.
    Returns,
    /// Return minus the group's mean (GRPO).
    Group,
    /// One for the best trajectory of each group, the first of several, and nothing for the others: its choices are labels.
    Best,
    /// Backward induction of the rollout policy; tabular only.
    Exact,
    /// Generalised advantage estimation with a learned critic.
    Critic,
}

/// `[advantage]`: how trajectories are judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdvantageSpec {
    /// Where advantages come from.
    pub kind: AdvantageKind,
    /// Divide by the standard deviation of the batch or group.
    pub standardise: bool,
    /// λ of generalised advantage estimation.
    pub lambda: f64,
    /// Whether a critic learns returns that are standardised over the batch.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub standard_returns: bool,
    /// Whether a critic's advantages follow its estimates from step to step: return minus the estimate of the pass at hand.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    /// Whether each step of a graph network is paid for what it does to the estimated makespan (Song's reward), and not the last one for all; needs a critic and `task.reward = "makespan"`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shaped: bool,
    /// Moves of local search that the best schedule of each group is improved by before a graph network learns it; needs `kind = "best"` and `task.reward = "makespan"`.
    #[serde(skip_serializing_if = "is_zero")]
    pub improve: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Default for AdvantageSpec {
    fn default() -> Self {
        let kind = AdvantageKind::Returns;
        let (standardise, standard_returns, fresh, shaped) = (false, false, false, false);
        Self { kind, standardise, lambda: 0.95, standard_returns, fresh, shaped, improve: 0 }
    }
}

/// `[update]`: how a batch is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UpdateSpec {
    /// The member of the family, e.g. `ppo`, `tempered:0.1`, or `tempered:rule` for the strength that the measured drift licenses.
    pub correction: String,
    /// Epochs on each batch.
    pub reuse: usize,
    /// Parts into which a batch is cut, by whole trajectories.
    pub minibatches: usize,
    /// Clip range; 0 for none.
    pub clip: f64,
    /// Upper clip range where it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_high: Option<f64>,
    /// Bound on the ratio at negative advantages (dual clip).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dual_clip: Option<f64>,
    /// Whether gradients flow through the factor to earlier steps.
    pub routing: bool,
    /// Weight of the entropy bonus.
    pub entropy: f64,
    /// Weight of the penalty on leaving the initial policy.
    pub reference_kl: f64,
    /// Weight of the critic's loss.
    pub value: f64,
}

impl Default for UpdateSpec {
    fn default() -> Self {
        Self {
            correction: "ppo".to_owned(),
            reuse: 4,
            minibatches: 1,
            clip: 0.2,
            clip_high: None,
            dual_clip: None,
            routing: true,
            entropy: 0.0,
            reference_kl: 0.0,
            value: 0.5,
        }
    }
}

/// `[warmup]`: the first iterations, with a correction and a reuse of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WarmupSpec {
    /// How many; 0 for none.
    pub iterations: usize,
    /// Its member of the family; that of `[update]` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<String>,
    /// Its epochs on each batch; those of `[update]` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reuse: Option<usize>,
}

/// How a gradient becomes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimiserKind {
    /// A step of fixed length along the gradient.
    NSgd,
    /// A step along the gradient.
    Sgd,
    /// Adam, with decoupled decay.
    Adam,
}

/// How weights and Adam's moments are kept between steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StorageKind {
    /// In 32 bits.
    F32,
    /// In 16 bits, of which eight hold the fraction.
    Bf16,
}

/// How the learning rate changes over the run's optimiser steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateSchedule {
    /// Not at all.
    Constant,
    /// In a straight line to zero.
    Linear,
    /// Along half a cosine to zero.
    Cosine,
}

/// `[optimiser]`: how a gradient becomes a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimiserSpec {
    /// The rule.
    pub kind: OptimiserKind,
    /// Learning rate; each arm may have its own.
    pub rate: f64,
    /// How it changes.
    pub schedule: RateSchedule,
    /// Global norm at which gradients are clipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f64>,
    /// Adam's decoupled weight decay.
    pub decay: f64,
    /// How much of its two moments Adam keeps from step to step; 0.9 and 0.999 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub betas: Option<[f64; 2]>,
    /// What Adam adds to the root of its second moment; 1e-8 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// How Adam keeps a network's weights and its moments between steps: `f32`, or `bf16` without a master copy, so that small steps are lost on large weights; `f32` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageKind>,
}

impl Default for OptimiserSpec {
    fn default() -> Self {
        Self {
            kind: OptimiserKind::NSgd,
            rate: 0.3,
            schedule: RateSchedule::Constant,
            clip_norm: None,
            decay: 0.0,
            betas: None,
            epsilon: None,
            storage: None,
        }
    }
}

/// `[evaluate]`: how progress is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluateSpec {
    /// Every so many iterations, and after the last one.
    pub every: usize,
    /// Fresh trajectories whose mean reward estimates η where it is not known exactly; 0 for none.
    pub lanes: usize,
    /// Whether the likeliest trajectory is judged too.
    pub greedy: bool,
    /// Whether the untrained policy is measured, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub initial: bool,
    /// Whether drift is also measured over all states, `Σ E[Var(ℓ|s)]` as the paper defines it, where policies are enumerated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drift: bool,
}

impl Default for EvaluateSpec {
    fn default() -> Self {
        Self { every: 5, lanes: 1024, greedy: false, initial: false, drift: false }
    }
}

/// `[checkpoint]`: what is saved during the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CheckpointSpec {
    /// Every so many iterations, and after the last one; 0 for the last one only.
    pub every: usize,
    /// Whether the last one is kept once the run is done.
    #[serde(skip_serializing_if = "bool::clone")]
    pub keep: bool,
}

impl Default for CheckpointSpec {
    fn default() -> Self {
        Self { every: 50, keep: true }
    }
}

/// `[dump]`: trajectories kept for `niwaki advise`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DumpSpec {
    /// Keep the trajectories of every so many iterations for `niwaki advise`; 0 for none.
    pub every: usize,
    /// Keep what the policy says at all prefixes after every iteration for `niwaki oracle --run`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub policies: bool,
}
