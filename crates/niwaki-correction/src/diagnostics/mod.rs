//! What a batch says of drift, weights and bias, raw and clamped.
//!
//! Everything is kept as weighted sums per position, so that batches of any length take constant memory. Clamping is
//! applied to copies only: an alarm computed from clamped weights can never ring.
//!
//! | file | what belongs there |
//! |---|---|
//! | `tally.rs` | the sums, taken tile by tile |
//! | `summary.rs` | what the sums say of the batch |

mod summary;
mod tally;

pub(crate) use summary::prefix_ess_in_log_space;
pub(crate) use tally::{Columns, Tally};

/// The cap of the clamped twins, the usual default of trainers that truncate weights.
pub const CLAMP: f64 = 2.0;

/// Measurements of one batch.
///
/// Shapes: the vectors are `[longest trajectory]`, one value per position of the policy's own steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagnostics {
    /// Steps of the policy's own.
    pub steps: usize,
    /// Trajectories with at least one such step.
    pub lanes: usize,
    /// Share of steps on the flat side of the clip or dropped by the member.
    pub clip_fraction: f64,
    /// Variance of the log-ratio at a step, averaged over positions (σ²): the spread across trajectories at
    /// each position, which bounds the paper's conditional variance from above. Paper: `sec:correction`
    pub step_variance: f64,
    /// σ² times the mean trajectory length (σ²T). Paper: `sec:scheduling`
    pub drift: f64,
    /// KL(rollout ‖ current) per step, the mean of −ℓ.
    pub kl_k1: f64,
    /// The same by the estimator r − 1 − ℓ, which is never negative.
    pub kl_k3: f64,
    /// χ² of the step ratio, mean of r² − 1.
    pub chi2_step: f64,
    /// χ² of the whole trajectory's ratio.
    pub chi2_sequence: f64,
    /// Normalised ESS of the member's own factors over all (trajectory, step) pairs; 0 where it drops them all.
    /// Paper: `sec:exact-diagnostics`
    pub ess: f64,
    /// Normalised ESS of the step ratios.
    pub ess_step: f64,
    /// Normalised ESS of the whole trajectories' ratios.
    pub ess_sequence: f64,
    /// Normalised ESS of the prefix ratio at each position, raw.
    pub prefix_ess: Vec<f64>,
    /// The same after clamping the prefix ratio at [`CLAMP`].
    pub prefix_ess_clamped: Vec<f64>,
    /// b_t = E[(R_t − 1) r_t A_t] at each position. Paper: `eq:bias-witness`
    pub bias_witness: Vec<f64>,
    /// Σ_t |b_t|. Paper: `sec:mechanism`
    pub dose: f64,
    /// Σ_t |b_t| with r_t = 1, as the paper measures it on scheduling runs. Paper: `sec:sched-win`
    pub rollout_dose: f64,
    /// Share of trajectories whose advantage is zero throughout: they carry no signal. Paper: `tab:conditions`
    pub zero_signal: f64,
}
