//! One of some choices, by chance or the likeliest.

use niwaki_nn::Real;

/// The first choice at which the running sum of probabilities exceeds the uniform.
pub(crate) fn by_chance<F: Real>(log_probs: &[F], uniform: f64) -> usize {
    let mut sum = 0.0;
    let found = log_probs.iter().position(|log_prob| {
        sum += log_prob.to_f64().exp();
        sum > uniform
    });
    // Rounding may leave the sum below the uniform.
    found.unwrap_or(log_probs.len() - 1)
}

/// The likeliest; of equals the first.
pub(crate) fn likeliest<F: Real>(log_probs: &[F]) -> usize {
    (0..log_probs.len()).fold(0, |best, next| if log_probs[next] > log_probs[best] { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_and_quarters() {
        let logs = [0.25_f64, 0.5, 0.25].map(f64::ln);
        assert_eq!(
            [0.0, 0.2, 0.26, 0.74, 0.76, 1.0].map(|uniform| by_chance(&logs, uniform)),
            [0, 0, 1, 1, 2, 2]
        );
        assert_eq!((likeliest(&logs), likeliest(&[1.0_f32, 1.0])), (1, 0));
    }
}
