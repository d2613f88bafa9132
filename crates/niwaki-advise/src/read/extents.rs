//! How many steps each trajectory of an archive has, read in step with its rows.

use super::limits::LONGEST;
use super::npy::Array;
use crate::error::Fault;
use crate::schema::Field;
use std::collections::BTreeMap;

/// An array of lengths, or of offsets into flat arrays.
pub(super) struct Extents {
    field: Field,
    array: Array,
    lanes: usize,
    /// Steps of the trajectories so far.
    total: usize,
}

/// Why there is no next length.
pub(super) enum Trouble {
    /// The array says what cannot be.
    Fault(Fault),
    /// The array cannot be read.
    Read(Field, String),
}

impl Extents {
    /// Takes the array that says, offsets before lengths; none where there is neither.
    pub(super) fn open(arrays: &mut BTreeMap<Field, Array>) -> Result<Option<Self>, Trouble> {
        let (offsets, lengths) = (arrays.remove(&Field::Offsets), arrays.remove(&Field::Length));
        let (field, array) = match (offsets, lengths) {
            (Some(offsets), _) => (Field::Offsets, offsets),
            (None, Some(lengths)) => (Field::Length, lengths),
            (None, None) => return Ok(None),
        };
        // Lengths may stand in a column.
        let ([count] | [count, 1]) = array.shape[..] else {
            let came = format!("shape {:?}", array.shape);
            return Err(Trouble::Fault(Fault::Kind { field, expected: "one-dimensional", came }));
        };
        let mut extents = Self { field, array, lanes: count, total: 0 };
        if field == Field::Offsets {
            if count == 0 || extents.whole()? != 0 {
                return Err(extents.falls());
            }
            extents.lanes -= 1;
        }
        Ok(Some(extents))
    }

    /// Trajectories that it tells of.
    pub(super) const fn lanes(&self) -> usize {
        self.lanes
    }

    /// Steps of the trajectories so far.
    pub(super) const fn total(&self) -> usize {
        self.total
    }

    /// Steps of the next trajectory.
    pub(super) fn next(&mut self) -> Result<usize, Trouble> {
        let value = self.whole()?;
        let steps = match self.field {
            Field::Offsets => value.checked_sub(self.total).ok_or_else(|| self.falls())?,
            _ => value,
        };
        if steps > LONGEST {
            return Err(Trouble::Fault(Fault::TooLong { steps: steps as u64, most: LONGEST as u64 }));
        }
        self.total = self.total.saturating_add(steps);
        Ok(steps)
    }

    fn falls(&self) -> Trouble {
        let (expected, came) = ("starting at 0 and never falling", "others".to_owned());
        Trouble::Fault(Fault::Kind { field: self.field, expected, came })
    }

    fn whole(&mut self) -> Result<usize, Trouble> {
        let mut one = Vec::with_capacity(1);
        let read = self.array.numbers(1, &mut one);
        read.map_err(|error| Trouble::Read(self.field, error.to_string()))?;
        let value = one.first().copied().unwrap_or(f64::NAN);
        // Above this not every whole number is one of the floats.
        if value >= 0.0 && value.fract() == 0.0 && value <= 2.0_f64.powi(53) {
            return Ok(value as usize);
        }
        let came = value.to_string();
        Err(Trouble::Fault(Fault::Kind { field: self.field, expected: "whole numbers", came }))
    }
}
