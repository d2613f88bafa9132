//! Runs of one arm that choose a setting of each cell, before any other arm is trained.
//!
//! The pilot is a study of its own, with its own folder and seeds; what it chose is written beside the results of the
//! study that asked for it, and only then can that one be planned. The rule sees one arm and knows no other.

use super::spec::{Calibration, Cell, Choice, Pilot, Training, Tried};
use super::{Board, store};
use crate::Error;
use std::path::Path;

/// What a pilot chose, in the folder of the study that asked for it.
pub(super) const CALIBRATION: &str = "calibration.json";

/// The name of a pilot's cell: that of the study's cell, and the value.
fn cell_of(cell: &str, value: f64) -> String {
    format!("{cell}, {value}")
}

impl Pilot {
    /// What a cell sets while the pilot runs.
    fn settings(&self, cell: &Cell) -> toml::Table {
        let mut settings = cell.set.clone();
        settings.extend(self.set.clone());
        settings
    }

    /// The first cell with an aim whose pilot is the same as this one's: cells may differ in their aim alone, or in
    /// what the pilot sets.
    fn measured_as(&self, cells: &[Cell], place: usize) -> usize {
        let settings = self.settings(&cells[place]);
        let alike = |cell: &Cell| cell.aim.or(self.aim).is_some() && self.settings(cell) == settings;
        cells.iter().position(alike).unwrap_or(place)
    }
}

impl Training {
    /// The pilot as a study of its own; nothing where there is none.
    #[must_use]
    pub fn pilot_study(&self) -> Option<Self> {
        let pilot = self.pilot.as_ref()?;
        let mut study = self.clone();
        study.label = format!("{}+pilot", self.label);
        study.title = format!("{}: the pilot", self.title);
        study.question = format!(
            "Which value of {} brings the arm {} nearest to the aim of each cell in {}?",
            pilot.key,
            pilot.arm,
            pilot.endpoint.words()
        );
        (study.seeds, study.first_seed, study.paper_seeds) = (pilot.seeds, pilot.first_seed, None);
        study.arm.retain(|arm| arm.name == pilot.arm);
        study.arm.iter_mut().for_each(|arm| arm.seeds = None);
        study.endpoints = vec![pilot.endpoint];
        study.cell = Vec::new();
        for (place, cell) in self.cell.iter().enumerate() {
            if cell.aim.or(pilot.aim).is_none() || pilot.measured_as(&self.cell, place) != place {
                continue;
            }
            for &value in &pilot.values {
                let mut tried = cell.clone();
                tried.name = cell_of(&cell.name, value);
                (tried.seeds, tried.x, tried.line) = (None, Some(value), Some(cell.name.clone()));
                tried.set = pilot.settings(cell);
                tried.set.insert(pilot.key.clone(), value.into());
                study.cell.push(tried);
            }
        }
        (study.pilot, study.compare, study.dose, study.feasible) = (None, None, None, None);
        study.also.clear();
        study.pool.clear();
        study.chart.clear();
        study.early.clear();
        study.value.clear();
        study.order.clear();
        study.lead.clear();
        study.trend.clear();
        study.ratio.clear();
        study.tried.clear();
        study.correlation.clear();
        Some(study)
    }

    /// The study with what its pilot chose: values set, cells without one left out together with what was claimed of them.
    ///
    /// # Errors
    /// Where no cell is left.
    pub fn calibrated(mut self, calibration: Calibration) -> Result<Self, Error> {
        for choice in &calibration.cells {
            match choice.chosen {
                Some(value) => {
                    let cell = self.cell.iter_mut().find(|cell| cell.name == choice.cell);
                    cell.into_iter().for_each(|cell| {
                        cell.set.insert(calibration.key.clone(), value.into());
                    });
                }
                None => self.leave_out(&choice.cell),
            }
        }
        if self.cell.is_empty() {
            let mend = format!("its pilot found no acceptable {} for any cell", calibration.key);
            return Err(Error::Senseless { label: self.label, mend });
        }
        self.chosen = Some(calibration);
        Ok(self)
    }

    fn leave_out(&mut self, cell: &str) {
        let other = |named: &Option<String>| named.as_deref() != Some(cell);
        self.cell.retain(|known| known.name != cell);
        self.value.retain(|claim| other(&claim.cell));
        self.order.retain(|claim| other(&claim.cell));
        self.lead.retain(|claim| other(&claim.cell));
        self.correlation.retain(|claim| other(&claim.cell));
        self.trend.retain(|claim| claim.cells.iter().all(|named| named != cell));
        self.ratio.retain(|claim| other(&claim.cell) && other(&claim.over_cell));
        for cells in self
            .pool
            .iter_mut()
            .map(|pool| &mut pool.cells)
            .chain(self.early.iter_mut().map(|early| &mut early.cells))
        {
            cells.retain(|named| named != cell);
        }
    }
}

impl Calibration {
    /// Reads what a pilot's results come to for the study that asked for it.
    ///
    /// # Errors
    /// Where the study has no pilot, or a curve holds a value that is not a number.
    pub fn choose(study: &Training, board: &Board<'_>) -> Result<Self, Error> {
        let Some(pilot) = &study.pilot else {
            let mend = "it has no pilot".to_owned();
            return Err(Error::Senseless { label: study.label.clone(), mend });
        };
        let arm = board.plan.arm(&pilot.arm)?;
        let mut cells = Vec::new();
        for (place, cell) in study.cell.iter().enumerate() {
            let Some(aim) = cell.aim.or(pilot.aim) else { continue };
            let measured = &study.cell[pilot.measured_as(&study.cell, place)].name;
            let mut tried = Vec::new();
            for &value in &pilot.values {
                let place = board.plan.cell(Some(&cell_of(measured, value)))?;
                if let Some(found) = board.estimate(arm, place, pilot.endpoint)? {
                    let sem = (found.seeds.len() > 1).then_some(found.sem);
                    tried.push(Tried { value, came: found.value, sem, seeds: found.seeds.len() });
                }
            }
            cells.push(Choice {
                cell: cell.name.clone(),
                aim,
                chosen: nearest(&tried, aim, pilot.within),
                tried,
            });
        }
        let (key, arm, endpoint) = (pilot.key.clone(), pilot.arm.clone(), pilot.endpoint.to_string());
        Ok(Self { key, arm, endpoint, within: pilot.within, cells })
    }

    /// Writes it into the folder of the study that asked for it.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        store::write_whole(&folder.join(CALIBRATION), self)
    }
}

/// The accepted value whose endpoint is nearest to the aim, the first of several.
fn nearest(tried: &[Tried], aim: f64, within: Option<[f64; 2]>) -> Option<f64> {
    let best = tried.iter().min_by(|a, b| (a.came - aim).abs().total_cmp(&(b.came - aim).abs()))?;
    within.is_none_or(|[low, high]| (low..=high).contains(&best.came)).then_some(best.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_taken_and_only_inside_the_band() {
        let tried = [(1.01, 0.25), (1.02, 0.52), (1.03, 0.98)].map(|(value, came)| Tried {
            value,
            came,
            sem: None,
            seeds: 8,
        });
        // Distances from 0.65: 0.40, 0.13, 0.33.
        assert_eq!(nearest(&tried, 0.65, Some([0.5, 0.85])), Some(1.02));
        assert_eq!(nearest(&tried, 0.65, Some([0.6, 0.85])), None);
        assert_eq!(nearest(&tried, 0.1, None), Some(1.01));
        // The paper's J = 50: 0.25 at 1.01 and about 1 at 1.03, nothing between.
        assert_eq!(nearest(&[tried[0], tried[2]], 0.65, Some([0.5, 0.85])), None);
    }
}
