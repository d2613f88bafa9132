//! Forest plots: an estimate and its interval per line, the numbers beside them.

use super::axis::Axis;
use super::mark::Mark;
use super::panel::{Chart, Drawing, Panel};
use super::tone::Tone;
use crate::number::Format;

/// One line of a [`ForestChart`].
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    name: String,
    value: f64,
    low: f64,
    high: f64,
    tone: Tone,
}

impl Interval {
    /// An estimate with the ends of its interval.
    pub fn new(name: impl Into<String>, value: f64, low: f64, high: f64) -> Self {
        Self { name: name.into(), value, low, high, tone: Tone::Hue(0) }
    }

    /// Sets the colour; the palette's first by default.
    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}

/// Estimates with intervals, one per line, around a reference value. Numbers beside the plot have three significant
/// digits by default.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestChart {
    title: String,
    x: Axis,
    lines: Vec<Interval>,
    reference: Option<(f64, String)>,
    format: Format,
}

impl ForestChart {
    /// An empty chart; the title says what it shows.
    pub fn new(title: impl Into<String>) -> Self {
        let x = Axis::default();
        Self { title: title.into(), x, lines: Vec::new(), reference: None, format: Format::significant(3) }
    }

    /// Sets the value axis.
    pub fn x(mut self, axis: Axis) -> Self {
        self.x = axis;
        self
    }

    /// Adds a line, from the top.
    pub fn line(mut self, line: Interval) -> Self {
        self.lines.push(line);
        self
    }

    /// Draws a dashed line at a value, such as "no difference" at zero, and keeps it in view.
    pub fn reference(mut self, value: f64, name: impl Into<String>) -> Self {
        self.reference = Some((value, name.into()));
        self
    }

    /// How the numbers beside the plot are written.
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }
}

impl Chart for ForestChart {
    fn title(&self) -> &str {
        &self.title
    }

    fn draw(&self, drawing: &mut Drawing) {
        let mut marks = Vec::new();
        if let Some((x, name)) = &self.reference {
            marks.push(Mark::Post { x: *x, name: name.clone() });
        }
        for (i, line) in self.lines.iter().enumerate() {
            let y = i as f64;
            let mut hue = drawing.palette.settle(&line.name, line.tone);
            // All lines of a forest share one marker: the place tells them apart.
            hue.turn = 0;
            let text = self.format.shape(line.value, None, Some((line.low, line.high))).text();
            let title = format!("{}: {text}", line.name);
            marks.push(Mark::Whiskers { points: vec![(y, line.low, line.high)], hue, lying: true });
            marks.push(Mark::Dots { points: vec![(line.value, y)], hue, faint: false, titles: vec![title] });
            // A phone has no room for the interval beside its bar.
            let aside = if drawing.narrow { self.format.text(line.value) } else { text };
            marks.push(Mark::Aside { y, text: aside.replace('-', "\u{2212}") });
        }
        drawing.push(Panel {
            title: self.title.clone(),
            x: self.x.clone(),
            y: Axis::category("", self.lines.iter().map(|line| line.name.clone())),
            marks,
            legend: Vec::new(),
            height: 26.0 * self.lines.len().max(2) as f64,
        });
    }
}
