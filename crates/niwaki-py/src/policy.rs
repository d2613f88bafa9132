//! Trained policies out of their runs' folders: schedules, scores, tensors.

use crate::shop::{Found, Instance, found_in};
use crate::waiting;
use niwaki_policies::Decoding;
use niwaki_shop::planning;
use niwaki_train::trained::{Tensor, TrainedPolicy, TrainedSequences};
use niwaki_train::{Error, Trained};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;

/// A parameter: its name, its shape, its values.
type Named<'py> = (String, Vec<usize>, Bound<'py, PyArray1<f64>>);

/// Log-probabilities, and what was open.
type Told<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<bool>>);

/// A pointer policy, which schedules shops.
#[pyclass(frozen)]
pub(crate) struct ShopPolicy {
    inner: Arc<Trained>,
}

/// A policy over token sequences.
#[pyclass(frozen)]
pub(crate) struct SequencePolicy {
    inner: Arc<TrainedSequences>,
}

fn refuse(error: Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn named(py: Python<'_>, tensors: Vec<Tensor>) -> Vec<Named<'_>> {
    let one = |tensor: Tensor| (tensor.name, tensor.shape, PyArray1::from_vec(py, tensor.values));
    tensors.into_iter().map(one).collect()
}

/// The policy of a run's folder.
#[pyfunction]
pub(crate) fn load_policy(py: Python<'_>, folder: PathBuf) -> PyResult<Py<PyAny>> {
    Ok(match waiting::pooled(|| TrainedPolicy::open(&folder)).map_err(refuse)? {
        TrainedPolicy::Shops(policy) => Py::new(py, ShopPolicy { inner: Arc::from(policy) })?.into_any(),
        TrainedPolicy::Graphs(_) => {
            let words =
                "this policy reads shops as graphs; load_policy gives pointers and policies over tokens";
            return Err(PyValueError::new_err(format!("{}: {words}", folder.display())));
        }
        TrainedPolicy::Sequences(policy) => {
            Py::new(py, SequencePolicy { inner: Arc::from(policy) })?.into_any()
        }
    })
}

#[pymethods]
impl ShopPolicy {
    #[getter]
    fn iteration(&self) -> u64 {
        self.inner.iteration()
    }

    fn tensors<'py>(&self, py: Python<'py>) -> Vec<Named<'py>> {
        named(py, self.inner.tensors())
    }

    /// The best schedule of an instance: as a solver returns it, the way that found it, and how many were tried.
    fn schedule(
        &self,
        py: Python<'_>,
        instance: PyRef<'_, Instance>,
        samples: usize,
        beam: usize,
        multistart: bool,
        seed: u64,
    ) -> PyResult<(Found, &'static str, usize)> {
        let policy = Arc::clone(&self.inner);
        let instance = policy.accept(instance.instance().clone()).map_err(refuse)?;
        let how = Decoding { samples, beam, multistart, seed, ..Decoding::default() };
        let (solved, decoded) = waiting::run(py, move |_| {
            let (found, decoded) =
                policy.schedule(&instance, how, &mut |_| {}).map_err(|error| error.to_string())?;
            let solved = planning::judge(&instance, found).map_err(|error| error.to_string())?;
            Ok((solved, decoded))
        })?
        .map_err(PyValueError::new_err::<String>)?;
        Ok((found_in(&solved), decoded.way, decoded.tried))
    }

    /// Constructions of an instance as the policy sees and scores them: `choices [construction, step]`.
    fn score<'py>(
        &self,
        py: Python<'py>,
        instance: PyRef<'py, Instance>,
        choices: PyReadonlyArray2<'py, i32>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let lanes = choices.shape()[0];
        let choices = choices.as_slice()?;
        let accepted = self.inner.accept(instance.instance().clone()).map_err(refuse)?;
        let scored =
            py.detach(|| waiting::pooled(|| self.inner.score(&accepted, choices))).map_err(refuse)?;
        let shape = scored.shape;
        let fields = PyDict::new(py);
        let array = |values: Vec<f32>, sizes: &[usize]| PyArray1::from_vec(py, values).reshape(sizes);
        let (steps, candidates) = (shape.horizon, shape.candidates);
        fields.set_item("log_probs", array(scored.log_prob, &[lanes, steps])?)?;
        fields.set_item("features", array(scored.observed.features, &[candidates, shape.features])?)?;
        fields.set_item("context", array(scored.observed.context, &[lanes, steps, shape.context])?)?;
        let open: Vec<bool> = scored.observed.open.iter().map(|&open| open != 0).collect();
        fields.set_item("open", PyArray1::from_vec(py, open).reshape([lanes, steps, candidates])?)?;
        let makespans: Vec<u32> = scored.outcome.iter().map(|outcome| outcome.makespan).collect();
        fields.set_item("makespans", PyArray1::from_vec(py, makespans))?;
        Ok(fields)
    }

    /// Heads of attention, whether the query is added to its glimpse, and the bound on the logits.
    fn sizes(&self) -> (usize, bool, f64) {
        self.inner.decoder()
    }
}

#[pymethods]
impl SequencePolicy {
    #[getter]
    fn iteration(&self) -> u64 {
        self.inner.iteration()
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.inner.kind().name()
    }

    /// Tokens to choose from, steps, heads of attention.
    fn sizes(&self) -> (usize, usize, usize) {
        self.inner.sizes()
    }

    fn tensors<'py>(&self, py: Python<'py>) -> Vec<Named<'py>> {
        named(py, self.inner.tensors())
    }

    /// Log-probabilities `[sequence, step]` flat, and which tokens were open, `[sequence, step, vocab]` flat.
    fn score<'py>(&self, py: Python<'py>, tokens: PyReadonlyArray2<'py, i32>) -> PyResult<Told<'py>> {
        let tokens = tokens.as_slice()?;
        let (scored, open) =
            py.detach(|| waiting::pooled(|| (self.inner.score(tokens), self.inner.open_tokens(tokens))));
        let open: Vec<bool> = open.iter().map(|&open| open != 0).collect();
        Ok((PyArray1::from_vec(py, scored.map_err(refuse)?), PyArray1::from_vec(py, open)))
    }
}
