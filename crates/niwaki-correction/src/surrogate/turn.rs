//! Squares turned over their diagonal: rows become columns. The plain version is the twin of the fast one.

use crate::Real;

/// Rows and columns of a square.
pub(crate) const SIDE: usize = 8;

/// Rows as columns; `AVX` says that the caller is compiled for a processor that has it.
#[inline(always)]
pub(crate) fn turned<F: Real, const AVX: bool>(square: &[[F; SIDE]; SIDE]) -> [[F; SIDE]; SIDE] {
    let mut turned = [[F::ZERO; SIDE]; SIDE];
    #[cfg(target_arch = "x86_64")]
    if AVX {
        let (from, to) = (square.as_ptr(), turned.as_mut_ptr());
        if size_of::<F>() == size_of::<f32>() {
            // SAFETY: `F` is `f32`, the only `Real` of its size; both squares are whole; the processor has AVX.
            unsafe { turn_f32(from.cast(), to.cast()) };
        } else {
            // SAFETY: as above, with `f64`.
            unsafe { turn_f64(from.cast(), to.cast()) };
        }
        return turned;
    }
    for row in 0..SIDE {
        for column in 0..SIDE {
            turned[column][row] = square[row][column];
        }
    }
    turned
}

/// Two halves of the square's columns: rows `n` and `n + 4` share a vector, so that only its quarters need shuffling.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
unsafe fn turn_f32(from: *const f32, to: *mut f32) {
    use std::arch::x86_64::{
        _mm_loadu_ps, _mm256_castps128_ps256, _mm256_insertf128_ps, _mm256_shuffle_ps, _mm256_storeu_ps,
        _mm256_unpackhi_ps, _mm256_unpacklo_ps,
    };
    for half in 0..2 {
        // SAFETY: rows 0 to 7, columns `4 * half` to `4 * half + 3`.
        let pair = |row: usize| unsafe {
            let low = _mm_loadu_ps(from.add(row * SIDE + 4 * half));
            let high = _mm_loadu_ps(from.add((row + 4) * SIDE + 4 * half));
            _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(low), high)
        };
        let [a, b, c, d] = [pair(0), pair(1), pair(2), pair(3)];
        let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
        let (ab_high, cd_high) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
        let columns = [
            _mm256_shuffle_ps::<0b01_00_01_00>(ab, cd),
            _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd),
            _mm256_shuffle_ps::<0b01_00_01_00>(ab_high, cd_high),
            _mm256_shuffle_ps::<0b11_10_11_10>(ab_high, cd_high),
        ];
        for (column, values) in columns.into_iter().enumerate() {
            // SAFETY: rows `4 * half` to `4 * half + 3`, whole.
            unsafe { _mm256_storeu_ps(to.add((4 * half + column) * SIDE), values) };
        }
    }
}

/// The four quarters of the square, each turned, the two off the diagonal in each other's place.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
unsafe fn turn_f64(from: *const f64, to: *mut f64) {
    use std::arch::x86_64::{
        _mm256_loadu_pd, _mm256_permute2f128_pd, _mm256_storeu_pd, _mm256_unpackhi_pd, _mm256_unpacklo_pd,
    };
    for (down, right) in [(0, 0), (0, 4), (4, 0), (4, 4)] {
        // SAFETY: rows `down` to `down + 3`, columns `right` to `right + 3`.
        let row = |row: usize| unsafe { _mm256_loadu_pd(from.add((down + row) * SIDE + right)) };
        let [a, b, c, d] = [row(0), row(1), row(2), row(3)];
        let (even, odd) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
        let (even_below, odd_below) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
        let columns = [
            _mm256_permute2f128_pd::<0x20>(even, even_below),
            _mm256_permute2f128_pd::<0x20>(odd, odd_below),
            _mm256_permute2f128_pd::<0x31>(even, even_below),
            _mm256_permute2f128_pd::<0x31>(odd, odd_below),
        ];
        for (column, values) in columns.into_iter().enumerate() {
            // SAFETY: rows `right` to `right + 3`, columns `down` to `down + 3`.
            unsafe { _mm256_storeu_pd(to.add((right + column) * SIDE + down), values) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries that name their place.
    fn check<F: Real, const AVX: bool>() {
        let square =
            std::array::from_fn(|row| std::array::from_fn(|column| F::from_f64((10 * row + column) as f64)));
        for (column, turned) in turned::<F, AVX>(&square).iter().enumerate() {
            for (row, &value) in turned.iter().enumerate() {
                assert!(value == F::from_f64((10 * row + column) as f64), "{row}, {column}: {value}");
            }
        }
    }

    #[test]
    fn rows_become_columns() {
        check::<f32, false>();
        check::<f64, false>();
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx") {
            check::<f32, true>();
            check::<f64, true>();
        }
    }
}
