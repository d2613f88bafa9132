//! The family by name, and what a loss says of a batch of NumPy arrays.

use crate::{rule, waiting};
use niwaki_correction::family::MEMBERS;
use niwaki_correction::surrogate::Mean;
use niwaki_correction::{
    Batch, Clip, Correction, Diagnostics, Error, Evaluation, Real, Rows, Rule, Workspace,
};
use numpy::{Element, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::Deref;

/// Log-probs may exceed zero by this much: sums of rounded exponentials do.
const ROUNDING: f64 = 1e-4;

/// The canonical name, the label and the normal form of a member written as text.
#[pyfunction]
pub(crate) fn parse<'py>(py: Python<'py>, text: &str) -> PyResult<(String, String, Bound<'py, PyDict>)> {
    let correction: Correction = text.parse().map_err(refuse)?;
    Ok((
        correction.to_string(),
        correction.label(),
        rule::to_python(py, &correction.to_string(), &correction.rule())?,
    ))
}

/// Refuses a rule of a user's own that is no point of the normal form, or whose name is taken.
#[pyfunction]
pub(crate) fn check_rule(name: &str, rule: rule::Fields) -> PyResult<()> {
    Correction::custom(name, rule.rule()?).map(|_| ()).map_err(refuse)
}

/// Name, summary, formula and parameters (name, default) of a member.
type Told = (&'static str, &'static str, &'static str, Vec<(&'static str, Option<f64>)>);

/// What every member says of itself.
#[pyfunction]
pub(crate) fn members() -> Vec<Told> {
    let parameters = |member: &niwaki_correction::family::Member| {
        member.parameters.iter().map(|parameter| (parameter.name, parameter.default)).collect()
    };
    MEMBERS.iter().map(|member| (member.name, member.summary, member.formula, parameters(member))).collect()
}

/// The strength that a measured drift licenses.
#[pyfunction]
pub(crate) fn alpha_for_drift(drift: f64) -> f64 {
    niwaki_correction::schedule::alpha_for_drift(drift)
}

/// A loss: a member with the switches of the objective.
#[pyclass(frozen)]
pub(crate) struct Surrogate {
    inner: niwaki_correction::Surrogate,
    /// The weight from the engine that sampled to the old policy.
    decoupled: Option<Correction>,
}

/// A batch as Python hands it over: flat arrays of equal length.
#[derive(FromPyObject)]
struct Arrays<'py, F: Element> {
    /// Steps of every trajectory, where they are equal.
    horizon: Option<usize>,
    /// `[lanes + 1]`, where they are not.
    offsets: Option<PyReadonlyArray1<'py, usize>>,
    logprobs: PyReadonlyArray1<'py, F>,
    old_logprobs: PyReadonlyArray1<'py, F>,
    advantages: PyReadonlyArray1<'py, F>,
    mask: Option<PyReadonlyArray1<'py, bool>>,
    behaviour_logprobs: Option<PyReadonlyArray1<'py, F>>,
    weights: Option<PyReadonlyArray1<'py, F>>,
    reference_logprobs: Option<PyReadonlyArray1<'py, F>>,
    entropies: Option<PyReadonlyArray1<'py, F>>,
    /// Whether log-probs may be positive.
    densities: bool,
}

/// Objective, cotangent, own and routed channel, the rule as it acted, diagnostics.
type Found<'py, F> = (
    f64,
    Bound<'py, PyArray1<F>>,
    Bound<'py, PyArray1<F>>,
    Bound<'py, PyArray1<F>>,
    Bound<'py, PyDict>,
    Bound<'py, PyDict>,
);

#[pymethods]
impl Surrogate {
    #[new]
    fn new(
        correction: rule::Given,
        clip: Option<(f64, f64, Option<f64>)>,
        routing: bool,
        trajectories: bool,
        behaviour_weight: Option<rule::Given>,
    ) -> PyResult<Self> {
        let correction = correction.correction()?;
        let decoupled = behaviour_weight.map(|weight| weight.correction()).transpose()?;
        let clip = clip.map(|(low, high, dual)| Clip { low, high, dual });
        let mean = if trajectories { Mean::Trajectories } else { Mean::Steps };
        Ok(Self { inner: niwaki_correction::Surrogate { correction, clip, routing, mean }, decoupled })
    }

    /// What the loss says of a batch in single precision.
    fn evaluate_f32<'py>(&self, py: Python<'py>, batch: Arrays<'py, f32>) -> PyResult<Found<'py, f32>> {
        self.evaluate(py, &batch)
    }

    /// What the loss says of a batch in double precision.
    fn evaluate_f64<'py>(&self, py: Python<'py>, batch: Arrays<'py, f64>) -> PyResult<Found<'py, f64>> {
        self.evaluate(py, &batch)
    }
}

impl Surrogate {
    fn evaluate<'py, F: Real + Element>(
        &self,
        py: Python<'py>,
        arrays: &Arrays<'py, F>,
    ) -> PyResult<Found<'py, F>> {
        let slice = |values: &Option<PyReadonlyArray1<'py, F>>| -> PyResult<Option<Vec<F>>> {
            Ok(values.as_ref().map(|values| values.as_slice().map(<[F]>::to_vec)).transpose()?)
        };
        let steps = arrays.logprobs.as_slice()?.len();
        let found = if steps >= LONG {
            // In a thread of its own, which an interrupt leaves behind: with arrays of its own.
            let batch = Slices {
                horizon: arrays.horizon,
                offsets: arrays
                    .offsets
                    .as_ref()
                    .map(|own| own.as_slice().map(<[usize]>::to_vec))
                    .transpose()?,
                logprobs: arrays.logprobs.as_slice()?.to_vec(),
                old_logprobs: arrays.old_logprobs.as_slice()?.to_vec(),
                advantages: arrays.advantages.as_slice()?.to_vec(),
                mask: arrays.mask.as_ref().map(|mask| mask.as_slice().map(<[bool]>::to_vec)).transpose()?,
                behaviour_logprobs: slice(&arrays.behaviour_logprobs)?,
                weights: slice(&arrays.weights)?,
                reference_logprobs: slice(&arrays.reference_logprobs)?,
                entropies: slice(&arrays.entropies)?,
                densities: arrays.densities,
            };
            let (surrogate, decoupled) = (self.inner, self.decoupled);
            waiting::run(py, move |_| said(&surrogate, decoupled, &batch))?
        } else {
            let batch = Slices {
                horizon: arrays.horizon,
                offsets: arrays.offsets.as_ref().map(|own| own.as_slice()).transpose()?,
                logprobs: arrays.logprobs.as_slice()?,
                old_logprobs: arrays.old_logprobs.as_slice()?,
                advantages: arrays.advantages.as_slice()?,
                mask: arrays.mask.as_ref().map(|mask| mask.as_slice()).transpose()?,
                behaviour_logprobs: arrays
                    .behaviour_logprobs
                    .as_ref()
                    .map(|own| own.as_slice())
                    .transpose()?,
                weights: arrays.weights.as_ref().map(|own| own.as_slice()).transpose()?,
                reference_logprobs: arrays
                    .reference_logprobs
                    .as_ref()
                    .map(|own| own.as_slice())
                    .transpose()?,
                entropies: arrays.entropies.as_ref().map(|own| own.as_slice()).transpose()?,
                densities: arrays.densities,
            };
            py.detach(|| said(&self.inner, self.decoupled, &batch))
        };
        let (objective, channels, rule, diagnostics) = found.map_err(PyValueError::new_err::<String>)?;
        let [cotangent, own, routed] = channels.map(|channel| PyArray1::from_vec(py, channel));
        let diagnostics = fields(py, diagnostics)?;
        let name = self.inner.correction.to_string();
        Ok((objective, cotangent, own, routed, rule::to_python(py, &name, &rule)?, diagnostics))
    }
}

/// Steps from which on an evaluation may take longer than one waits for Ctrl-C.
const LONG: usize = 1 << 22;

/// What [`Arrays`] hold, borrowed or as own copies.
struct Slices<O, V, M> {
    horizon: Option<usize>,
    offsets: Option<O>,
    logprobs: V,
    old_logprobs: V,
    advantages: V,
    mask: Option<M>,
    behaviour_logprobs: Option<V>,
    weights: Option<V>,
    reference_logprobs: Option<V>,
    entropies: Option<V>,
    densities: bool,
}

/// Objective; cotangent, own and routed channel; the rule as it acted; diagnostics.
type Said<F> = (f64, [Vec<F>; 3], Rule, Diagnostics);

/// What a loss says of a batch.
fn said<F: Real, O: Deref<Target = [usize]>, V: Deref<Target = [F]>, M: Deref<Target = [bool]>>(
    surrogate: &niwaki_correction::Surrogate,
    decoupled: Option<Correction>,
    slices: &Slices<O, V, M>,
) -> Result<Said<F>, String> {
    let offsets = slices.offsets.as_deref();
    let rows = match (offsets, slices.horizon) {
        (Some(offsets), _) => Rows::ragged(offsets),
        (None, horizon) => Rows::uniform(horizon.unwrap_or(0)),
    };
    let (logprobs, old, mask) = (&*slices.logprobs, &*slices.old_logprobs, slices.mask.as_deref());
    let (behaviour, reference) = (slices.behaviour_logprobs.as_deref(), slices.reference_logprobs.as_deref());
    let mut batch = Batch::new(rows, logprobs, old, &slices.advantages);
    batch = mask.map_or(batch, |mask| batch.masked(mask));
    batch = behaviour.map_or(batch, |behaviour| batch.sampled_by(behaviour));
    batch = slices.weights.as_deref().map_or(batch, |weights| batch.weighted(weights));
    batch = reference.map_or(batch, |reference| batch.held_to(reference));
    batch = decoupled.map_or(batch, |weight| batch.decoupled_by(weight));
    batch = slices.entropies.as_deref().map_or(batch, |entropies| batch.with_entropy(entropies));
    let place = Place { horizon: slices.horizon, offsets };
    if !slices.densities {
        let named = [("logprobs", Some(logprobs)), ("old_logprobs", Some(old))];
        let others = [("behaviour_logprobs", behaviour), ("reference_logprobs", reference)];
        for (what, values) in named.into_iter().chain(others) {
            none_positive(what, values.unwrap_or_default(), mask, &place)?;
        }
    }
    let mut workspace = Workspace::default();
    let evaluation = surrogate.evaluate(&batch, &mut workspace).map_err(|error| place.explain(&error))?;
    let Evaluation { objective, cotangent, own, routed, rule, diagnostics } = evaluation;
    Ok((objective, [cotangent, own, routed].map(<[F]>::to_vec), rule, diagnostics))
}

/// Where a flat index lies in the arrays as the caller sees them.
struct Place<'a> {
    horizon: Option<usize>,
    offsets: Option<&'a [usize]>,
}

impl Place<'_> {
    fn of(&self, what: &str, index: usize) -> String {
        match (self.offsets, self.horizon) {
            (Some(offsets), _) => {
                let lane = offsets.partition_point(|&start| start <= index).saturating_sub(1);
                format!("{what}[{index}] (step {} of trajectory {lane})", index - offsets[lane])
            }
            (None, Some(horizon)) if horizon > 0 => {
                format!("{what}[{}, {}]", index / horizon, index % horizon)
            }
            _ => format!("{what}[{index}]"),
        }
    }

    /// The library's refusal under the names of the Python function's arguments.
    fn explain(&self, error: &Error) -> String {
        match *error {
            Error::NotFinite { what, index } => {
                format!("{} is not a finite number", self.of(argument(what), index))
            }
            Error::Length { what, came, expected } => {
                format!("{} has {came} values where the batch has {expected}", argument(what))
            }
            Error::Missing { loss, what } => format!("correction '{loss}' needs {}; pass it", argument(what)),
            Error::NoSteps => "mask leaves no step of the policy in the batch".to_owned(),
            Error::Offsets => "offsets must start at 0, never fall and end at the number of steps".to_owned(),
            Error::Weights => "weights must be finite, not negative and not all zero".to_owned(),
            ref other => other.to_string(),
        }
    }
}

/// The argument that carries an array of the library.
fn argument(what: &str) -> &str {
    match what {
        "log_prob" => "logprobs",
        "rollout_log_prob" => "old_logprobs",
        "advantage" => "advantages",
        "behaviour_log_prob" => "behaviour_logprobs",
        "lane_weight" => "weights",
        "reference_log_prob" => "reference_logprobs",
        "entropy" => "entropies",
        other => other,
    }
}

/// Refuses the first log-prob of the policy's own steps that no probability has.
fn none_positive<F: Real>(
    what: &str,
    values: &[F],
    mask: Option<&[bool]>,
    place: &Place<'_>,
) -> Result<(), String> {
    let most = F::from_f64(ROUNDING);
    // The whole array first, without a branch per step: the search is for the rare one that fails.
    if !values.iter().fold(false, |any, &value| any | (value > most)) {
        return Ok(());
    }
    let counts = |index: usize| mask.is_none_or(|mask| mask.get(index).copied().unwrap_or(false));
    match values.iter().enumerate().find(|&(index, &value)| value > most && counts(index)) {
        None => Ok(()),
        Some((index, value)) => Err(format!(
            "{} = {} is positive, which no log-probability is; pass densities=True for continuous actions",
            place.of(what, index),
            value.to_f64()
        )),
    }
}

/// The fields of `niwaki.correction.Diagnostics`, by name.
fn fields(py: Python<'_>, diagnostics: Diagnostics) -> PyResult<Bound<'_, PyDict>> {
    let Diagnostics {
        steps,
        lanes,
        clip_fraction,
        step_variance,
        drift,
        kl_k1,
        kl_k3,
        chi2_step,
        chi2_sequence,
        ess,
        ess_step,
        ess_sequence,
        prefix_ess,
        prefix_ess_clamped,
        bias_witness,
        dose,
        rollout_dose,
        zero_signal,
    } = diagnostics;
    let fields = PyDict::new(py);
    fields.set_item("steps", steps)?;
    fields.set_item("lanes", lanes)?;
    let scalars = [
        ("clip_fraction", clip_fraction),
        ("step_variance", step_variance),
        ("drift", drift),
        ("kl_k1", kl_k1),
        ("kl_k3", kl_k3),
        ("chi2_step", chi2_step),
        ("chi2_sequence", chi2_sequence),
        ("ess", ess),
        ("ess_step", ess_step),
        ("ess_sequence", ess_sequence),
        ("dose", dose),
        ("rollout_dose", rollout_dose),
        ("zero_signal", zero_signal),
    ];
    for (name, value) in scalars {
        fields.set_item(name, value)?;
    }
    let vectors = [
        ("prefix_ess", prefix_ess),
        ("prefix_ess_clamped", prefix_ess_clamped),
        ("bias_witness", bias_witness),
    ];
    for (name, values) in vectors {
        fields.set_item(name, PyArray1::from_vec(py, values))?;
    }
    Ok(fields)
}

fn refuse(error: Error) -> PyErr {
    PyValueError::new_err(format!("correction: {error}"))
}
