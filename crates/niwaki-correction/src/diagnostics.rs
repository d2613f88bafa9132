//! What a batch says of drift, weights and bias, raw and clamped.
//!
//! Everything is kept as weighted sums per position, so one pass over a trajectory is a handful of vectorised
//! loops, and batches of any length take constant memory. Clamping is applied to copies only: an alarm computed
//! from clamped weights can never ring.

use crate::Real;

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
    /// Normalised ESS of the member's own factors over all (trajectory, step) pairs.
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

/// The running sums behind [`Diagnostics`]: weighted sums over the trajectories, one value per position in each.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    mass: Vec<f64>,
    ell: Moments,
    ratio: Moments,
    prefix: Moments,
    clamped: Moments,
    factor: Moments,
    witness: Vec<f64>,
    rollout_witness: Vec<f64>,
    flat: Vec<f64>,
    scratch: Scratch,
    lanes: usize,
    steps: usize,
    silent: f64,
    /// Weight and whole log-ratio of each trajectory.
    sequences: Vec<(f64, f64)>,
}

/// Sums of a quantity and of its square.
#[derive(Debug, Default)]
struct Moments {
    first: Vec<f64>,
    second: Vec<f64>,
}

/// One trajectory's ratios.
#[derive(Debug, Default)]
struct Scratch {
    ell: Vec<f64>,
    ratio: Vec<f64>,
    prefix: Vec<f64>,
    clamped: Vec<f64>,
    factor: Vec<f64>,
}

impl Moments {
    fn reset(&mut self, longest: usize) {
        for sums in [&mut self.first, &mut self.second] {
            sums.clear();
            sums.resize(longest, 0.0);
        }
    }

    fn add(&mut self, values: &[f64], weight: f64) {
        let (first, second) = (&mut self.first[..values.len()], &mut self.second[..values.len()]);
        for t in 0..values.len() {
            let weighted = weight * values[t];
            first[t] += weighted;
            second[t] += weighted * values[t];
        }
    }

    /// `(Σωx)² / (Σω Σωx²)` at each position.
    fn ess(&self, mass: &[f64]) -> Vec<f64> {
        (0..mass.len()).map(|t| ess(mass[t], self.first[t], self.second[t])).collect()
    }

    /// The same over all positions together.
    fn ess_of_all(&self, mass: f64) -> f64 {
        ess(mass, self.first.iter().sum(), self.second.iter().sum())
    }
}

/// Normalised effective sample size. Paper: `sec:exact-diagnostics`
fn ess(mass: f64, first: f64, second: f64) -> f64 {
    first * first / (mass * second)
}

impl Tally {
    pub(crate) fn reset(&mut self, longest: usize) {
        for moments in [&mut self.ell, &mut self.ratio, &mut self.prefix, &mut self.clamped, &mut self.factor]
        {
            moments.reset(longest);
        }
        for sums in [&mut self.mass, &mut self.witness, &mut self.rollout_witness, &mut self.flat] {
            sums.clear();
            sums.resize(longest, 0.0);
        }
        let scratch = &mut self.scratch;
        for values in [
            &mut scratch.ell,
            &mut scratch.ratio,
            &mut scratch.prefix,
            &mut scratch.clamped,
            &mut scratch.factor,
        ] {
            values.resize(longest, 0.0);
        }
        self.sequences.clear();
        (self.lanes, self.steps, self.silent) = (0, 0, 0.0);
    }

    /// Adds one trajectory.
    ///
    /// Shapes: all slices `[steps]` of the trajectory; `own` says by its zeros which steps are flat.
    pub(crate) fn add<F: Real>(
        &mut self,
        ell: &[F],
        log_factor: &[F],
        advantage: &[F],
        own: &[F],
        weight: f64,
    ) {
        let length = ell.len();
        if length == 0 {
            return;
        }
        let scratch = &mut self.scratch;
        let mut sum = 0.0;
        for t in 0..length {
            scratch.ell[t] = ell[t].to_f64();
            scratch.prefix[t] = sum;
            sum += scratch.ell[t];
        }
        let [ells, ratio, prefix, clamped, factor] = [
            &mut scratch.ell,
            &mut scratch.ratio,
            &mut scratch.prefix,
            &mut scratch.clamped,
            &mut scratch.factor,
        ]
        .map(|values| &mut values[..length]);
        for t in 0..length {
            ratio[t] = ell[t].exp().to_f64();
            prefix[t] = F::from_f64(prefix[t]).exp().to_f64();
            clamped[t] = prefix[t].smaller(CLAMP);
            factor[t] = log_factor[t].exp().to_f64();
        }
        self.ell.add(ells, weight);
        self.ratio.add(ratio, weight);
        self.prefix.add(prefix, weight);
        self.clamped.add(clamped, weight);
        self.factor.add(factor, weight);
        let mut any = F::ZERO;
        for t in 0..length {
            let excess = weight * (prefix[t] - 1.0) * advantage[t].to_f64();
            self.mass[t] += weight;
            self.witness[t] += excess * ratio[t];
            self.rollout_witness[t] += excess;
            let silent = advantage[t] == F::ZERO;
            self.flat[t] += if own[t] == F::ZERO && !silent { weight } else { 0.0 };
            any = if silent { any } else { F::ONE };
        }
        self.sequences.push((weight, sum));
        self.steps += length;
        self.lanes += 1;
        self.silent += if any == F::ZERO { weight } else { 0.0 };
    }

    /// Whether a prefix ratio outgrew the plain sums, so that [`in_log_space`] must stand in.
    pub(crate) fn overflowed(&self) -> bool {
        self.prefix.second.iter().any(|sum| !sum.is_finite())
    }

    pub(crate) fn finish(&self) -> Diagnostics {
        let mass: f64 = self.mass.iter().sum();
        let lane_mass: f64 = self.sequences.iter().map(|(weight, _)| weight).sum();
        let mean = |sums: &[f64]| sums.iter().sum::<f64>() / mass;
        // Positions count by their mass, so that a ragged tail of few trajectories does not dominate.
        let step_variance = (0..self.mass.len())
            .map(|t| self.ell.second[t] - self.ell.first[t] * self.ell.first[t] / self.mass[t])
            .sum::<f64>()
            .max(0.0)
            / mass;
        let (ess_sequence, chi2_sequence) = whole_trajectories(&self.sequences);
        let by_mass = |sums: &[f64]| -> Vec<f64> {
            sums.iter().zip(&self.mass).map(|(sum, mass)| sum / mass).collect()
        };
        let size = |values: &[f64]| values.iter().map(|value| value.abs()).sum::<f64>();
        let bias_witness = by_mass(&self.witness);
        Diagnostics {
            steps: self.steps,
            lanes: self.lanes,
            clip_fraction: mean(&self.flat),
            step_variance,
            drift: step_variance * mass / lane_mass,
            kl_k1: -mean(&self.ell.first),
            kl_k3: mean(&self.ratio.first) - 1.0 - mean(&self.ell.first),
            chi2_step: mean(&self.ratio.second) - 1.0,
            chi2_sequence,
            ess: self.factor.ess_of_all(mass),
            ess_step: self.ratio.ess_of_all(mass),
            ess_sequence,
            prefix_ess: self.prefix.ess(&self.mass),
            prefix_ess_clamped: self.clamped.ess(&self.mass),
            dose: size(&bias_witness),
            rollout_dose: size(&by_mass(&self.rollout_witness)),
            bias_witness,
            zero_signal: self.silent / lane_mass,
        }
    }
}

/// ESS and χ² of the trajectories' whole ratios, scaled by the largest so that nothing overflows early.
fn whole_trajectories(sequences: &[(f64, f64)]) -> (f64, f64) {
    let highest = sequences.iter().map(|&(_, sum)| sum).fold(f64::NEG_INFINITY, f64::max);
    let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
    for &(weight, sum) in sequences {
        let scaled = Real::exp(sum - highest);
        mass += weight;
        first += weight * scaled;
        second += weight * scaled * scaled;
    }
    (ess(mass, first, second), second / mass * Real::exp(2.0 * highest) - 1.0)
}

/// Prefix ESS at each position for log-ratios too large for plain sums: each position is scaled by its largest.
///
/// Shapes: `ell [steps]`, `offsets [lanes + 1]`, `weight` by lane; returns `[longest]`.
pub(crate) fn prefix_ess_in_log_space<F: Real>(
    ell: &[F],
    offsets: &[usize],
    longest: usize,
    weight: impl Fn(usize) -> F,
) -> Vec<f64> {
    let mut highest = vec![f64::NEG_INFINITY; longest];
    let mut sums = vec![(0.0, 0.0, 0.0); longest];
    let walk = |visit: &mut dyn FnMut(usize, usize, f64)| {
        for (lane, row) in offsets.windows(2).enumerate() {
            let mut prefix = 0.0;
            for (t, ell) in ell[row[0]..row[1]].iter().enumerate() {
                visit(lane, t, prefix);
                prefix += ell.to_f64();
            }
        }
    };
    walk(&mut |_, t, prefix| highest[t] = highest[t].max(prefix));
    walk(&mut |lane, t, prefix| {
        let (weight, scaled) = (weight(lane).to_f64(), Real::exp(prefix - highest[t]));
        let (mass, first, second) = &mut sums[t];
        *mass += weight;
        *first += weight * scaled;
        *second += weight * scaled * scaled;
    });
    sums.into_iter().map(|(mass, first, second)| ess(mass, first, second)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two trajectories of two steps with ratios (2, 1) and (½, 1), A = 1 and −1 at the second step only.
    fn by_hand() -> Diagnostics {
        let two = std::f64::consts::LN_2;
        let mut tally = Tally::default();
        tally.reset(2);
        tally.add(&[two, 0.0], &[0.0, 0.0], &[0.0, 1.0], &[0.0, 1.0], 1.0);
        tally.add(&[-two, 0.0], &[0.0, 0.0], &[0.0, -1.0], &[0.0, 0.0], 1.0);
        tally.finish()
    }

    #[test]
    fn worked() {
        let came = by_hand();
        let close =
            |came: f64, expected: f64| assert!((came - expected).abs() < 1e-14, "{came} for {expected}");
        // Position 0: ℓ = ±ln 2, variance ln² 2; position 1: 0. Mean over positions: half of it; T = 2.
        let square = std::f64::consts::LN_2.powi(2);
        close(came.step_variance, 0.5 * square);
        close(came.drift, square);
        // Prefix ratios: (1, 1) then (2, ½): ESS 1, then (2.5)² / (2 · 4.25) = 0.7352941…
        assert_eq!(came.prefix_ess.len(), 2);
        close(came.prefix_ess[0], 1.0);
        close(came.prefix_ess[1], 6.25 / 8.5);
        // b_1 = ½ ((2 − 1) · 1 · 1 + (½ − 1) · 1 · (−1)) = 0.75.
        close(came.bias_witness[1], 0.75);
        close(came.dose, 0.75);
        close(came.rollout_dose, 0.75);
        // k1: −(ln 2 − ln 2)/4 = 0; k3: mean r − 1 = (2 + ½ + 1 + 1)/4 − 1 = 0.125; χ²: (4 + ¼ + 2)/4 − 1.
        close(came.kl_k1, 0.0);
        close(came.kl_k3, 0.125);
        close(came.chi2_step, 0.5625);
        // Whole ratios 2 and ½: χ² = 4.25/2 − 1.
        close(came.chi2_sequence, 1.125);
        close(came.ess_sequence, 6.25 / 8.5);
        // The last step has an advantage and no term: one of four steps is flat. No trajectory is silent.
        close(came.clip_fraction, 0.25);
        close(came.zero_signal, 0.0);
        assert_eq!((came.steps, came.lanes), (4, 2));
    }

    #[test]
    fn clamping_hides_what_the_raw_ess_shows() {
        let mut tally = Tally::default();
        tally.reset(2);
        for lane in 0..100 {
            let ell = if lane == 0 { 5.0 } else { 0.0 };
            tally.add(&[ell, 0.0], &[0.0; 2], &[1.0; 2], &[1.0; 2], 1.0);
        }
        let came = tally.finish();
        assert!(came.prefix_ess[1] < 0.1 && came.prefix_ess_clamped[1] > 0.98, "{came:?}");
    }

    #[test]
    fn huge_log_ratios_keep_a_finite_ess() {
        // Prefix log-ratios of 2000 and 1999 at the second position: scaled weights 1 and 1/e.
        let ell = [2000.0_f32, 0.0, 1999.0, 0.0];
        let came = prefix_ess_in_log_space(&ell, &[0, 2, 4], 2, |_| 1.0);
        let e = (-1.0_f64).exp();
        assert!((came[1] - (1.0 + e).powi(2) / (2.0 * (1.0 + e * e))).abs() < 1e-12);
    }
}
