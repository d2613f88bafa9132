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
    Part(&'a [usize]),
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

    /// As [`Rows::ragged`], with offsets cut out of a longer list: steps are counted from the first of them.
    ///
    /// Shapes: `offsets [lanes + 1]`
    #[must_use]
    pub const fn part(offsets: &'a [usize]) -> Self {
        Self(Kind::Part(offsets))
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
            Kind::Ragged(offsets) => from(0, offsets, steps, out)?,
            Kind::Part(offsets) => from(offsets.first().copied().unwrap_or(0), offsets, steps, out)?,
        }
        Ok(())
    }
}

/// Writes offsets less `start`, which must be the first of them.
fn from(start: usize, offsets: &[usize], steps: usize, out: &mut Vec<usize>) -> Result<(), Error> {
    let covers = offsets.first() == Some(&start) && offsets.last() == Some(&(start + steps));
    if !covers || offsets.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(Error::Offsets);
    }
    out.extend(offsets.iter().map(|offset| offset - start));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_counts_from_its_first_offset() {
        let mut out = Vec::new();
        Rows::part(&[3, 5, 9]).offsets_into(6, &mut out).unwrap();
        assert_eq!(out, [0, 2, 6]);
        assert!(Rows::part(&[3, 5, 9]).offsets_into(9, &mut out).is_err());
        assert!(Rows::ragged(&[3, 5, 9]).offsets_into(6, &mut out).is_err());
        assert!(Rows::part(&[]).offsets_into(0, &mut out).is_err());
    }
}
