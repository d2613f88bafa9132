//! The normal distribution: cumulative probability and quantile to nearly full precision.
//!
//! Serves the intervals; the standard library has no error function. Knows nothing of samples.

use crate::error::{Error, check_level};

/// Below this distance from zero the series is used, beyond it the continued fraction.
const TAIL_START: f64 = 1.5;

/// Depth of the continued fraction; its truncation error falls like exp(−2x√(2·depth)), so 200 levels leave
/// less than 1e-26 at `TAIL_START`.
const FRACTION_DEPTH: u32 = 200;

/// `x -> scalar`. Φ(x), the probability that a standard normal deviate is at most `x`.
///
/// The relative error is below 1e-14 in both tails. NaN gives NaN.
#[must_use]
pub fn normal_cdf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x < -TAIL_START {
        upper_tail(-x)
    } else if x > TAIL_START {
        1.0 - upper_tail(x)
    } else {
        0.5 + central(x)
    }
}

/// `probability -> scalar`. Φ⁻¹, the point below which a standard normal deviate falls with the given probability.
///
/// # Errors
/// A probability that is not strictly between 0 and 1.
pub fn normal_quantile(probability: f64) -> Result<f64, Error> {
    if !(probability > 0.0 && probability < 1.0) {
        return Err(Error::OutOfRange {
            name: "probability",
            expected: "strictly between 0 and 1",
            found: probability,
        });
    }
    if probability == 0.5 {
        return Ok(0.0);
    }
    // The lower half is solved, where a small probability keeps all its digits; 1 − p is exact for p ≥ 1/2.
    let lower = probability.min(1.0 - probability);
    let mut x = -rough_upper_quantile(lower);
    for _ in 0..3 {
        // Near the middle the distance from one half keeps its digits (the subtraction is exact), Φ itself does not.
        let error = if lower > 0.25 { central(x) - (lower - 0.5) } else { normal_cdf(x) - lower };
        // Halley's step on Φ(x) − p, whose second derivative is −x times the first.
        let newton = error / density(x);
        x -= newton / (1.0 + 0.5 * x * newton);
    }
    Ok(if probability < 0.5 { x } else { -x })
}

/// `level -> scalar`. Half-width, in standard errors, of the two-sided normal interval (1.96 at 0.95).
pub(crate) fn half_width(level: f64) -> Result<f64, Error> {
    check_level(level)?;
    normal_quantile(0.5 + 0.5 * level)
}

/// φ(x), with x² split so that the exponent keeps its low bits.
fn density(x: f64) -> f64 {
    const INVERSE_SQRT_TAU: f64 = 0.398_942_280_401_432_7;
    // `coarse` has few enough bits that its square is exact; the rest is (x − coarse)(x + coarse)/2, which is small.
    let coarse = (x * 16.0).trunc() / 16.0;
    let rest = (x - coarse) * (x + coarse) * 0.5;
    INVERSE_SQRT_TAU * (-0.5 * coarse * coarse).exp() * (-rest).exp()
}

/// Φ(x) − 1/2 = φ(x) · Σ_k x^(2k+1) / (1·3·5···(2k+1)); all terms have one sign.
fn central(x: f64) -> f64 {
    let (mut term, mut total, mut odd) = (x, 0.0, 1.0);
    while total + term != total {
        total += term;
        odd += 2.0;
        term *= x * x / odd;
    }
    density(x) * total
}

/// 1 − Φ(x) for x ≥ `TAIL_START`: Laplace's fraction φ(x) / (x + 1/(x + 2/(x + 3/…))).
fn upper_tail(x: f64) -> f64 {
    if x.is_infinite() {
        return 0.0;
    }
    let mut below = x;
    for level in (1..=FRACTION_DEPTH).rev() {
        below = x + f64::from(level) / below;
    }
    density(x) / below
}

/// Abramowitz and Stegun 26.2.23, within 4.5e-4 of the upper quantile of a tail probability below one half.
fn rough_upper_quantile(tail: f64) -> f64 {
    let t = (-2.0 * tail.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_branches_meet() {
        for x in [TAIL_START, 1.6, 2.0] {
            let series = 0.5 - central(x);
            assert!((series / upper_tail(x) - 1.0).abs() < 1e-14, "at {x}");
        }
    }

    #[test]
    fn quantile_inverts_the_distribution() {
        for p in [1e-300, 1e-20, 1e-5, 0.025, 0.3, 0.499_999, 0.5, 0.7, 0.975, 1.0 - 1e-12] {
            let back = normal_cdf(normal_quantile(p).unwrap());
            assert!((back / p - 1.0).abs() < 1e-12, "{p} came back as {back}");
        }
        // Symmetric by construction.
        assert_eq!(normal_quantile(0.25).unwrap(), -normal_quantile(0.75).unwrap());
    }

    #[test]
    fn limits_and_refusals() {
        assert_eq!(normal_cdf(f64::NEG_INFINITY), 0.0);
        assert_eq!(normal_cdf(f64::INFINITY), 1.0);
        assert_eq!(normal_cdf(0.0), 0.5);
        assert!(normal_cdf(f64::NAN).is_nan());
        for p in [0.0, 1.0, -0.1, f64::NAN] {
            assert!(normal_quantile(p).is_err());
        }
        assert!(half_width(0.0).is_err());
    }
}
