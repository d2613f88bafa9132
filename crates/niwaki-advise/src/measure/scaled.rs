//! Numbers beyond the range of floats, and what is read off sums of exponentials.

use super::exact::Exact;
use niwaki_correction::Real;
use std::f64::consts::LN_2;

/// `number · 2^exponent`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Far {
    pub(crate) number: f64,
    pub(crate) exponent: i64,
}

/// Logs beyond this are taken for it: nobody tells such weights apart.
const FARTHEST: f64 = 1e9;

impl Far {
    /// e^log.
    pub(crate) fn exp(log: f64) -> Self {
        // ln 2 in two parts, of which the first has so few digits that its product with a whole number is exact.
        const FIRST: f64 = 0.693_147_182_464_599_6;
        const REST: f64 = LN_2 - FIRST;
        let log = log.clamp(-FARTHEST, FARTHEST);
        let exponent = (log / LN_2).round();
        let number = Real::exp((log - exponent * FIRST) - exponent * REST);
        Self { number, exponent: exponent as i64 }
    }

    /// The natural logarithm.
    pub(crate) fn ln(self) -> f64 {
        self.number.ln() + self.exponent as f64 * LN_2
    }

    /// As a float: infinite or zero where it lies beyond.
    pub(crate) fn value(self) -> f64 {
        let mut value = self.number;
        let mut left = self.exponent.clamp(-3000, 3000);
        // In steps that are powers of two, so that nothing is rounded on the way.
        while left != 0 {
            let step = left.clamp(-960, 960);
            value *= f64::from_bits(((1023 + step) as u64) << 52);
            left -= step;
        }
        value
    }
}

/// `Σ ω e^x` and `Σ ω e^{2x}`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    pub(crate) first: Far,
    pub(crate) second: Far,
}

impl Moments {
    /// Normalised effective sample size of the weights.
    ///
    /// Paper: `sec:exact-diagnostics`
    pub(crate) fn ess(&self, mass: f64) -> f64 {
        let number = self.first.number * (self.first.number / (mass * self.second.number));
        Far { number, exponent: 2 * self.first.exponent - self.second.exponent }.value()
    }

    /// Mean of the weights.
    pub(crate) fn mean(&self, mass: f64) -> f64 {
        self.first.value() / mass
    }

    /// Mean of the squared weights.
    pub(crate) fn mean_square(&self, mass: f64) -> f64 {
        self.second.value() / mass
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

/// `log Σ ω e^{aL}` for a = 0, 0.1, …, 2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tilted {
    logs: [f64; POWERS],
}

impl Tilted {
    /// Reads the sums, which begin at a place.
    pub(crate) fn new<const N: usize>(sums: &Exact<N>, first: usize) -> Self {
        Self { logs: std::array::from_fn(|k| sums.far(first + k).ln()) }
    }

    /// `log(Σ ω e^{aL} / Σ ω)` at any `a` in [0, 2], by cubic interpolation between the powers that are kept: the
    /// function is smooth and convex.
    pub(crate) fn log_mean(&self, a: f64) -> f64 {
        let place = (a * (GRID - 1) as f64).clamp(0.0, (POWERS - 1) as f64);
        let first = (place.floor() as usize).saturating_sub(1).min(POWERS - 4);
        let x = place - first as f64;
        (0..4)
            .map(|i| {
                let basis = (0..4).filter(|&j| j != i).map(|j| (x - j as f64) / (i as f64 - j as f64));
                (self.logs[first + i] - self.logs[0]) * basis.product::<f64>()
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
        for middle in [2000.0, -2000.0] {
            let mut sums = Exact::<2>::default();
            for log in [middle, middle - 1.0] {
                sums.add_far_one(0, 1.0, log);
                sums.add_far_one(1, 1.0, 2.0 * log);
            }
            let ess = |sums: &Exact<2>, mass| Moments { first: sums.far(0), second: sums.far(1) }.ess(mass);
            assert!((ess(&sums, 2.0) - expected).abs() < 1e-12);
            if middle > 0.0 {
                // A small weight beside them changes nothing.
                sums.add(&[1.0, 1.0]);
                assert!((ess(&sums, 3.0) - expected * 2.0 / 3.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn exponentials_are_those_of_the_library_where_it_has_them() {
        for log in [0.0, 1.0, -1.0, 0.3, 300.0, -299.5, 700.0] {
            assert!(
                (Far::exp(log).value() / f64::exp(log) - 1.0).abs() < 4e-16 * log.abs().max(4.0),
                "{log}"
            );
        }
        assert!((Far::exp(12_345.6).ln() - 12_345.6).abs() < 1e-10);
        assert_eq!((Far::exp(5e8).value(), Far::exp(-5e8).value()), (f64::INFINITY, 0.0));
    }

    #[test]
    fn tilts_between_the_kept_powers() {
        // L = ±2 in equal shares: the mean of e^{aL} is cosh 2a.
        let mut sums = Exact::<POWERS>::default();
        for log in [2.0_f64, -2.0] {
            sums.add(&std::array::from_fn(|k| (strength(k) * log).exp()));
        }
        let tilted = Tilted::new(&sums, 0);
        for a in [0.0_f64, 0.03, 0.25, 0.77, 1.0, 1.99, 2.0] {
            let exact = (2.0 * a).cosh().ln();
            assert!((tilted.log_mean(a) - exact).abs() < 1e-4, "at {a}: {} for {exact}", tilted.log_mean(a));
        }
        // On the grid it is exact: α = 0.5 gives cosh² 1 / cosh 2.
        assert!((tilted.ess(0.5) - 1.0_f64.cosh().powi(2) / 2.0_f64.cosh()).abs() < 1e-14);
    }
}
