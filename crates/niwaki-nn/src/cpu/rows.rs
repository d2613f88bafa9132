//! Kernels that move whole rows: embed, gather, pool, concat.

use super::Real;
use super::kernels::add_scaled;
use crate::graph::Pooling;

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

/// The factor on each of a group's rows: 0 where masked out, 1 in a sum, one over the count in a mean.
fn share<F: Real>(mask: Option<&[u8]>, group: usize, pooling: Pooling) -> F {
    let count = mask.map_or(group, |mask| mask.iter().filter(|&&byte| byte != 0).count());
    match pooling {
        Pooling::Sum => F::ONE,
        Pooling::Mean => F::ONE / F::from_f64(count.max(1) as f64),
    }
}

/// Pools one group of rows into `out`.
pub(crate) fn pool<F: Real>(rows: &[F], mask: Option<&[u8]>, pooling: Pooling, out: &mut [F]) {
    let group = rows.len() / out.len();
    let share = share(mask, group, pooling);
    out.fill(F::ZERO);
    for (place, row) in rows.chunks_exact(out.len()).enumerate() {
        if mask.is_none_or(|mask| mask[place] != 0) {
            add_scaled(out, share, row);
        }
    }
}

/// Adds a pooled row's cotangent to its group's rows.
pub(crate) fn pool_backward<F: Real>(d: &[F], mask: Option<&[u8]>, pooling: Pooling, rows: &mut [F]) {
    let group = rows.len() / d.len();
    let share = share(mask, group, pooling);
    for (place, row) in rows.chunks_exact_mut(d.len()).enumerate() {
        if mask.is_none_or(|mask| mask[place] != 0) {
            add_scaled(row, share, d);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_mean() {
        // Rows (1, 2), (3, 4), (5, 6) with the middle one out: mean (3, 4); each counted row gets half the cotangent.
        let rows = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let mask = [1, 0, 1];
        let mut out = [0.0; 2];
        pool(&rows, Some(&mask), Pooling::Mean, &mut out);
        assert_eq!(out, [3.0, 4.0]);
        let mut d = [0.0; 6];
        pool_backward(&[1.0, 2.0], Some(&mask), Pooling::Mean, &mut d);
        assert_eq!(d, [0.5, 1.0, 0.0, 0.0, 0.5, 1.0]);
        pool(&rows, Some(&[0, 0, 0]), Pooling::Mean, &mut out);
        assert_eq!(out, [0.0, 0.0]);
    }
}
