//! The finished runs of a plan, read from disk.

use super::Plan;
use crate::Error;
use crate::report::Speed;
use niwaki_files::read_own_text;
use niwaki_train::reading::{Course, Endpoint};
use niwaki_train::run::Finished;
use std::path::Path;

/// A finished run of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The arm's place in the study.
    pub arm: usize,
    /// The cell's place in the plan.
    pub cell: usize,
    /// The seed.
    pub seed: u64,
    /// Where it ran.
    pub device: String,
    /// How it went.
    pub course: Course,
}

impl Run {
    /// An endpoint of it; nothing where its curve does not have it.
    #[must_use]
    pub fn value(&self, endpoint: Endpoint) -> Option<f64> {
        endpoint.of(&self.course)
    }
}

/// What a results folder holds of a plan.
#[derive(Clone, Debug)]
pub struct Results {
    /// The finished runs, in the plan's order.
    pub runs: Vec<Run>,
    /// How many the plan has.
    pub planned: usize,
    /// How fast the last call was, where it trained anything.
    pub speed: Option<Speed>,
}

impl Results {
    /// Reads the results of a plan below the folder of all studies.
    ///
    /// # Errors
    /// If a file is damaged or cannot be read, or there is no finished run at all.
    pub fn read(plan: &Plan, out: &Path) -> Result<Self, Error> {
        let mut runs = Vec::new();
        for planned in &plan.runs {
            let finished = Finished::read(&out.join(&planned.home), &planned.identity())?;
            if let Some(finished) = finished {
                runs.push(Run {
                    arm: planned.arm,
                    cell: planned.cell,
                    seed: finished.summary.seed,
                    device: finished.summary.device.clone(),
                    course: finished.into(),
                });
            }
        }
        let folder = out.join(plan.folder());
        if runs.is_empty() {
            return Err(Error::NoResults { label: plan.study.label.clone(), folder });
        }
        // The speed is no result, so a file that does not read is left out.
        let speed = read_own_text(&folder.join("speed.json")).ok();
        let speed = speed.and_then(|bytes| serde_json::from_slice(&bytes).ok()).filter(Speed::is_sound);
        Ok(Self { runs, planned: plan.runs.len(), speed })
    }
}
