//! A pair of doubles with a wide exponent: about 106 bits for products and sums of positive terms.
//!
//! Serves the binomial tail only, whose terms span thousands of binary orders.

/// `(high + low) · 2^exponent`, with high > 0 kept between 2⁻⁴⁰⁰ and 2⁴⁰⁰ and |low| at most half an ulp of high.
#[derive(Clone, Copy)]
pub(crate) struct Scaled {
    high: f64,
    low: f64,
    exponent: i64,
}

/// Values are rescaled by this power of two, which is exact.
const STEP: i64 = 400;

/// 2^`n` for |n| ≤ 1022.
fn two_to(n: i64) -> f64 {
    f64::from_bits(((1023 + n) as u64) << 52)
}

impl Scaled {
    pub(crate) fn power_of_two(exponent: i64) -> Self {
        Self { high: 1.0, low: 0.0, exponent }
    }

    /// Restores the invariant after an operation; |low| must be small beside high.
    fn settle(high: f64, low: f64, exponent: i64) -> Self {
        let sum = high + low;
        let rest = low - (sum - high);
        if sum > two_to(STEP) {
            Self { high: sum * two_to(-STEP), low: rest * two_to(-STEP), exponent: exponent + STEP }
        } else if sum < two_to(-STEP) {
            Self { high: sum * two_to(STEP), low: rest * two_to(STEP), exponent: exponent - STEP }
        } else {
            Self { high: sum, low: rest, exponent }
        }
    }

    /// Times a positive integer below 2⁵³.
    pub(crate) fn times(self, factor: f64) -> Self {
        let product = self.high * factor;
        let rest = self.high.mul_add(factor, -product) + self.low * factor;
        Self::settle(product, rest, self.exponent)
    }

    /// Divided by a positive integer below 2⁵³.
    pub(crate) fn over(self, divisor: f64) -> Self {
        let quotient = self.high / divisor;
        let remainder = (-quotient).mul_add(divisor, self.high);
        Self::settle(quotient, (remainder + self.low) / divisor, self.exponent)
    }

    /// `other`'s two parts on this number's exponent; parts too small for it become zero. `other` must not be larger,
    /// though its exponent may be.
    fn aligned(&self, other: &Self) -> (f64, f64) {
        let mut gap = other.exponent - self.exponent;
        let (mut high, mut low) = (other.high, other.low);
        while gap != 0 && high != 0.0 {
            let step = gap.clamp(-1000, 1000);
            (high, low) = (high * two_to(step), low * two_to(step));
            gap -= step;
        }
        (high, low)
    }

    /// Sum with a number that is not larger.
    pub(crate) fn plus(self, smaller: &Self) -> Self {
        let (high, low) = self.aligned(smaller);
        let sum = self.high + high;
        let lost = high - (sum - self.high);
        Self::settle(sum, lost + self.low + low, self.exponent)
    }

    /// Whether adding a number that is not larger could no longer change the 106 bits, even a few thousand times.
    pub(crate) fn is_negligible_beside(&self, total: &Self) -> bool {
        total.aligned(self).0 < total.high * two_to(-120)
    }

    /// The nearest `f64` of a number that is at most 1.
    pub(crate) fn to_f64(self) -> f64 {
        let (high, low) = Self::power_of_two(0).aligned(&self);
        high + low
    }

    /// 1 minus a number that is at most one half, rounded once.
    pub(crate) fn complement(self) -> f64 {
        let (high, low) = Self::power_of_two(0).aligned(&self);
        let sum = 1.0 - high;
        sum + (((1.0 - sum) - high) - low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factorial_quotients_return_to_one() {
        // 2000! / 2000! passes through 2¹⁹⁰⁵³ and loses less than an ulp on the way back.
        let mut x = Scaled::power_of_two(-5);
        for j in 1..=2000 {
            x = x.times(f64::from(j));
        }
        for j in 1..=2000 {
            x = x.over(f64::from(j));
        }
        assert_eq!(x.to_f64(), 1.0 / 32.0);
        assert_eq!(x.complement(), 31.0 / 32.0);
    }

    #[test]
    fn low_parts_survive_a_sum() {
        // (2⁻¹ + 2⁻⁹⁰) + 2⁻⁹⁰ − 2⁻¹ = 2⁻⁸⁹, seen through 1 − (…) only when the low part is kept.
        let tiny = Scaled::power_of_two(-90);
        let sum = Scaled::power_of_two(-1).plus(&tiny).plus(&tiny);
        assert_eq!((sum.high, sum.low), (1.0, two_to(-88)));
        assert!(Scaled::power_of_two(-600).is_negligible_beside(&sum));
        assert!(!tiny.is_negligible_beside(&sum));
    }

    #[test]
    fn low_parts_of_both_terms_count() {
        // 1/2 + 3 · (1/4)/3 = 3/4; the quarter's third is no double, and its low part is about 2⁻⁵⁷.
        let third = Scaled::power_of_two(-2).over(3.0);
        let sum = Scaled::power_of_two(-1).plus(&third).plus(&third).plus(&third);
        assert_eq!(sum.to_f64(), 0.75);
        assert!(sum.low.abs() < 1e-30);
        // 1 − (1/4 + 2⁻⁵⁴) is half-way between two doubles; the low part decides for the smaller.
        let x = Scaled { high: 0.25 + two_to(-54), low: two_to(-60), exponent: 0 };
        assert_eq!(x.complement(), 0.75 - two_to(-53));
    }
}
