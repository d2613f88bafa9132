//! What is measured, as tables.

use super::amplification::{AmplificationRow, at};
use super::estimates::Estimates;
use super::jackknife::Leaving;
use super::lags::{AgeRow, LimitRow};
use super::numbers::Number;
use super::position::{Positions, Sum};
use super::scaled::strength;
use serde::Serialize;

/// How much data there is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Facts {
    /// Trajectories read.
    pub trajectories: usize,
    /// Of those, the ones with a step of the policy.
    pub lanes: usize,
    /// Trajectories whose steps a thinned dump left out; those that it kept count for them.
    pub thinned: usize,
    /// Steps of the policy.
    pub steps: usize,
    /// Trajectories that were left aside because their batch was used again later.
    pub earlier_uses: usize,
    /// Steps without a log-prob of the sampling engine, left out of what compares with it.
    pub unscored_steps: usize,
    /// Iterations.
    pub iterations: usize,
    /// Groups; 0 where the dump has none.
    pub groups: usize,
    /// Mean steps per trajectory (T).
    pub mean_length: f64,
    /// Steps of the longest trajectory.
    pub longest: usize,
    /// Trajectories per update (N).
    pub batch: f64,
    /// Folds behind the intervals.
    pub folds: usize,
    /// Ranks that this is of, and how many share a batch, where they said so.
    pub ranks: Option<Ranks>,
    /// Fields that the dump has and that were not read.
    pub unread: Vec<String>,
    /// Which log-probs the verl metrics compare.
    pub verl_pair: &'static str,
}

/// Whose trajectories these are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ranks {
    /// The ranks that are in it, in order.
    pub seen: Vec<u32>,
    /// Ranks that share a batch.
    pub world: u32,
}

impl Ranks {
    /// Whether some ranks are missing.
    #[must_use]
    pub fn is_share(&self) -> bool {
        self.seen.len() < self.world as usize
    }
}

/// What is measured at a position.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PositionRow {
    /// Steps of the policy before it.
    pub position: usize,
    /// Weight of the trajectories that reach it.
    pub mass: f64,
    /// ESS of the prefix ratio, raw.
    pub prefix_ess: f64,
    /// Half-width of its 95% interval.
    pub prefix_ess_error: Option<f64>,
    /// The same with ratios clamped at 2.
    pub prefix_ess_clamped: f64,
    /// b_t. Paper: `eq:bias-witness`
    pub bias_witness: f64,
    /// Half-width of its 95% interval.
    pub bias_witness_error: Option<f64>,
    /// Cov(R_t, r_t A_t). Paper: `eq:bias-witness`
    pub witness_covariance: f64,
    /// The same as a correlation.
    pub content_correlation: f64,
    /// Root mean square of the advantage.
    pub advantage_rms: f64,
    /// Root mean square of the prefix log-ratio.
    pub prefix_rms: f64,
}

/// What is measured in an iteration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IterationRow {
    /// Its number.
    pub iteration: i64,
    /// Trajectories with a step of the policy.
    pub lanes: usize,
    /// σ²T.
    pub drift: f64,
    /// KL(old ‖ new) per step, never negative.
    pub kl_k3: f64,
    /// ESS of the full correction's weights over all steps.
    pub ess: f64,
    /// ESS of the prefix ratio at its worst place.
    pub prefix_ess: f64,
    /// Σ |b|.
    pub dose: f64,
    /// Share of steps on the flat side of the clip.
    pub clip_fraction: f64,
    /// Share of trajectories with zero advantage throughout.
    pub zero_signal: f64,
    /// Mean reward, where there are rewards.
    pub mean_reward: Option<f64>,
    /// Share of trajectories with a reward other than zero.
    pub rewarded: Option<f64>,
    /// verl's metrics, names without `rollout_corr/`.
    #[serde(serialize_with = "as_map")]
    pub verl: Vec<(String, f64)>,
}

/// What a correction of one strength would do to a batch's estimate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AlphaRow {
    /// The strength.
    pub alpha: f64,
    /// Bias, taking the full correction as the truth. Paper: `eq:bias-def`
    pub bias: f64,
    /// Variance of a single trajectory's estimate. Paper: `eq:var-def`
    pub variance: f64,
    /// Squared error of a batch's mean: squared bias, less its noise, plus variance over N. Paper: `eq:mse-def`
    pub error: f64,
    /// ESS of the weights over all steps.
    pub ess: f64,
}

/// A bin of the histogram of log-ratios.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// Lower end.
    pub from: f64,
    /// Upper end.
    pub to: f64,
    /// Share of the steps.
    pub share: f64,
}

/// Everything measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// How much data there is.
    pub facts: Facts,
    /// The scalars, with intervals.
    pub numbers: Vec<Number>,
    /// By strength of the correction.
    pub alphas: Vec<AlphaRow>,
    /// How much longer than PPO's the gradient is, by strength of the correction.
    pub amplifications: Vec<AmplificationRow>,
    /// By iteration.
    pub iterations: Vec<IterationRow>,
    /// By position.
    pub positions: Vec<PositionRow>,
    /// Log-ratios; all but a thousandth on either side.
    pub log_ratios: Vec<Bin>,
    /// verl's metrics over all of the data, names without `rollout_corr/`.
    #[serde(serialize_with = "as_map")]
    pub verl: Vec<(String, f64)>,
    /// By the age of the step; empty where the dump has neither versions nor ages of steps.
    pub ages: Vec<AgeRow>,
    /// What a limit on the age of a trajectory's oldest step would leave.
    pub limits: Vec<LimitRow>,
}

fn as_map<S: serde::Serializer>(pairs: &[(String, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, value)| (format!("rollout_corr/{name}"), value)))
}

impl Measured {
    /// How much longer than PPO's the gradient is at a strength: the norm of the corrected surrogate's cotangent over that
    /// of PPO's, over all trajectories of the dump.
    #[must_use]
    pub fn amplification(&self, alpha: f64) -> f64 {
        let known = |k: usize| self.amplifications.get(k).map_or(f64::NAN, |row| row.amplification);
        at(&std::array::from_fn(known), alpha)
    }
}

pub(super) fn alpha_row(estimates: &Estimates, k: usize) -> AlphaRow {
    AlphaRow {
        alpha: strength(k),
        bias: estimates.bias_at[k],
        variance: estimates.variance_at[k],
        error: estimates.error_at[k],
        ess: estimates.ess_at[k],
    }
}

pub(super) fn position_rows(
    positions: &Positions,
    estimates: &Estimates,
    without: &[Estimates],
    leaving: &Leaving,
) -> Vec<PositionRow> {
    let reach = |of: &dyn Fn(&Estimates) -> Option<f64>| {
        // A fold left out may hold the only trajectories of this length.
        let values: Option<Vec<f64>> = without.iter().map(of).collect();
        leaving.reach(&values?)
    };
    let row = |at: usize| PositionRow {
        position: positions.start(at),
        mass: positions.get(at, Sum::Mass) / positions.width(at) as f64,
        prefix_ess: estimates.prefix_ess[at],
        prefix_ess_error: reach(&|own| own.prefix_ess.get(at).copied()),
        prefix_ess_clamped: estimates.prefix_ess_clamped[at],
        bias_witness: estimates.bias_witness[at],
        bias_witness_error: reach(&|own| own.bias_witness.get(at).copied()),
        witness_covariance: estimates.witness_covariance[at],
        content_correlation: estimates.content_correlation[at],
        advantage_rms: estimates.advantage_rms[at],
        prefix_rms: estimates.prefix_rms[at],
    };
    (0..positions.len()).map(row).collect()
}
