//! The door: a study re-run, and what came of it beside what the paper printed.
//!
//! Knows the two kinds of studies and nothing of their insides; writes no report, which is the caller's.

use crate::catalogue::Contents;
use crate::report::{Asked, Progress, Report};
use crate::{Error, diagnostics, training};

/// Runs a study, or goes on with it, and reports it; where it has a pilot, that first.
///
/// # Errors
/// Where the study is refused, the disk or the device fails, or there is nothing to report.
pub fn reproduce(
    study: Contents,
    asked: &Asked<'_>,
    watch: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Report, Error> {
    match study {
        Contents::Diagnostics(study) => diagnostics::report(&study, asked, watch),
        Contents::Training(study) => training::report(*study, asked, watch),
    }
}
