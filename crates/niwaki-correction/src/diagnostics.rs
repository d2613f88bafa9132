//! What a batch says of drift, weights and bias, raw and clamped.
//!
//! Everything is kept as weighted sums per position, so one pass over a trajectory is a handful of vectorised
//! loops, and batches of any length take constant memory. Clamping is applied to copies only: an alarm computed
//! from clamped weights can never ring.

use crate::Real;
use crate::log_ratio::sum;

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

/// A block of trajectories as the surrogate left it, `[steps of the block]` each.
pub(crate) struct Columns<'a, F> {
    pub(crate) ell: &'a [F],
    pub(crate) ratio: &'a [F],
    /// The member's factors.
    pub(crate) factor: &'a [F],
    pub(crate) prefix_ratio: &'a [f64],
    pub(crate) advantage: &'a [F],
    /// Its zeros say which steps are flat.
    pub(crate) own: &'a [F],
}

/// The running sums behind [`Diagnostics`], weighted by trajectory.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    by_position: ByPosition,
    /// Weight of the trajectories that have just `index` steps.
    ended: Vec<f64>,
    /// Over all steps: the step ratio, the member's factor, and their squares; the flat steps.
    totals: Totals,
    /// Of each step of the block in hand.
    weights: Vec<f64>,
    /// Weight and whole log-ratio of each trajectory.
    sequences: Vec<(f64, f64)>,
    lanes: usize,
    steps: usize,
    silent: f64,
}

/// Weighted sums over the trajectories, `[longest]` each; named by [`Sum`].
#[derive(Debug, Default)]
struct ByPosition([Vec<f64>; SUMS]);

/// What is summed at each position.
#[derive(Clone, Copy)]
enum Sum {
    Ell,
    EllSquared,
    Prefix,
    PrefixSquared,
    Clamped,
    ClampedSquared,
    Witness,
    RolloutWitness,
}

const SUMS: usize = 8;

/// Weighted sums over all steps.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    ratio: f64,
    ratio_squared: f64,
    factor: f64,
    factor_squared: f64,
    flat: f64,
}

/// Normalised effective sample size. Paper: `sec:exact-diagnostics`
fn ess(mass: f64, first: f64, second: f64) -> f64 {
    first * first / (mass * second)
}

impl Tally {
    pub(crate) fn reset(&mut self, longest: usize) {
        for sums in &mut self.by_position.0 {
            sums.clear();
            sums.resize(longest, 0.0);
        }
        self.ended.clear();
        self.ended.resize(longest + 1, 0.0);
        self.sequences.clear();
        self.totals = Totals::default();
        (self.lanes, self.steps, self.silent) = (0, 0, 0.0);
    }

    /// Adds a block of trajectories.
    ///
    /// Shapes: `offsets [lanes of the block + 1]`; `weight` by lane of the block.
    #[inline(always)]
    pub(crate) fn add<F: Real>(
        &mut self,
        block: &Columns<'_, F>,
        offsets: &[usize],
        weight: impl Fn(usize) -> f64,
    ) {
        let steps = block.ell.len();
        let start = offsets[0];
        let weights = &mut self.weights;
        weights.resize(weights.len().max(steps), 0.0);
        let weights = &mut weights[..steps];
        if (1..offsets.len() - 1).all(|lane| weight(lane) == weight(0)) {
            weights.fill(weight(0));
        } else {
            for (lane, row) in offsets.windows(2).enumerate() {
                weights[row[0] - start..row[1] - start].fill(weight(lane));
            }
        }
        self.totals.add(block, weights);
        for (lane, row) in offsets.windows(2).enumerate() {
            let row = row[0] - start..row[1] - start;
            let weight = weight(lane);
            self.ended[row.len()] += weight;
            if row.is_empty() {
                continue;
            }
            self.sequences.push((weight, sum(&block.ell[row.clone()]).to_f64()));
            self.lanes += 1;
            let silent = block.advantage[row.clone()].iter().all(|&advantage| advantage == F::ZERO);
            self.silent += if silent { weight } else { 0.0 };
        }
        self.by_position.add(block, offsets, weight);
        self.steps += steps;
    }

    /// Whether the prefix ratios of a position outgrew the plain sums or vanished from them, so that
    /// [`prefix_ess_in_log_space`] must stand in.
    pub(crate) fn overflowed(&self) -> bool {
        self.by_position.get(Sum::PrefixSquared).iter().any(|sum| !sum.is_normal())
    }

    pub(crate) fn finish(&self) -> Diagnostics {
        // A trajectory has a position if it ends later.
        let mut masses = vec![0.0; self.ended.len() - 1];
        let mut above = 0.0;
        for (t, mass) in masses.iter_mut().enumerate().rev() {
            above += self.ended[t + 1];
            *mass = above;
        }
        let lane_mass = above;
        let mass: f64 = masses.iter().sum();
        let by_position = &self.by_position;
        let (ell, squared) = (by_position.get(Sum::Ell), by_position.get(Sum::EllSquared));
        // Positions count by their mass, so that a ragged tail of few trajectories does not dominate.
        let step_variance =
            (0..masses.len()).map(|t| squared[t] - ell[t] * ell[t] / masses[t]).sum::<f64>().max(0.0) / mass;
        let (ess_sequence, chi2_sequence) = whole_trajectories(&self.sequences);
        let by_mass =
            |sums: &[f64]| -> Vec<f64> { sums.iter().zip(&masses).map(|(sum, mass)| sum / mass).collect() };
        let size = |values: &[f64]| values.iter().map(|value| value.abs()).sum::<f64>();
        let bias_witness = by_mass(by_position.get(Sum::Witness));
        let mean_ell = ell.iter().sum::<f64>() / mass;
        let totals = &self.totals;
        Diagnostics {
            steps: self.steps,
            lanes: self.lanes,
            clip_fraction: totals.flat / mass,
            step_variance,
            drift: step_variance * mass / lane_mass,
            kl_k1: -mean_ell,
            kl_k3: totals.ratio / mass - 1.0 - mean_ell,
            chi2_step: totals.ratio_squared / mass - 1.0,
            chi2_sequence,
            ess: ess(mass, totals.factor, totals.factor_squared),
            ess_step: ess(mass, totals.ratio, totals.ratio_squared),
            ess_sequence,
            prefix_ess: by_position.ess(&masses, Sum::Prefix, Sum::PrefixSquared),
            prefix_ess_clamped: by_position.ess(&masses, Sum::Clamped, Sum::ClampedSquared),
            dose: size(&bias_witness),
            rollout_dose: size(&by_mass(by_position.get(Sum::RolloutWitness))),
            bias_witness,
            zero_signal: self.silent / lane_mass,
        }
    }
}

/// Steps that are added together: arrays of fixed length vectorise however short a trajectory is.
const CHUNK: usize = 8;

impl Totals {
    #[inline(always)]
    fn add<F: Real>(&mut self, block: &Columns<'_, F>, weights: &[f64]) {
        let mut parts = [[0.0; CHUNK]; 5];
        let (weight, weight_rest) = weights.as_chunks();
        let (ratio, ratio_rest) = block.ratio.as_chunks();
        let (factor, factor_rest) = block.factor.as_chunks();
        let (own, own_rest) = block.own.as_chunks();
        let (advantage, advantage_rest) = block.advantage.as_chunks();
        for at in 0..weight.len() {
            add_totals(&mut parts, &weight[at], &ratio[at], &factor[at], &own[at], &advantage[at]);
        }
        // What is left over is padded with steps of weight zero.
        let (weight, own, advantage) = (padded(weight_rest), padded(own_rest), padded(advantage_rest));
        add_totals(&mut parts, &weight, &padded(ratio_rest), &padded(factor_rest), &own, &advantage);
        let [ratio, ratio_squared, factor, factor_squared, flat] = parts.map(|part| part.iter().sum::<f64>());
        self.ratio += ratio;
        self.ratio_squared += ratio_squared;
        self.factor += factor;
        self.factor_squared += factor_squared;
        self.flat += flat;
    }
}

fn padded<X: Copy + Default>(rest: &[X]) -> [X; CHUNK] {
    let mut whole = [X::default(); CHUNK];
    whole[..rest.len()].copy_from_slice(rest);
    whole
}

/// Adds [`CHUNK`] steps to the totals, each to a part of its own.
#[inline(always)]
fn add_totals<F: Real>(
    parts: &mut [[f64; CHUNK]; 5],
    weight: &[f64; CHUNK],
    ratio: &[F; CHUNK],
    factor: &[F; CHUNK],
    own: &[F; CHUNK],
    advantage: &[F; CHUNK],
) {
    for t in 0..CHUNK {
        let weighted = weight[t] * ratio[t].to_f64();
        parts[0][t] += weighted;
        parts[1][t] += weighted * ratio[t].to_f64();
    }
    for t in 0..CHUNK {
        let weighted = weight[t] * factor[t].to_f64();
        parts[2][t] += weighted;
        parts[3][t] += weighted * factor[t].to_f64();
    }
    for t in 0..CHUNK {
        let flat = (own[t] == F::ZERO) & (advantage[t] != F::ZERO);
        parts[4][t] += if flat { weight[t] } else { 0.0 };
    }
}

impl ByPosition {
    fn get(&self, sum: Sum) -> &[f64] {
        &self.0[sum as usize]
    }

    /// `(Σωx)² / (Σω Σωx²)` at each position.
    fn ess(&self, mass: &[f64], first: Sum, second: Sum) -> Vec<f64> {
        let (first, second) = (self.get(first), self.get(second));
        (0..mass.len()).map(|t| ess(mass[t], first[t], second[t])).collect()
    }

    /// Adds a block: chunks of positions that every trajectory has are summed over the trajectories in
    /// registers, what is left over step by step.
    #[inline(always)]
    fn add<F: Real>(&mut self, block: &Columns<'_, F>, offsets: &[usize], weight: impl Fn(usize) -> f64) {
        let start = offsets[0];
        let shortest = offsets.windows(2).map(|row| row[1] - row[0]).min().unwrap_or(0);
        let whole = shortest - shortest % CHUNK;
        for at in (0..whole).step_by(CHUNK) {
            let mut sums = [[0.0; CHUNK]; SUMS];
            for (lane, row) in offsets.windows(2).enumerate() {
                let from = row[0] - start + at;
                let chunk = (
                    block.ell[from..].first_chunk(),
                    block.ratio[from..].first_chunk(),
                    block.prefix_ratio[from..].first_chunk(),
                    block.advantage[from..].first_chunk(),
                );
                if let (Some(ell), Some(ratio), Some(prefix), Some(advantage)) = chunk {
                    add_chunk(&mut sums, ell, ratio, prefix, advantage, weight(lane));
                }
            }
            for (all, sums) in self.0.iter_mut().zip(sums) {
                all[at..at + CHUNK].iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
            }
        }
        for (lane, row) in offsets.windows(2).enumerate() {
            for at in whole..row[1] - row[0] {
                let step = row[0] - start + at;
                let mut sums = [[0.0; 1]; SUMS];
                let (ell, ratio) = ([block.ell[step]], [block.ratio[step]]);
                add_chunk(
                    &mut sums,
                    &ell,
                    &ratio,
                    &[block.prefix_ratio[step]],
                    &[block.advantage[step]],
                    weight(lane),
                );
                self.0.iter_mut().zip(sums).for_each(|(all, [sum])| all[at] += sum);
            }
        }
    }
}

/// Adds `N` positions of one trajectory, each to a part of its own.
#[inline(always)]
fn add_chunk<F: Real, const N: usize>(
    sums: &mut [[f64; N]; SUMS],
    ell: &[F; N],
    ratio: &[F; N],
    prefix: &[f64; N],
    advantage: &[F; N],
    weight: f64,
) {
    for t in 0..N {
        let (ell, clamped) = (ell[t].to_f64(), prefix[t].smaller(CLAMP));
        let excess = weight * (prefix[t] - 1.0) * advantage[t].to_f64();
        sums[Sum::Ell as usize][t] += weight * ell;
        sums[Sum::EllSquared as usize][t] += weight * ell * ell;
        sums[Sum::Prefix as usize][t] += weight * prefix[t];
        sums[Sum::PrefixSquared as usize][t] += weight * prefix[t] * prefix[t];
        sums[Sum::Clamped as usize][t] += weight * clamped;
        sums[Sum::ClampedSquared as usize][t] += weight * clamped * clamped;
        sums[Sum::Witness as usize][t] += excess * ratio[t].to_f64();
        sums[Sum::RolloutWitness as usize][t] += excess;
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
/// Shapes: `ell` by step, `offsets [lanes + 1]`, `weight` by lane; returns `[longest]`.
pub(crate) fn prefix_ess_in_log_space<F: Real>(
    ell: impl Fn(usize) -> f64,
    offsets: &[usize],
    longest: usize,
    weight: impl Fn(usize) -> F,
) -> Vec<f64> {
    let mut highest = vec![f64::NEG_INFINITY; longest];
    let mut sums = vec![(0.0, 0.0, 0.0); longest];
    let walk = |visit: &mut dyn FnMut(usize, usize, f64)| {
        for (lane, row) in offsets.windows(2).enumerate() {
            let mut prefix = 0.0;
            for step in row[0]..row[1] {
                visit(lane, step - row[0], prefix);
                prefix += ell(step);
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

    fn tally(ell: &[f64], advantage: &[f64], own: &[f64]) -> Diagnostics {
        let prefix_ratio: Vec<f64> = ell.chunks(2).flat_map(|row| [1.0, row[0].exp()]).collect();
        let ratio: Vec<f64> = ell.iter().map(|ell| ell.exp()).collect();
        let factor = vec![1.0; ell.len()];
        let offsets: Vec<usize> = (0..=ell.len() / 2).map(|lane| 2 * lane).collect();
        let mut tally = Tally::default();
        tally.reset(2);
        let block =
            Columns { ell, ratio: &ratio, factor: &factor, prefix_ratio: &prefix_ratio, advantage, own };
        tally.add(&block, &offsets, |_| 1.0);
        tally.finish()
    }

    #[test]
    fn worked() {
        // Two trajectories of two steps with ratios (2, 1) and (½, 1), A = 1 and −1 at the second step only.
        let two = std::f64::consts::LN_2;
        let came = tally(&[two, 0.0, -two, 0.0], &[0.0, 1.0, 0.0, -1.0], &[0.0, 1.0, 0.0, 0.0]);
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
        let ell: Vec<f64> = (0..200).map(|step| if step == 0 { 5.0 } else { 0.0 }).collect();
        let came = tally(&ell, &[1.0; 200], &[1.0; 200]);
        assert!(came.prefix_ess[1] < 0.1 && came.prefix_ess_clamped[1] > 0.98, "{came:?}");
    }

    #[test]
    fn huge_log_ratios_keep_a_finite_ess() {
        // Prefix log-ratios of 2000 and 1999 at the second position: scaled weights 1 and 1/e.
        let ell = [2000.0, 0.0, 1999.0, 0.0];
        let came = prefix_ess_in_log_space(|step| ell[step], &[0, 2, 4], 2, |_| 1.0_f64);
        let e = (-1.0_f64).exp();
        assert!((came[1] - (1.0 + e).powi(2) / (2.0 * (1.0 + e * e))).abs() < 1e-12);
    }
}
