//! Log-ratios and the sums along the prefix. Each function works on one trajectory (or on flat arrays where the
//! order of trajectories does not matter).

use crate::Real;

/// `ell[t] = log_prob[t] − rollout_log_prob[t]`.
///
/// Shapes: all `[steps]`. Paper: `sec:correction` (ℓ_t)
#[inline(always)]
pub fn log_ratios<F: Real>(log_prob: &[F], rollout_log_prob: &[F], ell: &mut [F]) {
    let steps = ell.len();
    let (log_prob, rollout_log_prob) = (&log_prob[..steps], &rollout_log_prob[..steps]);
    for t in 0..steps {
        ell[t] = log_prob[t] - rollout_log_prob[t];
    }
}

/// `prefix[t] = Σ_{i<t} ell[i]`, the exclusive cumulative sum, with `prefix[0] = 0`; returns the sum of all.
///
/// Shapes: `[steps]` of one trajectory. Paper: `eq:prefix-ratio-intro`, `sec:family` (L^s_t), `app:family`
#[inline(always)]
pub fn exclusive_prefix<F: Real>(ell: &[F], prefix: &mut [F]) -> F {
    let mut sum = F::ZERO;
    for (prefix, &ell) in prefix.iter_mut().zip(ell) {
        *prefix = sum;
        sum += ell;
    }
    sum
}

/// `prefix[t] = Σ_{max(0, t−window) ≤ i < t} ell[i]`.
///
/// Shapes: `[steps]` of one trajectory. A window of at least `steps − 1` gives [`exclusive_prefix`], to the bit.
///
/// Paper: `tab:variants` (Truncated)
#[inline(always)]
pub fn windowed_prefix<F: Real>(ell: &[F], window: usize, prefix: &mut [F]) {
    if window >= ell.len().saturating_sub(1) {
        exclusive_prefix(ell, prefix);
        return;
    }
    for (t, prefix) in prefix.iter_mut().enumerate() {
        *prefix = ell[t.saturating_sub(window)..t].iter().fold(F::ZERO, |sum, &ell| sum + ell);
    }
}

/// `minimum[t] = min_{i<t} ell[i]` and the step that attains it (the first of equals); 0 at the first step.
///
/// Shapes: `[steps]` of one trajectory; `attained[0]` is 0 and means nothing.
#[inline(always)]
pub fn running_minimum<F: Real>(ell: &[F], minimum: &mut [F], attained: &mut [usize]) {
    let mut at = 0;
    for t in 0..ell.len() {
        if t > 0 && ell[t - 1] < ell[at] {
            at = t - 1;
        }
        minimum[t] = if t == 0 { F::ZERO } else { ell[at] };
        attained[t] = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_by_hand() {
        // ℓ = (1, 2, 4): nothing before the first, then 1, then 1 + 2; the sum of all is 7.
        let mut prefix = [0.0; 3];
        assert_eq!(exclusive_prefix(&[1.0, 2.0, 4.0], &mut prefix), 7.0);
        assert_eq!(prefix, [0.0, 1.0, 3.0]);
    }

    #[test]
    fn a_wide_window_is_the_prefix_to_the_bit() {
        let ell: Vec<f64> = (0..9).map(|i| 0.1 * f64::from(i * i) - 1.3).collect();
        let (mut prefix, mut windowed) = (vec![0.0; 9], vec![0.0; 9]);
        exclusive_prefix(&ell, &mut prefix);
        for window in [8, 9, 100, usize::MAX] {
            windowed_prefix(&ell, window, &mut windowed);
            assert_eq!(prefix, windowed);
        }
    }
}
