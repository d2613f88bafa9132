//! What a GGUF file divides the frequencies of positions by: Llama 3's rule, found again from its results.
//!
//! llama.cpp's `convert_hf_to_gguf.py` works out one divisor per pair of a head's columns from `rope_scaling` and keeps nothing
//! else. A program and a Hugging Face folder have the rule itself.

use niwaki_nn::Rotary;
use std::f64::consts::TAU;

/// Positions that rounds are counted over. Only the ratio of rounds to `low` and `high` matters; with this number, which is
/// Llama 3's, these two come out as they were.
const ORIGINAL: f64 = 8192.0;
/// How far a divisor may be from the rule's, as a share of it: it is an `f32`, made of a frequency in `f32`.
const TOLERANCE: f64 = 1e-5;

/// The rule that divides the frequency of pair `i` by `divisors[i]`, if there is one.
pub(super) fn rule(base: f64, divisors: &[f32]) -> Option<Rotary> {
    let (plain, width) = (Rotary::plain(base), 2 * divisors.len());
    let factor = divisors.iter().fold(1.0, |most, &divisor| f64::from(divisor).max(most));
    // How often each pair goes round, and which share of it is left as it is.
    let pair = |(i, &divisor): (usize, &f32)| {
        let kept = (1.0 / f64::from(divisor) - 1.0 / factor) / (1.0 - 1.0 / factor);
        (ORIGINAL * plain.frequency(i, width) / TAU, kept)
    };
    let pairs: Vec<(f64, f64)> = divisors.iter().enumerate().map(pair).collect();
    // The share is a straight line, cut off at zero and one. Neighbours on the line have its slope, and a cut makes it less.
    let slope = |ends: &[(f64, f64)]| (ends[0].1 - ends[1].1) / (ends[0].0 - ends[1].0);
    let steepest = pairs.windows(2).max_by(|a, b| slope(a).total_cmp(&slope(b)));
    let found = match steepest.map(|ends| (ends[0], slope(ends))) {
        Some(((rounds, kept), slope)) if slope > 0.0 => {
            let low = rounds - kept / slope;
            Rotary { base, factor, low, high: low + 1.0 / slope, original: ORIGINAL }
        }
        _ => Rotary::linear(base, factor),
    };
    let fits = |(i, &divisor): (usize, &f32)| {
        let ratio = found.frequency(i, width) * f64::from(divisor) / plain.frequency(i, width);
        (ratio - 1.0).abs() < TOLERANCE
    };
    divisors.iter().enumerate().all(fits).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As llama.cpp's converter has it: frequencies in `f32`, the rest in double precision, the result in `f32`.
    fn converted(rotary: Rotary, width: usize) -> Vec<f32> {
        let Rotary { base, factor, low, high, original } = rotary;
        let divisor = |i: usize| {
            let frequency = 1.0 / (base as f32).powf(2.0 * i as f32 / width as f32);
            let wave = TAU / f64::from(frequency);
            let smooth = (original / wave - low) / (high - low);
            if wave < original / high {
                1.0
            } else if wave > original / low {
                factor as f32
            } else {
                (1.0 / ((1.0 - smooth) / factor + smooth)) as f32
            }
        };
        (0..width / 2).map(divisor).collect()
    }

    #[test]
    fn the_rule_is_found_again() {
        let llama = |base, factor, original| Rotary { base, factor, low: 1.0, high: 4.0, original };
        for (rotary, width) in [
            // Llama 3.1, and Llama 3.2 1B.
            (llama(5e5, 8.0, 8192.0), 128),
            (llama(5e5, 32.0, 8192.0), 64),
            // One pair on the line, none, three and none that is left whole.
            (llama(500.0, 8.0, 32.0), 8),
            (llama(1e8, 8.0, 1000.0), 4),
            (llama(10.0, 8.0, 20.0), 8),
            // A single pair, and pairs that are all alike.
            (llama(1e4, 8.0, 8192.0), 2),
            (Rotary::plain(1e4), 8),
        ] {
            let found = rule(rotary.base, &converted(rotary, width)).unwrap();
            for i in 0..width / 2 {
                let (found, expected) = (found.frequency(i, width), rotary.frequency(i, width));
                assert!(
                    (found / expected - 1.0).abs() < 2e-6,
                    "{rotary:?}: pair {i}: {found} for {expected}"
                );
            }
        }
        let found = rule(5e5, &converted(llama(5e5, 8.0, 8192.0), 128)).unwrap();
        let close = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-5;
        assert!(found.factor == 8.0 && close(found.low, 1.0) && close(found.high, 4.0), "{found:?}");
    }

    #[test]
    fn other_divisors_are_no_rule() {
        let sound = converted(Rotary { base: 5e5, factor: 8.0, low: 1.0, high: 4.0, original: 8192.0 }, 128);
        assert!(rule(5e5, &sound).is_some());
        for (i, divisor) in [
            (0, 2.0),
            (30, 1.001),
            (63, 7.0),
            (5, 0.5),
            (5, 0.0),
            (5, -1.0),
            (5, f32::NAN),
            (5, f32::INFINITY),
        ] {
            let mut other = sound.clone();
            other[i] = divisor;
            assert_eq!(rule(5e5, &other), None, "pair {i} by {divisor}");
        }
        let turned: Vec<f32> = sound.into_iter().rev().collect();
        assert_eq!(rule(5e5, &turned), None);
    }
}
