//! Sums of exponentials that never overflow: each keeps the scale it is divided by.

use niwaki_correction::Real;

/// Logs up to this far above the scale are added as they are; their squares still fit.
const ROOM: f64 = 300.0;

/// `Σ ω e^x` and `Σ ω e^{2x}`, divided by `e^scale` and `e^{2·scale}`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moments {
    pub(crate) scale: f64,
    pub(crate) first: f64,
    pub(crate) second: f64,
}

impl Moments {
    /// Adds a weight given by its log and, for speed, as it is.
    #[inline(always)]
    pub(crate) fn add(&mut self, mass: f64, log: f64, plain: f64) {
        if self.scale == 0.0 && log.abs() <= ROOM {
            self.first += mass * plain;
            self.second += mass * plain * plain;
        } else {
            self.add_far(mass, log);
        }
    }

    #[cold]
    fn add_far(&mut self, mass: f64, log: f64) {
        // The scale goes up when a weight is far larger than the sum, and down only while the sum is zero.
        if log > self.scale + ROOM || (self.first == 0.0 && log < self.scale - ROOM) {
            self.rescale(log);
        }
        let scaled = Real::exp(log - self.scale);
        self.first += mass * scaled;
        self.second += mass * scaled * scaled;
    }

    fn rescale(&mut self, scale: f64) {
        if self.first > 0.0 {
            let by = Real::exp(self.scale - scale);
            self.first *= by;
            self.second *= by * by;
        }
        self.scale = scale;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        let mut other = *other;
        if other.first == 0.0 {
            return;
        }
        if other.scale > self.scale || self.first == 0.0 {
            self.rescale(other.scale);
        } else {
            other.rescale(self.scale);
        }
        self.first += other.first;
        self.second += other.second;
    }

    /// Normalised effective sample size of the weights.
    ///
    /// Paper: `sec:exact-diagnostics`
    pub(crate) fn ess(&self, mass: f64) -> f64 {
        self.first * self.first / (mass * self.second)
    }

    /// Mean of the squared weights.
    pub(crate) fn mean_square(&self, mass: f64) -> f64 {
        self.second / mass * Real::exp(2.0 * self.scale)
    }
}

/// Powers of the weights that are summed: exponents 0, 0.1, …, 2.
pub(crate) const POWERS: usize = 21;

/// Strengths α on the grid: 0, 0.1, …, 1.
pub(crate) const GRID: usize = 11;

/// The strength at a place of the grid.
pub(crate) fn strength(k: usize) -> f64 {
    k as f64 / (GRID - 1) as f64
}

/// `Σ ω e^{aL}` for a = 0, 0.1, …, 2, each divided by `e^{a·scale}`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tilted {
    pub(crate) scale: f64,
    pub(crate) sums: [f64; POWERS],
}

impl Default for Tilted {
    fn default() -> Self {
        Self { scale: 0.0, sums: [0.0; POWERS] }
    }
}

impl Tilted {
    pub(crate) fn add(&mut self, mass: f64, other: &Self) {
        if other.scale > self.scale {
            self.rescale(other.scale);
        }
        if other.scale == self.scale {
            self.sums.iter_mut().zip(&other.sums).for_each(|(sum, other)| *sum += mass * other);
        } else {
            let mut other = *other;
            other.rescale(self.scale);
            self.sums.iter_mut().zip(&other.sums).for_each(|(sum, other)| *sum += mass * other);
        }
    }

    fn rescale(&mut self, scale: f64) {
        for (k, sum) in self.sums.iter_mut().enumerate() {
            *sum *= Real::exp(strength(k) * (self.scale - scale));
        }
        self.scale = scale;
    }

    /// `log(Σ ω e^{aL} / Σ ω)` at any `a` in [0, 2], by cubic interpolation between the powers that are kept: the
    /// function is smooth and convex.
    pub(crate) fn log_mean(&self, a: f64) -> f64 {
        let at = |k: usize| (self.sums[k] / self.sums[0]).ln() + strength(k) * self.scale;
        let place = (a * (GRID - 1) as f64).clamp(0.0, (POWERS - 1) as f64);
        let first = (place.floor() as usize).saturating_sub(1).min(POWERS - 4);
        let x = place - first as f64;
        (0..4)
            .map(|i| {
                let basis = (0..4).filter(|&j| j != i).map(|j| (x - j as f64) / (i as f64 - j as f64));
                at(first + i) * basis.product::<f64>()
            })
            .sum()
    }

    /// Normalised ESS of the weights `e^{αL}`.
    pub(crate) fn ess(&self, alpha: f64) -> f64 {
        Real::exp(2.0 * self.log_mean(alpha) - self.log_mean(2.0 * alpha)).smaller(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_weights_keep_their_ess() {
        // Logs 2000 and 1999: scaled weights 1 and 1/e, ESS (1 + 1/e)² / (2 (1 + 1/e²)).
        let e = (-1.0_f64).exp();
        let expected = (1.0 + e).powi(2) / (2.0 * (1.0 + e * e));
        let (mut one, mut other) = (Moments::default(), Moments::default());
        one.add(1.0, 1999.0, f64::INFINITY);
        other.add(1.0, 2000.0, f64::INFINITY);
        for (a, b) in [(one, other), (other, one)] {
            let mut both = a;
            both.merge(&b);
            assert!((both.ess(2.0) - expected).abs() < 1e-12);
        }
        // A small weight beside them changes nothing; the order does not matter.
        one.add(1.0, 0.0, 1.0);
        let mut both = one;
        both.merge(&other);
        assert!((both.ess(3.0) - expected * 2.0 / 3.0).abs() < 1e-12);
        // Neither do weights that are all tiny lose it.
        let mut tiny = Moments::default();
        tiny.add(1.0, -2000.0, 0.0);
        tiny.add(1.0, -1999.0, 0.0);
        assert!((tiny.ess(2.0) - expected).abs() < 1e-12);
    }

    #[test]
    fn tilts_between_the_kept_powers() {
        // L = ±2 in equal shares: the mean of e^{aL} is cosh 2a.
        let mut tilted = Tilted::default();
        for (k, sum) in tilted.sums.iter_mut().enumerate() {
            *sum = 2.0 * (2.0 * strength(k)).cosh();
        }
        for a in [0.0_f64, 0.03, 0.25, 0.77, 1.0, 1.99, 2.0] {
            let exact = (2.0 * a).cosh().ln();
            assert!((tilted.log_mean(a) - exact).abs() < 1e-4, "at {a}: {} for {exact}", tilted.log_mean(a));
        }
        // On the grid it is exact: α = 0.5 gives cosh² 1 / cosh 2.
        assert!((tilted.ess(0.5) - 1.0_f64.cosh().powi(2) / 2.0_f64.cosh()).abs() < 1e-14);
        let mut far = tilted;
        far.rescale(900.0);
        far.rescale(0.0);
        assert!((far.sums[3] / tilted.sums[3] - 1.0).abs() < 1e-12);
    }
}
