//! Any policy loss, measured exactly on an enumerable process.

use crate::{rule, waiting};
use niwaki_correction::family::{Steps, TESTBED, Terms};
use niwaki_correction::{Clip, Correction, Surrogate};
use niwaki_exact::diagnostics::{Grid, Policies, oracle, to_json};
use niwaki_exact::{Payoff, Process, Reward};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// Standard deviation of a drawn rollout policy's logits, as the paper's diagnostics draw it.
const ROLLOUT_SCALE: f64 = 0.1;

/// A loss as Python hands it over.
#[derive(FromPyObject)]
#[allow(clippy::large_enum_variant, reason = "there are a few dozen, and PyO3 extracts no boxes")]
enum Asked {
    Member(rule::Given),
    /// A name, and a function from log-ratios and advantages to terms, their own derivatives and what is routed.
    Function(String, Py<PyAny>),
}

/// The question as Python hands it over.
#[derive(FromPyObject)]
pub(crate) struct Question<'py> {
    rewards: Vec<(String, Option<PyReadonlyArray1<'py, f64>>)>,
    vocab: usize,
    horizon: usize,
    drifts: Vec<f64>,
    seeds: Vec<u64>,
    /// `[prefixes, vocab]` each: the policy that sampled, and the one being updated.
    logits: Option<(PyReadonlyArray2<'py, f64>, PyReadonlyArray2<'py, f64>)>,
    losses: Vec<Asked>,
    clip: Option<(f64, f64, Option<f64>)>,
    routing: bool,
    batch: u64,
    drawn: usize,
}

fn refuse(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Names of the rewards that have one.
#[pyfunction]
pub(crate) fn rewards() -> Vec<&'static str> {
    Reward::LADDER.iter().map(|reward| reward.name()).collect()
}

/// The losses that are measured where none are named.
#[pyfunction]
pub(crate) fn testbed() -> Vec<&'static str> {
    TESTBED.to_vec()
}

/// The steps of a process whose tables of logits have so many rows.
#[pyfunction]
pub(crate) fn horizon_of(prefixes: usize, vocab: usize) -> Option<usize> {
    if vocab < 2 { None } else { Process::horizon_of(prefixes, vocab) }
}

/// Every loss on every reward and drift over the seeds, as the JSON that `niwaki oracle --format json` prints.
#[pyfunction]
pub(crate) fn measure(py: Python<'_>, question: Question<'_>) -> PyResult<String> {
    let process = Process::new(question.vocab, question.horizon).map_err(refuse)?;
    let mut rewards = Vec::new();
    for (name, table) in &question.rewards {
        let payoff = match table {
            Some(table) => Payoff::from_table(process, table.as_slice()?.to_vec()),
            None => name.parse::<Reward>().and_then(|reward| reward.payoff(process)),
        };
        rewards.push((name.clone(), payoff.map_err(|error| refuse(format!("reward: {error}")))?));
    }
    let clip = question.clip.map(|(low, high, dual)| Clip { low, high, dual });
    let (mut losses, fault) = (Vec::new(), Fault::default());
    for loss in question.losses {
        let correction = match loss {
            Asked::Member(given) => given.correction()?,
            Asked::Function(name, function) => called(&name, function, &fault).map_err(refuse)?,
        };
        losses.push(Surrogate { clip, routing: question.routing, ..Surrogate::new(correction) });
    }
    let policies = match &question.logits {
        Some((old, new)) => Policies::Given { old: old.as_slice()?.to_vec(), new: new.as_slice()?.to_vec() },
        None => Policies::Drawn { rollout_scale: ROLLOUT_SCALE, seeds: question.seeds.clone() },
    };
    let drifts = question.drifts.clone();
    let grid = Grid {
        process,
        rewards,
        drifts,
        policies,
        losses,
        batch: question.batch,
        drawn: question.drawn,
        memory: Process::MEMORY,
    };
    let found = waiting::run(py, move |_| oracle(&grid, false, &|_| {}).map(|found| to_json(&found.league)))?;
    match fault.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(fault) => Err(fault),
        None => found.map_err(refuse),
    }
}

/// What a function raised, while it was measured.
type Fault = Arc<Mutex<Option<PyErr>>>;

/// A loss that is a Python function; what it raises is kept, and its terms are then no numbers.
fn called(name: &str, function: Py<PyAny>, fault: &Fault) -> Result<Correction, niwaki_correction::Error> {
    let fault = fault.clone();
    Correction::called(name, move |steps: &Steps<'_>| {
        let asked = Python::attach(|py| -> PyResult<[Vec<f64>; 3]> {
            let rows = steps.rows().count();
            let length = steps.len() / rows.max(1);
            let ell: Vec<f64> = (0..steps.len()).map(|step| steps.ell(step)).collect();
            let table = |values: Vec<f64>| PyArray1::from_vec(py, values).reshape([rows, length]);
            let given = (table(ell)?, table(steps.advantage.to_vec())?);
            let found: [PyReadonlyArray2<'_, f64>; 3] = function.bind(py).call1(given)?.extract()?;
            Ok([found[0].as_slice()?.to_vec(), found[1].as_slice()?.to_vec(), found[2].as_slice()?.to_vec()])
        });
        let [value, own, routed] = asked.unwrap_or_else(|error| {
            fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            [(); 3].map(|()| vec![f64::NAN; steps.len()])
        });
        Terms { value, own, routed, factor: vec![1.0; steps.len()] }
    })
}
