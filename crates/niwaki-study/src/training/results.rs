//! The finished runs of a plan, read from disk.

use super::store;
use super::{Plan, Speed};
use crate::Error;
use niwaki_train::Record;
use std::fs;
use std::path::Path;

/// A finished run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The arm's place in the study.
    pub arm: usize,
    /// The cell's place in the plan.
    pub cell: usize,
    /// The seed.
    pub seed: u64,
    /// Iterations asked for; the curve is shorter where training diverged.
    pub iterations: usize,
    /// Where it ran.
    pub device: String,
    /// One record per iteration.
    pub curve: Vec<Record>,
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
            if let Some((summary, curve)) = store::read(&out.join(&planned.home), &planned.hash)? {
                runs.push(Run {
                    arm: planned.arm,
                    cell: planned.cell,
                    seed: summary.seed,
                    iterations: summary.iterations,
                    device: summary.device,
                    curve,
                });
            }
        }
        let folder = out.join(plan.folder());
        if runs.is_empty() {
            return Err(Error::NoResults { label: plan.study.label.clone(), folder });
        }
        let path = folder.join("speed.json");
        let speed = match fs::read_to_string(&path) {
            Ok(text) => Some(
                serde_json::from_str(&text)
                    .map_err(|error| Error::Damaged { path, reason: error.to_string() })?,
            ),
            Err(_) => None,
        };
        Ok(Self { runs, planned: plan.runs.len(), speed })
    }
}
