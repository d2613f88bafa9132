//! The scalars that the engine runs on, with the functions that kernels need.
//!
//! In f32 the functions are branch-free arithmetic that vectorises, accurate to a few units in the last place; in
//! f64, which exists for laws, they are `libm`'s.
//!
//! `niwaki-correction` has a `Real` of its own. Its exponential is fused only on request, so that an oracle's numbers have
//! the same bits on every machine; this one always is, which is faster, and recorded runs have its bits. One of them in
//! both places would change numbers that users have.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub};

/// `gemm`'s entry: sizes m, n, k; the result with its column and row strides and whether to add to it; the operands
/// with theirs; the factors on the old result and on the product; conjugations; parallelism.
pub type Kernel<F> = unsafe fn(
    usize,
    usize,
    usize,
    *mut F,
    isize,
    isize,
    bool,
    *const F,
    isize,
    isize,
    *const F,
    isize,
    isize,
    F,
    F,
    bool,
    bool,
    bool,
    gemm_common::Parallelism,
);

/// A scalar of the engine: f32 or f64.
pub trait Real:
    Copy
    + Debug
    + Default
    + PartialOrd
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + MulAssign
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// −∞.
    const LOWEST: Self;

    /// The nearest scalar.
    fn from_f64(value: f64) -> Self;
    /// The same number in f64.
    fn to_f64(self) -> f64;
    /// `self · factor + term`, rounded once.
    fn fused(self, factor: Self, term: Self) -> Self;
    /// √x.
    fn root(self) -> Self;
    /// eˣ.
    fn exponential(self) -> Self;
    /// ln x.
    fn logarithm(self) -> Self;
    /// tanh x.
    fn tangent(self) -> Self;
    /// `z Φ(z)` and its derivative.
    fn gelu(self) -> (Self, Self);

    /// The machine's matrix product for this scalar.
    #[doc(hidden)]
    fn kernel() -> Kernel<Self>;

    /// `z σ(z)` and its derivative.
    #[inline(always)]
    fn silu(self) -> (Self, Self) {
        let sigmoid = Self::ONE / (Self::ONE + (-self).exponential());
        let value = self * sigmoid;
        (value, sigmoid + value * (Self::ONE - sigmoid))
    }
}

/// 1/√(2π).
const PEAK: f64 = 0.398_942_280_401_432_7;

impl Real for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const LOWEST: Self = Self::NEG_INFINITY;

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline(always)]
    fn fused(self, factor: Self, term: Self) -> Self {
        self.mul_add(factor, term)
    }

    #[inline(always)]
    fn root(self) -> Self {
        self.sqrt()
    }

    fn kernel() -> Kernel<Self> {
        gemm_f64::gemm::f64::get_gemm_fn()
    }

    fn exponential(self) -> Self {
        libm::exp(self)
    }

    fn logarithm(self) -> Self {
        libm::log(self)
    }

    fn tangent(self) -> Self {
        libm::tanh(self)
    }

    fn gelu(self) -> (Self, Self) {
        let below = 0.5 * libm::erfc(-self * std::f64::consts::FRAC_1_SQRT_2);
        (self * below, below + self * PEAK * libm::exp(-0.5 * self * self))
    }
}

/// Φ(−|z|) e^{z²/2} as a polynomial in `t = 1/(1 + 0.3 |z|)` without constant term, fitted over |z| ≤ 14 to a
/// relative error of 3.5e-9.
const TAIL: [f32; 10] = [
    0.119_686_63,
    0.119_572_82,
    0.110_227_53,
    0.078_424_59,
    0.096_060_72,
    -0.079_252_765,
    0.191_588_24,
    -0.228_072_43,
    0.112_377_87,
    -0.020_613_214,
];

impl Real for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const LOWEST: Self = Self::NEG_INFINITY;

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as f32
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn fused(self, factor: Self, term: Self) -> Self {
        self.mul_add(factor, term)
    }

    #[inline(always)]
    fn root(self) -> Self {
        self.sqrt()
    }

    fn kernel() -> Kernel<Self> {
        gemm_f32::gemm::f32::get_gemm_fn()
    }

    #[inline(always)]
    fn exponential(self) -> Self {
        // x = n ln 2 + r with |r| ≤ ln 2 / 2; eʳ by its Taylor series to r⁷ (error below 6e-9), 2ⁿ by its bits. Adding
        // 1.5 · 2²³ rounds to the nearest integer and leaves that integer in the low bits.
        const ROUND: f32 = 12_582_912.0;
        let x = if self < -87.0 { -87.0 } else { self };
        let x = if x > 88.0 { 88.0 } else { x };
        let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
        let n = shifted - ROUND;
        let r = n.mul_add(-355.0 / 512.0, x);
        let r = n.mul_add(2.121_944_4e-4, r);
        let mut series: f32 = 1.0 / 5040.0;
        for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
            series = series.mul_add(r, coefficient);
        }
        let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127);
        series * Self::from_bits(exponent << 23)
    }

    #[inline(always)]
    fn logarithm(self) -> Self {
        libm::logf(self)
    }

    #[inline(always)]
    fn tangent(self) -> Self {
        // Near zero (1 − e)/(1 + e) cancels; there the odd series x − x³/3 + 2x⁵/15 − 17x⁷/315 + … takes over.
        const SERIES: [f32; 8] = [
            -929_569.0 / 638_512_875.0,
            21_844.0 / 6_081_075.0,
            -1_382.0 / 155_925.0,
            62.0 / 2_835.0,
            -17.0 / 315.0,
            2.0 / 15.0,
            -1.0 / 3.0,
            1.0,
        ];
        let size = self.abs();
        let e = (-2.0 * size).exponential();
        let far = ((1.0 - e) / (1.0 + e)).copysign(self);
        let square = self * self;
        let mut series: f32 = 0.0;
        for coefficient in SERIES {
            series = series.mul_add(square, coefficient);
        }
        if size < 0.35 { self * series } else { far }
    }

    #[inline(always)]
    fn gelu(self) -> (Self, Self) {
        let size = self.abs();
        let bell = (-0.5 * size * size).exponential();
        let t = 1.0 / (1.0 + 0.3 * size);
        let mut series: f32 = 0.0;
        for place in (0..TAIL.len()).rev() {
            series = series.mul_add(t, TAIL[place]);
        }
        let tail = series * t * bell;
        let below = if self < 0.0 { tail } else { 1.0 - tail };
        (self * below, below + self * (PEAK as f32) * bell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest error of an f32 function against f64 over a grid, in units of the larger of |value| and `floor`.
    fn worst(range: f64, floor: f64, narrow: impl Fn(f32) -> f32, wide: impl Fn(f64) -> f64) -> f64 {
        (-20_000..=20_000)
            .map(|step| {
                let x = (f64::from(step) / 20_000.0 * range) as f32;
                let exact = wide(f64::from(x));
                (f64::from(narrow(x)) - exact).abs() / exact.abs().max(floor)
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn f32_functions_are_within_a_few_units_in_the_last_place() {
        // One unit in the last place of f32 is at most 1.2e-7 relative.
        assert!(worst(80.0, 0.0, Real::exponential, f64::exp) < 2.5e-7);
        assert!(worst(10.0, 0.0, Real::tangent, f64::tanh) < 4e-7);
        // In GELU's tail e^{−z²/2} is as good as its rounded argument: z²/2 · 6e-8, at |z| = 4 about 5e-7.
        assert!(worst(6.0, 1e-3, |z| z.gelu().0, |z| z.gelu().0) < 1e-6);
        assert!(worst(6.0, 1e-1, |z| z.gelu().1, |z| z.gelu().1) < 1e-6);
        assert!(worst(20.0, 1e-3, |z| z.silu().0, |z| z.silu().0) < 5e-7);
    }

    #[test]
    fn extremes() {
        assert_eq!((0.0_f32).exponential(), 1.0);
        assert!(f32::NAN.exponential().is_nan() && f32::NAN.tangent().is_nan() && f32::NAN.gelu().0.is_nan());
        assert!(f32::NEG_INFINITY.exponential() < 2e-38);
        assert_eq!((30.0_f32).gelu(), (30.0, 1.0));
        assert!((-30.0_f32).gelu().0.abs() < 1e-30);
        assert_eq!((50.0_f32).tangent(), 1.0);
    }

    #[test]
    fn gelu_at_one() {
        // Φ(1) = 0.8413447460685429, φ(1) = 0.24197072451914337.
        let (value, slope) = 1.0_f64.gelu();
        assert!((value - 0.841_344_746_068_542_9).abs() < 1e-15);
        assert!((slope - (0.841_344_746_068_542_9 + 0.241_970_724_519_143_37)).abs() < 1e-15);
    }
}
