//! Pairwise sums: the rounding of a million terms stays at a few units in the last place.

use crate::wide::wide;
use niwaki_correction::Real;
use std::ops::Range;

/// `Σ term(i)` over a range, summed pairwise in blocks of 128 with four running sums.
#[inline]
pub(crate) fn sum(range: Range<usize>, term: impl Fn(usize) -> f64 + Copy) -> f64 {
    let length = range.len();
    if length > 128 {
        // Halving at a multiple of the block keeps the order a function of the length alone.
        let middle = range.start + (length / 2).next_multiple_of(128);
        return sum_halves(range.start..middle, middle..range.end, term);
    }
    let mut running = [0.0; 4];
    let mut at = range.start;
    while at + 4 <= range.end {
        for (lane, running) in running.iter_mut().enumerate() {
            *running += term(at + lane);
        }
        at += 4;
    }
    let rest: f64 = (at..range.end).map(term).sum();
    (running[0] + running[1]) + (running[2] + running[3]) + rest
}

/// Kept apart so that the block above is inlined and the recursion is not.
fn sum_halves(low: Range<usize>, high: Range<usize>, term: impl Fn(usize) -> f64 + Copy) -> f64 {
    sum(low, term) + sum(high, term)
}

/// Σ x·y, summed pairwise as [`sum`] does.
pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    let y = &y[..x.len()];
    if x.len() > 128 {
        let middle = (x.len() / 2).next_multiple_of(128);
        return dot(&x[..middle], &y[..middle]) + dot(&x[middle..], &y[middle..]);
    }
    dot_block(x, y)
}

wide! {
    /// Σ x·y with sixteen running sums.
    fn dot_block(x: &[f64], y: &[f64]) -> f64 {
        let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<16>(), y.as_chunks::<16>());
        let mut running = [0.0; 16];
        for (x, y) in x.iter().zip(y) {
            for lane in 0..16 {
                running[lane] += x[lane] * y[lane];
            }
        }
        let eight: [f64; 8] = std::array::from_fn(|lane| running[lane] + running[lane + 8]);
        let four: [f64; 4] = std::array::from_fn(|lane| eight[lane] + eight[lane + 4]);
        (four[0] + four[2]) + (four[1] + four[3]) + x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum::<f64>()
    }
}

wide! {
    /// The highest of the values.
    pub(crate) fn highest(values: &[f64]) -> f64 {
        let (chunks, rest) = values.as_chunks::<16>();
        let mut highest = [f64::NEG_INFINITY; 16];
        for chunk in chunks {
            for lane in 0..16 {
                highest[lane] = chunk[lane].larger(highest[lane]);
            }
        }
        rest.iter().chain(&highest).fold(f64::NEG_INFINITY, |high, &value| value.larger(high))
    }
}

/// √Σx².
pub(crate) fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_right_at_every_length_and_stay_accurate() {
        for length in [0_usize, 1, 3, 4, 127, 128, 129, 1000, 4097] {
            // Σ_{i<n} i = n(n − 1)/2, in whole numbers and so without rounding.
            let expected = (length * length.saturating_sub(1) / 2) as f64;
            assert_eq!(sum(0..length, |i| i as f64), expected);
        }
        for length in [0_usize, 3, 128, 131, 1000] {
            let (x, y) = (vec![2.0; length], (0..length).map(|i| i as f64).collect::<Vec<_>>());
            assert_eq!(dot(&x, &y), (length * length.saturating_sub(1)) as f64);
        }
        for length in [1_usize, 15, 16, 40] {
            assert_eq!(highest(&(0..length).map(|i| i as f64).collect::<Vec<_>>()), (length - 1) as f64);
        }
        // A million times 0.1: a running sum is off by about 1e-6.
        assert!((sum(0..1_000_000, |_| 0.1) - 100_000.0).abs() < 1e-9);
    }

    #[test]
    fn norm_by_hand() {
        assert_eq!((norm(&[3.0, 4.0]), dot(&[1.0, 2.0], &[3.0, 4.0])), (5.0, 11.0));
    }
}
