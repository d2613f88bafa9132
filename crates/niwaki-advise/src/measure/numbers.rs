//! The scalars by name: one table for JSON, text, page and `--fail-on`.

use super::estimates::Estimates;
use super::jackknife::Leaving;
use serde::Serialize;

/// A measured number with its 95% interval, where the data allows one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Number {
    /// Its name, also for `--fail-on`.
    pub name: &'static str,
    /// The number; not finite where the data does not determine it.
    pub value: f64,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// What it is, in a few words.
    pub about: &'static str,
}

impl Number {
    /// A number without an interval.
    pub(crate) const fn plain(name: &'static str, value: f64, about: &'static str) -> Self {
        Self { name, value, low: None, high: None, about }
    }
}

type Reading = fn(&Estimates) -> f64;

/// Name, what it is, how it is read, and the range it cannot leave.
type Entry = (&'static str, &'static str, Reading, (f64, f64));

const ANY: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);
const SHARE: (f64, f64) = (0.0, 1.0);
const POSITIVE: (f64, f64) = (0.0, f64::INFINITY);

/// The numbers that have an interval.
const ENTRIES: &[Entry] = &[
    ("drift", "σ²T: variance of the log-ratio per step, times the mean length", |e| e.drift, POSITIVE),
    ("step_variance", "σ²: variance of the log-ratio at a step", |e| e.step_variance, POSITIVE),
    ("kl_k1", "KL(old ‖ new) per step, mean of −ℓ", |e| e.kl_k1, ANY),
    ("kl_k3", "KL(old ‖ new) per step, mean of r − 1 − ℓ", |e| e.kl_k3, POSITIVE),
    (
        "mean_ratio",
        "mean of r: 1, unless the update was fitted to these very steps",
        |e| e.mean_ratio,
        POSITIVE,
    ),
    (
        "sampler_drift",
        "σ²T between the engine that sampled and the old policy",
        |e| e.sampler_drift,
        POSITIVE,
    ),
    ("sampler_kl", "KL(engine ‖ old) per step", |e| e.sampler_kl, POSITIVE),
    ("chi2_step", "χ² of the step ratio", |e| e.chi2_step, ANY),
    ("chi2_sequence", "χ² of the whole trajectory's ratio", |e| e.chi2_sequence, ANY),
    ("ess", "ESS of the full correction's weights over all steps", |e| e.ess, SHARE),
    (
        "ess_forecast",
        "exp(−Var L): that ESS as the spread of the prefix log-ratios foretells it",
        |e| e.ess_forecast,
        SHARE,
    ),
    ("ess_step", "ESS of the step ratios", |e| e.ess_step, SHARE),
    ("ess_sequence", "ESS of the whole trajectories' ratios", |e| e.ess_sequence, SHARE),
    (
        "prefix_ess",
        "ESS of the prefix ratio at its worst position that a tenth reach",
        |e| e.worst_prefix_ess,
        SHARE,
    ),
    ("clip_fraction", "share of steps on the flat side of the clip", |e| e.clip_fraction, SHARE),
    ("outside_clip", "share of steps with a ratio outside the clip range", |e| e.outside_clip, SHARE),
    ("bias_total", "Σ b: what the dropped correction would add to the estimate", |e| e.bias_total, ANY),
    ("bias_to_noise", "bias of a batch's PPO estimate over its noise", |e| e.bias_to_noise, ANY),
    ("bias_support", "trajectories that effectively carry Σ b", |e| e.bias_support, POSITIVE),
    ("dose", "Σ |b|: the bias dose", |e| e.dose, POSITIVE),
    ("rollout_dose", "Σ |b| with r = 1", |e| e.rollout_dose, POSITIVE),
    (
        "contested_drift",
        "C1: rms prefix log-ratio where the advantage lives",
        |e| e.contested_drift,
        POSITIVE,
    ),
    ("lateness", "C1: where the advantage lives, 0 first step, 1 last", |e| e.lateness, SHARE),
    ("mean_advantage", "mean advantage over all steps", |e| e.mean_advantage, ANY),
    (
        "advantage_carry",
        "0: centred in every state; 1: a return minus a baseline",
        |e| e.advantage_carry,
        ANY,
    ),
    (
        "constant_advantage",
        "share of trajectories with one advantage throughout",
        |e| e.constant_advantage,
        SHARE,
    ),
    ("zero_signal", "share of trajectories with zero advantage throughout", |e| e.zero_signal, SHARE),
    ("alpha_rule", "α by the rule min(1, 1/σ²T)", |e| e.alpha_rule, SHARE),
    ("alpha_floor", "largest α whose weights keep the ESS floor", |e| e.alpha_floor, SHARE),
    (
        "alpha_gradient",
        "largest α whose gradient is at most twice as long as PPO's",
        |e| e.alpha_gradient,
        SHARE,
    ),
    ("amplification", "norm of the gradient with α = 0.1 over that of PPO's", |e| e.amplified, POSITIVE),
    (
        "alpha_error",
        "α of least squared error of the estimated objective; no advice: gradients cost more",
        |e| e.alpha_error,
        SHARE,
    ),
    ("error_ratio", "that squared error over PPO's", |e| e.error_ratio, SHARE),
    ("signal", "S of eq:dominance, in units of the estimate's spread", |e| e.signal, ANY),
    ("cost", "V of eq:dominance, in the same units squared", |e| e.cost, POSITIVE),
    ("alpha_star", "α* = SN/2V of eq:dominance", |e| e.alpha_star, ANY),
    ("peak", "Δ* = S²N/4V of eq:dominance", |e| e.peak, POSITIVE),
    (
        "collapse_horizon",
        "steps after which a full correction keeps a tenth of the batch",
        |e| e.collapse_horizon,
        POSITIVE,
    ),
    ("batch_over_horizon_squared", "N/T²", |e| e.batch_over_horizon_squared, POSITIVE),
];

/// Numbers of the signal in batches, which have no interval.
pub(crate) const SIGNAL: [(&str, &str); 6] = [
    ("zero_reward_batches", "C3: share of iterations in which every reward is zero"),
    ("silent_batches", "C3: share of iterations in which all rewards are alike"),
    ("silent_groups", "C3: share of groups without a non-zero advantage"),
    ("chance_of_none", "C3: chance that a batch at the scarcest iteration's rate holds no reward"),
    ("headroom", "share of the range of rewards above their mean, last third of the iterations"),
    ("headroom_ahead", "that share after two more dumps as long as this one, at the pace of this one"),
];

/// The name of every number.
pub const NAMES: [&str; ENTRIES.len() + SIGNAL.len()] = {
    let mut names = [""; ENTRIES.len() + SIGNAL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = if at < ENTRIES.len() { ENTRIES[at].0 } else { SIGNAL[at - ENTRIES.len()].0 };
        at += 1;
    }
    names
};

/// Every number with its interval: `all` from all folds, `without` with each fold left out.
pub(crate) fn numbers(all: &Estimates, without: &[Estimates], leaving: &Leaving) -> Vec<Number> {
    let number = |&(name, about, read, (least, most)): &Entry| {
        let value = read(all);
        let left_out: Vec<f64> = without.iter().map(read).collect();
        let reach = leaving.reach(&left_out);
        let end = |sign: f64| reach.map(|reach| (value + sign * reach).clamp(least, most));
        Number { name, value, low: end(-1.0), high: end(1.0), about }
    };
    ENTRIES.iter().map(number).collect()
}
