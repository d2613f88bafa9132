//! The job shop: each job visits machines along its own route.

use super::{FlowShop, some_jobs_and_machines, within_horizon};
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
        let named = routes.iter().map(|route| route.as_ref().len()).sum();
        some_jobs_and_machines("job shop", routes.len(), machines, named)?;
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

    /// The flow shop as a job shop in which all routes are the same.
    ///
    /// # Errors
    /// None for a valid flow shop.
    pub fn from_flow_shop(shop: &FlowShop) -> Result<Self> {
        let step = |(machine, &time): (u32, &u32)| Operation { machine, time };
        let route = |job| (0..).zip(shop.job(job)).map(step).collect::<Vec<_>>();
        let routes: Vec<_> = (0..shop.jobs()).map(route).collect();
        Self::new(shop.machines(), &routes)
    }

    /// The permutation flow shop of the same times, where every job visits all machines in order.
    #[must_use]
    pub fn as_flow_shop(&self) -> Option<FlowShop> {
        let in_order = |job| {
            let route: &[Operation] = self.route(job);
            route.iter().map(|step| step.machine as usize).eq(0..self.machines)
        };
        if !(0..self.jobs()).all(in_order) {
            return None;
        }
        let times = self.operations.iter().map(|operation| operation.time).collect();
        FlowShop::new(self.jobs(), self.machines, times).ok()
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
    fn only_common_routes_make_a_flow_shop() {
        let shop = JobShop::new(2, &[vec![op(0, 3), op(1, 2)], vec![op(0, 1), op(1, 4)]]).unwrap();
        assert_eq!(shop.as_flow_shop().unwrap().times(), [3, 2, 1, 4]);
        assert_eq!(JobShop::from_flow_shop(&shop.as_flow_shop().unwrap()).unwrap(), shop);
        let crossing = JobShop::new(2, &[vec![op(0, 3), op(1, 2)], vec![op(1, 1), op(0, 4)]]).unwrap();
        let short = JobShop::new(2, &[vec![op(0, 3), op(1, 2)], vec![op(0, 1)]]).unwrap();
        assert!(crossing.as_flow_shop().is_none() && short.as_flow_shop().is_none());
    }

    #[test]
    fn missing_machines_and_empty_routes_are_named() {
        let error = JobShop::new(2, &[vec![op(0, 3), op(2, 2)]]).unwrap_err().to_string();
        assert_eq!(error, "job 0, operation 1: expected a machine below 2, got 2");
        let error = JobShop::new(2, &[vec![op(0, 3)], vec![]]).unwrap_err().to_string();
        assert_eq!(error, "job 1: expected at least one operation, got none");
    }
}
