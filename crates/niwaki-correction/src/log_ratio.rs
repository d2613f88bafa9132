//! Log-ratios and the sums along the prefix. Each sum works on one trajectory, or on several side by side
//! (`[steps][lanes]`): one body serves both, so the two agree to the bit.

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
    let [sum] = exclusive_prefixes([F::ZERO], ell.as_chunks().0, prefix.as_chunks_mut().0);
    sum
}

/// `prefix[t] = Σ_{max(0, t−window) ≤ i < t} ell[i]`.
///
/// Shapes: `[steps]` of one trajectory. A window of at least `steps − 1` gives [`exclusive_prefix`], to the bit.
///
/// Paper: `tab:variants` (Truncated)
#[inline(always)]
pub fn windowed_prefix<F: Real>(ell: &[F], window: usize, prefix: &mut [F]) {
    windowed_prefixes::<F, 1>(ell.as_chunks().0, window, prefix.as_chunks_mut().0);
}

/// `minimum[t] = min_{i<t} ell[i]` and the step that attains it (the first of equals); 0 at the first step.
///
/// Shapes: `[steps]` of one trajectory; `attained[0]` is 0 and means nothing.
#[inline(always)]
pub fn running_minimum<F: Real>(ell: &[F], minimum: &mut [F], attained: &mut [usize]) {
    running_minima::<F, 1>(ell.as_chunks().0, minimum.as_chunks_mut().0, attained.as_chunks_mut().0);
}

/// [`exclusive_prefix`] of `L` trajectories side by side, from where the sums of earlier steps are `before`.
#[inline(always)]
pub(crate) fn exclusive_prefixes<F: Real, const L: usize>(
    before: [F; L],
    ell: &[[F; L]],
    prefix: &mut [[F; L]],
) -> [F; L] {
    let mut sum = before;
    for (prefix, ell) in prefix.iter_mut().zip(ell) {
        *prefix = sum;
        add(&mut sum, ell);
    }
    sum
}

/// [`windowed_prefix`] of `L` trajectories side by side.
#[inline(always)]
pub(crate) fn windowed_prefixes<F: Real, const L: usize>(
    ell: &[[F; L]],
    window: usize,
    prefix: &mut [[F; L]],
) {
    if window >= ell.len().saturating_sub(1) {
        exclusive_prefixes([F::ZERO; L], ell, prefix);
        return;
    }
    for (t, prefix) in prefix.iter_mut().enumerate() {
        let mut sum = [F::ZERO; L];
        ell[t.saturating_sub(window)..t].iter().for_each(|ell| add(&mut sum, ell));
        *prefix = sum;
    }
}

/// [`running_minimum`] of `L` trajectories side by side.
#[inline(always)]
pub(crate) fn running_minima<F: Real, const L: usize>(
    ell: &[[F; L]],
    minimum: &mut [[F; L]],
    attained: &mut [[usize; L]],
) {
    let (mut lowest, mut at) = ([F::ZERO; L], [0; L]);
    for (t, ell) in ell.iter().enumerate() {
        (minimum[t], attained[t]) = (lowest, at);
        for lane in 0..L {
            let lower = t == 0 || ell[lane] < lowest[lane];
            lowest[lane] = if lower { ell[lane] } else { lowest[lane] };
            at[lane] = if lower { t } else { at[lane] };
        }
    }
}

/// Adds lane by lane.
#[inline(always)]
pub(crate) fn add<F: Real, const L: usize>(sums: &mut [F; L], values: &[F; L]) {
    for lane in 0..L {
        sums[lane] += values[lane];
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
    fn trajectories_side_by_side_read_as_each_alone() {
        let ell: Vec<[f64; 3]> =
            (0..9).map(|i| [0.3, 0.7, 1.1].map(|x| (x * f64::from(i * i % 7)).sin())).collect();
        let read = |lanes: &mut dyn FnMut(&mut [[f64; 3]]), alone: &dyn Fn(&[f64], &mut [f64])| {
            let mut together = vec![[0.0; 3]; 9];
            lanes(&mut together);
            for lane in 0..3 {
                let one: Vec<f64> = ell.iter().map(|ell| ell[lane]).collect();
                let mut expected = vec![0.0; 9];
                alone(&one, &mut expected);
                assert_eq!(together.iter().map(|row| row[lane]).collect::<Vec<_>>(), expected);
            }
        };
        let in_two = |out: &mut [[f64; 3]]| {
            let before = exclusive_prefixes([0.0; 3], &ell[..4], &mut out[..4]);
            exclusive_prefixes(before, &ell[4..], &mut out[4..]);
        };
        read(&mut { in_two }, &|ell, out| _ = exclusive_prefix(ell, out));
        read(&mut |out| windowed_prefixes(&ell, 3, out), &|ell, out| windowed_prefix(ell, 3, out));
        read(&mut |out| running_minima(&ell, out, &mut [[0; 3]; 9]), &|ell, out| {
            running_minimum(ell, out, &mut [0; 9]);
        });
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
