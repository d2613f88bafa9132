//! The flexible job shop: each operation may choose among machines, with its own time on each; optionally with
//! resting windows between consecutive operations of a job.

use super::{JobShop, some_jobs_and_machines, within_horizon};
use crate::{Error, Result};

/// A machine that can run an operation, and its time there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// The machine.
    pub machine: u32,
    /// How long the operation takes on it.
    pub time: u32,
}

/// The rest between an operation's predecessor in its job and itself, measured from end to start.
///
/// Paper: app:sched-driftdial
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Hard: the operation may not start earlier than this after its predecessor's end.
    pub min: u32,
    /// Soft: starting later than this after its predecessor's end is allowed, and the excess is measured.
    pub max: Option<u32>,
}

impl Window {
    /// No rest is needed and none is too long.
    pub const FREE: Self = Self { min: 0, max: None };
}

/// A flexible job shop, with or without resting windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlexibleShop {
    machines: usize,
    /// Where each job's operations start, and the end: `[job + 1]`.
    job_starts: Vec<u32>,
    /// Where each operation's alternatives start, and the end: `[operation + 1]`.
    operation_starts: Vec<u32>,
    alternatives: Vec<Alternative>,
    /// The window before each operation, `[operation]`; free before a job's first.
    windows: Option<Vec<Window>>,
}

impl FlexibleShop {
    /// A flexible shop from the alternatives of each operation of each job: `jobs[job][operation]`.
    ///
    /// # Errors
    /// If there is no job or no machine, a job has no operation, an operation no alternative or the same machine
    /// twice, a machine does not exist, or times overflow the horizon.
    pub fn new(machines: usize, jobs: &[Vec<Vec<Alternative>>]) -> Result<Self> {
        let named = jobs.iter().flatten().map(Vec::len).sum();
        some_jobs_and_machines("flexible job shop", jobs.len(), machines, named)?;
        let (mut job_starts, mut operation_starts, mut alternatives) = (vec![0], vec![0], Vec::new());
        let mut sorted = Vec::new();
        for (job, operations) in jobs.iter().enumerate() {
            if operations.is_empty() {
                return Err(Error::Instance(format!("job {job}: expected at least one operation, got none")));
            }
            for (index, choices) in operations.iter().enumerate() {
                let place = || format!("job {job}, operation {index}");
                if choices.is_empty() {
                    return Err(Error::Instance(format!(
                        "{}: expected at least one machine, got none",
                        place()
                    )));
                }
                if let Some(choice) = choices.iter().find(|choice| choice.machine as usize >= machines) {
                    return Err(Error::Instance(format!(
                        "{}: expected a machine below {machines}, got {}",
                        place(),
                        choice.machine
                    )));
                }
                sorted.clear();
                sorted.extend(choices.iter().map(|choice| choice.machine));
                sorted.sort_unstable();
                if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                    return Err(Error::Instance(format!(
                        "{}: expected each machine once, got machine {} twice",
                        place(),
                        pair[0]
                    )));
                }
                alternatives.extend_from_slice(choices);
                operation_starts.push(alternatives.len() as u32);
            }
            job_starts.push(operation_starts.len() as u32 - 1);
        }
        let shop = Self { machines, job_starts, operation_starts, alternatives, windows: None };
        within_horizon(shop.slowest())?;
        Ok(shop)
    }

    /// The same shop with a window before each operation: `windows[job][operation]`, the first of each job free.
    ///
    /// # Errors
    /// If the shape disagrees, a job's first window is not free, a minimum exceeds its maximum (the two would form
    /// a cycle that no schedule satisfies), or lags overflow the horizon.
    pub fn with_windows(self, windows: &[Vec<Window>]) -> Result<Self> {
        if windows.len() != self.jobs() {
            return Err(Error::Instance(format!(
                "windows: expected one list for each of {} jobs, got {}",
                self.jobs(),
                windows.len()
            )));
        }
        let mut flat = Vec::with_capacity(self.operations());
        for (job, list) in windows.iter().enumerate() {
            let operations = self.job(job).len();
            if list.len() != operations {
                return Err(Error::Instance(format!(
                    "job {job}: expected {operations} windows, got {}",
                    list.len()
                )));
            }
            if list[0] != Window::FREE {
                return Err(Error::Instance(format!(
                    "job {job}: expected no window before its first operation"
                )));
            }
            for (index, window) in list.iter().enumerate() {
                if let Some(max) = window.max.filter(|&max| max < window.min) {
                    return Err(Error::Instance(format!(
                        "job {job}, operation {index}: the minimum lag {} exceeds the maximum lag {max}: the two \
                         form a cycle that no schedule satisfies",
                        window.min
                    )));
                }
            }
            flat.extend_from_slice(list);
        }
        within_horizon(self.slowest().chain(flat.iter().map(|window| window.min)))?;
        Ok(Self { windows: Some(flat), ..self })
    }

    /// Each operation's longest time.
    fn slowest(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.operations())
            .map(|operation| self.alternatives(operation).iter().map(|choice| choice.time).max().unwrap_or(0))
    }

    /// Number of jobs.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.job_starts.len() - 1
    }

    /// Number of machines.
    #[must_use]
    pub const fn machines(&self) -> usize {
        self.machines
    }

    /// Number of operations of all jobs together.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.operation_starts.len() - 1
    }

    /// The flat numbers of one job's operations.
    #[must_use]
    pub fn job(&self, job: usize) -> std::ops::Range<usize> {
        self.job_starts[job] as usize..self.job_starts[job + 1] as usize
    }

    /// The machines that can run an operation, by its flat number.
    #[must_use]
    pub fn alternatives(&self, operation: usize) -> &[Alternative] {
        let (from, to) = (self.operation_starts[operation], self.operation_starts[operation + 1]);
        &self.alternatives[from as usize..to as usize]
    }

    /// An operation's time on a machine, if that machine can run it.
    #[must_use]
    pub fn time(&self, operation: usize, machine: u32) -> Option<u32> {
        self.alternatives(operation).iter().find(|choice| choice.machine == machine).map(|choice| choice.time)
    }

    /// The window before an operation, by its flat number.
    #[must_use]
    pub fn window(&self, operation: usize) -> Window {
        self.windows.as_ref().map_or(Window::FREE, |windows| windows[operation])
    }

    /// Whether the shop has resting windows.
    #[must_use]
    pub const fn has_windows(&self) -> bool {
        self.windows.is_some()
    }

    /// The job shop as a flexible shop whose operations have one alternative each.
    ///
    /// # Errors
    /// None for a valid job shop.
    pub fn from_job_shop(shop: &JobShop) -> Result<Self> {
        let jobs: Vec<_> = (0..shop.jobs())
            .map(|job| {
                let single = |op: &super::Operation| vec![Alternative { machine: op.machine, time: op.time }];
                shop.route(job).iter().map(single).collect()
            })
            .collect();
        Self::new(shop.machines(), &jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shop() -> FlexibleShop {
        let on = |machine, time| Alternative { machine, time };
        FlexibleShop::new(2, &[vec![vec![on(0, 3), on(1, 5)], vec![on(1, 2)]], vec![vec![on(0, 1)]]]).unwrap()
    }

    #[test]
    fn alternatives_come_back() {
        let shop = shop();
        assert_eq!((shop.jobs(), shop.operations(), shop.job(0), shop.job(1)), (2, 3, 0..2, 2..3));
        assert_eq!((shop.time(0, 1), shop.time(1, 0)), (Some(5), None));
        assert_eq!(shop.window(1), Window::FREE);
    }

    #[test]
    fn impossible_operations_are_named() {
        let on = |machine, time| Alternative { machine, time };
        let refusal = |choices: Vec<Alternative>| {
            FlexibleShop::new(2, &[vec![vec![on(0, 1)], choices]]).unwrap_err().to_string()
        };
        assert_eq!(refusal(vec![]), "job 0, operation 1: expected at least one machine, got none");
        assert_eq!(refusal(vec![on(2, 1)]), "job 0, operation 1: expected a machine below 2, got 2");
        let twice = refusal(vec![on(1, 1), on(1, 2)]);
        assert_eq!(twice, "job 0, operation 1: expected each machine once, got machine 1 twice");
    }

    #[test]
    fn contradicting_lags_are_named() {
        let windows = vec![vec![Window::FREE, Window { min: 4, max: Some(3) }], vec![Window::FREE]];
        let error = shop().with_windows(&windows).unwrap_err().to_string();
        assert!(
            error.starts_with("job 0, operation 1: the minimum lag 4 exceeds the maximum lag 3"),
            "{error}"
        );
        let windows = vec![vec![Window::FREE, Window { min: u32::MAX, max: None }], vec![Window::FREE]];
        assert!(shop().with_windows(&windows).is_err(), "lags count towards the horizon");
    }
}
