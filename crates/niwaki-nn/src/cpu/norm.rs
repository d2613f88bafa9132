//! Layer norm and root-mean-square norm, rows at a time.

use super::Real;
use super::kernels::{dot, sum};
use super::simd::vectorised;

vectorised! {
    /// Writes `y`, and `(mean, 1/deviation)` of each row into `saved` unless it is empty.
    pub(crate) fn layer_norm<F: Real>(x: &[F], gain: &[F], bias: &[F], epsilon: F, y: &mut [F], saved: &mut [F]) {
        let width = gain.len();
        let share = F::ONE / F::from_f64(width as f64);
        for (row, (x, y)) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)).enumerate() {
            let mean = sum(x) * share;
            for (y, &x) in y.iter_mut().zip(x) {
                *y = x - mean;
            }
            let factor = F::ONE / (dot(y, y) * share + epsilon).root();
            for ((y, &gain), &bias) in y.iter_mut().zip(gain).zip(bias) {
                *y = *y * factor * gain + bias;
            }
            if let Some(saved) = saved.get_mut(2 * row..2 * row + 2) {
                (saved[0], saved[1]) = (mean, factor);
            }
        }
    }

    /// Writes or adds `dx` unless it is empty, and adds to the cotangents of gain and bias.
    pub(crate) fn layer_norm_backward<F: Real>(
        x: &[F],
        gain: &[F],
        saved: &[F],
        dy: &[F],
        dx: &mut [F],
        accumulate: bool,
        d_gain: &mut [F],
        d_bias: &mut [F],
        normed: &mut [F],
        weighted: &mut [F],
    ) {
        let width = gain.len();
        let share = F::ONE / F::from_f64(width as f64);
        let (normed, weighted) = (&mut normed[..width], &mut weighted[..width]);
        for (row, (x, dy)) in x.chunks_exact(width).zip(dy.chunks_exact(width)).enumerate() {
            let (mean, factor) = (saved[2 * row], saved[2 * row + 1]);
            for i in 0..width {
                normed[i] = (x[i] - mean) * factor;
                weighted[i] = dy[i] * gain[i];
                d_gain[i] += dy[i] * normed[i];
                d_bias[i] += dy[i];
            }
            let Some(dx) = dx.get_mut(row * width..(row + 1) * width) else { continue };
            let centre = sum(weighted) * share;
            let tilt = dot(weighted, normed) * share;
            for i in 0..width {
                let d = factor * (weighted[i] - centre - normed[i] * tilt);
                dx[i] = if accumulate { dx[i] + d } else { d };
            }
        }
    }

    /// Writes `y`, and `1/√mean square` of each row into `saved` unless it is empty.
    pub(crate) fn rms_norm<F: Real>(x: &[F], gain: &[F], epsilon: F, y: &mut [F], saved: &mut [F]) {
        let width = gain.len();
        let share = F::ONE / F::from_f64(width as f64);
        for (row, (x, y)) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)).enumerate() {
            let factor = F::ONE / (dot(x, x) * share + epsilon).root();
            for ((y, &x), &gain) in y.iter_mut().zip(x).zip(gain) {
                *y = x * factor * gain;
            }
            if let Some(saved) = saved.get_mut(row) {
                *saved = factor;
            }
        }
    }

    /// Writes or adds `dx` unless it is empty, and adds to the gain's cotangent.
    pub(crate) fn rms_norm_backward<F: Real>(
        x: &[F],
        gain: &[F],
        saved: &[F],
        dy: &[F],
        dx: &mut [F],
        accumulate: bool,
        d_gain: &mut [F],
        normed: &mut [F],
        weighted: &mut [F],
    ) {
        let width = gain.len();
        let share = F::ONE / F::from_f64(width as f64);
        let (normed, weighted) = (&mut normed[..width], &mut weighted[..width]);
        for (row, (x, dy)) in x.chunks_exact(width).zip(dy.chunks_exact(width)).enumerate() {
            let factor = saved[row];
            for i in 0..width {
                normed[i] = x[i] * factor;
                weighted[i] = dy[i] * gain[i];
                d_gain[i] += dy[i] * normed[i];
            }
            let Some(dx) = dx.get_mut(row * width..(row + 1) * width) else { continue };
            let tilt = dot(weighted, normed) * share;
            for i in 0..width {
                let d = factor * (weighted[i] - normed[i] * tilt);
                dx[i] = if accumulate { dx[i] + d } else { d };
            }
        }
    }
}
