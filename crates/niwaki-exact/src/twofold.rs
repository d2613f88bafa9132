//! Twofold numbers: an unevaluated sum of two `f64`, about 31 digits.
//!
//! Advantages are small differences of values, and values are sums of products of probabilities. In plain `f64`
//! an advantage of 1e-7 beside values of 0.25 keeps ten digits; with twofold probabilities and values it keeps
//! all of them, so that tiny biases and witnesses are right to the last places. Used where policies become
//! values, nowhere else.

/// `high + low`, with `low` below half a unit in the last place of `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Twofold {
    pub(crate) high: f64,
    pub(crate) low: f64,
}

impl Twofold {
    pub(crate) const ZERO: Self = Self { high: 0.0, low: 0.0 };

    pub(crate) const fn new(high: f64) -> Self {
        Self { high, low: 0.0 }
    }

    /// `a + b` without error (Knuth).
    #[inline(always)]
    fn sum(a: f64, b: f64) -> Self {
        let high = a + b;
        let part = high - a;
        Self { high, low: (a - (high - part)) + (b - part) }
    }

    /// `a + b` without error where `|a| ≥ |b|` (Dekker).
    #[inline(always)]
    const fn renormalised(a: f64, b: f64) -> Self {
        let high = a + b;
        Self { high, low: b - (high - a) }
    }

    /// `a − b` without error.
    #[inline(always)]
    pub(crate) fn difference(a: f64, b: f64) -> Self {
        Self::sum(a, -b)
    }

    /// `a · b` without error (Dekker), for factors below 1e300.
    #[inline(always)]
    const fn product(a: f64, b: f64) -> Self {
        const SPLIT: f64 = 134_217_729.0; // 2²⁷ + 1
        let (a_shifted, b_shifted) = (SPLIT * a, SPLIT * b);
        let (a_high, b_high) = (a_shifted - (a_shifted - a), b_shifted - (b_shifted - b));
        let (a_low, b_low) = (a - a_high, b - b_high);
        let high = a * b;
        Self { high, low: ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low }
    }

    #[inline(always)]
    pub(crate) fn plus(self, other: Self) -> Self {
        let sum = Self::sum(self.high, other.high);
        Self::renormalised(sum.high, sum.low + (self.low + other.low))
    }

    #[inline(always)]
    pub(crate) fn minus(self, other: Self) -> Self {
        self.plus(Self { high: -other.high, low: -other.low })
    }

    #[inline(always)]
    pub(crate) const fn times(self, other: Self) -> Self {
        let product = Self::product(self.high, other.high);
        Self::renormalised(product.high, product.low + (self.high * other.low + self.low * other.high))
    }

    /// [`Twofold::times`], the error of the product from one fused operation: the same bits, sooner, on a processor
    /// that fuses.
    #[inline(always)]
    pub(crate) fn times_by<const FUSED: bool>(self, other: Self) -> Self {
        if !FUSED {
            return self.times(other);
        }
        let high = self.high * other.high;
        let low = self.high.mul_add(other.high, -high);
        Self::renormalised(high, low + (self.high * other.low + self.low * other.high))
    }

    /// `1 / self`, by one Newton step from the `f64` quotient.
    #[inline(always)]
    pub(crate) fn reciprocal<const FUSED: bool>(self) -> Self {
        let guess = Self::new(1.0 / self.high);
        let error = Self::new(1.0).minus(self.times_by::<FUSED>(guess));
        guess.plus(guess.times_by::<FUSED>(error))
    }

    /// Nearest `f64`.
    #[inline(always)]
    pub(crate) fn value(self) -> f64 {
        self.high + self.low
    }

    /// The number as some 64ths of ln 2 and what is left, `d`: gives `e^d − 1` and how many they are.
    #[inline(always)]
    fn reduced(self) -> (Self, i64) {
        // ln 2 / 64 in three parts; the first two have 32 bits, so that their multiples are without error.
        const PARTS: [f64; 3] =
            [0.010_830_424_693_267_56, 2.981_585_826_317_297_3e-12, 6.679_961_858_980_702e-22];
        // Adding 1.5·2⁵² rounds to an integer and leaves it in the low bits, above 2⁵¹.
        const ROUND: f64 = 6_755_399_441_055_744.0;
        let shifted = self.high * (64.0 * std::f64::consts::LOG2_E) + ROUND;
        let turns = shifted - ROUND;
        let rest = Self::difference(self.high - turns * PARTS[0], turns * PARTS[1]);
        let (r, low) = (rest.high, rest.low + (self.low - turns * PARTS[2]));
        // |r| ≤ 0.0055: r²/2 is below 1.5e-5, so its rounding in f64 is below 3e-21, and r⁸/8! below 2e-23.
        let mut tail = 1.0 / 5040.0;
        for divisor in [720.0, 120.0, 24.0, 6.0, 2.0] {
            tail = tail * r + 1.0 / divisor;
        }
        let whole = (shifted.to_bits() & ((1 << 52) - 1)) as i64 - (1 << 51);
        (Self::renormalised(r, low + (low * r + tail * r * r)), whole)
    }
}

/// Twofold numbers side by side, so that loops over them are loops over vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abreast {
    pub(crate) high: [f64; ABREAST],
    pub(crate) low: [f64; ABREAST],
}

/// How many stand side by side.
pub(crate) const ABREAST: usize = 16;

impl Abreast {
    pub(crate) const ZERO: Self = Self { high: [0.0; ABREAST], low: [0.0; ABREAST] };

    #[inline(always)]
    pub(crate) const fn at(&self, lane: usize) -> Twofold {
        Twofold { high: self.high[lane], low: self.low[lane] }
    }

    #[inline(always)]
    pub(crate) const fn put(&mut self, lane: usize, value: Twofold) {
        (self.high[lane], self.low[lane]) = (value.high, value.low);
    }

    /// eˣ to about 1e-20 relative, for −708 ≤ x ≤ 709.
    #[inline(always)]
    pub(crate) fn exp<const FUSED: bool>(&self) -> Self {
        let (mut grown, mut whole, mut roots) = (Self::ZERO, [0; ABREAST], Self::ZERO);
        for lane in 0..ABREAST {
            let (value, turns) = self.at(lane).reduced();
            grown.put(lane, value);
            whole[lane] = turns;
        }
        // Looked up by themselves, which no vector does.
        for lane in 0..ABREAST {
            roots.put(lane, ROOTS[(whole[lane] & 63) as usize]);
        }
        for lane in 0..ABREAST {
            let (root, grown_here) = (roots.at(lane), grown.at(lane));
            let value = root.plus(root.times_by::<FUSED>(grown_here));
            let scale = f64::from_bits((((whole[lane] >> 6) + 1023) as u64) << 52);
            grown.put(lane, Twofold { high: value.high * scale, low: value.low * scale });
        }
        grown
    }
}

/// 2^(j/64) for j < 64.
static ROOTS: [Twofold; 64] = {
    let step = Twofold { high: 1.010_889_286_051_700_5, low: -1.523_477_860_336_857_7e-17 };
    let mut roots = [Twofold::new(1.0); 64];
    let mut j = 1;
    while j < 64 {
        roots[j] = roots[j - 1].times(step);
        j += 1;
    }
    roots
};

#[cfg(test)]
mod tests {
    use super::*;

    fn exp<const FUSED: bool>(x: Twofold) -> Twofold {
        let mut all = Abreast::ZERO;
        all.put(3, x);
        all.exp::<FUSED>().at(3)
    }

    #[test]
    fn products_and_sums_keep_what_f64_drops() {
        // (1 + 2⁻³⁰)² = 1 + 2⁻²⁹ + 2⁻⁶⁰: the last part does not fit beside 1 in f64.
        let x = Twofold::new(1.0 + 2.0_f64.powi(-30));
        let square = x.times(x).minus(Twofold::new(1.0)).minus(Twofold::new(2.0_f64.powi(-29)));
        assert_eq!(square.value(), 2.0_f64.powi(-60));
        let third = Twofold::new(3.0).reciprocal::<false>();
        let error = third.times(Twofold::new(3.0)).minus(Twofold::new(1.0)).value();
        assert!(error.abs() < 1e-31, "{error:e}");
    }

    #[test]
    fn exp_matches_known_digits() {
        // e^-1 = 0.36787944117144232159552377016146086744581113… ; as twofold: high, then the rest.
        let inverse = exp::<false>(Twofold::new(-1.0));
        assert_eq!(inverse.high, 0.367_879_441_171_442_33);
        let rest = -1.242_875_367_278_836_3e-17; // the exact value minus `high`
        assert!((inverse.low - rest).abs() < 1e-20 * inverse.high, "{:e}", inverse.low - rest);
    }

    #[test]
    fn fused_products_have_the_same_bits() {
        for step in 1..2000 {
            let (a, b) = (f64::from(step) * 0.731, 1.0 / f64::from(step));
            let (x, y) = (Twofold::difference(a, 1e-17 * b), Twofold::difference(b, 1e-18 * a));
            assert_eq!(x.times_by::<true>(y), x.times(y));
            assert_eq!(x.reciprocal::<true>(), x.reciprocal::<false>());
            let z = Twofold::new(-a.min(700.0));
            assert_eq!(exp::<true>(z), exp::<false>(z));
        }
    }

    #[test]
    fn exp_turns_sums_into_products() {
        // e^a · e^b = e^(a+b), the sum taken without error: an identity that no f64 table could meet.
        for step in -600..600 {
            let (a, b) = (f64::from(step) * 0.531, f64::from(step) * -0.417 - 1.3);
            let product = exp::<false>(Twofold::new(a)).times(exp::<false>(Twofold::new(b)));
            let whole = exp::<false>(Twofold::sum(a, b));
            let error = product.minus(whole).value() / whole.high;
            assert!(error.abs() < 2e-20, "{step}: {error:e}");
        }
    }
}
