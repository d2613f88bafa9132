//! What a study looks into beyond its arms' endpoints: one file each, one line each in [`ANALYSES`].
//!
//! | file | what belongs there |
//! |---|---|
//! | `calibration.rs` | what the pilot tried and chose |
//! | `strengths.rs` | strengths by the rule |
//! | `boundary.rs` | two orders: which share of the ways to run them is on time |
//! | `dose.rs` | whether the lead follows the dose |
//! | `scaling.rs` | how an advantage scales with the axes of a grid |
//! | `anatomy.rs` | how runs fail |

mod anatomy;
mod boundary;
mod calibration;
mod dose;
mod scaling;
mod strengths;

pub use dose::{Correlated, DosePoint, correlation, dose_points, partialled};

use super::{Board, Comparison, Training};
use crate::Error;
use crate::claim::Outcome;
use niwaki_page::Section;

/// Where on the page a section stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Before the figures: what was settled before any arm ran.
    Settings,
    /// Before the paired comparisons.
    Findings,
    /// After the curves.
    Runs,
}

/// One analysis: what it claims, what came of it, and what the page shows. What a study does not ask for adds nothing.
pub(super) trait Analysis: Sync {
    /// How many statements of the paper a study makes about it.
    fn statements(&self, _study: &Training) -> usize {
        0
    }

    /// Those statements held against the results.
    fn outcomes(&self, _board: &Board<'_>) -> Result<Vec<Outcome>, Error> {
        Ok(Vec::new())
    }

    /// Its section at a place of the page.
    fn section(&self, _place: Place, _board: &Board<'_>) -> Result<Option<Section>, Error> {
        Ok(None)
    }

    /// The section of the paired comparisons with what it adds to them.
    fn beside_leads(
        &self,
        section: Section,
        _board: &Board<'_>,
        _comparisons: &[Comparison],
    ) -> Result<Section, Error> {
        Ok(section)
    }
}

/// Every analysis, in the order in which a page shows them.
pub(super) const ANALYSES: &[&dyn Analysis] = &[
    &calibration::Pilots,
    &strengths::Strengths,
    &boundary::Boundary,
    &dose::Dose,
    &scaling::Scalings,
    &anatomy::Failures,
];
