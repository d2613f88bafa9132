//! Memory that starts at a cache line, so that no vector of a kernel lies across two.

use super::Real;
use std::ops::{Deref, DerefMut};

/// Bytes of a cache line, and of the widest vector.
const LINE: usize = 64;

/// Scalars whose first one starts a cache line.
#[derive(Debug, Default)]
pub(crate) struct Buffer<F> {
    data: Vec<F>,
    start: usize,
}

impl<F: Real> Buffer<F> {
    pub(crate) fn zeros(length: usize) -> Self {
        let slack = LINE / size_of::<F>();
        let mut data = vec![F::ZERO; length + slack];
        let start = data.as_ptr().align_offset(LINE).min(slack);
        data.truncate(start + length);
        Self { data, start }
    }

    /// Makes room for at least `length` scalars; what it held is lost if it has to grow.
    pub(crate) fn reserve(&mut self, length: usize) {
        if self.len() < length {
            *self = Self::zeros(length);
        }
    }
}

impl<F> Deref for Buffer<F> {
    type Target = [F];

    fn deref(&self) -> &[F] {
        &self.data[self.start..]
    }
}

impl<F> DerefMut for Buffer<F> {
    fn deref_mut(&mut self) -> &mut [F] {
        &mut self.data[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_a_line_and_has_its_length() {
        for length in [0, 1, 15, 16, 1000, 100_003] {
            let mut buffer = Buffer::<f32>::zeros(length);
            assert_eq!((buffer.len(), buffer.as_ptr() as usize % LINE), (length, 0));
            buffer.reserve(length + 1);
            assert_eq!((buffer.len(), buffer.as_ptr() as usize % LINE), (length + 1, 0));
            buffer.reserve(1);
            assert_eq!(buffer.len(), length + 1);
        }
    }
}
