//! The chance that nothing can be learned from a batch, or from a whole warmup, because no group differs within itself.
//!
//! Owns the arithmetic of the sampling trap before its first signal. Knows nothing of policies: callers bring success rates.

use crate::error::{Error, check_sample};

/// `rates [instances] -> scalar`. Chance that `groups` groups of `size` trajectories carry no signal at all.
///
/// Trajectories either succeed or fail, and a group shares an instance and a baseline, so that its advantages are all zero iff
/// all of it fails or all of it succeeds: at a rate p with chance `p^G + (1 − p)^G`. Instances are drawn alike and independently,
/// so a group is silent with the mean of that over `rates`, `s`, and all of them with `s^groups`.
///
/// A batch whose baseline is its own mean is one group of its whole size. A silent batch moves no policy (but for entropy
/// bonuses, penalties or decay), so a warmup of W silent batches is `W` times as many groups at the rates of the untrained
/// policy. Runs whose policies begin apart are silent with the mean over runs of this chance, not with the chance of the mean.
///
/// ```
/// // 256 trajectories at a rate of .02, one baseline: (1 − .02)^256.
/// let chance = niwaki_stats::silence(&[0.02], 256, 1)?;
/// assert!((chance - 0.98_f64.powi(256)).abs() < 1e-15);
/// # Ok::<(), niwaki_stats::Error>(())
/// ```
///
/// # Errors
/// Without rates, where one is not a probability, or with groups of no trajectories.
///
/// Paper: `tab:conditions` (C3), `app:pretrained`
pub fn silence(rates: &[f64], size: u32, groups: u64) -> Result<f64, Error> {
    check_sample("rates", rates, 1)?;
    if let Some(&found) = rates.iter().find(|rate| !(0.0..=1.0).contains(*rate)) {
        return Err(Error::OutOfRange { name: "rates", expected: "between 0 and 1", found });
    }
    if size == 0 {
        return Err(Error::OutOfRange { name: "size", expected: "at least 1", found: 0.0 });
    }
    let alike = |rate: &f64| rate.powf(f64::from(size)) + (f64::from(size) * (-rate).ln_1p()).exp();
    // A group of one has itself as its baseline.
    let group = if size == 1 { 1.0 } else { rates.iter().map(alike).sum::<f64>() / rates.len() as f64 };
    Ok(group.powf(groups as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every outcome of `groups` groups over two instances, listed.
    fn listed(rates: [f64; 2], size: u32, groups: u32) -> f64 {
        let lanes = size * groups;
        let mut sum = 0.0;
        for instances in 0..1_u32 << groups {
            for outcomes in 0..1_u32 << lanes {
                let mut chance = 0.5_f64.powi(groups as i32);
                let mut silent = true;
                for group in 0..groups {
                    let rate = rates[(instances >> group & 1) as usize];
                    let own = outcomes >> (group * size) & ((1 << size) - 1);
                    let hits = own.count_ones();
                    chance *= rate.powi(hits as i32) * (1.0 - rate).powi((size - hits) as i32);
                    silent &= hits == 0 || hits == size;
                }
                sum += if silent { chance } else { 0.0 };
            }
        }
        sum
    }

    #[test]
    fn it_is_what_listing_every_outcome_gives() {
        for rates in [[0.1, 0.1], [0.02, 0.6], [0.0, 1.0], [0.0, 0.3]] {
            for (size, groups) in [(1, 3), (2, 1), (2, 3), (3, 2), (4, 2)] {
                let (fast, slow) =
                    (silence(&rates, size, u64::from(groups)).unwrap(), listed(rates, size, groups));
                assert!((fast - slow).abs() < 1e-14, "{rates:?}, {groups} × {size}: {fast} and {slow}");
            }
        }
    }

    #[test]
    fn scarce_rewards_keep_their_digits_and_nonsense_is_refused() {
        // 2⁻¹² over 4,096 · 50 draws: (1 − 2⁻¹²)^204800 = e^(204800 ln(1 − 2⁻¹²)).
        let expected = (204_800.0 * (-(1.0_f64 / 4096.0)).ln_1p()).exp();
        let found = silence(&[1.0 / 4096.0], 4096, 50).unwrap();
        assert!((found / expected - 1.0).abs() < 1e-10, "{found} and {expected}");
        assert!(silence(&[], 4, 1).is_err() && silence(&[0.5], 0, 1).is_err());
        assert_eq!(
            silence(&[0.5, 1.5], 4, 1).unwrap_err().to_string(),
            "`rates` must be between 0 and 1, found 1.5"
        );
        assert_eq!(silence(&[0.5], 4, 0), Ok(1.0));
    }
}
