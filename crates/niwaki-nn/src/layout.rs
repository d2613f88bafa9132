//! Where each named parameter of a member lies in its one flat buffer.
//!
//! An optimiser is one loop over the buffer, a norm one reduction, a checkpoint one file. This file knows names,
//! shapes and offsets; it must not know what a parameter is used for.

use crate::Init;

/// Offsets are multiples of this many scalars, so that every slice is aligned for vector loads and tensor cores.
pub const ALIGNMENT: usize = 4;

/// A handle on a parameter of a [`Layout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Param(pub(crate) usize);

/// One named parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// A dotted name, e.g. `blocks.0.mlp.up.weight`.
    pub name: String,
    /// Its shape, row-major; a weight is `[in, out]`.
    pub shape: Vec<usize>,
    /// Its first scalar in the member's buffer.
    pub offset: usize,
    /// How it starts.
    pub init: Init,
}

impl Slice {
    /// The number of scalars.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it holds no scalar.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its place in the member's buffer.
    #[must_use]
    pub fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset + self.len()
    }
}

/// The parameters of one member, in the order in which the policy declared them.
///
/// The gaps that alignment leaves start at zero, receive no gradient and are in no checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    slices: Vec<Slice>,
}

impl Layout {
    pub(crate) fn push(&mut self, name: &str, shape: &[usize], init: Init) -> Param {
        let slice = Slice { name: name.to_owned(), shape: shape.to_vec(), offset: self.len(), init };
        self.slices.push(slice);
        Param(self.slices.len() - 1)
    }

    /// The slice behind a handle.
    #[must_use]
    pub fn slice(&self, param: Param) -> &Slice {
        &self.slices[param.0]
    }

    /// All slices, in order of offset.
    #[must_use]
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// The handle of a name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Param> {
        self.slices.iter().position(|slice| slice.name == name).map(Param)
    }

    /// Length of a member's buffer: the parameters and the gaps between them. A multiple of [`ALIGNMENT`].
    #[must_use]
    pub fn len(&self) -> usize {
        self.slices.last().map_or(0, |last| last.range().end.next_multiple_of(ALIGNMENT))
    }

    /// Whether there is no parameter.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// The number of parameters, gaps not counted.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.slices.iter().map(Slice::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_aligned_and_gaps_are_not_counted() {
        let mut layout = Layout::default();
        layout.push("a", &[3, 3], Init::Zeros);
        let b = layout.push("b", &[2], Init::Zeros);
        // 9 scalars, the next multiple of 4 is 12; 12 + 2 = 14, rounded up to 16.
        assert_eq!((layout.slice(b).offset, layout.len(), layout.parameters()), (12, 16, 11));
        assert_eq!(layout.find("b"), Some(b));
    }
}
