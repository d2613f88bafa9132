//! Members and rules of a user's own on their way to and from Python.

use niwaki_correction::family::{Bound, Form, Reads};
use niwaki_correction::{Correction, Rule};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// `niwaki.correction.Correction`.
#[derive(FromPyObject)]
pub(crate) struct Given {
    name: String,
    own: bool,
    rule: Fields,
}

/// `niwaki.correction.Rule`.
#[derive(FromPyObject)]
pub(crate) struct Fields {
    reads: String,
    window: Option<usize>,
    strength: f64,
    low: f64,
    high: f64,
    beyond: String,
    form: String,
    self_normalised: bool,
    growing_clip: bool,
    dual: f64,
    ess_floor: Option<f64>,
    amplification: Option<f64>,
    /// A written-out member, by name.
    written: Option<String>,
}

impl Given {
    /// The member of the name, or the user's rule under it.
    pub(crate) fn correction(&self) -> PyResult<Correction> {
        let found =
            if self.own { Correction::custom(&self.name, self.rule.rule()?) } else { self.name.parse() };
        found.map_err(|error| PyValueError::new_err(format!("correction: {error}")))
    }
}

impl Fields {
    /// The rule, where every word is one of the normal form's.
    pub(crate) fn rule(&self) -> PyResult<Rule> {
        let refuse = |field: &str, came: &str, known: &str| {
            PyValueError::new_err(format!("rule: {field} is '{came}'; write {known}"))
        };
        let reads = match (self.reads.as_str(), self.window) {
            ("prefix", None) => Reads::Prefix,
            ("window", Some(window)) => Reads::Window(window),
            ("minimum", None) => Reads::Minimum,
            ("step", None) => Reads::Step,
            ("sequence-mean", None) => Reads::SequenceMean,
            ("sequence-sum", None) => Reads::SequenceSum,
            ("window", None) => return Err(PyValueError::new_err("rule: window is missing")),
            (_, Some(_)) => {
                return Err(PyValueError::new_err("rule: window goes with reads='window'; leave it out"));
            }
            (other, _) => {
                let known = "prefix, window, minimum, step, sequence-mean or sequence-sum";
                return Err(refuse("reads", other, known));
            }
        };
        let bound = match self.beyond.as_str() {
            "hold" => Bound::Clamp(self.low, self.high),
            "drop" => Bound::Drop(self.low, self.high),
            "keep" => Bound::Keep(self.low, self.high),
            other => return Err(refuse("beyond", other, "hold, drop or keep")),
        };
        let form = match self.form.as_str() {
            "multiply" => Form::Multiply,
            "replace" => Form::Replace,
            "weigh" => Form::Weigh,
            other => return Err(refuse("form", other, "multiply, replace or weigh")),
        };
        let written = match &self.written {
            None => None,
            Some(name) => {
                let member: Correction =
                    name.parse().map_err(|error| PyValueError::new_err(format!("rule: written: {error}")))?;
                let written = member.rule().written;
                if written.is_none() {
                    return Err(refuse("written", name, "a member that is written out, such as 'sapo'"));
                }
                written
            }
        };
        Ok(Rule {
            written,
            reads,
            strength: self.strength,
            bound,
            form,
            self_normalised: self.self_normalised,
            growing_clip: self.growing_clip,
            dual: self.dual,
            ess_floor: self.ess_floor,
            amplification: self.amplification,
        })
    }
}

/// The fields of `niwaki.correction.Rule`, by name; a written-out loss is told by the name of its member.
pub(crate) fn to_python<'py>(py: Python<'py>, name: &str, rule: &Rule) -> PyResult<pyo3::Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    let (reads, window) = match rule.reads {
        Reads::Prefix => ("prefix", None),
        Reads::Window(window) => ("window", Some(window)),
        Reads::Minimum => ("minimum", None),
        Reads::Step => ("step", None),
        Reads::SequenceMean => ("sequence-mean", None),
        Reads::SequenceSum => ("sequence-sum", None),
    };
    let (beyond, low, high) = match rule.bound {
        Bound::Clamp(low, high) => ("hold", low, high),
        Bound::Drop(low, high) => ("drop", low, high),
        Bound::Keep(low, high) => ("keep", low, high),
    };
    let form = match rule.form {
        Form::Multiply => "multiply",
        Form::Replace => "replace",
        Form::Weigh => "weigh",
    };
    fields.set_item("reads", reads)?;
    fields.set_item("window", window)?;
    fields.set_item("strength", rule.strength)?;
    fields.set_item("low", low)?;
    fields.set_item("high", high)?;
    fields.set_item("beyond", beyond)?;
    fields.set_item("form", form)?;
    fields.set_item("self_normalised", rule.self_normalised)?;
    fields.set_item("growing_clip", rule.growing_clip)?;
    fields.set_item("dual", rule.dual)?;
    fields.set_item("ess_floor", rule.ess_floor)?;
    fields.set_item("amplification", rule.amplification)?;
    fields.set_item("written", rule.written.map(|_| name))?;
    Ok(fields)
}
