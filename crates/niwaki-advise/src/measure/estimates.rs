//! What the sums say: drift, weights, bias, the conditions and the operating point.
//!
//! A pure function of a [`Part`], so that the jackknife can call it again without a fold.

use super::amplification::{ADVISED, STRENGTHS, ratios, strength_within};
use super::part::Part;
use super::position::Sum;
use super::scaled::{GRID, strength};
use niwaki_correction::Rule;
pub(crate) use niwaki_correction::schedule::COLLAPSED;
use niwaki_correction::schedule::alpha_for_drift;

/// Choices of the user that the numbers depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Choices {
    /// ESS that a correction must keep.
    pub(crate) ess_floor: f64,
    /// Trajectories per batch (N).
    pub(crate) batch: f64,
}

/// Above this ratio of norms a correction is said to make gradients longer. `niwaki.torch` warns at the same.
pub const AMPLIFIED: f64 = 2.0;

/// A position counts as the worst only if this share of the trajectories reaches it.
pub const REACHED: f64 = 0.1;

/// Numbers of a set of trajectories.
///
/// Shapes: the vectors are `[positions]`, those by strength `[11]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Estimates {
    pub(crate) step_variance: f64,
    pub(crate) drift: f64,
    pub(crate) kl_k1: f64,
    pub(crate) kl_k3: f64,
    pub(crate) mean_ratio: f64,
    pub(crate) chi2_step: f64,
    /// Between the engine that sampled and the old policy; not numbers where the engine gave no log-probs.
    pub(crate) sampler_drift: f64,
    pub(crate) sampler_kl: f64,
    pub(crate) chi2_sequence: f64,
    pub(crate) ess: f64,
    /// ESS of a full correction as the spread of the prefix log-ratios foretells it.
    pub(crate) ess_forecast: f64,
    pub(crate) ess_step: f64,
    pub(crate) ess_sequence: f64,
    pub(crate) prefix_ess: Vec<f64>,
    pub(crate) prefix_ess_clamped: Vec<f64>,
    pub(crate) worst_prefix_ess: f64,
    pub(crate) prefix_rms: Vec<f64>,
    pub(crate) advantage_rms: Vec<f64>,
    pub(crate) bias_witness: Vec<f64>,
    pub(crate) witness_covariance: Vec<f64>,
    pub(crate) content_correlation: Vec<f64>,
    pub(crate) bias_total: f64,
    pub(crate) dose: f64,
    pub(crate) rollout_dose: f64,
    pub(crate) clip_fraction: f64,
    pub(crate) outside_clip: f64,
    pub(crate) zero_signal: f64,
    pub(crate) constant_advantage: f64,
    pub(crate) mean_advantage: f64,
    pub(crate) advantage_carry: f64,
    pub(crate) lateness: f64,
    pub(crate) contested_drift: f64,
    pub(crate) alpha_rule: f64,
    pub(crate) alpha_floor: f64,
    pub(crate) alpha_gradient: f64,
    pub(crate) alpha_error: f64,
    pub(crate) error_ratio: f64,
    pub(crate) bias_to_noise: f64,
    pub(crate) bias_support: f64,
    pub(crate) signal: f64,
    pub(crate) cost: f64,
    pub(crate) alpha_star: f64,
    pub(crate) peak: f64,
    pub(crate) collapse_horizon: f64,
    pub(crate) batch_over_horizon_squared: f64,
    /// Norm of the corrected gradient over PPO's, at the strongest correction that is advised and at each of the strengths.
    pub(crate) amplified: f64,
    pub(crate) amplification: [f64; STRENGTHS.len()],
    /// Bias of the estimate at each strength, taking the full correction as the truth. Paper: `eq:bias-def`
    pub(crate) bias_at: [f64; GRID],
    /// Variance of the single-trajectory estimate at each strength. Paper: `eq:var-def`
    pub(crate) variance_at: [f64; GRID],
    /// Squared error of a batch's mean at each strength. Paper: `eq:mse-def`
    pub(crate) error_at: [f64; GRID],
    /// ESS of the factors at each strength.
    pub(crate) ess_at: [f64; GRID],
}

impl Estimates {
    /// Reads the sums.
    ///
    /// Paper: `sec:correction`, `eq:bias-witness`, `tab:conditions`, `eq:dominance`, `eq:peak-advantage`,
    /// `app:sched-driftdial`
    pub(crate) fn new(part: &Part, choices: Choices) -> Self {
        let mut came = Self::default();
        came.weights(part);
        came.along(part);
        came.operating_point(part, choices);
        came
    }

    /// Drift and weights over all steps.
    fn weights(&mut self, part: &Part) {
        let (positions, mass) = (&part.positions, part.step_mass);
        let places = 0..positions.len();
        let total = |sum: Sum| places.clone().map(|at| positions.get(at, sum)).sum::<f64>();
        // Positions count by their mass, so that a ragged tail of few trajectories does not dominate.
        let spread = |at: usize| {
            let (ell, of) = (positions.get(at, Sum::Ell), positions.get(at, Sum::Mass));
            positions.get(at, Sum::EllSquared) - ell * ell / of
        };
        self.step_variance = places.clone().map(spread).sum::<f64>().max(0.0) / mass;
        self.drift = self.step_variance * mass / part.lane_mass;
        let mean_ell = total(Sum::Ell) / mass;
        self.kl_k1 = -mean_ell;
        self.kl_k3 = part.ratio / mass - 1.0 - mean_ell;
        self.mean_ratio = part.ratio / mass;
        let [scored, apart, squared, kl] = part.scored;
        // Written so that what is not a number stays one.
        let variance = squared / scored - (apart / scored).powi(2);
        self.sampler_drift = if variance < 0.0 { 0.0 } else { variance * mass / part.lane_mass };
        self.sampler_kl = kl / scored;
        self.chi2_step = part.ratio_squared / mass - 1.0;
        self.chi2_sequence = part.whole.mean_square(part.lane_mass) - 1.0;
        self.ess_step = part.ratio * part.ratio / (mass * part.ratio_squared);
        self.ess_sequence = part.whole.ess(part.lane_mass);
        self.ess_at = std::array::from_fn(|k| part.tilted.ess(strength(k)));
        self.ess = self.ess_at[GRID - 1];
        // Of log-normal weights: exp(−Var L). A variance of logs is known from a few hundred trajectories, however heavy the
        // weights' own tails are; the ESS that is measured then falls as more of them are seen.
        let wide = |at: usize| {
            let (prefix, of) = (positions.get(at, Sum::Prefix), positions.get(at, Sum::Mass));
            positions.get(at, Sum::PrefixSquared) - prefix * prefix / of
        };
        self.ess_forecast = (-places.clone().map(wide).sum::<f64>().max(0.0) / mass).exp();
        self.clip_fraction = part.flat / mass;
        self.outside_clip = part.outside / mass;
        self.zero_signal = part.silent / part.lane_mass;
        self.constant_advantage = part.constant / part.lane_mass;
        self.mean_advantage = total(Sum::Advantage) / mass;
        // E[A_t A_{t+1}] is zero wherever the advantage is centred given the state, and E[A²] where it is constant.
        let pairs = total(Sum::CarryMass);
        self.advantage_carry = (total(Sum::Carry) / pairs) / (total(Sum::AdvantageSquared) / mass);
    }

    /// What happens along the trajectory.
    fn along(&mut self, part: &Part) {
        let positions = &part.positions;
        let each = |of: &dyn Fn(usize) -> f64| -> Vec<f64> { (0..positions.len()).map(of).collect() };
        let mean = |at: usize, sum: Sum| positions.mean(at, sum);
        let covariance = |at: usize, product: f64, one: f64, other: Sum| product - one * mean(at, other);
        self.prefix_ess = each(&|at| positions.ratios(at).ess(positions.get(at, Sum::Mass)));
        self.prefix_ess_clamped = each(&|at| mean(at, Sum::Clamped).powi(2) / mean(at, Sum::ClampedSquared));
        self.prefix_rms = each(&|at| mean(at, Sum::PrefixSquared).sqrt());
        self.advantage_rms = each(&|at| mean(at, Sum::AdvantageSquared).sqrt());
        self.bias_witness = each(&|at| mean(at, Sum::Witness));
        let mean_ratio = |at: usize| positions.ratios(at).mean(positions.get(at, Sum::Mass));
        // Cov(R, rA), with E[R r A] = b + E[r A].
        self.witness_covariance = each(&|at| {
            covariance(at, mean(at, Sum::Witness) + mean(at, Sum::Content), mean_ratio(at), Sum::Content)
        });
        self.content_correlation = each(&|at| {
            let ratio_variance =
                positions.ratios(at).mean_square(positions.get(at, Sum::Mass)) - mean_ratio(at).powi(2);
            let content_variance = mean(at, Sum::ContentSquared) - mean(at, Sum::Content).powi(2);
            self.witness_covariance[at] / (ratio_variance * content_variance).sqrt()
        });
        let widths: Vec<f64> = (0..positions.len()).map(|at| positions.width(at) as f64).collect();
        let over = |values: &dyn Fn(usize) -> f64| -> f64 {
            widths.iter().enumerate().map(|(at, width)| width * values(at)).sum()
        };
        // Over trajectories, however long: what the estimate lacks, where positions count by those who reach them.
        self.bias_total =
            (0..positions.len()).map(|at| positions.get(at, Sum::Witness)).sum::<f64>() / part.lane_mass;
        let reached = |at: &usize| {
            positions.get(*at, Sum::Mass) >= REACHED * part.lane_mass * positions.width(*at) as f64
        };
        self.worst_prefix_ess =
            (0..positions.len()).filter(reached).map(|at| self.prefix_ess[at]).fold(f64::NAN, f64::min);
        self.dose = over(&|at| self.bias_witness[at].abs());
        self.rollout_dose = over(&|at| mean(at, Sum::RolloutWitness).abs());
        // Where the advantage lives, each position by its mass, so that short trajectories count once.
        let lives = |at: usize| self.advantage_rms[at] * positions.get(at, Sum::Mass) / part.lane_mass;
        let carried = over(&lives);
        let middle = |at: usize| positions.start(at) as f64 + 0.5 * (widths[at] - 1.0);
        let end = positions.longest() as f64 - 1.0;
        self.lateness = over(&|at| lives(at) * middle(at) / end) / carried;
        self.contested_drift = over(&|at| lives(at) * self.prefix_rms[at]) / carried;
    }

    /// What a correction of any strength would change and cost.
    fn operating_point(&mut self, part: &Part, choices: Choices) {
        let mass = part.lane_mass;
        let mean = |k: usize| part.estimate[k] / mass;
        let full = GRID - 1;
        // Share of a single trajectory's variance that the mean over all of the data keeps.
        let share = part.lane_mass_squared / (mass * mass);
        for k in 0..GRID {
            self.bias_at[k] = mean(k) - mean(full);
            self.variance_at[k] = (part.estimate_squared[k] / mass - mean(k).powi(2)).max(0.0);
            let product = part.estimate_with_full[k] / mass - mean(k) * mean(full);
            let difference = (self.variance_at[k] + self.variance_full(part) - 2.0 * product).max(0.0);
            // The square of an estimated bias holds the noise of the estimate; that much is taken off.
            let squared = (self.bias_at[k].powi(2) - difference * share).max(0.0);
            self.error_at[k] = squared + self.variance_at[k] / choices.batch;
        }
        let finite = |k: &usize| self.error_at[*k].is_finite();
        let best = (0..GRID).filter(finite).min_by(|&a, &b| self.error_at[a].total_cmp(&self.error_at[b]));
        let best = best.unwrap_or(0);
        self.alpha_error = strength(best);
        self.error_ratio = self.error_at[best] / self.error_at[0];
        self.bias_to_noise = self.bias_at[0] * (choices.batch / self.variance_at[0]).sqrt();
        self.bias_support = part.difference[0].powi(2) / part.difference[1];
        self.alpha_rule = alpha_for_drift(self.drift);
        self.alpha_floor = floor_strength(part, choices.ess_floor);
        self.amplification = ratios(&part.cotangent);
        self.amplified = self.amplification[ADVISED];
        self.alpha_gradient = strength_within(&self.amplification, AMPLIFIED);

        // Δ(α) = αS − α²V/N with the content read as r A, in units of the estimate's own spread.
        let spread = self.variance_at[0].sqrt();
        let positions = &part.positions;
        let covariance = |at: usize| {
            positions.mean(at, Sum::Routed)
                - positions.mean(at, Sum::Prefix) * positions.mean(at, Sum::Content)
        };
        let signal: f64 =
            (0..positions.len()).map(|at| positions.get(at, Sum::Mass) / mass * covariance(at)).sum();
        let routed = part.routed / mass;
        self.signal = signal / spread;
        self.cost = (part.routed_squared / mass - routed * routed).max(0.0) / (spread * spread);
        self.alpha_star = self.signal * choices.batch / (2.0 * self.cost);
        self.peak = self.signal * self.signal * choices.batch / (4.0 * self.cost);

        let horizon = part.step_mass / mass;
        self.batch_over_horizon_squared = choices.batch / (horizon * horizon);
        // Var(L_t) = tσ² and ESS = e^{−tσ²} for log-normal weights.
        self.collapse_horizon = -COLLAPSED.ln() / self.step_variance;
    }

    fn variance_full(&self, part: &Part) -> f64 {
        let mean = part.estimate[GRID - 1] / part.lane_mass;
        (part.estimate_squared[GRID - 1] / part.lane_mass - mean * mean).max(0.0)
    }
}

/// The largest strength whose weights keep an ESS of `floor`.
///
/// Paper: `app:family` (adaptive)
fn floor_strength(part: &Part, floor: f64) -> f64 {
    let rule = Rule { ess_floor: Some(floor), ..Rule::tempered(1.0) };
    let found = rule.resolve(|alpha| part.tilted.ess(alpha)).strength;
    if found >= strength(1) {
        return found;
    }
    // Below the first strength on the grid the weights are nearly normal in the log: ESS = exp(−α² Var L).
    let positions = &part.positions;
    let mean = |sum: Sum| (0..positions.len()).map(|at| positions.get(at, sum)).sum::<f64>() / part.step_mass;
    let variance = mean(Sum::PrefixSquared) - mean(Sum::Prefix).powi(2);
    (-floor.ln() / variance).sqrt().min(strength(1))
}
