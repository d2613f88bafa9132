//! The folder of a run that Python trains, written as `niwaki train` writes its own.

use niwaki_page::Made;
use niwaki_study::runs::run_page;
use niwaki_train::reading::Run;
use niwaki_train::run::{self, Own, RawTensor};
use niwaki_train::{Error, Record, Spec};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// A tensor: its name, its kind as safetensors writes it, its sizes, its bytes.
type Given = (String, String, Vec<usize>, PyBackedBytes);
type Taken<'py> = (String, String, Vec<usize>, Bound<'py, PyBytes>);

/// A run's folder, held by this process until it is closed.
#[pyclass]
pub(crate) struct RunFolder {
    inner: Option<Own>,
    path: PathBuf,
}

fn refuse(error: Error) -> PyErr {
    match error {
        Error::Disk { .. } => PyOSError::new_err(error.to_string()),
        other => PyValueError::new_err(other.to_string()),
    }
}

fn json(what: &str, text: &str) -> PyResult<serde_json::Value> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(format!("{what}: {error}")))
}

impl RunFolder {
    fn open(&mut self) -> PyResult<&mut Own> {
        let closed = || PyValueError::new_err(format!("{}: the run is closed", self.path.display()));
        self.inner.as_mut().ok_or_else(closed)
    }
}

#[pymethods]
impl RunFolder {
    /// Makes the folder, or opens the one that an earlier process left; `spec` is the text of its `spec.toml`.
    #[new]
    fn new(path: PathBuf, spec: &str, changed: bool) -> PyResult<Self> {
        let spec = Spec::read("niwaki.Run", spec, &[]).map_err(refuse)?;
        let inner = Own::open(&path, &spec, changed).map_err(refuse)?;
        Ok(Self { inner: Some(inner), path })
    }

    /// Iterations done.
    fn done(&mut self) -> PyResult<usize> {
        Ok(self.open()?.done())
    }

    /// Whether the run is finished.
    fn finished(&mut self) -> PyResult<bool> {
        Ok(self.open()?.finished().is_some())
    }

    /// Adds the record of the next iteration, as JSON.
    fn push(&mut self, record: &str) -> PyResult<()> {
        let record: Record = serde_json::from_value(json("record", record)?)
            .map_err(|error| PyValueError::new_err(format!("record: {error}")))?;
        self.open()?.push(record).map_err(refuse)
    }

    /// Saves what the trainer goes on from.
    fn save(&mut self, tensors: Vec<Given>, state: &str) -> PyResult<()> {
        let state = json("state", state)?;
        let tensors: Vec<RawTensor> = tensors
            .into_iter()
            .map(|(name, kind, shape, bytes)| RawTensor { name, kind, shape, bytes: bytes.to_vec() })
            .collect();
        self.open()?.save(&tensors, state).map_err(refuse)
    }

    /// What the trainer goes on from: its tensors, and its state as JSON; nothing where nothing was saved.
    fn restore<'py>(&mut self, py: Python<'py>) -> PyResult<Option<(Vec<Taken<'py>>, String)>> {
        let Some((tensors, state)) = self.open()?.restore().map_err(refuse)? else { return Ok(None) };
        let taken =
            |tensor: RawTensor| (tensor.name, tensor.kind, tensor.shape, PyBytes::new(py, &tensor.bytes));
        Ok(Some((tensors.into_iter().map(taken).collect(), state.to_string())))
    }

    /// Says that the run is done, and writes its page; returns where that lies, or nothing where another program's file stands
    /// in its place.
    fn finish(&mut self, device: &str) -> PyResult<Option<PathBuf>> {
        let path = self.open()?.path().to_owned();
        self.open()?.finish(device).map_err(refuse)?;
        let place = path.join(run::PAGE);
        if run::page_is_foreign(&path) {
            return Ok(None);
        }
        let found = Run::read(&path).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let made = Made::new(run::OWN_PAGE_COMMAND).fact("version", env!("CARGO_PKG_VERSION"));
        let page = run_page(&found, made).to_html();
        niwaki_files::write_atomically(&place, page.as_bytes())
            .map_err(|error| PyOSError::new_err(format!("{}: {error}", place.display())))?;
        Ok(Some(place))
    }

    /// Lets go of the folder.
    fn close(&mut self) {
        self.inner = None;
    }
}
