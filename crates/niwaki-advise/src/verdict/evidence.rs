//! What the data knows of the bias, whether that decides, and how much data would.
//!
//! One quantity decides: Σ b, what the dropped correction would add to a batch's estimate, against a quarter of that
//! estimate's noise. So one quantity also says how much data is missing: the half-width of its interval.
//!
//! The half-width of a mean falls with the root of the data as long as its terms have a variance that the data shows.
//! Under heavy tails they do not: with log-normal prefix ratios of ESS ε only a share of about ε⁴ of the trajectories
//! carries the variance of (R − 1) r A, whatever their number, and a sample that holds none of them looks far too sure.
//! Three things follow. Where few trajectories carry the bias, the interval is widened by √(20 / carriers). The data
//! that is asked for is what the widened interval needs. And where ε says that no realistic number of trajectories would
//! do, the verdict says that instead of a number that would grow with the data.

use super::known::Known;
use crate::measure::Measured;

/// A bias below this share of the noise of a batch's estimate adds less than a sixteenth to its squared error.
pub const MATERIAL: f64 = 0.25;

/// Where fewer trajectories than this carry the bias, its interval is widened by the root of what is missing.
pub const FEW: f64 = 20.0;

/// Trajectories that nobody is asked to go beyond: by then the run has become another.
pub const REALISTIC: f64 = 65_536.0;

/// Trajectories without which there is no interval worth its name.
pub(super) const LEAST: f64 = 64.0;

/// What is asked for above the forecast: half-widths of 20 folds scatter by a sixth, their squares by a third.
const SPARE: f64 = 1.35;

/// The smallest share of new data that is worth asking for.
const ONWARD: f64 = 0.25;

/// What the data says of the bias.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    /// Σ b with its interval as the jackknife has it.
    pub(super) total: Known,
    /// Half-width of the interval that decides.
    pub(super) reach: f64,
    /// Standard error of a batch's estimate of the objective.
    pub(super) noise: f64,
    /// Trajectories that carry the bias.
    pub(super) support: f64,
    lanes: f64,
}

impl Evidence {
    pub(crate) fn new(measured: &Measured) -> Self {
        let facts = &measured.facts;
        let spread = measured.alphas.first().map_or(f64::NAN, |row| row.variance.sqrt());
        let total = Known::of(measured, "bias_total");
        let support = Known::of(measured, "bias_support").value;
        Self {
            total,
            reach: total.half() * widened(support),
            noise: spread / facts.batch.sqrt(),
            support,
            lanes: facts.lanes as f64,
        }
    }

    /// The bias from which on it matters.
    pub(super) fn material(&self) -> f64 {
        MATERIAL * self.noise
    }

    /// The bias as a share of a batch's noise.
    pub(crate) fn size(&self) -> f64 {
        self.total.value.abs() / self.noise
    }

    /// How small and how large the bias may be with 95%, as shares of a batch's noise.
    pub(crate) fn ends(&self) -> (f64, f64) {
        let size = self.total.value.abs();
        ((size - self.reach).max(0.0) / self.noise, (size + self.reach) / self.noise)
    }

    /// Whether the bias is there and matters.
    pub(super) fn matters(&self) -> bool {
        let size = self.total.value.abs();
        size > self.reach && size >= self.material()
    }

    /// Whether the bias does not matter: the interval lies within what matters, or has become as narrow as that about a
    /// value within.
    pub(super) fn idle(&self) -> bool {
        let (size, material) = (self.total.value.abs(), self.material());
        size + self.reach <= material || (size < material && self.reach <= material)
    }

    /// Trajectories, those at hand included, after which the interval is expected to decide: its half-width must fall
    /// below the bias, or below what matters where the bias is smaller than that.
    pub(super) fn needed(&self) -> f64 {
        let apart = self.total.value.abs().max(self.material());
        let forecast = self.lanes * (self.reach / apart).powi(2) * SPARE;
        // Written so that a forecast that is not a number asks for the least.
        let forecast = if forecast > 0.0 { forecast } else { 0.0 };
        forecast.max(self.lanes * (1.0 + ONWARD)).max(LEAST)
    }

    /// Trajectories that are missing, in whole ones.
    pub(super) fn missing(&self) -> u64 {
        (self.needed() - self.lanes).max(1.0).ceil() as u64
    }
}

/// How much wider the interval is for being carried by few trajectories.
fn widened(support: f64) -> f64 {
    (FEW / support).max(1.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(value: f64, half: f64, material: f64, lanes: f64) -> Evidence {
        let total = Known { value, low: value - half, high: value + half };
        Evidence { total, reach: half, noise: material / MATERIAL, support: 100.0, lanes }
    }

    #[test]
    fn missing_data_follows_the_root() {
        // Half-width 4 about 0 where 1 matters: it must fall to 1, so 16 times the data, and a third to spare.
        assert_eq!(evidence(0.0, 4.0, 1.0, 100.0).missing(), 2060);
        // 3 ± 4: the half-width must fall to 3, so (4/3)² · 1.35 = 2.4 times the data.
        assert_eq!(evidence(3.0, 4.0, 1.0, 100.0).missing(), 140);
        // Nearly there: a quarter more, and never fewer than make an interval.
        assert_eq!(evidence(3.0, 3.0, 1.0, 1000.0).missing(), 350);
        assert_eq!(evidence(3.0, 2.9, 3.0, 1000.0).missing(), 262);
        assert_eq!(evidence(0.0, f64::NAN, 1.0, 10.0).missing(), 54);
    }

    #[test]
    fn what_decides() {
        // 3 ± 2 where 1 matters; 3 ± 4 does not; neither does 0.5 ± 2.
        assert!(evidence(3.0, 2.0, 1.0, 1.0).matters() && !evidence(3.0, 4.0, 1.0, 1.0).matters());
        assert!(!evidence(0.5, 2.0, 1.0, 1.0).matters() && !evidence(0.5, 2.0, 1.0, 1.0).idle());
        // 0.2 ± 0.7 lies within 1; 0.9 ± 0.9 is as narrow as what matters; 1.1 ± 0.9 is not idle: it matters.
        assert!(evidence(0.2, 0.7, 1.0, 1.0).idle() && evidence(0.9, 0.9, 1.0, 1.0).idle());
        assert!(!evidence(1.1, 0.9, 1.0, 1.0).idle() && evidence(1.1, 0.9, 1.0, 1.0).matters());
        // Nothing at all is idle.
        assert!(evidence(0.0, 0.0, 0.0, 1.0).idle());
    }

    #[test]
    fn few_carriers_widen_the_interval() {
        // 5 of 20: twice as wide.
        assert_eq!((widened(5.0), widened(20.0), widened(900.0)), (2.0, 1.0, 1.0));
        // Where nothing is carried there is nothing to widen.
        assert_eq!(widened(f64::NAN), 1.0);
    }
}
