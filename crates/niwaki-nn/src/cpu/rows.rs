//! Kernels that move whole rows.

use super::Real;
use super::kernels::add_scaled;

/// Copies row `index` of a table into `out`, or zeros where the index is negative.
pub(crate) fn copy_row<F: Real>(table: &[F], index: i32, out: &mut [F]) {
    match usize::try_from(index) {
        Ok(row) => out.copy_from_slice(&table[row * out.len()..][..out.len()]),
        Err(_) => out.fill(F::ZERO),
    }
}

/// Adds `d` to row `index` of a table; a negative index adds nothing.
pub(crate) fn add_row<F: Real>(table: &mut [F], index: i32, d: &[F]) {
    if let Ok(row) = usize::try_from(index) {
        add_scaled(&mut table[row * d.len()..][..d.len()], F::ONE, d);
    }
}
