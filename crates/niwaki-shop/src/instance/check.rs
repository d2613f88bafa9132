//! What all problems check alike.

use crate::{Error, Result};

/// The longest a whole instance may take when everything runs one after the other.
pub const HORIZON: u32 = i32::MAX as u32;

/// The most machines a shop may have: what an instance needs grows with its operations, never with a number alone.
pub const MOST_MACHINES: usize = 1 << 20;

/// Refuses shops without jobs or machines, and absurd numbers of machines.
pub(super) fn some_jobs_and_machines(kind: &str, jobs: usize, machines: usize) -> Result<()> {
    if jobs == 0 || machines == 0 {
        return Err(Error::Instance(format!(
            "{kind}: expected at least one job and one machine, got {jobs} jobs and {machines} machines"
        )));
    }
    if machines > MOST_MACHINES {
        return Err(Error::Instance(format!(
            "{kind}: expected at most {MOST_MACHINES} machines, got {machines}"
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
