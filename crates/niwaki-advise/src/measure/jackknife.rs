//! Intervals for any number: what it would have been without each fold of the data.
//!
//! Folds hold whole groups, so that trajectories of one instance do not pass for independent ones.

use niwaki_stats::normal_quantile;

/// Folds of a run.
pub(crate) const FOLDS: usize = 20;

/// Nominal coverage of every interval.
pub(crate) const LEVEL: f64 = 0.95;

/// The folds that are left out one by one.
#[derive(Clone, Debug)]
pub(crate) struct Leaving {
    /// Share of the data that each holds.
    shares: Vec<f64>,
}

impl Leaving {
    /// Folds of so much weight.
    pub(crate) fn new(masses: &[f64]) -> Self {
        let total: f64 = masses.iter().sum();
        Self { shares: masses.iter().map(|mass| mass / total).collect() }
    }

    /// Half of a 95% interval of a number, by its values without each fold; none where they do not tell.
    pub(crate) fn reach(&self, without: &[f64]) -> Option<f64> {
        let error = standard_error(without, &self.shares)?;
        Some(error * half_width(effective(&self.shares)))
    }
}

/// Standard error by leaving folds out, each of which holds a share `w` of the data: with c the mean of the estimates without a
/// fold weighted by 1 − w, √(Σ ((1 − w) (θ₍ₖ₎ − c))² / (1 − Σ w²)); none with fewer than two folds. Of folds of one size it is
/// √((K − 1)/K · Σ (θ₍ₖ₎ − θ̄)²), and of a mean over independent terms it is unbiased however the sizes fall out.
fn standard_error(without: &[f64], shares: &[f64]) -> Option<f64> {
    if without.len() < 2 || without.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let kept = || without.iter().zip(shares).map(|(value, share)| (value, 1.0 - share));
    let centre =
        kept().map(|(value, kept)| kept * value).sum::<f64>() / kept().map(|(_, kept)| kept).sum::<f64>();
    let squares: f64 = kept().map(|(value, kept)| (kept * (value - centre)).powi(2)).sum();
    let alike: f64 = shares.iter().map(|share| share * share).sum();
    Some((squares / (1.0 - alike)).sqrt())
}

/// Folds of one size that would say as much as these: 1 / Σ w², at least two of two.
fn effective(shares: &[f64]) -> usize {
    let alike: f64 = shares.iter().map(|share| share * share).sum();
    // A hair above, so that folds of one size are as many as they are.
    ((1.0 / alike + 1e-9) as usize).max(shares.len().min(2))
}

/// The half-width, in standard errors, of a 95% interval from `folds` folds: Student's quantile with one degree
/// of freedom less, by the expansion of Cornish and Fisher (exact at 1 and 2).
fn half_width(folds: usize) -> f64 {
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
        assert!((standard_error(&without, &[0.25; 4]).unwrap() - 3.0_f64.sqrt()).abs() < 1e-14);
        assert_eq!(standard_error(&[1.0], &[1.0]), None);
        assert_eq!((effective(&[0.25; 4]), effective(&[0.05; 20]), effective(&[0.9, 0.1])), (4, 20, 2));
        // Shares ½, ¼, ⅛, ⅛: Σ w² = 22/64, so 64/22 = 2.9 folds.
        assert_eq!(effective(&[0.5, 0.25, 0.125, 0.125]), 2);
    }

    #[test]
    fn folds_of_any_size_give_a_mean_its_standard_error() {
        // Blocks of 3, 1 and 2 independent terms of variance 1: averaged over all signs, the squared error of the mean of six
        // terms is 1/6.
        let sizes = [3.0, 1.0, 2.0];
        let shares = sizes.map(|size| size / 6.0);
        let mut square = 0.0;
        for signs in 0..64_u32 {
            let term = |at: u32| if signs >> at & 1 == 1 { 1.0 } else { -1.0 };
            let blocks = [term(0) + term(1) + term(2), term(3), term(4) + term(5)];
            let total: f64 = blocks.iter().sum();
            let without: Vec<f64> =
                blocks.iter().zip(sizes).map(|(block, size)| (total - block) / (6.0 - size)).collect();
            square += standard_error(&without, &shares).unwrap().powi(2) / 64.0;
        }
        assert!((square - 1.0 / 6.0).abs() < 1e-12, "{square}");
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
