//! How trajectories lie in a flat array: contiguous, one after the other.

use crate::Error;

/// The rows of a batch: `[lane, step]` with equal lengths, or ragged with given offsets.
///
/// Nothing ever shuffles steps across trajectories: that would destroy the prefix.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a>(Kind<'a>);

#[derive(Clone, Copy, Debug)]
enum Kind<'a> {
    Uniform(usize),
    Ragged(&'a [usize]),
}

impl<'a> Rows<'a> {
    /// Every trajectory has `horizon` steps.
    #[must_use]
    pub const fn uniform(horizon: usize) -> Self {
        Self(Kind::Uniform(horizon))
    }

    /// Trajectory `n` holds the steps `offsets[n]..offsets[n + 1]`.
    ///
    /// Shapes: `offsets [lanes + 1]`, starting at 0 and ending at the number of steps.
    #[must_use]
    pub const fn ragged(offsets: &'a [usize]) -> Self {
        Self(Kind::Ragged(offsets))
    }

    /// Writes the offsets of `steps` values into `out`.
    ///
    /// # Errors
    /// [`Error::Offsets`] where the rows do not cover `steps` exactly.
    pub fn offsets_into(self, steps: usize, out: &mut Vec<usize>) -> Result<(), Error> {
        out.clear();
        match self.0 {
            Kind::Uniform(0) => return Err(Error::NoSteps),
            Kind::Uniform(horizon) => {
                if !steps.is_multiple_of(horizon) {
                    return Err(Error::Offsets);
                }
                out.extend((0..=steps / horizon).map(|lane| lane * horizon));
            }
            Kind::Ragged(offsets) => {
                let covers = offsets.first() == Some(&0) && offsets.last() == Some(&steps);
                if !covers || offsets.windows(2).any(|pair| pair[0] > pair[1]) {
                    return Err(Error::Offsets);
                }
                out.extend_from_slice(offsets);
            }
        }
        Ok(())
    }
}
