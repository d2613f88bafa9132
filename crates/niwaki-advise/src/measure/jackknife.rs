//! Intervals for any number: what it would have been without each fold of the data.
//!
//! Folds hold whole groups, so that trajectories of one instance do not pass for independent ones.

use niwaki_stats::normal_quantile;

/// Folds of a run.
pub(crate) const FOLDS: usize = 20;

/// Nominal coverage of every interval.
pub(crate) const LEVEL: f64 = 0.95;

/// Standard error by leaving folds out: √((K − 1)/K · Σ (θ₍ₖ₎ − θ̄)²); none with fewer than two folds.
pub(crate) fn standard_error(without: &[f64]) -> Option<f64> {
    let folds = without.len() as f64;
    if without.len() < 2 || without.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mean = without.iter().sum::<f64>() / folds;
    let squares: f64 = without.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some(((folds - 1.0) / folds * squares).sqrt())
}

/// The half-width, in standard errors, of a 95% interval from `folds` folds: Student's quantile with one degree
/// of freedom less, by the expansion of Cornish and Fisher (exact at 1 and 2).
pub(crate) fn half_width(folds: usize) -> f64 {
    let freedom = folds.saturating_sub(1) as f64;
    // The level is a constant strictly inside (0, 1), so there is always a quantile.
    let z = normal_quantile(0.5 + 0.5 * LEVEL).unwrap_or(f64::NAN);
    match folds {
        0 | 1 => f64::INFINITY,
        // tan(π · 0.475), and √(2 · 0.95² / (1 − 0.95²)).
        2 => 12.706_204_736,
        3 => 4.302_652_730,
        _ => {
            let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
            z + (z3 + z) / (4.0 * freedom)
                + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * freedom.powi(2))
                + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * freedom.powi(3))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jackknife_of_a_mean_is_its_standard_error() {
        // Values 2, 4, 4, 10 as four folds: mean 5, standard error √3 (see the stats crate).
        let values = [2.0, 4.0, 4.0, 10.0];
        let total: f64 = values.iter().sum();
        let without: Vec<f64> = values.iter().map(|value| (total - value) / 3.0).collect();
        assert!((standard_error(&without).unwrap() - 3.0_f64.sqrt()).abs() < 1e-14);
        assert_eq!(standard_error(&[1.0]), None);
    }

    #[test]
    fn half_widths_are_students() {
        // Tables: t at 0.975 with 3, 4, 9, 19 degrees of freedom.
        for (folds, expected, slack) in
            [(4, 3.1824, 0.03), (5, 2.7764, 0.01), (10, 2.2622, 5e-4), (20, 2.0930, 2e-5)]
        {
            assert!((half_width(folds) - expected).abs() < slack + 5e-5, "{folds}: {}", half_width(folds));
        }
    }
}
