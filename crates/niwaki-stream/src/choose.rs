//! One of some choices: by chance, from probabilities and one uniform, or the likeliest.

/// The first choice at which the running sum of probabilities exceeds `uniform`; the likeliest if rounding leaves none.
///
/// A choice of probability zero is never drawn, unless all are zero.
pub fn by_chance(probabilities: impl IntoIterator<Item = f64>, uniform: f64) -> usize {
    let (mut total, mut likeliest, mut most) = (0.0, 0, 0.0);
    for (choice, probability) in probabilities.into_iter().enumerate() {
        total += probability;
        if uniform < total {
            return choice;
        }
        if probability > most {
            (likeliest, most) = (choice, probability);
        }
    }
    likeliest
}

/// As [`by_chance`], from log-probabilities; −∞ closes a choice.
pub fn by_log_chance<F: Copy + Into<f64>>(log_probs: &[F], uniform: f64) -> usize {
    by_chance(log_probs.iter().map(|&log_prob| libm::exp(log_prob.into())), uniform)
}

/// The likeliest choice, of equals the first.
pub fn likeliest<F: PartialOrd>(weights: &[F]) -> usize {
    (0..weights.len()).fold(0, |best, next| if weights[next] > weights[best] { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn halves_and_quarters() {
        let logs = [0.25_f64, 0.5, 0.25].map(f64::ln);
        let chosen = [0.0, 0.2, 0.26, 0.74, 0.76].map(|uniform| by_log_chance(&logs, uniform));
        assert_eq!(chosen, [0, 0, 1, 1, 2]);
        assert_eq!((likeliest(&logs), likeliest(&[1.0_f32, 1.0])), (1, 0));
    }

    /// Where the sum falls short of the uniform, the last entry is not the answer: it may be closed.
    #[test]
    fn a_closed_choice_is_never_drawn() {
        let closed = f32::NEG_INFINITY;
        assert_eq!(by_log_chance(&[closed, -0.7, -0.8, closed], 1.0), 1);
        let mut stream = Key::new(1, "choices").open();
        let top = 1.0 - f64::EPSILON / 2.0;
        for round in 0..2_000 {
            // Weights that sum to a little less than one, as a softmax in f32 does over a long vocabulary.
            let count = 2 + round % 50;
            let open: Vec<bool> =
                (0..count).map(|place| place == round % count || stream.uniform() < 0.3).collect();
            let share = (1.0 - 6e-7) / open.iter().filter(|open| **open).count() as f64;
            let weights: Vec<f64> = open.iter().map(|open| if *open { share } else { 0.0 }).collect();
            for uniform in [0.0, stream.uniform(), 1.0 - 1e-7, top] {
                assert!(open[by_chance(weights.iter().copied(), uniform)], "{weights:?} at {uniform}");
            }
        }
    }

    /// Shares of many draws lie within five standard deviations of their probabilities.
    #[test]
    fn choices_are_drawn_as_often_as_they_are_likely() {
        let probabilities = [0.1, 0.0, 0.6, 0.3];
        let (mut stream, mut counts, draws) = (Key::new(2, "choices").open(), [0_u32; 4], 100_000);
        (0..draws).for_each(|_| counts[by_chance(probabilities, stream.uniform())] += 1);
        for (count, probability) in counts.into_iter().zip(probabilities) {
            let (mean, variance) =
                (f64::from(draws) * probability, f64::from(draws) * probability * (1.0 - probability));
            assert!((f64::from(count) - mean).abs() <= 5.0 * variance.sqrt(), "{counts:?}");
        }
    }
}
