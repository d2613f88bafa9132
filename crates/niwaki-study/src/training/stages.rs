//! What is planned from what: the pilot's runs first, and from what they came to the runs of the arms.

use super::{Board, Calibration, Choice, Plan, Results, Training};
use crate::Error;
use std::path::Path;

/// A study with what was asked of it, to be planned stage by stage.
#[derive(Clone, Debug)]
pub(crate) struct Stages {
    /// The study.
    pub(crate) study: Training,
    /// Seeds in place of the study's own number.
    pub(crate) seeds: Option<u64>,
    /// The first seed in place of its own; pilots keep theirs.
    pub(crate) first_seed: Option<u64>,
}

impl Stages {
    /// The runs of the pilot; nothing where there is none.
    pub(crate) fn pilot(&self) -> Result<Option<Plan>, Error> {
        let Some(pilot) = self.study.pilot_study() else { return Ok(None) };
        let seeds = self.seeds.map(|seeds| seeds.min(pilot.seeds));
        Plan::new(pilot, seeds).map(Some)
    }

    /// What the pilot's finished runs come to.
    pub(crate) fn calibration(&self, pilot: &Plan, out: &Path) -> Result<Calibration, Error> {
        let results = Results::read(pilot, out)?;
        Calibration::choose(&self.study, &Board { plan: pilot, results: &results })
    }

    /// The runs of the arms, with what the pilot chose where there is one.
    pub(crate) fn arms(&self, calibration: Option<Calibration>) -> Result<Plan, Error> {
        let mut study = match calibration {
            None => self.study.clone(),
            Some(calibration) => self.study.clone().calibrated(calibration)?,
        };
        study.first_seed = self.first_seed.unwrap_or(study.first_seed);
        Plan::new(study, self.seeds)
    }

    /// The runs of the arms as far as they are known before the pilot has run: every cell has the pilot's first value in
    /// the place of its choice, and none is left out.
    pub(crate) fn provisional(&self) -> Result<Plan, Error> {
        let chosen = self.study.pilot.as_ref().map(|pilot| {
            let value = pilot.values.first().copied();
            let aims = self.study.cell.iter().filter_map(|cell| Some((cell, cell.aim.or(pilot.aim)?)));
            let choice = |(cell, aim): (&super::spec::Cell, f64)| Choice {
                cell: cell.name.clone(),
                aim,
                tried: Vec::new(),
                chosen: value,
            };
            Calibration {
                key: pilot.key.clone(),
                arm: pilot.arm.clone(),
                endpoint: pilot.endpoint.to_string(),
                within: pilot.within,
                cells: aims.map(choice).collect(),
            }
        });
        self.arms(chosen)
    }
}
