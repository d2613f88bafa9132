//! Recursions over the tree that every measurement shares.

use crate::Process;

/// `total[p] = own[p] + Σ_a prob[p,a] · total[child]`: the expected sum of `own` from each prefix on.
///
/// Shapes: `own`, `total` `[prefixes]`, `prob [prefixes, vocab]`. Summing along the tree is summing pairwise:
/// the rounding grows with the horizon, not with the number of sequences.
pub(crate) fn expected_sum(process: Process, prob: &[f64], own: &[f64], total: &mut [f64]) {
    let (vocab, last) = (process.vocab(), process.level(process.horizon() - 1).start);
    total[last..].copy_from_slice(&own[last..]);
    for row in (0..last).rev() {
        let first = vocab * row;
        let (head, tail) = total.split_at_mut(first + 1);
        let mut sum = 0.0;
        for (&prob, &next) in prob[first..first + vocab].iter().zip(&tail[..vocab]) {
            sum += prob * next;
        }
        head[row] = own[row] + sum;
    }
}

/// The same with only the `window` nearest levels, each prefix's own included.
///
/// `kept` ends as `Σ_{j<window} E[own of the prefix j steps on]`.
pub(crate) fn windowed_sum(process: Process, prob: &[f64], own: &[f64], window: usize, kept: &mut [f64]) {
    let (vocab, last) = (process.vocab(), process.level(process.horizon() - 1).start);
    if window == 0 {
        kept.fill(0.0);
        return;
    }
    kept.copy_from_slice(own);
    for _ in 1..window {
        // Parents come before children, so each pass reads the children as the pass before left them.
        for row in 0..last {
            let first = vocab * row;
            let mut sum = 0.0;
            for edge in first..first + vocab {
                sum += prob[edge] * kept[edge + 1];
            }
            kept[row] = own[row] + sum;
        }
    }
}

/// `mean[p] = Σ_a prob[p,a] · value[p,a]`.
pub(crate) fn row_means(vocab: usize, prob: &[f64], value: &[f64], mean: &mut [f64]) {
    for ((mean, prob), value) in mean.iter_mut().zip(prob.chunks_exact(vocab)).zip(value.chunks_exact(vocab))
    {
        let mut sum = 0.0;
        for (&prob, &value) in prob.iter().zip(value) {
            sum += prob * value;
        }
        *mean = sum;
    }
}

/// The variance of `Σ_t value` along a path drawn by `prob`, by the law of total variance from the leaves up.
///
/// Shapes: `value [prefixes, vocab]`; `future [prefixes]` holds the expected sums from each prefix on;
/// `variance [prefixes]` is filled. Every term is a square, so nothing cancels.
pub(crate) fn path_variance(
    process: Process,
    prob: &[f64],
    value: &[f64],
    future: &[f64],
    variance: &mut [f64],
) -> f64 {
    let (vocab, last) = (process.vocab(), process.level(process.horizon() - 1).start);
    for row in (0..process.prefixes()).rev() {
        let mut sum = 0.0;
        for edge in vocab * row..vocab * (row + 1) {
            let (next, spread) = if row < last { (future[edge + 1], variance[edge + 1]) } else { (0.0, 0.0) };
            let away = value[edge] + next - future[row];
            sum += prob[edge] * (spread + away * away);
        }
        variance[row] = sum;
    }
    variance[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursions_by_hand() {
        // Two tokens, two steps. Root: probabilities ¼, ¾; below: ½, ½. Own: root 1, children 10 and 20.
        let process = Process::new(2, 2).unwrap();
        let prob = [0.25, 0.75, 0.5, 0.5, 0.5, 0.5];
        let own = [1.0, 10.0, 20.0];
        let mut total = [0.0; 3];
        expected_sum(process, &prob, &own, &mut total);
        // 1 + ¼·10 + ¾·20 = 18.5
        assert_eq!(total, [18.5, 10.0, 20.0]);
        let mut kept = [0.0; 3];
        windowed_sum(process, &prob, &own, 1, &mut kept);
        assert_eq!(kept, own);
        windowed_sum(process, &prob, &own, 2, &mut kept);
        assert_eq!(kept, total);

        // Values 0, 0 at the root, then 0, 2 after either token: the sum is 0 or 2 alike, variance 1.
        let value = [0.0, 0.0, 0.0, 2.0, 0.0, 2.0];
        let mut mean = [0.0; 3];
        row_means(2, &prob, &value, &mut mean);
        assert_eq!(mean, [0.0, 1.0, 1.0]);
        expected_sum(process, &prob, &mean.clone(), &mut mean);
        let mut variance = [0.0; 3];
        assert_eq!(path_variance(process, &prob, &value, &mean, &mut variance), 1.0);
    }
}
