//! What the log-probs of any run say about stale data: batches as arrays, or files.

use crate::waiting;
use niwaki_advise::gate::Gate;
use niwaki_advise::keys::{key_of_number, key_of_text, key_of_whole};
use niwaki_advise::measure::{Measure, Measured, Settings};
use niwaki_advise::schema::{Field, Naming};
use niwaki_advise::series::{Runs, is_tally, series};
use niwaki_advise::trajectory::{Against, Baselines, Came, Chunk, Record};
use niwaki_advise::verdict::Verdict;
use niwaki_advise::write;
use niwaki_advise::{Error, Question, advise, text, verl};
use niwaki_correction::Clip;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Columns of a summary in plain text.
const WIDTH: usize = 100;

/// Settings as Python hands them over, checked there.
#[derive(FromPyObject)]
pub(crate) struct Given {
    clip: (f64, f64),
    ess_floor: f64,
    batch: Option<f64>,
    rollout_is: String,
    rollout_is_threshold: f64,
    behaviour: bool,
}

impl Given {
    fn settings(&self) -> PyResult<Settings> {
        let level = self.rollout_is.parse().map_err(PyValueError::new_err::<String>)?;
        Ok(Settings {
            clip: Clip { low: self.clip.0, high: self.clip.1, dual: None },
            ess_floor: self.ess_floor,
            batch: self.batch,
            against: if self.behaviour { Against::Behaviour } else { Against::Old },
            verl: verl::Settings {
                level,
                threshold: verl::Threshold { lower: None, upper: self.rollout_is_threshold },
                ..verl::Settings::default()
            },
        })
    }
}

/// A batch of trajectories: flat arrays, where each trajectory's steps start, one value of the rest for each.
#[derive(FromPyObject)]
struct Trajectories<'py> {
    offsets: PyReadonlyArray1<'py, usize>,
    old_log_prob: Option<PyReadonlyArray1<'py, f64>>,
    new_log_prob: PyReadonlyArray1<'py, f64>,
    behaviour_log_prob: Option<PyReadonlyArray1<'py, f64>>,
    /// Of each step, or of each trajectory.
    advantage: Option<PyReadonlyArray1<'py, f64>>,
    reward: Option<PyReadonlyArray1<'py, f64>>,
    mask: Option<PyReadonlyArray1<'py, f64>>,
    group: Option<Vec<Key>>,
    iteration: Vec<i64>,
    weight: Option<PyReadonlyArray1<'py, f64>>,
    /// Of each step, or of each trajectory.
    version: Option<PyReadonlyArray1<'py, f64>>,
    age: Option<PyReadonlyArray1<'py, f64>>,
    trainer_version: Option<i64>,
}

/// What trajectories of one group share.
#[derive(FromPyObject)]
enum Key {
    Whole(i128),
    Number(f64),
    Text(String),
}

/// Running sums over batches, and what they say.
#[pyclass(frozen)]
pub(crate) struct Advisor {
    /// Threads that add at the same time wait for each other.
    measure: Mutex<Measure>,
}

#[pymethods]
impl Advisor {
    /// `share`: the rank whose trajectories are added, and how many share a batch.
    #[new]
    fn new(given: Given, share: Option<(u32, u32)>) -> PyResult<Self> {
        let measure = Measure::new(given.settings()?);
        let measure = match share {
            Some((rank, world)) => measure.of_rank(rank, world),
            None => measure,
        };
        Ok(Self { measure: Mutex::new(measure) })
    }

    /// What [`Advisor::tally`] gave.
    #[staticmethod]
    fn from_tally(py: Python<'_>, tally: &[u8]) -> PyResult<Self> {
        let measure = py.detach(|| Measure::from_tally(tally)).map_err(refuse)?;
        Ok(Self { measure: Mutex::new(measure) })
    }

    /// Everything measured, as bytes.
    fn tally<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.sums().tally()))
    }

    /// Adds what another has measured; where the two are not of one run, nothing is added.
    fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        py.detach(|| {
            // Two that are merged into each other at the same time would wait for ever if either held on to its own.
            let other = other.sums().clone();
            self.sums().merge(&other)
        })
        .map_err(refuse)
    }

    /// Adds a batch; a fault leaves what was measured before as it was.
    fn add(&self, py: Python<'_>, batch: Trajectories<'_>) -> PyResult<()> {
        let against = py.detach(|| self.sums().settings().against);
        let chunk = batch.chunk(against)?;
        py.detach(|| {
            let mut sums = self.sums();
            sums.goes_with(&chunk).map(|()| sums.add(&chunk))
        })
        .map_err(|why| PyValueError::new_err(why.to_string()))
    }

    /// Whether nothing was added yet.
    fn is_empty(&self, py: Python<'_>) -> bool {
        py.detach(|| self.sums().is_empty())
    }

    /// Verdict and numbers as JSON, and the summary as text.
    fn report(&self, py: Python<'_>) -> PyResult<(String, String)> {
        py.detach(|| {
            let measured = self.sums().finish();
            told(&measured, &Verdict::new(&measured))
        })
        .map_err(PyValueError::new_err::<String>)
    }
}

/// Trajectories on their way to a file.
#[pyclass(frozen)]
pub(crate) struct Dump {
    chunk: Mutex<Chunk>,
}

#[pymethods]
impl Dump {
    #[new]
    fn new() -> Self {
        Self { chunk: Mutex::default() }
    }

    /// Adds a batch; a fault leaves what was there as it was.
    fn add(&self, batch: Trajectories<'_>) -> PyResult<()> {
        let more = batch.chunk(Against::Old)?;
        self.trajectories().append(&more).map_err(|fault| PyValueError::new_err(fault.to_string()))
    }

    /// Takes what was added, as a file: its bytes, the steps in it and those that were added.
    fn take<'py>(
        &self,
        py: Python<'py>,
        budget: Option<u64>,
    ) -> PyResult<(Bound<'py, PyBytes>, usize, usize)> {
        let (written, steps) = py.detach(|| {
            let chunk = std::mem::take(&mut *self.trajectories());
            (write::parquet(&chunk, budget), chunk.steps())
        });
        let written = written.map_err(|error| PyOSError::new_err(error.to_string()))?;
        Ok((PyBytes::new(py, &written.bytes), written.steps, steps))
    }
}

impl Dump {
    fn trajectories(&self) -> MutexGuard<'_, Chunk> {
        self.chunk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is wrong with a tally.
fn refuse(why: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("tally: {why}"))
}

/// Name, sign and bound of a condition such as `ess<0.3`.
#[pyfunction]
pub(crate) fn parse_condition(text: &str) -> PyResult<(&'static str, &'static str, f64)> {
    let gate: Gate = text.parse().map_err(PyValueError::new_err::<String>)?;
    Ok(gate.parts())
}

impl Advisor {
    /// The sums. A thread that panicked while it added left them as they were before its batch, or with a part of it.
    fn sums(&self) -> MutexGuard<'_, Measure> {
        self.measure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Verdict and numbers of files as JSON, and the summary as text. `chosen`: a setting that tallies have of their own.
#[pyfunction]
pub(crate) fn advise_files(
    py: Python<'_>,
    files: Vec<PathBuf>,
    names: Vec<(String, String)>,
    given: Given,
    chosen: Option<String>,
) -> PyResult<(String, String)> {
    let files: Vec<PathBuf> =
        series(&files, Runs::Joined).map_err(unreadable)?.into_iter().flatten().collect();
    if let Some((name, tally)) = chosen.zip(files.iter().find(|file| is_tally(file))) {
        let tally = tally.display();
        return Err(PyValueError::new_err(format!(
            "{name}: {tally} was measured under its own settings; leave {name} out"
        )));
    }
    let mut naming = Naming::default();
    for (field, name) in names {
        let field: Field = field.parse().map_err(|why| PyValueError::new_err(format!("names: {why}")))?;
        naming = naming.with(field, name);
    }
    let question = Question { settings: given.settings()?, naming, growing: false };
    let found = waiting::run(py, move |_| {
        let advice = advise(&files, question, &mut |_, _| {})?;
        Ok(told(&advice.measured, &advice.verdict))
    })?;
    found.map_err(unreadable)?.map_err(PyValueError::new_err::<String>)
}

/// What is wrong with files: the system's own complaint as an `OSError`, with its number.
fn unreadable(error: Error) -> PyErr {
    match &error {
        Error::File { file, source } => match source.raw_os_error() {
            Some(code) => PyOSError::new_err((code, source.to_string(), file.clone())),
            None => PyOSError::new_err(format!("{error}: {source}")),
        },
        _ => PyValueError::new_err(error.to_string()),
    }
}

fn told(measured: &Measured, verdict: &Verdict) -> Result<(String, String), String> {
    let all = serde_json::json!({ "verdict": verdict, "measured": measured });
    let json = serde_json::to_string(&all).map_err(|error| error.to_string())?;
    Ok((json, text::summary(measured, verdict, WIDTH).trim_end().to_owned()))
}

impl Trajectories<'_> {
    /// The batch as the readers of files would have found it, with the same checks.
    fn chunk(&self, against: Against) -> PyResult<Chunk> {
        let offsets = self.offsets.as_slice()?;
        let lanes = offsets.len().saturating_sub(1);
        let steps = self.new_log_prob.as_slice()?.len();
        let lists = [
            (Field::OldLogProb, self.old_log_prob.as_ref()),
            (Field::NewLogProb, Some(&self.new_log_prob)),
            (Field::BehaviourLogProb, self.behaviour_log_prob.as_ref()),
            (Field::Advantage, self.advantage.as_ref()),
            (Field::Mask, self.mask.as_ref()),
            (Field::Version, self.version.as_ref()),
            (Field::Age, self.age.as_ref()),
        ];
        let mut flat = Vec::new();
        for (field, values) in lists {
            if let Some(values) = values {
                flat.push((field, values.as_slice()?));
            }
        }
        let reward = self.reward.as_ref().map(|values| values.as_slice()).transpose()?;
        let weight = self.weight.as_ref().map(|values| values.as_slice()).transpose()?;
        let fill = |record: &mut Record, lane: usize| {
            record.clear();
            for &(field, values) in &flat {
                // One advantage per trajectory, unless each has one step.
                let either = matches!(field, Field::Advantage | Field::Version | Field::Age);
                if either && values.len() == lanes && lanes != steps {
                    record.fill(field, Came::One).push(values[lane]);
                } else {
                    let row = offsets[lane]..offsets[lane + 1];
                    record.fill(field, Came::Many).extend_from_slice(&values[row]);
                }
            }
            if let Some(reward) = reward {
                record.fill(Field::Reward, Came::One).push(reward[lane]);
            }
            record.group = self.group.as_ref().map(|group| match &group[lane] {
                Key::Whole(number) => key_of_whole(*number),
                Key::Number(number) => key_of_number(*number),
                Key::Text(text) => key_of_text(text.as_bytes()),
            });
            record.iteration = self.iteration.get(lane).copied();
            record.weight = weight.map(|weight| weight[lane]);
            record.trainer_version = self.trainer_version;
        };
        let refuse = |lane: usize, fault: niwaki_advise::Fault| {
            PyValueError::new_err(format!("trajectory {lane}: {fault}"))
        };
        let mut record = Record::default();
        let mut baselines = None;
        if self.advantage.is_none() {
            let mut sums = Baselines::default();
            for lane in 0..lanes {
                fill(&mut record, lane);
                sums.add(&record).map_err(|fault| refuse(lane, fault))?;
            }
            baselines = Some(sums);
        }
        let mut chunk = Chunk::new(against);
        for lane in 0..lanes {
            fill(&mut record, lane);
            chunk.push(&record, baselines.as_ref()).map_err(|fault| refuse(lane, fault))?;
        }
        Ok(chunk)
    }
}
