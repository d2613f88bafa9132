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

/// Which way a scan runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the first step to the last.
    Forward,
    /// From the last step to the first.
    Backward,
}

/// An exclusive scan of every row: `output[t]` holds what `next` has made of `start` before step `t`.
///
/// A scan waits for its last addition; four rows of equal length, scanned side by side, wait together.
///
/// Shapes: `input`, `output [steps]`; `offsets [lanes + 1]`, relative to their first.
#[inline(always)]
pub(crate) fn scan_rows<X: Copy, Y: Copy>(
    offsets: &[usize],
    way: Way,
    input: &[X],
    output: &mut [Y],
    start: Y,
    next: impl Fn(Y, X) -> Y,
) {
    let Some(&first) = offsets.first() else { return };
    let mut rest = offsets;
    while let [from, to, ..] = *rest {
        let length = to - from;
        let alike = rest.len() > 4 && (1..4).all(|lane| rest[lane + 1] - rest[lane] == length);
        let rows = if alike { 4 } else { 1 };
        let span = from - first..from - first + rows * length;
        let (input, output) = (&input[span.clone()], &mut output[span]);
        let turn = |i: usize| if way == Way::Forward { i } else { length - 1 - i };
        if alike {
            let (a, others) = input.split_at(length);
            let (b, others) = others.split_at(length);
            let (c, d) = others.split_at(length);
            let (out_a, others) = output.split_at_mut(length);
            let (out_b, others) = others.split_at_mut(length);
            let (out_c, out_d) = others.split_at_mut(length);
            let (d, out_d) = (&d[..length], &mut out_d[..length]);
            let mut state = [start; 4];
            for t in (0..length).map(turn) {
                out_a[t] = state[0];
                out_b[t] = state[1];
                out_c[t] = state[2];
                out_d[t] = state[3];
                state =
                    [next(state[0], a[t]), next(state[1], b[t]), next(state[2], c[t]), next(state[3], d[t])];
            }
        } else {
            let mut state = start;
            for t in (0..length).map(turn) {
                output[t] = state;
                state = next(state, input[t]);
            }
        }
        rest = &rest[rows..];
    }
}

/// Sum in eight interleaved parts, so that it vectorises.
#[inline(always)]
pub(crate) fn sum<F: Real>(values: &[F]) -> F {
    let (chunks, rest) = values.as_chunks::<8>();
    let mut parts = [F::ZERO; 8];
    for chunk in chunks {
        for (part, &value) in parts.iter_mut().zip(chunk) {
            *part += value;
        }
    }
    let rest = rest.iter().fold(F::ZERO, |sum, &value| sum + value);
    let [a, b, c, d, e, f, g, h] = parts;
    ((a + e) + (c + g)) + ((b + f) + (d + h)) + rest
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
    fn rows_side_by_side_scan_as_rows_alone() {
        // Lengths 3, 3, 3, 3 (side by side), 2, 0, 1 (alone), starting at an offset of 5.
        let offsets = [5, 8, 11, 14, 17, 19, 19, 20];
        let ell: Vec<f64> = (0..15).map(|i| 0.3 * f64::from(i * i % 7) - 0.8).collect();
        for way in [Way::Forward, Way::Backward] {
            let mut together = vec![0.0; 15];
            scan_rows(&offsets, way, &ell, &mut together, 0.0, |sum, ell| sum + ell);
            for row in offsets.windows(2).map(|row| row[0] - 5..row[1] - 5) {
                let (mut ell, mut came) = (ell[row.clone()].to_vec(), together[row.clone()].to_vec());
                if way == Way::Backward {
                    ell.reverse();
                    came.reverse();
                }
                let mut alone = vec![0.0; row.len()];
                exclusive_prefix(&ell, &mut alone);
                assert_eq!(came, alone);
            }
        }
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
