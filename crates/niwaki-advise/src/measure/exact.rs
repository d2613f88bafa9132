//! Sums that do not depend on the order of their terms, so that the tallies of many ranks add up to that of one dump to the
//! last bit.
//!
//! Floats round after every addition, and another order rounds otherwise. Here each term is cut at fixed places, multiples of
//! 2³², into three whole numbers of at most 2³¹, of which the first lies where the largest term begins; whole numbers add up
//! exactly. What lies below the third is rounded away from each term by itself, which is 2⁻⁶⁴ of the largest term at most. A
//! larger term moves the places up and drops the lowest whole number: as if it had come first. Fixed point with one unit
//! for all would be simpler and lose small advantages; sums without an end below would be exact and several times as large.

use super::scaled::Far;

/// Bits between two places.
const WIDTH: i64 = 32;
/// Whole numbers of a sum.
pub(crate) const BINS: usize = 3;
/// 2³²: from one whole number to the next.
const STEP: f64 = 4_294_967_296.0;
/// Terms are below this, in units of the first place.
const ROOM: f64 = 2_147_483_648.0;
/// 1.5 · 2⁵²: what is added to it is rounded to a whole number, which its bits then hold.
const MAGIC: f64 = 6_755_399_441_055_744.0;
/// The place of a sum without terms.
pub(crate) const EMPTY: i32 = i32::MIN;
/// The place of a sum with a term that is not finite: its whole numbers count those, +∞, −∞ and what is not a number.
pub(crate) const BEYOND: i32 = i32::MAX;
/// Places that a plain float reaches; beyond, terms go the long way.
const REACH: i32 = 31;

/// `N` sums.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Exact<const N: usize> {
    /// The first place, in units of 2³².
    top: [i32; N],
    /// What brings a term to it: `2^(−32 · top)`; infinite where terms go the long way, 0 where they no longer count.
    scale: [f64; N],
    bins: [[i64; N]; BINS],
}

impl<const N: usize> Default for Exact<N> {
    fn default() -> Self {
        Self { top: [EMPTY; N], scale: [f64::INFINITY; N], bins: [[0; N]; BINS] }
    }
}

/// The whole numbers of a term in units of the first place.
#[inline(always)]
fn cut(units: f64) -> [i64; BINS] {
    let mut left = units;
    let mut cut = [0; BINS];
    for bin in &mut cut {
        let rounded = left + MAGIC;
        *bin = (rounded.to_bits() as i64).wrapping_sub(MAGIC.to_bits() as i64);
        left = (left - (rounded - MAGIC)) * STEP;
    }
    cut
}

/// `2^exponent` of a normal float.
fn power(exponent: i64) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// A finite term as a number in [1, 2) with its sign, and an exponent.
fn parts(term: f64) -> (f64, i64) {
    let (term, less) = if term.abs() < f64::MIN_POSITIVE { (term * power(64), 64) } else { (term, 0) };
    let bits = term.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    (f64::from_bits((bits & !(0x7ff << 52)) | (1023 << 52)), exponent - less)
}

impl<const N: usize> Exact<N> {
    /// Adds a term to each sum.
    #[inline(always)]
    pub(crate) fn add(&mut self, terms: &[f64; N]) {
        let mut far = false;
        for at in 0..N {
            let units = terms[at] * self.scale[at];
            // Written so that what is not a number lies outside.
            let inside = units.abs() < ROOM;
            far |= !inside;
            let cut = cut(if inside { units } else { 0.0 });
            for (bins, cut) in self.bins.iter_mut().zip(cut) {
                bins[at] = bins[at].wrapping_add(cut);
            }
        }
        if far {
            self.add_far(terms);
        }
    }

    /// Adds the terms that the sums had no room for.
    #[cold]
    fn add_far(&mut self, terms: &[f64; N]) {
        for (at, &term) in terms.iter().enumerate() {
            if (term * self.scale[at]).abs() < ROOM || term == 0.0 {
                continue;
            }
            if term.is_finite() {
                let (number, exponent) = parts(term);
                self.put(at, number, exponent);
            } else {
                self.raise(at, BEYOND);
                let which = if term.is_nan() { 2 } else { usize::from(term < 0.0) };
                self.bins[which][at] += 1;
            }
        }
    }

    /// Adds `term · e^log` to one sum, however large that is.
    pub(crate) fn add_far_one(&mut self, at: usize, term: f64, log: f64) {
        let Far { number, exponent } = Far::exp(log);
        let product = term * number;
        if product == 0.0 {
            return;
        }
        if product.is_finite() {
            let (number, more) = parts(product);
            self.put(at, number, exponent + more);
        } else {
            let mut terms = [0.0; N];
            terms[at] = product;
            self.add_far(&terms);
        }
    }

    /// Adds `number · 2^exponent`, where the number is in [1, 2) but for its sign.
    fn put(&mut self, at: usize, number: f64, exponent: i64) {
        // The least place at which the term has room: below 2^(31 + 32 · top).
        let top = (exponent + 1).div_euclid(WIDTH).clamp(i64::from(EMPTY) + 1, i64::from(BEYOND) - 1);
        self.raise(at, top as i32);
        let units = exponent - WIDTH * i64::from(self.top[at]);
        // Less than half of the last whole number's unit is nothing.
        if self.top[at] == BEYOND || !(-66..WIDTH - 1).contains(&units) {
            return;
        }
        for (bins, cut) in self.bins.iter_mut().zip(cut(number * power(units))) {
            bins[at] = bins[at].wrapping_add(cut);
        }
    }

    /// Moves the first place up to one.
    fn raise(&mut self, at: usize, top: i32) {
        if top <= self.top[at] {
            return;
        }
        let up = i64::from(top) - i64::from(self.top[at]);
        for bin in (0..BINS).rev() {
            let from = (bin as i64 - up).try_into().ok().filter(|_| top != BEYOND);
            self.bins[bin][at] = from.map_or(0, |from: usize| self.bins[from][at]);
        }
        self.top[at] = top;
        self.scale[at] = match top {
            BEYOND => 0.0,
            top if top.abs() <= REACH => power(-WIDTH * i64::from(top)),
            _ => f64::INFINITY,
        };
    }

    /// Adds other sums.
    pub(crate) fn merge(&mut self, other: &Self) {
        for at in 0..N {
            self.raise(at, other.top[at]);
            let down = i64::from(self.top[at]) - i64::from(other.top[at]);
            for bin in 0..BINS {
                if let Ok(from) = usize::try_from(bin as i64 - down) {
                    self.bins[bin][at] = self.bins[bin][at].wrapping_add(other.bins[from][at]);
                }
            }
        }
    }

    /// The sum, rounded once.
    pub(crate) fn value(&self, at: usize) -> f64 {
        self.far(at).value()
    }

    /// The sum, which may lie beyond the range of floats.
    pub(crate) fn far(&self, at: usize) -> Far {
        let [first, second, third] = std::array::from_fn(|bin| self.bins[bin][at]);
        if self.top[at] == BEYOND {
            let number = match (first > 0, second > 0, third > 0) {
                (true, false, false) => f64::INFINITY,
                (false, true, false) => f64::NEG_INFINITY,
                _ => f64::NAN,
            };
            return Far { number, exponent: 0 };
        }
        let wide = |bin: i64, shift: u32| i128::from(bin) << shift;
        let whole = wide(first, 64).wrapping_add(wide(second, 32)).wrapping_add(wide(third, 0));
        let exponent = if self.top[at] == EMPTY { 0 } else { WIDTH * (i64::from(self.top[at]) - 2) };
        Far { number: whole as f64, exponent }
    }

    /// Place and whole numbers of a sum, for a file.
    pub(crate) fn raw(&self, at: usize) -> (i32, [i64; BINS]) {
        (self.top[at], std::array::from_fn(|bin| self.bins[bin][at]))
    }

    /// Puts a sum back that [`Exact::raw`] gave.
    pub(crate) fn restore(&mut self, at: usize, top: i32, bins: [i64; BINS]) {
        self.top[at] = EMPTY;
        self.raise(at, top);
        for (own, bin) in self.bins.iter_mut().zip(bins) {
            own[at] = bin;
        }
    }
}

/// Smallest and largest of what came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Default for Range {
    fn default() -> Self {
        Self { low: f64::INFINITY, high: f64::NEG_INFINITY }
    }
}

impl Range {
    /// Takes a value; of the two zeros the one without a sign, and nothing that is not a number.
    pub(crate) fn add(&mut self, value: f64) {
        let value = value + 0.0;
        self.low = self.low.min(value);
        self.high = self.high.max(value);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise without a crate: the top bits of a linear congruential generator.
    fn noise(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    }

    fn sum(terms: &[f64]) -> Exact<1> {
        let mut sum = Exact::default();
        terms.iter().for_each(|&term| sum.add(&[term]));
        sum
    }

    #[test]
    fn a_sum_by_hand() {
        // 2⁶⁰ + 1 − 2⁶⁰ is 1, which floats lose; 0.1 ten times is 1 to a unit in the last place.
        let large = (1_u64 << 60) as f64;
        assert_eq!(sum(&[large, 1.0, -large]).value(0), 1.0);
        assert_eq!(sum(&[0.1; 10]).value(0), 1.0);
        assert_eq!(sum(&[]).value(0), 0.0);
        assert_eq!(sum(&[f64::from_bits(1), 2.0, 5e-324]).value(0), 2.0);
        assert_eq!(sum(&[1e300, 1e300, -1e300]).value(0), 1e300);
        assert_eq!(sum(&[2f64.powi(31), 2f64.powi(31) - 0.25]).value(0), 2f64.powi(32) - 0.25);
    }

    #[test]
    fn order_and_split_do_not_matter() {
        let mut state = 1;
        for spread in [0, 40, 200, 900] {
            let mut terms: Vec<f64> = (0..300)
                .map(|_| {
                    let scale = (noise(&mut state) * f64::from(spread)).round() as i32;
                    noise(&mut state) * 2f64.powi(scale)
                })
                .collect();
            let whole = sum(&terms);
            for round in 0..20 {
                terms.sort_by_cached_key(|_| (noise(&mut state) * 1e9) as i64);
                let cut = 15 * round;
                let (mut one, other) = (sum(&terms[..cut]), sum(&terms[cut..]));
                one.merge(&other);
                assert_eq!(one, whole);
                let mut back = other;
                back.merge(&sum(&terms[..cut]));
                assert_eq!(back, whole);
            }
            // Each of the 300 terms is rounded by 2⁻⁶⁴ of the largest at most; the compensated sum is as good.
            let largest = terms.iter().fold(0.0, |most: f64, term| most.max(term.abs()));
            let (mut total, mut lost) = (0.0, 0.0);
            for term in &terms {
                let next: f64 = total + term;
                lost +=
                    if f64::abs(total) > term.abs() { (total - next) + term } else { (term - next) + total };
                total = next;
            }
            let apart = (whole.value(0) - (total + lost)).abs();
            assert!(
                apart <= 300.0 * largest * 2f64.powi(-64) + whole.value(0).abs() * 2f64.powi(-52),
                "{apart}"
            );
        }
    }

    #[test]
    fn a_sum_of_many_is_each_by_itself() {
        let mut state = 3;
        let mut many = Exact::<5>::default();
        let mut single = [Exact::<1>::default(); 5];
        for _ in 0..200 {
            let terms: [f64; 5] =
                std::array::from_fn(|at| noise(&mut state) * 2f64.powi(17 * at as i32 - 40));
            many.add(&terms);
            single.iter_mut().zip(terms).for_each(|(sum, term)| sum.add(&[term]));
        }
        for (at, sum) in single.iter().enumerate() {
            assert_eq!(many.raw(at), sum.raw(0));
            let mut back = Exact::<1>::default();
            back.restore(0, sum.raw(0).0, sum.raw(0).1);
            assert_eq!(back, *sum);
        }
    }

    #[test]
    fn what_is_not_finite_stays_so_in_any_order() {
        let (infinite, none) = (f64::INFINITY, f64::NAN);
        for terms in [[infinite, 1.0, 2.0], [1.0, infinite, 2.0], [1.0, 2.0, infinite]] {
            assert_eq!(sum(&terms), sum(&[infinite, 3.0, 3.0]));
            assert_eq!(sum(&terms).value(0), infinite);
        }
        assert!(sum(&[infinite, -infinite]).value(0).is_nan() && sum(&[none, 1.0]).value(0).is_nan());
        let mut one = sum(&[1.0]);
        one.merge(&sum(&[-infinite]));
        assert_eq!(one.value(0), -infinite);
    }

    #[test]
    fn exponentials_beyond_floats_are_summed() {
        // e²⁰⁰⁰ + e¹⁹⁹⁹, and the same at the other end.
        for middle in [2000.0, -2000.0, 0.0] {
            let mut sum = Exact::<1>::default();
            sum.add_far_one(0, 1.0, middle - 1.0);
            sum.add_far_one(0, 1.0, middle);
            let expected = middle + (1.0 + (-1.0_f64).exp()).ln();
            assert!((sum.far(0).ln() - expected).abs() < 1e-12, "{}", sum.far(0).ln());
        }
        let mut sum = Exact::<1>::default();
        sum.add_far_one(0, 3.0, 0.0);
        sum.add(&[4.0]);
        assert_eq!(sum.value(0), 7.0);
    }
}
