//! Histograms: how often values fall into equal bins.

use super::axis::Axis;
use super::mark::Mark;
use super::panel::{Chart, Drawing, Panel};
use super::scale::drawable;
use super::tone::Tone;
use crate::number::Format;

/// Counts of values in equal bins. By default the number of bins follows Freedman and Diaconis (5 to 60 bins), the
/// plot is 240 units high, and values that are not finite are left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    title: String,
    x: Axis,
    values: Vec<f64>,
    bins: Option<usize>,
    posts: Vec<(f64, String)>,
    tone: Tone,
    height: f64,
}

impl Histogram {
    /// A histogram of `values`; the title says what it shows.
    pub fn new(title: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        Self {
            title: title.into(),
            x: Axis::default(),
            values: values.into_iter().collect(),
            bins: None,
            posts: Vec::new(),
            tone: Tone::Hue(0),
            height: 240.0,
        }
    }

    /// Sets the value axis; on a log axis the bins are equal in the logarithm.
    pub fn x(mut self, axis: Axis) -> Self {
        self.x = axis;
        self
    }

    /// Sets the number of bins (at least one).
    pub fn bins(mut self, bins: usize) -> Self {
        self.bins = Some(bins.max(1));
        self
    }

    /// Adds a dashed vertical line, named above the plot.
    pub fn post(mut self, x: f64, name: impl Into<String>) -> Self {
        self.posts.push((x, name.into()));
        self
    }

    /// Sets the colour; the palette's first by default.
    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    /// Sets the plot's height; drawings are 880 units wide.
    pub fn height(mut self, height: f64) -> Self {
        self.height = height;
        self
    }

    /// The bins as `(from, to, count)`; a value on an inner edge belongs to the bin above it.
    fn count(&self) -> Vec<(f64, f64, usize)> {
        let log = self.x.is_log();
        let mut values: Vec<f64> = self.values.iter().copied().filter(|&v| drawable(v, log)).collect();
        if log {
            values.iter_mut().for_each(|v| *v = v.ln());
        }
        values.sort_by(f64::total_cmp);
        let (Some(&low), Some(&high)) = (values.first(), values.last()) else { return Vec::new() };
        let width = high - low;
        // Without width there is one bin, around the value.
        if width <= low.abs().max(high.abs()) * 1e-12 {
            let half = if low == 0.0 { 0.5 } else { low.abs() * 0.05 };
            let ends = if log { ((low - 0.1).exp(), (low + 0.1).exp()) } else { (low - half, low + half) };
            return vec![(ends.0, ends.1, values.len())];
        }
        let bins = self.bins.unwrap_or_else(|| freedman_diaconis(&values));
        let mut counts = vec![0; bins];
        for value in &values {
            counts[(((value - low) / width * bins as f64) as usize).min(bins - 1)] += 1;
        }
        let edge = |i: usize| {
            let at = low + width * i as f64 / bins as f64;
            if log { at.exp() } else { at }
        };
        counts.into_iter().enumerate().map(|(i, count)| (edge(i), edge(i + 1), count)).collect()
    }
}

/// Bins of width 2·IQR·n^(−1/3) over sorted values.
fn freedman_diaconis(sorted: &[f64]) -> usize {
    let quartile = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
    let width = 2.0 * (quartile(0.75) - quartile(0.25)) / (sorted.len() as f64).cbrt();
    let bins = (sorted[sorted.len() - 1] - sorted[0]) / width;
    if bins.is_finite() { (bins.ceil() as usize).clamp(5, 60) } else { 20 }
}

impl Chart for Histogram {
    fn title(&self) -> &str {
        &self.title
    }

    fn draw(&self, drawing: &mut Drawing) {
        let hue = drawing.palette.settle(&self.title, self.tone);
        let number = |v: f64| Format::auto().text(v);
        let bars = self.count().into_iter().filter(|bin| bin.2 > 0).map(|(from, to, count)| Mark::Bar {
            x: (from, to),
            y: (0.0, count as f64),
            hue,
            title: format!("{} to {}: {count}", number(from), number(to)),
        });
        let posts = self.posts.iter().map(|(x, name)| Mark::Post { x: *x, name: name.clone() });
        drawing.push(Panel {
            title: self.title.clone(),
            x: self.x.clone(),
            y: Axis::linear("count").include(0.0).whole(),
            marks: bars.chain(posts).collect(),
            legend: Vec::new(),
            height: self.height,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finite_value_is_counted_once() {
        let values = [0.0, 1.0, 2.0, 3.0, 4.0, f64::NAN, f64::INFINITY];
        // Edges 0, 2, 4: 0 and 1 below; 2, 3 and 4 (the last edge is closed) above.
        assert_eq!(Histogram::new("h", values).bins(2).count(), [(0.0, 2.0, 2), (2.0, 4.0, 3)]);
        assert_eq!(Histogram::new("h", [7.0; 9]).count().len(), 1);
        assert_eq!(Histogram::new("h", []).count(), []);
        let log = Histogram::new("h", [1.0, 10.0, 100.0, -1.0]).x(Axis::log("v")).bins(2).count();
        assert_eq!((log[0].2, log[1].2), (1, 2));
    }
}
