//! What a caller says about an axis, and the scale that follows from it and the data.

use super::scale::{Scale, drawable};
use crate::number::{Format, superscript};

/// An axis: a label and a kind, with the range taken from the data unless one is given.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Axis {
    label: String,
    kind: Kind,
    range: Option<(f64, f64)>,
    include: Vec<f64>,
    percent: bool,
    whole: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
enum Kind {
    #[default]
    Linear,
    Log,
    Slots(Vec<String>),
}

impl Axis {
    /// A linear axis, widened to round ticks.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// A logarithmic axis with decade ticks. Values at or below zero have no place on it; the chart says how many.
    pub fn log(label: impl Into<String>) -> Self {
        Self { kind: Kind::Log, ..Self::linear(label) }
    }

    /// One slot per name, at the values 0, 1, 2, ….
    pub fn category<T: Into<String>>(label: impl Into<String>, names: impl IntoIterator<Item = T>) -> Self {
        Self { kind: Kind::Slots(names.into_iter().map(Into::into).collect()), ..Self::linear(label) }
    }

    /// Shows exactly `low … high`; data outside is clipped.
    pub fn range(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }

    /// Makes sure that a value, such as zero, lies on the axis.
    pub fn include(mut self, value: f64) -> Self {
        self.include.push(value);
        self
    }

    /// Writes a share of one as a percentage.
    pub fn percent(mut self) -> Self {
        self.percent = true;
        self
    }

    /// A share of a whole: a percentage from none to all, and nothing outside.
    pub fn share(self) -> Self {
        self.percent().range(0.0, 1.0)
    }

    /// Names whole numbers only, as counts want.
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    pub(crate) fn is_log(&self) -> bool {
        self.kind == Kind::Log
    }

    pub(crate) fn is_percent(&self) -> bool {
        self.percent
    }

    pub(crate) fn is_category(&self) -> bool {
        matches!(self.kind, Kind::Slots(_))
    }

    /// The scale for data within `extent`, with at most `most` ticks.
    pub(crate) fn scale(&self, extent: Option<(f64, f64)>, most: usize) -> Scale {
        let mut extent = extent;
        for &value in self.include.iter().filter(|&&v| drawable(v, self.is_log())) {
            extent = Some(extent.map_or((value, value), |(low, high)| (low.min(value), high.max(value))));
        }
        let (low, high) = self.range.or(extent).unwrap_or((f64::NAN, f64::NAN));
        let mut scale = match (&self.kind, self.range.is_some()) {
            (Kind::Slots(names), _) => return Scale::slots(names.iter().map(String::as_str)),
            (Kind::Linear, false) => Scale::linear(low, high, most),
            (Kind::Linear, true) => Scale::linear_exact(low, high, most),
            (Kind::Log, false) => Scale::log(low, high, most),
            (Kind::Log, true) => Scale::log_exact(low, high, most),
        };
        if self.whole {
            scale.keep_whole();
        }
        if self.percent {
            let width =
                scale.ticks().windows(2).map(|w| w[1].value - w[0].value).fold(f64::INFINITY, f64::min);
            let decimals = if scale.is_log() || !width.is_finite() {
                0
            } else {
                (-(width * 100.0).log10().floor()).clamp(0.0, 9.0) as usize
            };
            let format = if scale.is_log() { None } else { Some(Format::percent(decimals)) };
            scale.rename(|v| match format {
                Some(format) => format.text(v).replace('-', "\u{2212}"),
                None => format!("{} %", Format::significant(1).text(v * 100.0)),
            });
        }
        scale
    }

    /// The label, with the power of ten that the ticks leave out.
    pub(crate) fn label(&self, scale: &Scale) -> String {
        match scale.factor() {
            Some(power) if self.label.is_empty() => format!("× 10{}", superscript(power)),
            Some(power) => format!("{} (× 10{})", self.label, superscript(power)),
            None => self.label.clone(),
        }
    }
}
