//! What the sums say of the batch.

use super::Diagnostics;
use super::tally::{SUMS, Sum, Tally, Total};
use crate::Real;
use crate::surrogate::tile::{Abreast, LANES, sum};
use crate::surrogate::turn::{SIDE, turn};

/// Normalised effective sample size. Paper: `sec:exact-diagnostics`
fn ess(mass: f64, first: f64, second: f64) -> f64 {
    first * first / (mass * second)
}

impl Tally {
    fn total(&self, total: Total) -> f64 {
        self.totals[total as usize].iter().sum()
    }

    /// Whether the prefix ratios of a position outgrew the plain sums or vanished from them, so that [`prefix_ess_in_log_space`] must stand in.
    pub(crate) fn overflowed(&self) -> bool {
        self.by_position.iter().any(|sums| !sums[Sum::PrefixSquared as usize].is_normal())
    }

    #[inline(always)]
    pub(crate) fn finish<const LEVEL: u8>(&self) -> Diagnostics {
        // A trajectory has a position if it ends later.
        let mut masses = vec![0.0; self.ended.len() - 1];
        let mut above = 0.0;
        for (t, mass) in masses.iter_mut().enumerate().rev() {
            above += self.ended[t + 1];
            *mass = above;
        }
        let lane_mass = above;
        let positions = masses.len();
        let [mut prefix_ess, mut prefix_ess_clamped, mut bias_witness] =
            [(); 3].map(|()| vec![0.0; positions]);
        let [mut mass, mut spread, mut sum_ell, mut dose, mut rollout_dose] = [[0.0; SIDE]; 5];
        let places = (prefix_ess.chunks_mut(SIDE).zip(prefix_ess_clamped.chunks_mut(SIDE)))
            .zip(bias_witness.chunks_mut(SIDE));
        let chunks = self.by_position.chunks(SIDE).zip(masses.chunks(SIDE));
        for ((rows, masses), ((prefix_ess, prefix_ess_clamped), bias_witness)) in chunks.zip(places) {
            let of = side_by_side::<LEVEL>(rows);
            // Positions that are not there have sums of zero.
            let (count, mut mass_here) = (masses.len(), [1.0; SIDE]);
            mass_here[..count].copy_from_slice(masses);
            let mut found = [[0.0; SIDE]; 3];
            for at in 0..SIDE {
                let of = |sum: Sum| of[sum as usize][at];
                let here = mass_here[at];
                mass[at] += if at < count { here } else { 0.0 };
                // Positions count by their mass, so that a ragged tail of few trajectories does not dominate.
                spread[at] += of(Sum::EllSquared) - of(Sum::Ell) * of(Sum::Ell) / here;
                sum_ell[at] += of(Sum::Ell);
                found[0][at] = ess(here, of(Sum::Prefix), of(Sum::PrefixSquared));
                found[1][at] = ess(here, of(Sum::Clamped), of(Sum::ClampedSquared));
                found[2][at] = of(Sum::Witness) / here;
                dose[at] += found[2][at].abs();
                rollout_dose[at] += (of(Sum::RolloutWitness) / here).abs();
            }
            prefix_ess.copy_from_slice(&found[0][..count]);
            prefix_ess_clamped.copy_from_slice(&found[1][..count]);
            bias_witness.copy_from_slice(&found[2][..count]);
        }
        let [mass, spread, sum_ell, dose, rollout_dose] =
            [mass, spread, sum_ell, dose, rollout_dose].map(|parts| parts.into_iter().sum::<f64>());
        let step_variance = f64::max(spread, 0.0) / mass;
        let mean_ell = sum_ell / mass;
        let (ess_sequence, chi2_sequence) = self.whole_trajectories();
        let (ratio, ratio_squared) = (self.total(Total::Ratio), self.total(Total::RatioSquared));
        Diagnostics {
            steps: self.steps,
            lanes: self.lanes.iter().sum(),
            clip_fraction: self.total(Total::Flat) / mass,
            step_variance,
            drift: step_variance * mass / lane_mass,
            kl_k1: -mean_ell,
            kl_k3: ratio / mass - 1.0 - mean_ell,
            chi2_step: ratio_squared / mass - 1.0,
            chi2_sequence,
            // Where every step is dropped no sample counts.
            ess: match self.total(Total::FactorSquared) {
                0.0 => 0.0,
                squared => ess(mass, self.total(Total::Factor), squared),
            },
            ess_step: ess(mass, ratio, ratio_squared),
            ess_sequence,
            prefix_ess,
            prefix_ess_clamped,
            bias_witness,
            dose,
            rollout_dose,
            zero_signal: sum(&self.silent) / lane_mass,
        }
    }

    /// ESS and χ² of the trajectories' whole ratios, scaled by the largest so that nothing overflows early.
    #[inline(always)]
    fn whole_trajectories(&self) -> (f64, f64) {
        let highest = self.sequence.as_flattened().iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let [mut mass, mut first, mut second]: [Abreast<f64>; 3] = [[0.0; LANES]; 3];
        for (weight, sequence) in self.sequence_weight.iter().zip(&self.sequence) {
            for lane in 0..LANES {
                let scaled = Real::exp(sequence[lane] - highest);
                mass[lane] += weight[lane];
                first[lane] += weight[lane] * scaled;
                second[lane] += weight[lane] * scaled * scaled;
            }
        }
        let [mass, first, second] = [mass, first, second].map(|parts| sum(&parts));
        (ess(mass, first, second), second / mass * Real::exp(2.0 * highest) - 1.0)
    }
}

/// The sums of some positions, by name; zero where there are fewer than [`SIDE`].
#[inline(always)]
fn side_by_side<const LEVEL: u8>(positions: &[[f64; SUMS]]) -> [[f64; SIDE]; SUMS] {
    let (mut rows, mut columns) = ([[0.0; SUMS]; SIDE], [[0.0; SIDE]; SUMS]);
    rows[..positions.len()].copy_from_slice(positions);
    let to = columns.as_flattened_mut().as_mut_ptr();
    // SAFETY: both are whole squares, and the caller is compiled for what the level says.
    unsafe { turn::<f64, LEVEL>(|row| rows[row].as_ptr(), |column| to.add(column * SIDE)) };
    columns
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
    use crate::diagnostics::Columns;
    use crate::surrogate::tile::{Source, Tile};
    use crate::surrogate::turn::PLAIN;

    /// Trajectories of two steps, all in one tile or more.
    fn tally(ell: &[f64], advantage: &[f64], own: &[f64]) -> Diagnostics {
        let mut tally = Tally::default();
        tally.reset(2);
        let offsets: Vec<usize> = (0..=ell.len() / 2).map(|lane| 2 * lane).collect();
        for first in (0..ell.len() / 2).step_by(LANES) {
            let tile = Tile::new(&offsets[first..=(first + LANES).min(ell.len() / 2)]);
            let abreast = |values: &[f64]| {
                let mut to = [[0.0; LANES]; 2];
                tile.fetch::<f64, PLAIN>(Source { plus: values, minus: None }, 0, &mut to);
                to
            };
            let (ell, advantage, own) = (abreast(ell), abreast(advantage), abreast(own));
            let (ratio, factor) = (ell.map(|ell| ell.map(f64::exp)), [[1.0; LANES]; 2]);
            let weight = tile.at_step(0, &[1.0; LANES]);
            // One position at a time, so that what is carried from one to the next is tested too.
            for t in 0..2 {
                let (first, only) = (t, t..t + 1);
                let columns = Columns {
                    first,
                    ell: &ell[only.clone()],
                    ratio: &ratio[only.clone()],
                    factor: &factor[only.clone()],
                    advantage: &advantage[only.clone()],
                    own: &own[only],
                };
                tally.add::<f64, PLAIN>(&tile, &columns, &weight);
            }
            tally.end(&tile, &weight);
        }
        tally.finish::<PLAIN>()
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
