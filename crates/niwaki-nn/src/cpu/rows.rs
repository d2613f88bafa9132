//! Kernels that move whole rows.

use super::Real;
use super::kernels::add_scaled;
use niwaki_simd::vectorised;

/// Copies row `index` of a table into `out`, or zeros where the index is negative.
pub(crate) fn copy_row<F: Real>(table: &[F], index: i32, out: &mut [F]) {
    match usize::try_from(index) {
        Ok(row) => out.copy_from_slice(&table[row * out.len()..][..out.len()]),
        Err(_) => out.fill(F::ZERO),
    }
}

/// Copies a row register by register: short copies of a length that is not constant would each be a call.
#[inline(always)]
pub(crate) fn copy<F: Real>(from: &[F], to: &mut [F]) {
    let ((from, from_rest), (to, to_rest)) = (from.as_chunks::<16>(), to.as_chunks_mut::<16>());
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
    for (to, from) in to_rest.iter_mut().zip(from_rest) {
        *to = *from;
    }
}

vectorised! {
    /// Copies rows of some width into wider ones, from a column on.
    pub(crate) fn copy_columns<F: Real>(from: &[F], width: usize, to: &mut [F], wide: usize, column: usize) {
        for (from, to) in from.chunks_exact(width).zip(to.chunks_exact_mut(wide)) {
            copy(from, &mut to[column..column + width]);
        }
    }
}

/// Adds `d` to row `index` of a table; a negative index adds nothing.
pub(crate) fn add_row<F: Real>(table: &mut [F], index: i32, d: &[F]) {
    if let Ok(row) = usize::try_from(index) {
        add_scaled(&mut table[row * d.len()..][..d.len()], F::ONE, d);
    }
}
