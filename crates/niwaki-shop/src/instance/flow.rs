//! The permutation flow shop: every job visits machines 0, 1, 2, … in this order, and all machines serve the
//! jobs in one common order.

use super::{some_jobs_and_machines, within_horizon};
use crate::{Error, Result};

/// A permutation flow shop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowShop {
    jobs: usize,
    machines: usize,
    times: Vec<u32>,
}

impl FlowShop {
    /// A flow shop from its times.
    ///
    /// Shapes: `times` is `[job, machine]`, job-major.
    ///
    /// # Errors
    /// If there is no job or no machine, if the shape disagrees, or if the times overflow the horizon.
    pub fn new(jobs: usize, machines: usize, times: Vec<u32>) -> Result<Self> {
        some_jobs_and_machines("flow shop", jobs, machines, times.len())?;
        if jobs.checked_mul(machines) != Some(times.len()) {
            return Err(Error::Instance(format!(
                "flow shop: expected {jobs} × {machines} times, got {}",
                times.len()
            )));
        }
        within_horizon(times.iter().copied())?;
        Ok(Self { jobs, machines, times })
    }

    /// Number of jobs.
    #[must_use]
    pub const fn jobs(&self) -> usize {
        self.jobs
    }

    /// Number of machines.
    #[must_use]
    pub const fn machines(&self) -> usize {
        self.machines
    }

    /// All times, `[job, machine]`.
    #[must_use]
    pub fn times(&self) -> &[u32] {
        &self.times
    }

    /// One job's times, `[machine]`.
    #[must_use]
    pub fn job(&self, job: usize) -> &[u32] {
        &self.times[job * self.machines..(job + 1) * self.machines]
    }

    /// One job's time on one machine.
    #[must_use]
    pub fn time(&self, job: usize, machine: usize) -> u32 {
        self.times[job * self.machines + machine]
    }

    /// The makespan of the jobs in `order`, which may leave jobs out.
    #[must_use]
    pub fn makespan(&self, order: &[u32]) -> u32 {
        let mut free = vec![0_u32; self.machines];
        for &job in order {
            let mut ready = 0;
            for (free, &time) in free.iter_mut().zip(self.job(job as usize)) {
                ready = ready.max(*free) + time;
                *free = ready;
            }
        }
        free[self.machines - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makespan_by_hand() {
        // Jobs a = (3, 2), b = (1, 4). a then b: a ends 3 | 5, b ends 4 | max(4, 5) + 4 = 9.
        // b then a: b ends 1 | 5, a ends 4 | max(4, 5) + 2 = 7.
        let shop = FlowShop::new(2, 2, vec![3, 2, 1, 4]).unwrap();
        assert_eq!((shop.makespan(&[0, 1]), shop.makespan(&[1, 0]), shop.makespan(&[])), (9, 7, 0));
    }

    #[test]
    fn shapes_and_sums_are_checked() {
        assert!(FlowShop::new(2, 2, vec![1; 3]).is_err());
        assert!(FlowShop::new(0, 2, vec![]).is_err());
        assert!(FlowShop::new(usize::MAX, 2, vec![1]).is_err());
        let error = FlowShop::new(1, 2, vec![u32::MAX, 1]).unwrap_err().to_string();
        assert!(error.contains("add up to 4294967296"), "{error}");
    }
}
