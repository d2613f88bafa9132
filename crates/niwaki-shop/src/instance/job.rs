//! The job shop: each job visits machines along its own route.

use super::{some_jobs_and_machines, within_horizon};
use crate::{Error, Result};

/// One step of a job's route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The machine that must run it.
    pub machine: u32,
    /// How long it takes.
    pub time: u32,
}

/// A job shop. Routes may have any length and may visit a machine more than once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobShop {
    machines: usize,
    /// Where each job's route starts in `operations`, and the end: `[job + 1]`.
    starts: Vec<u32>,
    operations: Vec<Operation>,
}

impl JobShop {
    /// A job shop from its routes.
    ///
    /// # Errors
    /// If there is no job or no machine, a route is empty, a machine does not exist, or times overflow the horizon.
    pub fn new<R: AsRef<[Operation]>>(machines: usize, routes: &[R]) -> Result<Self> {
        some_jobs_and_machines("job shop", routes.len(), machines)?;
        let mut starts = vec![0];
        let mut operations = Vec::new();
        for (job, route) in routes.iter().map(AsRef::as_ref).enumerate() {
            if route.is_empty() {
                return Err(Error::Instance(format!("job {job}: expected at least one operation, got none")));
            }
            for (index, operation) in route.iter().enumerate() {
                if operation.machine as usize >= machines {
                    return Err(Error::Instance(format!(
                        "job {job}, operation {index}: expected a machine below {machines}, got {}",
                        operation.machine
                    )));
                }
            }
            operations.extend_from_slice(route);
            starts.push(operations.len() as u32);
        }
        within_horizon(operations.iter().map(|operation| operation.time))?;
        Ok(Self { machines, starts, operations })
    }

    /// Number of jobs.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of machines.
    #[must_use]
    pub const fn machines(&self) -> usize {
        self.machines
    }

    /// Number of operations of all jobs together.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.operations.len()
    }

    /// One job's route.
    #[must_use]
    pub fn route(&self, job: usize) -> &[Operation] {
        &self.operations[self.starts[job] as usize..self.starts[job + 1] as usize]
    }

    /// All operations, job after job.
    #[must_use]
    pub fn flat(&self) -> &[Operation] {
        &self.operations
    }

    /// Where each job's route starts in [`Self::flat`], and the end: `[job + 1]`.
    #[must_use]
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn op(machine: u32, time: u32) -> Operation {
        Operation { machine, time }
    }

    #[test]
    fn routes_come_back() {
        let shop = JobShop::new(2, &[vec![op(0, 3), op(1, 2)], vec![op(1, 4)]]).unwrap();
        assert_eq!((shop.jobs(), shop.machines(), shop.operations()), (2, 2, 3));
        assert_eq!(shop.route(1), [op(1, 4)]);
        assert_eq!(shop.starts(), [0, 2, 3]);
    }

    #[test]
    fn missing_machines_and_empty_routes_are_named() {
        let error = JobShop::new(2, &[vec![op(0, 3), op(2, 2)]]).unwrap_err().to_string();
        assert_eq!(error, "job 0, operation 1: expected a machine below 2, got 2");
        let error = JobShop::new(2, &[vec![op(0, 3)], vec![]]).unwrap_err().to_string();
        assert_eq!(error, "job 1: expected at least one operation, got none");
    }
}
