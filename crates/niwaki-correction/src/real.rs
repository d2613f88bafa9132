//! The two float types of the crate, with an exponential that the compiler can vectorise.
//!
//! The engine (`niwaki-nn`) has scalars and an exponential of its own; the head of its `cpu/real.rs` says why.

use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

pub(crate) mod sealed {
    use crate::{Batch, Diagnostics, Error, Rule, Surrogate, Workspace};

    /// What is compiled for a float type in this crate alone: a caller's crate would compile every vector level anew.
    pub trait Sealed: Sized {
        /// One pass of a surrogate over a batch; diagnostics are empty unless they are `measured`.
        ///
        /// # Errors
        /// Where the batch is unsound.
        fn pass(
            surrogate: &Surrogate,
            batch: &Batch<'_, Self>,
            workspace: &mut Workspace<Self>,
            measured: bool,
        ) -> Result<(f64, Rule, Diagnostics), Error>;
    }
}

/// `f32` or `f64`.
pub trait Real:
    sealed::Sealed
    + Copy
    + Default
    + Debug
    + Display
    + PartialOrd
    + Send
    + Sync
    + Sum
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + 'static
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Nearest value of this type.
    fn from_f64(value: f64) -> Self;
    /// The same value as `f64`.
    fn to_f64(self) -> f64;
    /// Whether the value is neither infinite nor not-a-number.
    fn is_finite(self) -> bool;
    /// `a·b + c`, rounded once; fast only where the processor fuses the two.
    fn fused(a: Self, b: Self, c: Self) -> Self;
    /// eˣ to about one unit in the last place, without a branch, so that loops over it vectorise. `multiply_add` is
    /// `a·b + c`, fused or not. Overflows to infinity and underflows to zero; what is not a number gives zero.
    fn exp_by(self, multiply_add: impl Fn(Self, Self, Self) -> Self) -> Self;
    /// [`Real::exp_by`] without fusing: the same bits on every machine.
    #[inline(always)]
    fn exp(self) -> Self {
        self.exp_by(|a, b, c| a * b + c)
    }
    /// The larger of the two; `other` where `self` is not a number.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self > other { self } else { other }
    }
    /// The smaller of the two; `other` where `self` is not a number.
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        if self < other { self } else { other }
    }
}

impl Real for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline(always)]
    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }

    #[inline(always)]
    fn fused(a: Self, b: Self, c: Self) -> Self {
        a.mul_add(b, c)
    }

    #[inline(always)]
    fn exp_by(self, multiply_add: impl Fn(Self, Self, Self) -> Self) -> Self {
        // x = n·ln 2 + r with |r| ≤ ln 2 / 2; ln 2 in two parts, the first exact when multiplied by n.
        const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
        const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
        // Adding 1.5·2⁵² rounds to an integer and leaves it in the low bits.
        const ROUND: f64 = 6_755_399_441_055_744.0;
        // At −1023 and 1024 times ln 2 the power of two is zero and infinite, and so is what it scales.
        const LOWEST: f64 = -1023.0 * std::f64::consts::LN_2;
        const HIGHEST: f64 = 1024.0 * std::f64::consts::LN_2;
        let x = self.larger(LOWEST).smaller(HIGHEST);
        let shifted = multiply_add(x, std::f64::consts::LOG2_E, ROUND);
        let n = shifted - ROUND;
        let r = multiply_add(-n, LN2_LOW, multiply_add(-n, LN2_HIGH, x));
        // (eʳ − 1 − r) / r² interpolated at ten Chebyshev nodes: the error of eʳ is below 2e-17 on |r| ≤ 0.3466.
        let mut p = 2.510_038_549_551_032e-8;
        p = multiply_add(p, r, 2.762_008_844_540_974_6e-7);
        p = multiply_add(p, r, 2.755_726_845_999_706_4e-6);
        p = multiply_add(p, r, 2.480_152_129_595_437_6e-5);
        p = multiply_add(p, r, 1.984_126_986_305_361_8e-4);
        p = multiply_add(p, r, 1.388_888_891_721_371_7e-3);
        p = multiply_add(p, r, 8.333_333_333_330_062e-3);
        p = multiply_add(p, r, 4.166_666_666_662_413e-2);
        p = multiply_add(p, r, 1.666_666_666_666_666_9e-1);
        p = multiply_add(p, r, 5.000_000_000_000_001e-1);
        p = multiply_add(p * r, r, r);
        f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52) * (p + 1.0)
    }
}

impl Real for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is what is asked for")]
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as f32
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn is_finite(self) -> bool {
        f32::is_finite(self)
    }

    #[inline(always)]
    fn fused(a: Self, b: Self, c: Self) -> Self {
        a.mul_add(b, c)
    }

    #[inline(always)]
    fn exp_by(self, multiply_add: impl Fn(Self, Self, Self) -> Self) -> Self {
        const LN2_HIGH: f32 = 0.693_359_4;
        const LN2_LOW: f32 = -2.121_944_4e-4;
        const ROUND: f32 = 12_582_912.0; // 1.5·2²³
        const LOWEST: f32 = -127.0 * std::f32::consts::LN_2;
        const HIGHEST: f32 = 128.0 * std::f32::consts::LN_2;
        let x = self.larger(LOWEST).smaller(HIGHEST);
        let shifted = multiply_add(x, std::f32::consts::LOG2_E, ROUND);
        let n = shifted - ROUND;
        let r = multiply_add(-n, LN2_LOW, multiply_add(-n, LN2_HIGH, x));
        // Taylor to r⁷: the remainder is below 6e-9 on |r| ≤ 0.3466.
        let mut p = 1.0 / 5040.0;
        p = multiply_add(p, r, 1.0 / 720.0);
        p = multiply_add(p, r, 1.0 / 120.0);
        p = multiply_add(p, r, 1.0 / 24.0);
        p = multiply_add(p, r, 1.0 / 6.0);
        p = multiply_add(p, r, 0.5);
        p = multiply_add(p * r, r, r);
        f32::from_bits(shifted.to_bits().wrapping_add(127) << 23) * (p + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Real;

    #[test]
    fn exp_agrees_with_the_standard_library() {
        let (mut worst64, mut worst32) = (0.0_f64, 0.0_f64);
        for step in -70_000..=70_000 {
            let x = f64::from(step) * 0.01;
            worst64 = worst64.max((Real::exp(x) / f64::exp(x) - 1.0).abs());
            if x.abs() < 86.0 {
                let x = x as f32;
                worst32 = worst32.max((f64::from(Real::exp(x)) / f64::exp(f64::from(x)) - 1.0).abs());
            }
        }
        assert!(worst64 < 4.5e-16, "f64: {worst64:e}");
        assert!(worst32 < 1.8e-7, "f32: {worst32:e}");
    }

    #[test]
    fn exp_at_the_edges() {
        assert_eq!(Real::exp(0.0_f64).to_bits(), 1.0_f64.to_bits());
        assert_eq!(Real::exp(-0.0_f32).to_bits(), 1.0_f32.to_bits());
        // The last powers of two: finite below, zero and infinite from there on.
        assert!((Real::exp(709.4_f64) / f64::exp(709.4) - 1.0).abs() < 1e-15);
        assert!((Real::exp(-708.3_f64) / f64::exp(-708.3) - 1.0).abs() < 1e-15);
        assert!((Real::exp(88.3_f32) / f32::exp(88.3) - 1.0).abs() < 3e-7);
        assert_eq!((Real::exp(709.9_f64), Real::exp(88.8_f32)), (f64::INFINITY, f32::INFINITY));
        assert_eq!((Real::exp(-708.8_f64), Real::exp(-87.7_f32)), (0.0, 0.0));
        assert_eq!(Real::exp(1e9_f64), f64::INFINITY);
        assert_eq!(Real::exp(-1e9_f64), 0.0);
        assert_eq!(Real::exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(Real::exp(f32::INFINITY), f32::INFINITY);
    }
}
