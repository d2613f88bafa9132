//! Masked log-softmax, the chosen entry's log-probability and the entropy.

use super::Real;
use super::kernels::{largest, sum};
use super::simd::vectorised;

/// Log-sum-exp of the visible logits; `exponentials` receives `e^{logit − maximum}`, zero where hidden, and their sum
/// comes second.
#[inline(always)]
fn log_sum<F: Real>(logits: &[F], mask: Option<&[u8]>, exponentials: &mut [F]) -> [F; 2] {
    let visible = |place: usize| mask.is_none_or(|mask| mask[place] != 0);
    for (place, (&logit, out)) in logits.iter().zip(exponentials.iter_mut()).enumerate() {
        *out = if visible(place) { logit } else { F::LOWEST };
    }
    let highest = largest(exponentials);
    for (place, out) in exponentials.iter_mut().enumerate() {
        let exponential = (*out - highest).exponential();
        *out = if visible(place) { exponential } else { F::ZERO };
    }
    let all = sum(exponentials);
    [highest + all.logarithm(), all]
}

vectorised! {
    /// Log-probabilities of one row of logits, −∞ where hidden, with the very bits that `pick_log_prob` reports on the
    /// CPU for each choice.
    ///
    /// Shapes: all three `[choices]`.
    pub fn log_softmax<F: Real>(logits: &[F], mask: Option<&[u8]>, out: &mut [F]) {
        let [total, _] = log_sum(logits, mask, out);
        for (place, (&logit, out)) in logits.iter().zip(out).enumerate() {
            *out = if mask.is_none_or(|mask| mask[place] != 0) { logit - total } else { F::LOWEST };
        }
    }

    /// One row: the chosen log-probability, the entropy and the log-sum-exp.
    pub(crate) fn pick<F: Real>(logits: &[F], mask: Option<&[u8]>, action: i32, scratch: &mut [F]) -> [F; 3] {
        if action < 0 {
            return [F::ZERO; 3];
        }
        let scratch = &mut scratch[..logits.len()];
        let [total, all] = log_sum(logits, mask, scratch);
        // −Σ p log p, with p the exponentials' shares; nothing visible has none.
        for (term, &logit) in scratch.iter_mut().zip(logits) {
            let share = *term * (total - logit);
            *term = if *term > F::ZERO { share } else { F::ZERO };
        }
        let entropy = if all == F::ZERO { F::ZERO } else { sum(scratch) / all };
        let chosen = action as usize;
        let visible = mask.is_none_or(|mask| mask[chosen] != 0);
        [if visible { logits[chosen] - total } else { F::LOWEST }, entropy, total]
    }

    /// One row's backward: writes or adds the logits' cotangent.
    pub(crate) fn pick_backward<F: Real>(
        logits: &[F],
        mask: Option<&[u8]>,
        action: i32,
        saved: &[F],
        d_log_prob: F,
        d_entropy: F,
        d_logits: &mut [F],
        accumulate: bool,
    ) {
        let (total, entropy) = (saved[0], saved[1]);
        for place in 0..logits.len() {
            let hidden = action < 0 || mask.is_some_and(|mask| mask[place] == 0);
            let log_prob = logits[place] - total;
            let prob = log_prob.exponential();
            let chosen = if place as i32 == action { F::ONE } else { F::ZERO };
            let d = d_log_prob * (chosen - prob) - d_entropy * prob * (log_prob + entropy);
            let d = if hidden { F::ZERO } else { d };
            d_logits[place] = if accumulate { d_logits[place] + d } else { d };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_visible_of_three() {
        // Logits ln 1 and ln 3 visible: probabilities 1/4 and 3/4; H = ln 4 − (3/4) ln 3.
        let logits = [0.0, 9.0, 3.0_f64.ln()];
        let mask = [1, 0, 1];
        let [log_prob, entropy, _] = pick(&logits, Some(&mask), 2, &mut [0.0; 3]);
        assert!((log_prob - 0.75_f64.ln()).abs() < 1e-15);
        assert!((entropy - (4.0_f64.ln() - 0.75 * 3.0_f64.ln())).abs() < 1e-15);
        let mut all = [0.0; 3];
        log_softmax(&logits, Some(&mask), &mut all);
        assert_eq!((all[1], all[2]), (f64::NEG_INFINITY, log_prob));
        assert_eq!(pick(&logits, Some(&mask), -1, &mut [0.0; 3]), [0.0; 3]);
        assert_eq!(pick(&logits, Some(&mask), 1, &mut [0.0; 3])[0], f64::NEG_INFINITY);
    }
}
