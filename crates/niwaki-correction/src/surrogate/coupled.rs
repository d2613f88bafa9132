//! The passes over a whole batch, for members whose factors depend on all of its trajectories.

use super::passes::{Passes, Placed};
use super::tile::LANES;
use crate::Real;
use crate::family::Rule;

impl<F: Real> Passes<F> {
    /// Normalised ESS of `exp(strength · reading)` over all (trajectory, step) pairs.
    ///
    /// Paper: `app:diagnostics` (normalised ESS over the joint distribution)
    pub(super) fn ess_at(&self, strength: f64, tiles: &[Placed<F>]) -> f64 {
        let log = |reading: F| strength * reading.to_f64();
        let highest = self.reading.as_flattened().iter().map(|&reading| log(reading)).fold(0.0, f64::max);
        let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
        each_step(tiles, |placed, lane, t| {
            let value = Real::exp(log(self.reading[placed.rows.start + t][lane]) - highest);
            let weight = placed.weight[lane].to_f64();
            mass += weight;
            first += weight * value;
            second += weight * value * value;
        });
        first * first / (second * mass)
    }

    /// `normaliser[t] = log(weighted mean of the factors at t)`, each position scaled by its largest factor.
    pub(super) fn fill_normaliser(&mut self, rule: &Rule, tiles: &[Placed<F>]) {
        let longest = self.normaliser.len();
        let log_factor = |placed: &Placed<F>, lane: usize, t: usize| {
            rule.factor(self.reading[placed.rows.start + t][lane]).log_factor.to_f64()
        };
        let (mut highest, mut sums) = (vec![f64::NEG_INFINITY; longest], vec![(0.0, 0.0); longest]);
        each_step(tiles, |placed, lane, t| highest[t] = highest[t].max(log_factor(placed, lane, t)));
        each_step(tiles, |placed, lane, t| {
            let weight = placed.weight[lane].to_f64();
            sums[t].0 += weight;
            sums[t].1 += weight * Real::exp(log_factor(placed, lane, t) - highest[t]);
        });
        for (t, (mass, scaled)) in sums.into_iter().enumerate() {
            self.normaliser[t] = F::from_f64(highest[t] + (scaled / mass).ln());
        }
    }

    /// Takes back, at each step, the credit that flows through the batch mean of the factors.
    ///
    /// With `ω` the trajectory weights, `log g_n = αL_n − log mean(ω e^{αL})` gives
    /// `Σ_n own_n ∂log g_n/∂L_m = α (own_m − ω_m g_m / Σω · Σ_n own_n)`.
    pub(super) fn share_credit(&mut self, rule: &Rule, tiles: &[Placed<F>]) {
        let mut sums = vec![(F::ZERO, F::ZERO); self.normaliser.len()];
        each_step(tiles, |placed, lane, t| {
            sums[t].0 += self.own[placed.tile.step(lane, t)];
            sums[t].1 += placed.weight[lane];
        });
        each_step(tiles, |placed, lane, t| {
            let ((total, mass), row) = (sums[t], placed.rows.start + t);
            let read = rule.factor(self.reading[row][lane]);
            let share = placed.weight[lane] * (read.log_factor - self.normaliser[t]).exp() / mass;
            self.credit[row][lane] -= read.slope * share * total;
        });
    }
}

/// Visits tile, lane and position of every step.
fn each_step<'t, F: Real>(tiles: &'t [Placed<F>], mut visit: impl FnMut(&'t Placed<F>, usize, usize)) {
    for placed in tiles {
        for t in 0..placed.tile.horizon {
            for lane in (0..LANES).filter(|&lane| t < placed.tile.lengths[lane]) {
                visit(placed, lane, t);
            }
        }
    }
}
