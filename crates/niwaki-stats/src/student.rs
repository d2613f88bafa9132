//! Student's t distribution with whole degrees of freedom: both tails together, and its quantile.
//!
//! Serves the interval of a decision. Knows nothing of samples.

use crate::error::{Error, check_level};

/// `t, degrees -> scalar`. P(|T| ≥ |t|), by the finite series of Abramowitz and Stegun 26.7.3 and 26.7.4.
pub(crate) fn both_tails(t: f64, degrees: usize) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    let v = degrees as f64;
    let angle = (t.abs() / v.sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let odd = degrees % 2 == 1;
    // Terms cosθ, (2/3)cos³θ, … for odd degrees; 1, (1/2)cos²θ, (1·3/2·4)cos⁴θ, … for even ones.
    let (mut term, mut next) = if odd { (cos, 2.0) } else { (1.0, 1.0) };
    let mut sum = 0.0;
    while next < v {
        sum += term;
        term *= cos * cos * next / (next + 1.0);
        next += 2.0;
    }
    let inside = if odd { (angle + sin * sum) * std::f64::consts::FRAC_2_PI } else { sin * sum };
    (1.0 - inside).clamp(0.0, 1.0)
}

/// `level, degrees -> scalar`. The t beyond which, to both sides, lies what the level leaves.
pub(crate) fn quantile(level: f64, degrees: usize) -> Result<f64, Error> {
    check_level(level)?;
    let beyond = 1.0 - level;
    let mut high = 1.0;
    while both_tails(high, degrees) > beyond {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if both_tails(middle, degrees) > beyond { low = middle } else { high = middle }
    }
    Ok(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_tables_have_it() {
        // One degree is Cauchy's: P(|T| ≥ 1) = 1/2. Two: 1 − t/√(2 + t²) = 1 − 1/√3 at t = 1.
        assert!((both_tails(1.0, 1) - 0.5).abs() < 1e-15);
        assert!((both_tails(-1.0, 2) - (1.0 - 1.0 / 3.0_f64.sqrt())).abs() < 1e-15);
        // scipy.stats.t.ppf(0.975, [1, 2, 5, 10, 30, 95])
        let known = [
            (1, 12.706_204_736_174_698),
            (2, 4.302_652_729_749_464),
            (5, 2.570_581_835_636_314),
            (10, 2.228_138_851_964_938_5),
            (30, 2.042_272_456_301_238),
            (95, 1.985_251_003_505_501),
        ];
        for (degrees, t) in known {
            assert!((quantile(0.95, degrees).unwrap() / t - 1.0).abs() < 1e-11, "{degrees}");
        }
        assert_eq!(both_tails(f64::INFINITY, 4), 0.0);
        assert!(quantile(1.0, 4).is_err());
    }
}
