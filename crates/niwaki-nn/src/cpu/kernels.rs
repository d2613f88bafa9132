//! Kernels over single scalars and columns: activations, sums, scaling.

use super::Real;
use crate::ops::Activation;
use niwaki_simd::vectorised;

/// Accumulators of a sum: wide enough for one AVX-512 register of f32.
pub(crate) const LANES: usize = 16;

/// `Σ a · b`, in an order that depends on the length alone.
#[inline(always)]
pub(crate) fn dot<F: Real>(a: &[F], b: &[F]) -> F {
    if a.len() < LANES {
        return a.iter().zip(b).fold(F::ZERO, |sum, (&a, &b)| sum + a * b);
    }
    let mut sums = [F::ZERO; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: F =
        a_chunks.remainder().iter().zip(b_chunks.remainder()).fold(F::ZERO, |sum, (&a, &b)| sum + a * b);
    for (a, b) in a_chunks.zip(b_chunks) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    fold(sums, |a, b| a + b) + rest
}

/// `Σ a`, in an order that depends on the length alone.
#[inline(always)]
pub(crate) fn sum<F: Real>(a: &[F]) -> F {
    if a.len() < LANES {
        return a.iter().fold(F::ZERO, |sum, &a| sum + a);
    }
    let mut sums = [F::ZERO; LANES];
    let chunks = a.chunks_exact(LANES);
    let rest = chunks.remainder().iter().fold(F::ZERO, |sum, &a| sum + a);
    for a in chunks {
        for lane in 0..LANES {
            sums[lane] += a[lane];
        }
    }
    fold(sums, |a, b| a + b) + rest
}

/// The largest of the numbers; −∞ if there is none.
#[inline(always)]
pub(crate) fn largest<F: Real>(a: &[F]) -> F {
    let (chunks, rest) = a.as_chunks::<LANES>();
    let rest = rest.iter().fold(F::LOWEST, |highest, &a| larger(highest, a));
    if chunks.is_empty() {
        return rest;
    }
    let mut highest = [F::LOWEST; LANES];
    for a in chunks {
        for lane in 0..LANES {
            highest[lane] = larger(highest[lane], a[lane]);
        }
    }
    larger(fold(highest, larger), rest)
}

/// The larger number: `a` where `b` is not one.
#[inline(always)]
pub(crate) fn larger<F: Real>(a: F, b: F) -> F {
    if b > a { b } else { a }
}

/// Joins the accumulators. The black box puts them into memory first: otherwise the compiler splits them to suit these
/// few steps, and the long loop before runs two by two instead of sixteen by sixteen.
#[inline(always)]
fn fold<F: Real>(lanes: [F; LANES], join: impl Fn(F, F) -> F) -> F {
    let mut lanes = std::hint::black_box(lanes);
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = join(lanes[lane], lanes[lane + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// `y += factor · x`.
#[inline(always)]
pub(crate) fn add_scaled<F: Real>(y: &mut [F], factor: F, x: &[F]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y += factor * x;
    }
}

/// Replaces `z` by `activation(z + bias)`, row by row; keeps the derivative of GELU and SiLU where asked.
pub(crate) fn activate<F: Real>(
    z: &mut [F],
    bias: Option<&[F]>,
    activation: Activation,
    slope: Option<&mut [F]>,
) {
    match (activation, slope) {
        (Activation::None, _) => {
            if let Some(bias) = bias {
                add_bias(z, bias);
            }
        }
        (Activation::Relu, _) => relu(z, bias),
        (Activation::Tanh, _) => tanh(z, bias),
        (Activation::Elu, _) => elu(z, bias),
        (Activation::Sigmoid, _) => sigmoid(z, bias),
        (Activation::Gelu, Some(slope)) => gelu_and_slope(z, bias, slope),
        (Activation::Gelu, None) => gelu(z, bias),
        (Activation::Silu, Some(slope)) => silu_and_slope(z, bias, slope),
        (Activation::Silu, None) => silu(z, bias),
    }
}

/// Adds a bias to each row, if there is one, so that what follows is a plain loop.
#[inline(always)]
fn shift<F: Real>(z: &mut [F], bias: Option<&[F]>) {
    if let Some(bias) = bias {
        for row in z.chunks_exact_mut(bias.len()) {
            for (z, &bias) in row.iter_mut().zip(bias) {
                *z += bias;
            }
        }
    }
}

vectorised! {
    /// Adds `bias` to each row.
    pub(crate) fn add_bias<F: Real>(z: &mut [F], bias: &[F]) {
        shift(z, Some(bias));
    }

    fn relu<F: Real>(z: &mut [F], bias: Option<&[F]>) {
        shift(z, bias);
        for z in z {
            *z = if *z > F::ZERO { *z } else { F::ZERO };
        }
    }

    fn tanh<F: Real>(z: &mut [F], bias: Option<&[F]>) {
        shift(z, bias);
        for z in z {
            *z = z.tangent();
        }
    }

    fn elu<F: Real>(z: &mut [F], bias: Option<&[F]>) {
        shift(z, bias);
        for z in z {
            let below = z.exponential() - F::ONE;
            *z = if *z > F::ZERO { *z } else { below };
        }
    }

    fn sigmoid<F: Real>(z: &mut [F], bias: Option<&[F]>) {
        shift(z, bias);
        for z in z {
            *z = F::ONE / (F::ONE + (-*z).exponential());
        }
    }

    fn gelu<F: Real>(z: &mut [F], bias: Option<&[F]>) {
        shift(z, bias);
        for z in z {
            *z = z.gelu().0;
        }
    }

    fn gelu_and_slope<F: Real>(z: &mut [F], bias: Option<&[F]>, slope: &mut [F]) {
        shift(z, bias);
        for (z, slope) in z.iter_mut().zip(slope) {
            (*z, *slope) = z.gelu();
        }
    }

    fn silu<F: Real>(z: &mut [F], bias: Option<&[F]>) {
        shift(z, bias);
        for z in z {
            *z = z.silu().0;
        }
    }

    fn silu_and_slope<F: Real>(z: &mut [F], bias: Option<&[F]>, slope: &mut [F]) {
        shift(z, bias);
        for (z, slope) in z.iter_mut().zip(slope) {
            (*z, *slope) = z.silu();
        }
    }

    /// `d *= slope`.
    pub(crate) fn multiply_into<F: Real>(d: &mut [F], slope: &[F]) {
        for (d, &slope) in d.iter_mut().zip(slope) {
            *d *= slope;
        }
    }

    /// `d *= 1[y > 0]`.
    pub(crate) fn relu_backward<F: Real>(d: &mut [F], y: &[F]) {
        for (d, &y) in d.iter_mut().zip(y) {
            *d = if y > F::ZERO { *d } else { F::ZERO };
        }
    }

    /// `d *= 1 − y²`.
    pub(crate) fn tanh_backward<F: Real>(d: &mut [F], y: &[F]) {
        for (d, &y) in d.iter_mut().zip(y) {
            *d *= F::ONE - y * y;
        }
    }

    /// `d *= 1[y > 0] + (1 + y) 1[y ≤ 0]`.
    pub(crate) fn elu_backward<F: Real>(d: &mut [F], y: &[F]) {
        for (d, &y) in d.iter_mut().zip(y) {
            *d = if y > F::ZERO { *d } else { *d * (F::ONE + y) };
        }
    }

    /// `d *= y (1 − y)`.
    pub(crate) fn sigmoid_backward<F: Real>(d: &mut [F], y: &[F]) {
        for (d, &y) in d.iter_mut().zip(y) {
            *d *= y * (F::ONE - y);
        }
    }

    /// `d *= slope` and `sums[j] += Σ_r d[r, j]` in one pass.
    pub(crate) fn multiply_and_add_column_sums<F: Real>(d: &mut [F], slope: &[F], sums: &mut [F]) {
        let width = sums.len();
        for (d, slope) in d.chunks_exact_mut(width).zip(slope.chunks_exact(width)) {
            for ((d, &slope), sum) in d.iter_mut().zip(slope).zip(sums.iter_mut()) {
                *d *= slope;
                *sum += *d;
            }
        }
    }

    /// `sums[j] += Σ_r d[r, j]`.
    pub(crate) fn add_column_sums<F: Real>(d: &[F], sums: &mut [F]) {
        for row in d.chunks_exact(sums.len()) {
            for (sum, &d) in sums.iter_mut().zip(row) {
                *sum += d;
            }
        }
    }

    /// `y = a + b`.
    pub(crate) fn add<F: Real>(a: &[F], b: &[F], y: &mut [F]) {
        for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
            *y = a + b;
        }
    }

    /// `y (+)= a · b`.
    pub(crate) fn multiply<F: Real>(a: &[F], b: &[F], y: &mut [F], accumulate: bool) {
        for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
            *y = if accumulate { *y + a * b } else { a * b };
        }
    }

    /// `y (+)= factor · x`.
    pub(crate) fn scale<F: Real>(x: &[F], factor: F, y: &mut [F], accumulate: bool) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = if accumulate { *y + factor * x } else { factor * x };
        }
    }
}
