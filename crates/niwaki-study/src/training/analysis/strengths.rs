//! Strengths that the study left to the rule, as they were measured before anything was trained.

use super::{Analysis, Place};
use crate::Error;
use crate::training::{Board, Strength};
use niwaki_page::Section;

/// The analysis; a study asks for it with `correction = "measured"`.
pub(super) struct Strengths;

impl Analysis for Strengths {
    fn section(&self, place: Place, board: &Board<'_>) -> Result<Option<Section>, Error> {
        if place != Place::Settings || board.plan.strengths.is_empty() {
            return Ok(None);
        }
        let words = board.plan.strengths.iter().map(Strength::words).collect::<Vec<_>>();
        let prose = "Before anything was trained, one update without correction of each seed's initial policy said how far \
                     it drifts; the median of an arm and cell licenses min(1, 1/σ²T) for all of its seeds.";
        Ok(Some(Section::new("Strengths by the rule").id("strengths").prose(prose).list(words)))
    }
}
