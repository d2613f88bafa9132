//! Bar charts: one bar per category, or a group of bars side by side.

use super::axis::Axis;
use super::legend::{Entry, Sample};
use super::mark::Mark;
use super::panel::{Chart, Drawing, Panel};
use super::tone::Tone;
use crate::number::Format;

/// One bar for every category, all of one colour.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bars {
    name: String,
    values: Vec<f64>,
    errors: Vec<(f64, f64)>,
    tone: Tone,
}

impl Bars {
    /// Bars in the order of the categories; a value that is not finite leaves its place empty.
    pub fn new(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        Self { name: name.into(), values: values.into_iter().collect(), ..Self::default() }
    }

    /// Adds an error bar from `low` to `high` to each bar, in the order of the categories.
    pub fn errors(mut self, errors: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.errors = errors.into_iter().collect();
        self
    }

    /// Sets the colour; [`Tone::Auto`] by default.
    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}

/// Bars over categories, from zero; upright and 280 units high by default.
#[derive(Debug, Clone, PartialEq)]
pub struct BarChart {
    title: String,
    categories: Axis,
    names: Vec<String>,
    values: Axis,
    bars: Vec<Bars>,
    lying: bool,
    height: Option<f64>,
}

impl BarChart {
    /// A chart over the named categories; the title says what it shows.
    pub fn new<T: Into<String>>(title: impl Into<String>, categories: impl IntoIterator<Item = T>) -> Self {
        let names: Vec<String> = categories.into_iter().map(Into::into).collect();
        Self {
            title: title.into(),
            categories: Axis::category("", names.clone()),
            names,
            values: Axis::default(),
            bars: Vec::new(),
            lying: false,
            height: None,
        }
    }

    /// Labels the category axis.
    pub fn category_label(mut self, label: impl Into<String>) -> Self {
        self.categories = Axis::category(label, self.names.clone());
        self
    }

    /// Sets the value axis; a linear one always shows zero.
    pub fn values(mut self, axis: Axis) -> Self {
        self.values = axis;
        self
    }

    /// Adds bars; several stand side by side in each category.
    pub fn bars(mut self, bars: Bars) -> Self {
        self.bars.push(bars);
        self
    }

    /// Lays the bars down, which suits long names; each bar is then about 20 units thick.
    pub fn lying(mut self) -> Self {
        self.lying = true;
        self
    }

    /// Sets the plot's height; drawings are 880 units wide.
    pub fn height(mut self, height: f64) -> Self {
        self.height = Some(height);
        self
    }
}

impl Chart for BarChart {
    fn title(&self) -> &str {
        &self.title
    }

    fn draw(&self, drawing: &mut Drawing) {
        let values =
            if self.values.is_log() { self.values.clone() } else { self.values.clone().include(0.0) };
        // On a log axis there is no zero to stand on; bars start at the low end of the scale.
        let shown = self.bars.iter().flat_map(|b| &b.values).copied().filter(|&v| v.is_finite() && v > 0.0);
        let least = shown.fold(f64::INFINITY, f64::min);
        let foot = match values.is_log() {
            true => values.scale(Some((least, least)), 5).domain().0.min(least / 10.0),
            false => 0.0,
        };
        let thick = 0.78 / self.bars.len().max(1) as f64;
        let (mut marks, mut legend) = (Vec::new(), Vec::new());
        for (nth, bars) in self.bars.iter().enumerate() {
            let hue = drawing.palette.settle(&bars.name, bars.tone);
            let mut whiskers = Vec::new();
            for (i, (&value, name)) in bars.values.iter().zip(&self.names).enumerate() {
                let start = i as f64 - 0.39 + thick * nth as f64;
                let across = (start, start + thick * 0.94);
                let lead = if bars.name.is_empty() { name.clone() } else { format!("{name}, {}", bars.name) };
                let title = format!("{lead}: {}", Format::auto().text(value));
                let (x, y) = if self.lying { ((foot, value), across) } else { (across, (foot, value)) };
                if value.is_finite() {
                    marks.push(Mark::Bar { x, y, hue, title });
                }
                if let Some(&(low, high)) = bars.errors.get(i) {
                    whiskers.push(((across.0 + across.1) / 2.0, low, high));
                }
            }
            if !whiskers.is_empty() {
                let hue = drawing.palette.settle("", Tone::Ink);
                marks.push(Mark::Whiskers { points: whiskers, hue, lying: self.lying });
            }
            legend.push(Entry { name: bars.name.clone(), sample: Sample::Box(hue) });
        }
        let rows = (self.names.len() * self.bars.len().max(1)) as f64;
        let height = self.height.unwrap_or(if self.lying { (rows * 20.0).max(60.0) + 10.0 } else { 280.0 });
        let (x, y) = match self.lying {
            true => (values, self.categories.clone()),
            false => (self.categories.clone(), values),
        };
        drawing.push(Panel { title: self.title.clone(), x, y, marks, legend, height });
    }
}
