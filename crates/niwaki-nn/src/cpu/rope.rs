//! Rotary positions.

use super::Real;

/// Turns one row's heads by its position; `backward` turns the other way. Adds to `out` where asked.
pub(crate) fn turn<F: Real>(
    input: &[F],
    position: i32,
    head_width: usize,
    base: f64,
    backward: bool,
    out: &mut [F],
    accumulate: bool,
) {
    let half = head_width / 2;
    let sign = if backward { -1.0 } else { 1.0 };
    for i in 0..half {
        let angle = f64::from(position.max(0)) * libm::pow(base, -2.0 * i as f64 / head_width as f64);
        let (sine, cosine) = (F::from_f64(sign * libm::sin(angle)), F::from_f64(libm::cos(angle)));
        for (input, out) in input.chunks_exact(head_width).zip(out.chunks_exact_mut(head_width)) {
            let (a, b) = (input[i], input[i + half]);
            let (first, second) = (a * cosine - b * sine, a * sine + b * cosine);
            out[i] = if accumulate { out[i] + first } else { first };
            out[i + half] = if accumulate { out[i + half] + second } else { second };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_turn_at_position_one() {
        // base = anything: pair 0 has frequency base⁰ = 1, so position 1 turns by one radian.
        let (cosine, sine) = (1.0_f64.cos(), 1.0_f64.sin());
        let mut out = [0.0; 2];
        turn(&[2.0, 3.0], 1, 2, 10_000.0, false, &mut out, false);
        assert!((out[0] - (2.0 * cosine - 3.0 * sine)).abs() < 1e-15);
        assert!((out[1] - (2.0 * sine + 3.0 * cosine)).abs() < 1e-15);
        let mut back = [0.0; 2];
        turn(&out, 1, 2, 10_000.0, true, &mut back, false);
        assert!((back[0] - 2.0).abs() < 1e-15 && (back[1] - 3.0).abs() < 1e-15);
    }
}
