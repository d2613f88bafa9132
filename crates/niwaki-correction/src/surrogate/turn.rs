//! Squares turned over their diagonal: rows become columns. The plain version is the twin of the fast one.

use crate::Real;

/// What a caller is compiled for, which says what may be used: only what every processor has;
pub(crate) const PLAIN: u8 = 0;
/// AVX2, which comes with AVX, and FMA;
#[cfg(target_arch = "x86_64")]
pub(crate) const AVX2: u8 = 1;
/// AVX-512 besides.
#[cfg(target_arch = "x86_64")]
pub(crate) const AVX512: u8 = 2;

/// Rows and columns of a square.
pub(crate) const SIDE: usize = 8;

/// Writes the rows of a square, which start where `row` says, as columns, which start where `column` says.
///
/// # Safety
/// [`SIDE`] values can be read at each row's start and written at each column's, and none of the latter are among the
/// former; the processor has what `LEVEL` says.
#[inline(always)]
pub(crate) unsafe fn turn<F: Real, const LEVEL: u8>(
    row: impl Fn(usize) -> *const F,
    column: impl Fn(usize) -> *mut F,
) {
    #[cfg(target_arch = "x86_64")]
    if LEVEL > PLAIN {
        if size_of::<F>() == size_of::<f32>() {
            // SAFETY: the caller's; `F` is `f32`, the only `Real` of its size.
            unsafe { turn_f32(|index| row(index).cast(), |index| column(index).cast()) };
        } else {
            // SAFETY: as above, with `f64`.
            unsafe { turn_f64(|index| row(index).cast(), |index| column(index).cast()) };
        }
        return;
    }
    for down in 0..SIDE {
        for right in 0..SIDE {
            // SAFETY: the caller's.
            unsafe { *column(right).add(down) = *row(down).add(right) };
        }
    }
}

/// Two halves of the square's columns: rows `n` and `n + 4` share a vector, so that only its quarters need shuffling.
///
/// # Safety
/// As of [`turn`]; the processor has AVX.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn turn_f32(row: impl Fn(usize) -> *const f32, column: impl Fn(usize) -> *mut f32) {
    use std::arch::x86_64::{
        _mm_loadu_ps, _mm256_castps128_ps256, _mm256_insertf128_ps, _mm256_shuffle_ps, _mm256_storeu_ps,
        _mm256_unpackhi_ps, _mm256_unpacklo_ps,
    };
    for half in 0..2 {
        // SAFETY: rows and columns are whole, and the processor has AVX: the caller says so.
        unsafe {
            let pair = |down: usize| {
                let low = _mm_loadu_ps(row(down).add(4 * half));
                let high = _mm_loadu_ps(row(down + 4).add(4 * half));
                _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(low), high)
            };
            let [a, b, c, d] = [pair(0), pair(1), pair(2), pair(3)];
            let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
            let (ab_high, cd_high) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
            let put = |right: usize, values| _mm256_storeu_ps(column(4 * half + right), values);
            put(0, _mm256_shuffle_ps::<0b01_00_01_00>(ab, cd));
            put(1, _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd));
            put(2, _mm256_shuffle_ps::<0b01_00_01_00>(ab_high, cd_high));
            put(3, _mm256_shuffle_ps::<0b11_10_11_10>(ab_high, cd_high));
        }
    }
}

/// Four rows and two columns at a time: rows `n` and `n + 2` share a vector, so that only neighbours need shuffling.
///
/// # Safety
/// As of [`turn`]; the processor has AVX.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn turn_f64(row: impl Fn(usize) -> *const f64, column: impl Fn(usize) -> *mut f64) {
    use std::arch::x86_64::{
        _mm_loadu_pd, _mm256_castpd128_pd256, _mm256_insertf128_pd, _mm256_storeu_pd, _mm256_unpackhi_pd,
        _mm256_unpacklo_pd,
    };
    for top in [0, 4] {
        for right in [0, 2, 4, 6] {
            // SAFETY: rows and columns are whole, and the processor has AVX: the caller says so.
            unsafe {
                let pair = |down: usize| {
                    let low = _mm_loadu_pd(row(down).add(right));
                    let high = _mm_loadu_pd(row(down + 2).add(right));
                    _mm256_insertf128_pd::<1>(_mm256_castpd128_pd256(low), high)
                };
                let (even, odd) = (pair(top), pair(top + 1));
                _mm256_storeu_pd(column(right).add(top), _mm256_unpacklo_pd(even, odd));
                _mm256_storeu_pd(column(right + 1).add(top), _mm256_unpackhi_pd(even, odd));
            }
        }
    }
}

/// The sum of each row, in an order that depends on the level alone.
///
/// # Safety
/// The processor has what `LEVEL` says.
#[inline(always)]
pub(crate) unsafe fn row_sums<const LEVEL: u8>(square: &[[f64; SIDE]; SIDE]) -> [f64; SIDE] {
    let mut sums = [0.0; SIDE];
    #[cfg(target_arch = "x86_64")]
    if LEVEL > PLAIN {
        if LEVEL == AVX512 {
            // SAFETY: the processor has AVX-512.
            unsafe { row_sums_wide(square, &mut sums) };
        } else {
            // SAFETY: the processor has AVX.
            unsafe { row_sums_f64(square, &mut sums) };
        }
        return sums;
    }
    for (sum, row) in sums.iter_mut().zip(square) {
        *sum = ((row[0] + row[4]) + (row[1] + row[5])) + ((row[2] + row[6]) + (row[3] + row[7]));
    }
    sums
}

/// Neighbours, then pairs of them, then fours; each step halves what is left and joins it with another's.
///
/// # Safety
/// The processor has AVX-512.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn row_sums_wide(square: &[[f64; SIDE]; SIDE], sums: &mut [f64; SIDE]) {
    use std::arch::x86_64::{
        __m512d, _mm512_add_pd, _mm512_loadu_pd, _mm512_mask_blend_pd, _mm512_permutex_pd,
        _mm512_shuffle_f64x2, _mm512_shuffle_pd, _mm512_storeu_pd,
    };
    // SAFETY: whole rows, and all of the sums; the processor has AVX-512: the caller says so.
    unsafe {
        // Even places of `a` and odd ones of `b`, and the others, places changed: a blend needs no shuffle.
        let neighbours = |row: usize| {
            let (a, b) = (_mm512_loadu_pd(square[row].as_ptr()), _mm512_loadu_pd(square[row + 1].as_ptr()));
            _mm512_add_pd(_mm512_mask_blend_pd(0b1010_1010, a, b), _mm512_shuffle_pd::<0b0101_0101>(a, b))
        };
        // The same with neighbouring pairs.
        let pairs = |a: __m512d, b: __m512d| {
            let others = _mm512_mask_blend_pd(0b0011_0011, a, b);
            let changed = _mm512_permutex_pd::<0b01_00_11_10>(others);
            _mm512_add_pd(_mm512_mask_blend_pd(0b1100_1100, a, b), changed)
        };
        let (low, high) = (pairs(neighbours(0), neighbours(2)), pairs(neighbours(4), neighbours(6)));
        let first = _mm512_shuffle_f64x2::<0b01_00_01_00>(low, high);
        let second = _mm512_shuffle_f64x2::<0b11_10_11_10>(low, high);
        _mm512_storeu_pd(sums.as_mut_ptr(), _mm512_add_pd(first, second));
    }
}

/// Four rows at a time: halves, then neighbours, then what is left of two rows and two.
///
/// # Safety
/// The processor has AVX.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn row_sums_f64(square: &[[f64; SIDE]; SIDE], sums: &mut [f64; SIDE]) {
    use std::arch::x86_64::{
        _mm256_add_pd, _mm256_blend_pd, _mm256_hadd_pd, _mm256_loadu_pd, _mm256_permute2f128_pd,
        _mm256_storeu_pd,
    };
    for four in [0, 4] {
        // SAFETY: both halves of four rows, and four of the sums; the processor has AVX: the caller says so.
        unsafe {
            let half = |row: usize| {
                let row = square[four + row].as_ptr();
                _mm256_add_pd(_mm256_loadu_pd(row), _mm256_loadu_pd(row.add(4)))
            };
            // Rows take turns: (0 + 1) of `a`, of `b`, then (2 + 3) of each.
            let (ab, cd) = (_mm256_hadd_pd(half(0), half(1)), _mm256_hadd_pd(half(2), half(3)));
            let crossed = _mm256_permute2f128_pd::<0x21>(ab, cd);
            let straight = _mm256_blend_pd::<0b1100>(ab, cd);
            _mm256_storeu_pd(sums.as_mut_ptr().add(four), _mm256_add_pd(straight, crossed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries that name their place.
    fn check<F: Real, const LEVEL: u8>() {
        // Rows and columns apart from one another, the rows in reverse.
        let from: Vec<F> = (0..100).map(|place| F::from_f64(f64::from(place))).collect();
        let mut to = vec![F::ZERO; 80];
        let rows = [92, 80, 70, 60, 50, 40, 30, 20].map(|start| from[start..start + SIDE].as_ptr());
        // One borrow for all columns: another would end the right to those before it.
        let (begin, starts) = (to.as_mut_ptr(), [0, 10, 20, 30, 40, 50, 60, 72]);
        // SAFETY: the last column ends with the vector; the caller asks for what the processor has.
        unsafe { turn::<F, LEVEL>(|row| rows[row], |column| begin.add(starts[column])) };
        // Row 1 starts at 80 and column 3 at 30: the value 83 comes to 31. Row 7, column 7: 27 comes to 79.
        assert!(to[31] == F::from_f64(83.0) && to[79] == F::from_f64(27.0) && to[7] == F::from_f64(20.0));
        assert!(to[8] == F::ZERO && to[71] == F::ZERO);
        let sum: F = to.into_iter().sum();
        // Σ starts = 442 counts eight times, Σ columns = 28 for each of eight rows: 8 · (442 + 28).
        assert!(sum == F::from_f64(3760.0), "{sum}");
    }

    #[test]
    fn rows_become_columns() {
        check::<f32, PLAIN>();
        check::<f64, PLAIN>();
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx") {
            check::<f32, AVX2>();
            check::<f64, AVX2>();
        }
    }

    #[test]
    fn rows_add_up() {
        let square = std::array::from_fn(|row| std::array::from_fn(|at| (10 * row + at) as f64 + 0.1));
        // Row n: 8 · (10n + 0.1) + 28.
        let expected: [f64; SIDE] = std::array::from_fn(|row| 80.0 * row as f64 + 28.8);
        let close = |sums: [f64; SIDE]| (0..SIDE).all(|row| (sums[row] - expected[row]).abs() < 1e-12);
        // SAFETY: each where the processor has it.
        unsafe {
            let sums = row_sums::<PLAIN>(&square);
            assert!(close(sums), "{sums:?}");
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                assert_eq!(row_sums::<AVX2>(&square), sums);
            }
            // Its order is another.
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx512f") {
                let sums = row_sums::<AVX512>(&square);
                assert!(close(sums), "{sums:?}");
            }
        }
    }
}
