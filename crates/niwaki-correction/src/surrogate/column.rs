//! Where a tile's positions lie: from the start of a cache line on, so that no vector lies across two.

use super::tile::{Abreast, LANES};
use crate::Real;
use std::ops::{Deref, DerefMut};

/// Bytes of a cache line, and of the widest vector.
const LINE: usize = 64;

/// Positions of [`LANES`] trajectories.
#[derive(Debug, Default)]
pub(crate) struct Column<F> {
    data: Vec<F>,
    start: usize,
    positions: usize,
}

impl<F: Real> Column<F> {
    /// Makes room for so many positions; what they hold is not said.
    pub(crate) fn resize(&mut self, positions: usize) {
        let slack = LINE / size_of::<F>();
        if self.data.len() < positions * LANES + slack {
            self.data = vec![F::ZERO; positions * LANES + slack];
            self.start = self.data.as_ptr().align_offset(LINE).min(slack);
        }
        self.positions = positions;
    }
}

impl<F> Deref for Column<F> {
    type Target = [Abreast<F>];

    #[inline(always)]
    fn deref(&self) -> &[Abreast<F>] {
        self.data[self.start..][..self.positions * LANES].as_chunks().0
    }
}

impl<F> DerefMut for Column<F> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [Abreast<F>] {
        self.data[self.start..][..self.positions * LANES].as_chunks_mut().0
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
            assert_eq!((column.len(), column.as_ptr() as usize % LINE), (positions, 0));
        }
    }
}
