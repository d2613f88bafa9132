//! The single machine with due dates.

use super::within_horizon;
use crate::{Error, Result};

/// Jobs on one machine, each with a due date. Being late is allowed and counted.
///
/// Paper: app:sched-boundary
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleMachine {
    times: Vec<u32>,
    due: Vec<u32>,
}

impl SingleMachine {
    /// A shop from its jobs' times and due dates, `[job]` both.
    ///
    /// # Errors
    /// If there is no job, the shapes disagree, or times overflow the horizon.
    pub fn new(times: Vec<u32>, due: Vec<u32>) -> Result<Self> {
        if times.is_empty() || times.len() != due.len() {
            return Err(Error::Instance(format!(
                "single machine: expected as many due dates as times and at least one, got {} times and {} due dates",
                times.len(),
                due.len()
            )));
        }
        within_horizon(times.iter().copied())?;
        Ok(Self { times, due })
    }

    /// Number of jobs.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.times.len()
    }

    /// Each job's time.
    #[must_use]
    pub fn times(&self) -> &[u32] {
        &self.times
    }

    /// Each job's due date.
    #[must_use]
    pub fn due(&self) -> &[u32] {
        &self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_checked() {
        assert!(SingleMachine::new(vec![1, 2], vec![3]).is_err());
        assert!(SingleMachine::new(vec![], vec![]).is_err());
        assert_eq!(SingleMachine::new(vec![1], vec![3]).unwrap().due(), [3]);
    }
}
