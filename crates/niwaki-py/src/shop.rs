//! Shops: instances in every layout, solvers, the checker and charts.

use crate::waiting;
use niwaki_shop::formats::{self, Format};
use niwaki_shop::gantt::{Gantt, gantt};
use niwaki_shop::generate::{Size, Task};
use niwaki_shop::planning::{self, Layout, Method, Problem, Solved};
use niwaki_shop::{Error, FlowShop, JobShop, Limits, Operation, Placed, Schedule, verify};
use numpy::{PyArray2, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

fn refuse(error: Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// One operation: job, index within the job, machine, start, end.
pub(crate) type Row = (u32, u32, u32, u32, u32);

/// What was minimised, what the schedule reaches and what none goes below, the makespan's bound, the operations.
pub(crate) type Found = (&'static str, u64, u64, u32, Vec<Row>);

pub(crate) fn rows(schedule: &Schedule) -> Vec<Row> {
    schedule.operations.iter().map(|at| (at.job, at.op, at.machine, at.start, at.end)).collect()
}

fn schedule(rows: Vec<Row>) -> Schedule {
    let placed = |(job, op, machine, start, end)| Placed { job, op, machine, start, end };
    Schedule { operations: rows.into_iter().map(placed).collect() }
}

/// A shop to schedule.
#[pyclass(frozen)]
pub(crate) struct Instance {
    inner: Arc<niwaki_shop::Instance>,
}

impl Instance {
    /// The problem itself.
    pub(crate) fn instance(&self) -> &niwaki_shop::Instance {
        &self.inner
    }
}

/// What a solver or a policy has found, as Python takes it.
pub(crate) fn found_in(solved: &Solved) -> Found {
    let score = &solved.score;
    (score.objective, score.value, score.bound, solved.makespan.lower, rows(&solved.schedule))
}

impl From<niwaki_shop::Instance> for Instance {
    fn from(inner: niwaki_shop::Instance) -> Self {
        Self { inner: Arc::new(inner) }
    }
}

/// An instance of a file, in the layout that it has or the one that is named, and what the file leaves open.
#[pyfunction]
pub(crate) fn read_instance(
    path: PathBuf,
    format: Option<&str>,
) -> PyResult<(Instance, Option<&'static str>)> {
    // The system's own complaint is an `OSError`, with its number.
    std::fs::File::open(&path).map_err(|error| match error.raw_os_error() {
        Some(code) => PyOSError::new_err((code, error.to_string(), path.display().to_string())),
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    })?;
    let layout = format.map(Layout::named).transpose().map_err(refuse)?;
    let opened = planning::open(&path, layout).map_err(refuse)?;
    let instance = match opened.problem {
        Problem::Special(instance) => instance,
        Problem::Plan(plan) => plan.shop.as_instance().ok_or_else(|| {
            PyValueError::new_err(format!(
                "{}: a plan with dates, calendars, setups or an objective of its own; `niwaki solve` schedules it",
                path.display()
            ))
        })?,
    };
    Ok((instance.into(), opened.open))
}

/// Names of what can be drawn, with what it is.
#[pyfunction]
pub(crate) fn tasks() -> Vec<(&'static str, &'static str)> {
    Task::all().map(|task| (task.name(), task.about())).collect()
}

/// Draws an instance.
#[pyfunction]
pub(crate) fn generate(
    task: &str,
    jobs: Option<usize>,
    machines: Option<usize>,
    seed: u64,
    index: u64,
) -> PyResult<Instance> {
    let task = Task::named(task).map_err(refuse)?;
    let own = task.size();
    let size = Size { jobs: jobs.unwrap_or(own.jobs), machines: machines.unwrap_or(own.machines) };
    niwaki_shop::generate::generate(task, size, seed, index).map(Instance::from).map_err(refuse)
}

/// Rows that a chart has at most.
const MOST_MACHINES: usize = 100_000;

/// Why operations cannot be drawn, where they cannot.
fn undrawable(operations: &[Row], machines: usize) -> Option<String> {
    if machines > MOST_MACHINES {
        return Some(format!("machines is {machines}; a chart has at most {MOST_MACHINES}"));
    }
    let wrong = |(place, &(_, _, machine, start, end)): (usize, &Row)| {
        if machine as usize >= MOST_MACHINES {
            return Some(format!(
                "operation {place} is on machine {machine}; a chart has at most {MOST_MACHINES} machines"
            ));
        }
        (end < start).then(|| format!("operation {place} ends at {end}, before it starts at {start}"))
    };
    operations.iter().enumerate().find_map(wrong)
}

/// A schedule as SVG.
#[pyfunction]
pub(crate) fn draw_gantt(
    operations: Vec<Row>,
    title: String,
    machines: usize,
    deadline: Option<u32>,
    bound: Option<u32>,
) -> PyResult<String> {
    if let Some(reason) = undrawable(&operations, machines) {
        return Err(PyValueError::new_err(reason));
    }
    Ok(gantt(&schedule(operations), &Gantt { title, machines, deadline, bound, ..Gantt::default() }))
}

#[pymethods]
impl Instance {
    /// A flow shop, `times [jobs, machines]`.
    #[staticmethod]
    fn flow(times: PyReadonlyArray2<'_, u32>) -> PyResult<Self> {
        let (jobs, machines) = (times.shape()[0], times.shape()[1]);
        let shop = FlowShop::new(jobs, machines, times.as_slice()?.to_vec()).map_err(refuse)?;
        Ok(niwaki_shop::Instance::Flow(shop).into())
    }

    /// A job shop: of each job its operations as (machine, time).
    #[staticmethod]
    fn job(machines: usize, routes: Vec<Vec<(u32, u32)>>) -> PyResult<Self> {
        let operation = |(machine, time)| Operation { machine, time };
        let routes: Vec<Vec<Operation>> =
            routes.into_iter().map(|route| route.into_iter().map(operation).collect()).collect();
        let shop = JobShop::new(machines, &routes).map_err(refuse)?;
        Ok(niwaki_shop::Instance::Job(shop).into())
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    #[getter]
    fn jobs(&self) -> usize {
        self.inner.jobs()
    }

    #[getter]
    fn machines(&self) -> usize {
        self.inner.machines()
    }

    #[getter]
    fn operations(&self) -> usize {
        self.inner.operations()
    }

    /// The times of a flow shop, `[jobs, machines]`; none for other shops.
    fn times<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<u32>>>> {
        let niwaki_shop::Instance::Flow(shop) = self.inner.as_ref() else { return Ok(None) };
        let rows: Vec<Vec<u32>> = (0..self.jobs()).map(|job| shop.job(job).to_vec()).collect();
        Ok(Some(PyArray2::from_vec2(py, &rows)?))
    }

    /// The instance that [`Instance::packed`] gave.
    #[staticmethod]
    fn unpacked(format: &str, text: &str) -> PyResult<Self> {
        Format::named(format).and_then(|format| format.read(text)).map(Self::from).map_err(refuse)
    }

    /// The layout that is usual for its problem, and the instance in it.
    fn packed(&self) -> PyResult<(&'static str, String)> {
        let format = Format::usual(&self.inner);
        Ok((format.name(), format.write(&self.inner).map_err(refuse)?))
    }

    /// The instance as text, in the usual layout of its problem or the one that is named.
    fn text(&self, format: Option<&str>) -> PyResult<String> {
        match format {
            Some(format) => {
                Format::named(format).and_then(|format| format.write(&self.inner)).map_err(refuse)
            }
            None => formats::write(&self.inner).map_err(refuse),
        }
    }

    /// Searches for a good schedule: what was minimised, value and bound, bound of the makespan, the operations.
    fn solve(&self, py: Python<'_>, method: &str, seconds: f64, seed: u64) -> PyResult<Found> {
        let time = Duration::try_from_secs_f64(seconds)
            .map_err(|_| PyValueError::new_err(format!("time is {seconds}; give seconds, not negative")))?;
        let method: Method =
            method.parse().map_err(|error| PyValueError::new_err(format!("method: {error}")))?;
        let instance = Arc::clone(&self.inner);
        let found = waiting::run(py, move |stop| {
            planning::solve(&instance, method, Limits::new(time, seed).stopped_by(stop), &mut |_| {})
        })?;
        found.map(|solved| found_in(&solved)).map_err(refuse)
    }

    /// Checks a schedule: makespan, violation, late jobs.
    fn verify(&self, operations: Vec<Row>) -> PyResult<(u32, u64, usize)> {
        let verdict = verify(&self.inner, &schedule(operations)).map_err(refuse)?;
        Ok((verdict.makespan, verdict.violation, verdict.late))
    }
}
