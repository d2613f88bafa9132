//! Products whose right factor lies in panels, for AVX-512: [`product`](super::product::product) with the packing
//! taken out, so that a weight is laid out once for all products that it takes part in.
//!
//! A panel holds [`WIDTH`] columns (the last one fewer, rounded up to a register), row after row. A tile of the result,
//! six rows by one panel, stays in registers while the inner axis runs. Each element is one chain of fused steps over
//! at most [`PANEL`] of the inner axis, as in `product`, so that both give the same bits.

use super::Real;
use super::product::{Matrix, PANEL, product};
use niwaki_simd::{Level, level, vectorised};
use std::hint::black_box;
use std::ops::Range;

/// Scalars of a register of f32; f64 takes two.
const PART: usize = 16;
/// Columns of a panel.
pub(crate) const WIDTH: usize = 4 * PART;
/// Rows of the largest tile: 6 × 4 registers of sums leave 8 for the factors.
pub(crate) const ROWS: usize = 6;
/// Rows that [`add_outer`] sums in one run: with [`WIDTH`] columns they fit the first cache.
const DEPTH: usize = 64;

/// Whether this machine multiplies faster from panels.
pub(crate) fn used() -> bool {
    level() == Level::Avx512
}

/// Scalars that the panels of a `[k, n]` matrix take.
pub(crate) fn size([k, n]: [usize; 2]) -> usize {
    k * n.next_multiple_of(PART)
}

/// The panels of a matrix of `n` columns: first column, columns, columns with padding.
fn panels(n: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..n).step_by(WIDTH).map(move |first| {
        let columns = WIDTH.min(n - first);
        (first, columns, columns.next_multiple_of(PART))
    })
}

vectorised! {
    /// Lays a `[k, n]` matrix out in panels; the padding is zero.
    pub(crate) fn pack<F: Real>(shape: [usize; 2], matrix: Matrix<'_, F>, out: &mut [F]) {
        let [k, n] = shape;
        for (first, columns, padded) in panels(n) {
            let panel = &mut out[first * k..][..k * padded];
            if columns < padded {
                panel.fill(F::ZERO);
            }
            if matrix.column_stride != 1 {
                pack_strided([k, columns], matrix.from(0, first), panel, padded);
                continue;
            }
            for (row, out) in panel.chunks_exact_mut(padded).enumerate() {
                let from = &matrix.data[row * matrix.row_stride + first..];
                // Register by register: short copies of a length that is not constant would each be a call.
                let (parts, rest) = out[..columns].as_chunks_mut::<PART>();
                for (out, from) in parts.iter_mut().zip(from.as_chunks::<PART>().0) {
                    *out = *from;
                }
                let done = columns - rest.len();
                rest.copy_from_slice(&from[done..columns]);
            }
        }
    }
}

/// One panel of a matrix whose columns are not contiguous, some rows at a time so that both sides stay in cache.
#[inline(always)]
fn pack_strided<F: Real>([k, columns]: [usize; 2], matrix: Matrix<'_, F>, panel: &mut [F], padded: usize) {
    for top in (0..k).step_by(PART) {
        for row in top..(top + PART).min(k) {
            let from = &matrix.data[row * matrix.row_stride..];
            for (column, out) in panel[row * padded..][..columns].iter_mut().enumerate() {
                *out = from[column * matrix.column_stride];
            }
        }
    }
}

/// `out[m, n] (+)= left[m, k] · right[k, n]`, with `right` in panels; otherwise as
/// [`product`](super::product::product).
pub(crate) fn multiply<F: Real>(
    [m, k, n]: [usize; 3],
    left: Matrix<'_, F>,
    right: &[F],
    out: &mut [F],
    stride: usize,
    add: bool,
) {
    for (first, rows) in tiles(m) {
        let place = |row: usize| [(first + row) * left.row_stride, (first + row) * stride];
        multiply_tile([rows, k, n], 0..n, place, (left.data, left.column_stride), right, out, add);
    }
}

/// The listed rows of `out[_, n] = left[_, k] · right[k, n]`, with `right` in panels, and no others; of them the panels that begin in some
/// columns.
pub(crate) fn multiply_listed<F: Real>(
    [k, n]: [usize; 2],
    columns: Range<usize>,
    listed: &[u32],
    left: &[F],
    right: &[F],
    out: &mut [F],
) {
    for listed in listed.chunks(ROWS) {
        let place = |row: usize| [listed[row] as usize * k, listed[row] as usize * n];
        multiply_tile([listed.len(), k, n], columns.clone(), place, (left, 1), right, out, false);
    }
}

/// At most [`ROWS`] rows of a product; `place` says where a row starts in `left`, whose columns are so far apart, and in `out`.
fn multiply_tile<F: Real>(
    [rows, k, n]: [usize; 3],
    within: Range<usize>,
    place: impl Fn(usize) -> [usize; 2],
    (left, apart): (&[F], usize),
    right: &[F],
    out: &mut [F],
    add: bool,
) {
    assert!(used(), "panels are for AVX-512");
    let (mut from, mut to) = ([0; ROWS], [0; ROWS]);
    for row in 0..rows {
        [from[row], to[row]] = place(row);
    }
    for start in (0..k).step_by(PANEL) {
        let depth = PANEL.min(k - start);
        let left = Left { data: left, rows: from.map(|from| from + start * apart), apart };
        for (column, columns, padded) in panels(n).filter(|(column, ..)| within.contains(column)) {
            let panel = &right[column * k + start * padded..][..depth * padded];
            let to = to.map(|to| to + column);
            // SAFETY: `used` says that the machine has the features.
            unsafe { tile([rows, columns], left, panel, out, to, add || start > 0) };
        }
    }
}

/// The rows of a tile's left factor: where they start, and how far apart their scalars are.
#[derive(Clone, Copy)]
struct Left<'a, F> {
    data: &'a [F],
    rows: [usize; ROWS],
    apart: usize,
}

/// `out[m, n] += leftᵀ · right` with `left` `[k, m]`, `right` `[k, n]` and `out` row-major: a weight's gradient. Where
/// panels are used, each run of [`DEPTH`] rows is summed by itself.
pub(crate) fn add_outer<F: Real>([k, m, n]: [usize; 3], left: &[F], right: &[F], out: &mut [F]) {
    let right = Matrix::rows(right, n);
    if !used() {
        return product([m, k, n], Matrix::rows(left, m).transposed(), right, out, n, true);
    }
    let mut room = Room([F::ZERO; DEPTH * WIDTH]);
    for start in (0..k).step_by(DEPTH) {
        let depth = DEPTH.min(k - start);
        for (column, columns, padded) in panels(n) {
            let panel = &mut room.0[..depth * padded];
            pack([depth, columns], right.from(start, column), panel);
            for (row, rows) in tiles(m) {
                let from = std::array::from_fn(|place| start * m + row + place);
                let left = Left { data: left, rows: from, apart: m };
                let to = std::array::from_fn(|place| (row + place) * n + column);
                // SAFETY: `used` says that the machine has the features.
                unsafe { tile([rows, columns], left, panel, out, to, true) };
            }
        }
    }
}

/// A panel on the stack.
#[repr(align(64))]
struct Room<F>([F; DEPTH * WIDTH]);

/// First row and number of rows of each tile.
fn tiles(m: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..m).step_by(ROWS).map(move |first| (first, ROWS.min(m - first)))
}

/// One tile of at most [`ROWS`] rows and one panel, over the whole of the panel.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma"))]
fn tile<F: Real>(
    [rows, columns]: [usize; 2],
    left: Left<'_, F>,
    panel: &[F],
    out: &mut [F],
    to: [usize; ROWS],
    add: bool,
) {
    if !columns.is_multiple_of(PART) {
        // A part of a register: the whole of it goes elsewhere first.
        let mut room = [F::ZERO; ROWS * WIDTH];
        let within = std::array::from_fn(|row| row * WIDTH);
        whole_tile([rows, columns.div_ceil(PART)], left, panel, &mut room, within, false);
        for (to, room) in to.into_iter().zip(room.chunks_exact(WIDTH)).take(rows) {
            for (out, &sum) in out[to..][..columns].iter_mut().zip(room) {
                *out = if add { *out + sum } else { sum };
            }
        }
        return;
    }
    whole_tile([rows, columns / PART], left, panel, out, to, add);
}

/// A tile of whole registers: `parts` of them across.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma"))]
fn whole_tile<F: Real>(
    [rows, parts]: [usize; 2],
    left: Left<'_, F>,
    panel: &[F],
    out: &mut [F],
    to: [usize; ROWS],
    add: bool,
) {
    macro_rules! with_constants {
        ($($rows:literal)*) => {
            match (rows, parts) {
                $(
                    ($rows, 1) => constant_tile::<F, $rows, 1>(left, panel, out, to, add),
                    ($rows, 2) => constant_tile::<F, $rows, 2>(left, panel, out, to, add),
                    ($rows, 3) => constant_tile::<F, $rows, 3>(left, panel, out, to, add),
                    ($rows, 4) => constant_tile::<F, $rows, 4>(left, panel, out, to, add),
                )*
                _ => {}
            }
        };
    }
    with_constants!(1 2 3 4 5 6);
}

/// A tile whose sums stay in registers, because all their indices are constants.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma"))]
fn constant_tile<F: Real, const HEIGHT: usize, const PARTS: usize>(
    left: Left<'_, F>,
    panel: &[F],
    out: &mut [F],
    to: [usize; ROWS],
    add: bool,
) {
    let panel = panel.as_chunks::<PART>().0.as_chunks::<PARTS>().0;
    let reach = panel.len().saturating_sub(1) * left.apart;
    let within = |starts: &[usize; ROWS], reach: usize, length: usize| {
        starts[..HEIGHT].iter().all(|start| start + reach < length)
    };
    assert!(within(&left.rows, reach, left.data.len()), "operand too short");
    assert!(within(&to, PARTS * PART - 1, out.len()), "result too short");
    // A pointer per row and one offset for all. The black box hides that the rows may be evenly spaced: otherwise the
    // compiler keeps fewer pointers and computes the others in every step.
    // SAFETY: the rows begin within what was asserted.
    let rows: [*const F; HEIGHT] =
        black_box(std::array::from_fn(|row| unsafe { left.data.as_ptr().add(left.rows[row]) }));
    let mut offset = 0;
    let mut sums = [[[F::ZERO; PART]; PARTS]; HEIGHT];
    for right in panel {
        let right = *right;
        for row in 0..HEIGHT {
            // SAFETY: within what was asserted.
            let factor = unsafe { *rows[row].add(offset) };
            for part in 0..PARTS {
                for lane in 0..PART {
                    sums[row][part][lane] = factor.fused(right[part][lane], sums[row][part][lane]);
                }
            }
        }
        offset += left.apart;
    }
    for row in 0..HEIGHT {
        for part in 0..PARTS {
            // SAFETY: within what was asserted.
            let out = unsafe { &mut *out.as_mut_ptr().add(to[row] + part * PART).cast::<[F; PART]>() };
            for lane in 0..PART {
                sums[row][part][lane] =
                    if add { out[lane] + sums[row][part][lane] } else { sums[row][part][lane] };
            }
            *out = sums[row][part];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use niwaki_stream::Key;

    fn noise(count: usize, lane: u64) -> Vec<f32> {
        let mut stream = Key::new(5, "law").lane(lane).open();
        (0..count).map(|_| (2.0 * stream.uniform() - 1.0) as f32).collect()
    }

    fn packed(shape: [usize; 2], matrix: Matrix<'_, f32>) -> Vec<f32> {
        let mut panels = vec![f32::NAN; size(shape)];
        pack(shape, matrix, &mut panels);
        panels
    }

    #[test]
    fn a_panel_by_hand() {
        // [1 2 3; 4 5 6] has one panel of 16 columns, 13 of them padding; its transpose has 3 rows of 2 columns.
        let matrix = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let mut expected = [0.0; 48];
        expected[..3].copy_from_slice(&[1.0, 2.0, 3.0]);
        expected[16..19].copy_from_slice(&[4.0, 5.0, 6.0]);
        assert_eq!(packed([2, 3], Matrix::rows(&matrix, 3)), expected[..32]);
        let mut expected = [0.0; 48];
        for row in 0..3 {
            expected[16 * row] = matrix[row];
            expected[16 * row + 1] = matrix[3 + row];
        }
        assert_eq!(packed([3, 2], Matrix::rows(&matrix, 3).transposed()), expected);
    }

    /// The bits of [`product`], for every height and width of a tile.
    #[test]
    fn the_same_bits_as_a_plain_product() {
        if !used() {
            return;
        }
        for (m, k, n) in
            [(13, 128, 384), (6, 512, 128), (9, 1100, 40), (5, 7, 67), (64, 33, 4), (1, 2, 1), (3, 1, 130)]
        {
            let (a, b, start) = (noise(2 * m * k, 1), noise(k * n, 2), noise(2 * m * n, 3));
            for right in [Matrix::rows(&b, n), Matrix::rows(&b, k).transposed()] {
                let panels = packed([k, n], right);
                for (add, every) in [(false, 1), (true, 1), (true, 2)] {
                    let (mut plain, mut tiled) = (start.clone(), start.clone());
                    let left = Matrix::rows(&a, every * k);
                    product([m, k, n], left, right, &mut plain, every * n, add);
                    multiply([m, k, n], left, &panels, &mut tiled, every * n, add);
                    assert_eq!(tiled, plain, "{m}×{k}×{n}, add {add}, every {every}");
                }
            }
        }
    }

    /// A weight's gradient is that of plain products over runs of rows.
    #[test]
    fn outer_products_run_by_run() {
        for (k, m, n) in [(256, 13, 70), (70, 128, 4), (1, 6, 64), (65, 7, 16)] {
            let (a, b) = (noise(k * m, 1), noise(k * n, 2));
            let (mut plain, mut summed) = (noise(m * n, 3), noise(m * n, 3));
            add_outer([k, m, n], &a, &b, &mut summed);
            let run = if used() { DEPTH } else { k };
            for start in (0..k).step_by(run) {
                let depth = run.min(k - start);
                let left = Matrix::rows(&a[start * m..], m).transposed();
                product([m, depth, n], left, Matrix::rows(&b[start * n..], n), &mut plain, n, true);
            }
            assert_eq!(summed, plain, "{k}×{m}×{n}");
        }
    }
}
