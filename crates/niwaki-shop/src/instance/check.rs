//! What all problems check alike.

use crate::{Error, Result};

/// The longest a whole instance may take when everything runs one after the other.
pub const HORIZON: u32 = i32::MAX as u32;

/// How many machines a shop may have for each machine that an operation names, and how many in any case: what an
/// instance needs grows with its operations, never with a number alone.
const MACHINES_PER_NAMED: usize = 16;
const MACHINES_IN_ANY_CASE: usize = 1024;

/// Refuses shops without jobs or machines, and more machines than operations can pay for; `named` counts the machines
/// that operations name.
pub(super) fn some_jobs_and_machines(kind: &str, jobs: usize, machines: usize, named: usize) -> Result<()> {
    if jobs == 0 || machines == 0 {
        return Err(Error::Instance(format!(
            "{kind}: expected at least one job and one machine, got {jobs} jobs and {machines} machines"
        )));
    }
    let most = named.saturating_mul(MACHINES_PER_NAMED).max(MACHINES_IN_ANY_CASE);
    if machines > most {
        return Err(Error::Instance(format!(
            "{kind}: expected at most {most} machines, since operations name {named}, got {machines}"
        )));
    }
    Ok(())
}

/// Refuses a sum of times beyond [`HORIZON`].
pub(super) fn within_horizon(times: impl Iterator<Item = u32>) -> Result<()> {
    let total: u64 = times.map(u64::from).sum();
    if total > u64::from(HORIZON) {
        return Err(Error::Instance(format!(
            "times add up to {total}: expected at most {HORIZON}; use a coarser unit of time"
        )));
    }
    Ok(())
}
