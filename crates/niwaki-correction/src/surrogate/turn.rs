//! Squares turned over their diagonal: rows become columns. The plain version is the twin of the fast one.

use crate::Real;

/// Rows and columns of a square.
pub(crate) const SIDE: usize = 8;

/// Writes the rows of a square, which start at `rows` in `from`, as columns, which start at `columns` in `to`; `AVX`
/// says that the caller is compiled for a processor that has it.
#[inline(always)]
pub(crate) fn turn<F: Real, const AVX: bool>(
    from: &[F],
    rows: &[usize; SIDE],
    to: &mut [F],
    columns: &[usize; SIDE],
) {
    assert!(fits(from.len(), rows) & fits(to.len(), columns), "a square lies outside of its slice");
    #[cfg(target_arch = "x86_64")]
    if AVX {
        let (from, to) = (from.as_ptr(), to.as_mut_ptr());
        if size_of::<F>() == size_of::<f32>() {
            // SAFETY: `F` is `f32`, the only `Real` of its size; rows and columns are whole; the processor has AVX.
            unsafe { turn_f32(from.cast(), rows, to.cast(), columns) };
        } else {
            // SAFETY: as above, with `f64`.
            unsafe { turn_f64(from.cast(), rows, to.cast(), columns) };
        }
        return;
    }
    for row in 0..SIDE {
        for column in 0..SIDE {
            to[columns[column] + row] = from[rows[row] + column];
        }
    }
}

/// Whether [`SIDE`] values from each start on lie in a slice.
#[inline(always)]
fn fits(length: usize, starts: &[usize; SIDE]) -> bool {
    let mut last = 0;
    for row in 0..SIDE {
        last = last.max(starts[row]);
    }
    length >= SIDE && last <= length - SIDE
}

/// Two halves of the square's columns: rows `n` and `n + 4` share a vector, so that only its quarters need shuffling.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn turn_f32(from: *const f32, rows: &[usize; SIDE], to: *mut f32, columns: &[usize; SIDE]) {
    use std::arch::x86_64::{
        _mm_loadu_ps, _mm256_castps128_ps256, _mm256_insertf128_ps, _mm256_shuffle_ps, _mm256_storeu_ps,
        _mm256_unpackhi_ps, _mm256_unpacklo_ps,
    };
    for half in 0..2 {
        // SAFETY: rows and columns are whole, and the processor has AVX: the caller says so.
        unsafe {
            let pair = |row: usize| {
                let low = _mm_loadu_ps(from.add(rows[row] + 4 * half));
                let high = _mm_loadu_ps(from.add(rows[row + 4] + 4 * half));
                _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(low), high)
            };
            let [a, b, c, d] = [pair(0), pair(1), pair(2), pair(3)];
            let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
            let (ab_high, cd_high) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
            let put = |column: usize, values| _mm256_storeu_ps(to.add(columns[4 * half + column]), values);
            put(0, _mm256_shuffle_ps::<0b01_00_01_00>(ab, cd));
            put(1, _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd));
            put(2, _mm256_shuffle_ps::<0b01_00_01_00>(ab_high, cd_high));
            put(3, _mm256_shuffle_ps::<0b11_10_11_10>(ab_high, cd_high));
        }
    }
}

/// Four rows and two columns at a time: rows `n` and `n + 2` share a vector, so that only neighbours need shuffling.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn turn_f64(from: *const f64, rows: &[usize; SIDE], to: *mut f64, columns: &[usize; SIDE]) {
    use std::arch::x86_64::{
        _mm_loadu_pd, _mm256_castpd128_pd256, _mm256_insertf128_pd, _mm256_storeu_pd, _mm256_unpackhi_pd,
        _mm256_unpacklo_pd,
    };
    for down in [0, 4] {
        for right in [0, 2, 4, 6] {
            // SAFETY: rows and columns are whole, and the processor has AVX: the caller says so.
            unsafe {
                let pair = |row: usize| {
                    let low = _mm_loadu_pd(from.add(rows[row] + right));
                    let high = _mm_loadu_pd(from.add(rows[row + 2] + right));
                    _mm256_insertf128_pd::<1>(_mm256_castpd128_pd256(low), high)
                };
                let (even, odd) = (pair(down), pair(down + 1));
                _mm256_storeu_pd(to.add(columns[right] + down), _mm256_unpacklo_pd(even, odd));
                _mm256_storeu_pd(to.add(columns[right + 1] + down), _mm256_unpackhi_pd(even, odd));
            }
        }
    }
}

/// The sum of each row, `(0 + 4) + (1 + 5)` and `(2 + 6) + (3 + 7)` of its values; `AVX` as above.
#[inline(always)]
pub(crate) fn row_sums<const AVX: bool>(square: &[[f64; SIDE]; SIDE]) -> [f64; SIDE] {
    let mut sums = [0.0; SIDE];
    #[cfg(target_arch = "x86_64")]
    if AVX {
        // SAFETY: the processor has AVX.
        unsafe { row_sums_f64(square, &mut sums) };
        return sums;
    }
    for (sum, row) in sums.iter_mut().zip(square) {
        *sum = ((row[0] + row[4]) + (row[1] + row[5])) + ((row[2] + row[6]) + (row[3] + row[7]));
    }
    sums
}

/// Four rows at a time: halves, then neighbours, then what is left of two rows and two.
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
    fn check<F: Real, const AVX: bool>() {
        // Rows and columns apart from one another, the rows in reverse.
        let from: Vec<F> = (0..100).map(|place| F::from_f64(f64::from(place))).collect();
        let mut to = vec![F::ZERO; 80];
        turn::<F, AVX>(&from, &[92, 80, 70, 60, 50, 40, 30, 20], &mut to, &[0, 10, 20, 30, 40, 50, 60, 72]);
        // Row 1 starts at 80 and column 3 at 30: the value 83 comes to 31. Row 7, column 7: 27 comes to 79.
        assert!(to[31] == F::from_f64(83.0) && to[79] == F::from_f64(27.0) && to[7] == F::from_f64(20.0));
        assert!(to[8] == F::ZERO && to[71] == F::ZERO);
        let sum: F = to.into_iter().sum();
        // Σ starts = 442 counts eight times, Σ columns = 28 for each of eight rows: 8 · (442 + 28).
        assert!(sum == F::from_f64(3760.0), "{sum}");
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

    #[test]
    fn rows_add_up() {
        let square = std::array::from_fn(|row| std::array::from_fn(|at| (10 * row + at) as f64 + 0.1));
        // Row n: 8 · (10n + 0.1) + 28.
        let expected: [f64; SIDE] = std::array::from_fn(|row| 80.0 * row as f64 + 28.8);
        let sums = row_sums::<false>(&square);
        assert!((0..SIDE).all(|row| (sums[row] - expected[row]).abs() < 1e-12), "{sums:?}");
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx") {
            assert_eq!(row_sums::<true>(&square), sums);
        }
    }
}
