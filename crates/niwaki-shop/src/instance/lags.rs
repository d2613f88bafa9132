//! The two-machine flow shop with time lags: after its first operation a job rests at least its lag before the
//! second; both machines serve the jobs in one common order.

use super::within_horizon;
use crate::{Error, Result};

/// A job of [`TwoMachineLags`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaggedJob {
    /// Time on machine 0.
    pub first: u32,
    /// Hard: the least rest between the end on machine 0 and the start on machine 1.
    pub lag: u32,
    /// Time on machine 1.
    pub second: u32,
    /// When the job should be done, if anyone waits for it. Being late is allowed and counted.
    pub due: Option<u32>,
}

/// A two-machine permutation flow shop with time lags.
///
/// Paper: app:sched-boundary
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TwoMachineLags {
    jobs: Vec<LaggedJob>,
}

impl TwoMachineLags {
    /// A shop from its jobs.
    ///
    /// # Errors
    /// If there is no job, or times overflow the horizon.
    pub fn new(jobs: Vec<LaggedJob>) -> Result<Self> {
        if jobs.is_empty() {
            return Err(Error::Instance("two-machine flow shop: expected at least one job, got none".into()));
        }
        within_horizon(jobs.iter().flat_map(|job| [job.first, job.lag, job.second]))?;
        Ok(Self { jobs })
    }

    /// Number of jobs.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// All jobs.
    #[must_use]
    pub fn all(&self) -> &[LaggedJob] {
        &self.jobs
    }

    /// The makespan of the jobs in `order`, which may leave jobs out.
    #[must_use]
    pub fn makespan(&self, order: &[u32]) -> u32 {
        let (mut first, mut second) = (0_u32, 0_u32);
        for &job in order {
            let job = self.jobs[job as usize];
            first += job.first;
            second = second.max(first + job.lag) + job.second;
        }
        second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makespan_by_hand() {
        // a = 2, lag 5, 1; b = 3, lag 0, 2. a then b: a ends 2, starts again at 7, ends 8; b ends 5, waits for
        // machine 1 until 8, ends 10. b then a: b ends 3 | 5; a ends 5, starts again at 10, ends 11.
        let job = |first, lag, second| LaggedJob { first, lag, second, due: None };
        let shop = TwoMachineLags::new(vec![job(2, 5, 1), job(3, 0, 2)]).unwrap();
        assert_eq!((shop.makespan(&[0, 1]), shop.makespan(&[1, 0])), (10, 11));
    }
}
