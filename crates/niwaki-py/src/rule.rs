//! A member's normal form on its way to and from Python.

use niwaki_correction::Rule;
use niwaki_correction::family::{Bound, Form, Reads};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The fields of `niwaki.correction.Rule`, by name.
pub(crate) fn to_python<'py>(py: Python<'py>, rule: &Rule) -> PyResult<pyo3::Bound<'py, PyDict>> {
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
    fields.set_item("ess_floor", rule.ess_floor)?;
    Ok(fields)
}
