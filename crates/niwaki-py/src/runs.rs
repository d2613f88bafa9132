//! Runs out of folders, as every page of the command reads them.

use crate::waiting;
use niwaki_train::Record;
use niwaki_train::reading::{Damaged, Endpoint, Found, Reader, Run, Standing};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::PathBuf;

/// A column of a curve: its name, and its value in a record, where that was measured.
type Column = (&'static str, fn(&Record) -> Option<f64>);

const COLUMNS: [Column; 12] = [
    ("iteration", |record| Some(record.iteration as f64)),
    ("eta", |record| record.eta),
    ("greedy", |record| record.greedy),
    ("batch_reward", |record| Some(record.batch_reward)),
    ("zero_signal", |record| Some(record.zero_signal)),
    ("drift", |record| Some(record.drift)),
    ("clip_fraction", |record| Some(record.clip_fraction)),
    ("ess", |record| Some(record.ess)),
    ("dose", |record| Some(record.dose)),
    ("kl", |record| Some(record.kl)),
    ("entropy", |record| Some(record.entropy)),
    ("alpha", |record| record.alpha),
];

/// Runs, and the folders that cannot be read with the reason.
type Listed<'py> = (Bound<'py, PyList>, Vec<(String, String)>);

/// All runs below some folders, and the folders that cannot be read, each with its reason.
#[pyfunction]
pub(crate) fn read_runs(py: Python<'_>, places: Vec<PathBuf>) -> PyResult<Listed<'_>> {
    let read = || Reader::new(|run| run).below(&places);
    let Found { runs, damaged, .. } =
        waiting::pooled(read).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let list = PyList::empty(py);
    for run in runs {
        list.append(said(py, &run)?)?;
    }
    let damaged =
        damaged.into_iter().map(|Damaged { folder, reason }| (folder.display().to_string(), reason));
    Ok((list, damaged.collect()))
}

/// A number of a run that is over; nothing as long as it is not.
#[pyfunction]
pub(crate) fn run_endpoint(py: Python<'_>, folder: PathBuf, name: String) -> PyResult<Option<f64>> {
    let endpoint = Endpoint::try_from(name).map_err(PyValueError::new_err)?;
    let run = py.detach(|| Run::read(&folder)).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(if run.standing == Standing::Running { None } else { endpoint.of(&run.course) })
}

fn said<'py>(py: Python<'py>, run: &Run) -> PyResult<Bound<'py, PyDict>> {
    let refuse = |error: niwaki_train::Error| PyValueError::new_err(error.to_string());
    let said = PyDict::new(py);
    said.set_item("folder", run.folder.display().to_string())?;
    said.set_item("spec", run.spec.to_toml().map_err(refuse)?)?;
    said.set_item("arm", &run.spec.update.correction)?;
    said.set_item("seed", run.spec.seed)?;
    said.set_item("standing", run.standing.words())?;
    said.set_item("done", run.course.done())?;
    said.set_item("iterations", run.course.iterations)?;
    said.set_item("judged_by", run.course.judged().words())?;
    let curve = PyDict::new(py);
    for (name, value) in COLUMNS {
        let column = run.course.curve.iter().map(|record| value(record).unwrap_or(f64::NAN));
        curve.set_item(name, PyArray1::from_iter(py, column))?;
    }
    said.set_item("curve", curve)?;
    let endpoints = PyDict::new(py);
    if run.standing != Standing::Running {
        for endpoint in run.course.judged().endpoints().into_iter().chain([Endpoint::MeanDrift]) {
            endpoints.set_item(endpoint.to_string(), endpoint.of(&run.course))?;
        }
    }
    said.set_item("endpoints", endpoints)?;
    Ok(said)
}
