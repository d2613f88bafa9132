//! Finished runs out of a store that is not a folder, so that they can be reported.

use super::depot::Depot;
use crate::Error;
use crate::training::{STRENGTHS, Stages, Strength, Training};
use niwaki_store::Store;
use std::path::Path;
use std::sync::Arc;

/// Brings what a store holds of a study into a folder of results.
///
/// # Errors
/// Where the study is refused, the store or the disk refuses, or an archive is damaged.
pub fn collect(
    study: &Training,
    seeds: Option<u64>,
    first_seed: Option<u64>,
    store: Arc<dyn Store>,
    out: &Path,
) -> Result<(), Error> {
    let stages = Stages { study: study.clone(), seeds, first_seed };
    let depot = Depot::new(store, "collected", out);
    let calibration = match stages.pilot()? {
        None => None,
        Some(pilot) => Some(stages.calibration(&pilot, depot.holding(&pilot.runs)?)?),
    };
    let mut plan = stages.arms(calibration)?;
    if plan.measures() {
        depot.bring(&plan.folder().join(STRENGTHS))?;
        plan = plan.settled(&Strength::read(&out.join(study.folder()))?)?;
    }
    depot.holding(&plan.runs).map(drop)
}
