//! Where a tile's positions lie: from the start of a cache line on, so that no vector lies across two.

use super::tile::{Abreast, LANES};
use crate::Real;
use std::ops::{Deref, DerefMut};

/// One position, from the start of a cache line on; of f32 it fills one, of f64 two.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line<F>(Abreast<F>);

/// Positions of [`LANES`] trajectories.
#[derive(Debug, Default)]
pub(crate) struct Column<F> {
    lines: Vec<Line<F>>,
}

impl<F: Real> Column<F> {
    const FILLS_LINES: () = assert!(size_of::<Line<F>>() == size_of::<Abreast<F>>());

    /// Makes room for so many positions; what they hold is not said.
    pub(crate) fn resize(&mut self, positions: usize) {
        self.lines.resize(positions, Line([F::ZERO; LANES]));
    }
}

impl<F: Real> Deref for Column<F> {
    type Target = [Abreast<F>];

    #[inline(always)]
    fn deref(&self) -> &[Abreast<F>] {
        () = Self::FILLS_LINES;
        // SAFETY: a line is a position without padding.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len()) }
    }
}

impl<F: Real> DerefMut for Column<F> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [Abreast<F>] {
        () = Self::FILLS_LINES;
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.lines.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_a_line_and_has_its_positions() {
        let mut column = Column::<f64>::default();
        assert!(column.is_empty());
        for positions in [3, 1000, 7] {
            column.resize(positions);
            assert_eq!((column.len(), column.as_ptr() as usize % 64), (positions, 0));
        }
    }
}
