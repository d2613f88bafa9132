//! Heatmaps: a number per pair of categories, as colour and as text.

use super::axis::Axis;
use super::legend::{Entry, Sample};
use super::mark::Mark;
use super::panel::{Chart, Drawing, Panel};
use crate::number::Format;

/// A grid of values. By default colours run from the least to the greatest value, and each cell shows its number
/// where it fits, with three significant digits.
#[derive(Debug, Clone, PartialEq)]
pub struct Heatmap {
    title: String,
    columns: (String, Vec<String>),
    rows: (String, Vec<String>),
    values: Vec<Vec<f64>>,
    name: String,
    range: Option<(f64, f64)>,
    centre: Option<f64>,
    log: bool,
    format: Format,
}

impl Heatmap {
    /// A heatmap of `values[row][column]`; a value that is missing or not finite leaves a dashed box.
    pub fn new(title: impl Into<String>, values: impl IntoIterator<Item = Vec<f64>>) -> Self {
        Self {
            title: title.into(),
            columns: (String::new(), Vec::new()),
            rows: (String::new(), Vec::new()),
            values: values.into_iter().collect(),
            name: String::new(),
            range: None,
            centre: None,
            log: false,
            format: Format::significant(3),
        }
    }

    /// Labels the columns.
    pub fn columns<T: Into<String>>(
        mut self,
        label: impl Into<String>,
        names: impl IntoIterator<Item = T>,
    ) -> Self {
        self.columns = (label.into(), names.into_iter().map(Into::into).collect());
        self
    }

    /// Labels the rows.
    pub fn rows<T: Into<String>>(
        mut self,
        label: impl Into<String>,
        names: impl IntoIterator<Item = T>,
    ) -> Self {
        self.rows = (label.into(), names.into_iter().map(Into::into).collect());
        self
    }

    /// Names the values, beside the colour ramp.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Fixes the values at the ends of the ramp.
    pub fn range(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }

    /// Uses two hues that part at a value, with equal steps on both sides.
    pub fn centre(mut self, value: f64) -> Self {
        self.centre = Some(value);
        self
    }

    /// Spaces colours by the logarithm; values at or below zero count as missing.
    pub fn log(mut self) -> Self {
        self.log = true;
        self
    }

    /// How numbers are written.
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// The ends of the ramp.
    fn ends(&self) -> Option<(f64, f64)> {
        let sound = |v: &f64| v.is_finite() && (!self.log || *v > 0.0);
        let values = || self.values.iter().flatten().copied().filter(sound);
        let (low, high) =
            self.range.or_else(|| Some((values().reduce(f64::min)?, values().reduce(f64::max)?)))?;
        match self.centre {
            Some(centre) => {
                let reach = (high - centre).abs().max((centre - low).abs());
                Some((centre - reach, centre + reach))
            }
            None => Some((low, high)),
        }
    }

    fn level(&self, value: f64) -> Option<f64> {
        let (low, high) = self.ends()?;
        let at = |v: f64| if self.log { v.ln() } else { v };
        let (low, high, value) = (at(low), at(high), at(value));
        let level = if high > low { (value - low) / (high - low) } else { 0.5 };
        level.is_finite().then(|| level.clamp(0.0, 1.0))
    }
}

impl Chart for Heatmap {
    fn title(&self) -> &str {
        &self.title
    }

    fn draw(&self, drawing: &mut Drawing) {
        let wide = self.values.iter().map(Vec::len).max().unwrap_or(0).max(self.columns.1.len());
        let tall = self.values.len().max(self.rows.1.len());
        let mut marks = Vec::new();
        for row in 0..tall {
            for column in 0..wide {
                let value = self.values.get(row).and_then(|v| v.get(column)).copied().unwrap_or(f64::NAN);
                let level = self.level(value);
                let text = match level {
                    Some(_) => self.format.text(value).replace('-', "\u{2212}"),
                    None => String::new(),
                };
                let place = |names: &[String], at: usize| names.get(at).cloned().unwrap_or_default();
                let title = format!(
                    "{}, {}: {}",
                    place(&self.rows.1, row),
                    place(&self.columns.1, column),
                    if text.is_empty() { "no value" } else { &text }
                );
                let diverging = self.centre.is_some();
                marks.push(Mark::Cell { x: column as f64, y: row as f64, level, diverging, text, title });
            }
        }
        let names = |given: &[String], count: usize| -> Vec<String> {
            (0..count).map(|i| given.get(i).cloned().unwrap_or_default()).collect()
        };
        let legend = self.ends().map(|(low, high)| {
            let [low, high] = [low, high].map(|v| self.format.text(v).replace('-', "\u{2212}"));
            Entry {
                name: self.name.clone(),
                sample: Sample::Ramp { low, high, diverging: self.centre.is_some() },
            }
        });
        drawing.push(Panel {
            title: self.title.clone(),
            x: Axis::category(self.columns.0.clone(), names(&self.columns.1, wide)),
            y: Axis::category(self.rows.0.clone(), names(&self.rows.1, tall)),
            marks,
            legend: legend.into_iter().collect(),
            height: (tall.max(1) as f64 * 34.0).min(560.0),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_follow_the_ramp() {
        let map = Heatmap::new("h", [vec![1.0, 3.0], vec![5.0, f64::NAN]]);
        assert_eq!([1.0, 3.0, 5.0].map(|v| map.level(v)), [Some(0.0), Some(0.5), Some(1.0)]);
        assert_eq!(map.level(f64::NAN), None);
        // Around 2 the farther end is 5, three away: the ramp runs from −1 to 5 and 2 is its middle.
        assert_eq!(map.clone().centre(2.0).level(2.0), Some(0.5));
        assert_eq!(map.clone().centre(2.0).ends(), Some((-1.0, 5.0)));
        assert_eq!(Heatmap::new("h", [vec![0.01, 0.1, 1.0, 0.0]]).log().level(0.1), Some(0.5));
    }
}
