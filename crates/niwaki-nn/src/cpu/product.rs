//! Matrix products, such that a row of the result has the same bits however many rows are computed together.
//!
//! The `gemm` crate's kernels add up `a · b` over the inner axis in order, one fused step each, for every element,
//! as long as the inner axis fits one of its panels and no special case (a single row, say) is taken. So the inner
//! axis is cut here into pieces of at most [`PANEL`], and the special cases are computed here with the same order. On an x86
//! processor without fused steps those kernels round twice, so all products are computed here.

use super::Real;
use niwaki_simd::{Level, level, vectorised};

/// Inner axes up to this length are summed in one run.
pub(crate) const PANEL: usize = 512;

/// A matrix in memory: the distance between rows and between columns, in scalars.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a, F> {
    pub(crate) data: &'a [F],
    pub(crate) row_stride: usize,
    pub(crate) column_stride: usize,
}

impl<'a, F> Matrix<'a, F> {
    /// Row-major with rows `stride` apart.
    pub(crate) fn rows(data: &'a [F], stride: usize) -> Self {
        Self { data, row_stride: stride, column_stride: 1 }
    }

    /// The transpose.
    pub(crate) fn transposed(self) -> Self {
        Self { data: self.data, row_stride: self.column_stride, column_stride: self.row_stride }
    }

    /// The part that starts at a row and a column.
    pub(crate) fn from(self, row: usize, column: usize) -> Self {
        let start = row * self.row_stride + column * self.column_stride;
        Self { data: &self.data[start.min(self.data.len())..], ..self }
    }

    /// Scalars from the first element to the last.
    pub(crate) fn reach(&self, rows: usize, columns: usize) -> usize {
        if rows == 0 || columns == 0 {
            return 0;
        }
        (rows - 1) * self.row_stride + (columns - 1) * self.column_stride + 1
    }
}

/// `out[m, n] (+)= left[m, k] · right[k, n]`, with `out` row-major and its rows `stride` apart.
///
/// `add` keeps what `out` holds and adds to it.
pub(crate) fn product<F: Real>(
    [m, k, n]: [usize; 3],
    left: Matrix<'_, F>,
    right: Matrix<'_, F>,
    out: &mut [F],
    stride: usize,
    add: bool,
) {
    assert!(
        left.data.len() >= left.reach(m, k) && right.data.len() >= right.reach(k, n),
        "operand too short"
    );
    assert!(out.len() >= Matrix::rows(&*out, stride).reach(m, n), "result too short");
    let fuses = cfg!(not(target_arch = "x86_64")) || level() != Level::Base;
    for start in (0..k).step_by(PANEL) {
        let depth = PANEL.min(k - start);
        let (left, right) = (left.from(0, start), right.from(start, 0));
        let add = add || start > 0;
        let horizontal = left.column_stride == 1 && right.row_stride == 1 && m * n <= 256;
        if !fuses || m == 1 || n == 1 || depth <= 2 || horizontal {
            small([m, depth, n], left, right, out, stride, add);
            continue;
        }
        // The kernels want the result column-major: that is `outᵀ = rightᵀ · leftᵀ`.
        // SAFETY: the asserts above keep every access within the slices, and `out` is borrowed for writing alone.
        unsafe {
            F::kernel()(
                n,
                m,
                depth,
                out.as_mut_ptr(),
                stride as isize,
                1,
                add,
                right.data.as_ptr(),
                right.row_stride as isize,
                right.column_stride as isize,
                left.data.as_ptr(),
                left.row_stride as isize,
                left.column_stride as isize,
                F::ONE,
                F::ONE,
                false,
                false,
                false,
                gemm_common::Parallelism::None,
            );
        }
    }
}

vectorised! {
    /// `out[j, i] = matrix[i, j]`, tile by tile so that both sides stay in cache.
    pub(crate) fn transpose<F: Real>(shape: [usize; 2], matrix: &[F], out: &mut [F]) {
        let [rows, columns] = shape;
        let tile = 16;
        for top in (0..rows).step_by(tile) {
            for left in (0..columns).step_by(tile) {
                for column in left..(left + tile).min(columns) {
                    let bottom = (top + tile).min(rows);
                    for (row, out) in (top..bottom).zip(&mut out[column * rows + top..column * rows + bottom]) {
                        *out = matrix[row * columns + column];
                    }
                }
            }
        }
    }

    /// The same sums in the same order, for the shapes where `gemm` would choose another.
    fn small<F: Real>(
        shape: [usize; 3],
        left: Matrix<'_, F>,
        right: Matrix<'_, F>,
        out: &mut [F],
        stride: usize,
        add: bool,
    ) {
        let [m, k, n] = shape;
        let mut sums = [F::ZERO; 64];
        for row in 0..m {
            for start in (0..n).step_by(sums.len()) {
                let sums = &mut sums[..64.min(n - start)];
                sums.fill(F::ZERO);
                for inner in 0..k {
                    let factor = left.data[row * left.row_stride + inner * left.column_stride];
                    if right.column_stride == 1 {
                        let from = inner * right.row_stride + start;
                        for (sum, &other) in sums.iter_mut().zip(&right.data[from..]) {
                            *sum = factor.fused(other, *sum);
                        }
                    } else {
                        for (column, sum) in sums.iter_mut().enumerate() {
                            let at = inner * right.row_stride + (start + column) * right.column_stride;
                            *sum = factor.fused(right.data[at], *sum);
                        }
                    }
                }
                let out = &mut out[row * stride + start..][..sums.len()];
                for (out, &sum) in out.iter_mut().zip(sums.iter()) {
                    *out = if add { *out + sum } else { sum };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use niwaki_stream::Key;

    fn noise(count: usize, lane: u64) -> Vec<f32> {
        let mut stream = Key::new(3, "law").lane(lane).open();
        (0..count).map(|_| (2.0 * stream.uniform() - 1.0) as f32).collect()
    }

    /// Rows computed alone, in small and in large company, with and without a stride, have the same bits.
    #[test]
    fn a_row_does_not_depend_on_its_company() {
        const SHAPES: &[(usize, usize)] =
            &[(2, 7), (7, 1), (33, 19), (16, 16), (128, 384), (512, 128), (128, 4), (1100, 40)];
        // Miri takes seconds for what takes microseconds.
        let (m, shapes) = if cfg!(miri) { (9, &SHAPES[..4]) } else { (67, SHAPES) };
        for &(k, n) in shapes {
            for transposed in [false, true] {
                let (a, b) = (noise(m * k, 1), noise(k * n, 2));
                let right = if transposed { Matrix::rows(&b, k).transposed() } else { Matrix::rows(&b, n) };
                for add in [false, true] {
                    let start = noise(m * n, 3);
                    let mut whole = start.clone();
                    product([m, k, n], Matrix::rows(&a, k), right, &mut whole, n, add);
                    for rows in [1, 2, 3, 8, 31, 66].into_iter().filter(|&rows| rows < m) {
                        let mut part = start.clone();
                        product([rows, k, n], Matrix::rows(&a[k..], k), right, &mut part[n..], n, add);
                        let (part, whole) = (&part[n..(rows + 1) * n], &whole[n..(rows + 1) * n]);
                        assert_eq!(
                            part, whole,
                            "{rows} rows of {m}×{k}×{n}, transposed {transposed}, add {add}"
                        );
                    }
                    let mut strided = start.clone();
                    let every = Matrix::rows(&a, 2 * k);
                    product([m / 2, k, n], every, right, &mut strided, 2 * n, add);
                    for row in (0..m / 2).map(|row| 2 * row * n) {
                        assert_eq!(strided[row..row + n], whole[row..row + n], "strided {m}×{k}×{n}");
                    }
                }
            }
        }
    }

    #[test]
    fn transposing() {
        let (rows, columns) = (37, 18);
        let matrix = noise(rows * columns, 4);
        let mut out = vec![0.0; rows * columns];
        transpose([rows, columns], &matrix, &mut out);
        assert!((0..rows * columns).all(|at| out[at % columns * rows + at / columns] == matrix[at]));
    }

    #[test]
    fn two_by_two() {
        // [1 2; 3 4] · [5 6; 7 8] = [19 22; 43 50].
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        let mut out = [1.0; 4];
        product([2, 2, 2], Matrix::rows(&a, 2), Matrix::rows(&b, 2), &mut out, 2, true);
        assert_eq!(out, [20.0, 23.0, 44.0, 51.0]);
    }
}
