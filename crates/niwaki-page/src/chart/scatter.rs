//! Scatter charts: clouds of points, with a straight line through each where asked for.

use super::axis::Axis;
use super::frame::{Frame, framed};
use super::ink::title;
use super::legend::{Entry, Sample};
use super::mark::{Look, Mark};
use super::panel::{Chart, Drawing};
use super::tone::Tone;

/// A named cloud of points.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cloud {
    name: String,
    points: Vec<(f64, f64)>,
    labels: Vec<String>,
    fit: bool,
    tone: Tone,
}

impl Cloud {
    /// A cloud; points that are not finite are left out. Above 2000 points, one per two-pixel square is drawn.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), ..Self::default() }
    }

    /// What each point says when hovered, in the order of the points, before its values.
    pub fn labels<T: Into<String>>(mut self, labels: impl IntoIterator<Item = T>) -> Self {
        self.labels = labels.into_iter().map(Into::into).collect();
        self
    }

    /// Draws the least-squares line, straight on the axes as shown: on a log axis the fit is in its logarithm.
    pub fn fit(mut self) -> Self {
        self.fit = true;
        self
    }

    /// Sets the colour; [`Tone::Auto`] by default.
    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}

/// Points on two numeric axes; 320 units high by default.
#[derive(Debug, Clone, PartialEq)]
pub struct ScatterChart {
    frame: Frame,
    clouds: Vec<Cloud>,
    diagonal: Option<String>,
}

impl ScatterChart {
    /// An empty chart; the title says what it shows.
    pub fn new(title: impl Into<String>) -> Self {
        Self { frame: Frame::new(title, 320.0), clouds: Vec::new(), diagonal: None }
    }

    /// Adds a cloud.
    pub fn cloud(mut self, cloud: Cloud) -> Self {
        self.clouds.push(cloud);
        self
    }

    /// Draws the line where x equals y, under this name.
    pub fn diagonal(mut self, name: impl Into<String>) -> Self {
        self.diagonal = Some(name.into());
        self
    }
}

framed!(ScatterChart);

impl Chart for ScatterChart {
    fn title(&self) -> &str {
        &self.frame.title
    }

    fn draw(&self, drawing: &mut Drawing) {
        let (log_x, log_y) = (self.frame.x.is_log(), self.frame.y.is_log());
        let (mut marks, mut legend) = (Vec::new(), Vec::new());
        if let Some(name) = &self.diagonal {
            let hue = drawing.palette.settle("", Tone::Soft);
            let shared = shared_range(self.clouds.iter().flat_map(|cloud| &cloud.points), log_x || log_y);
            let points = shared.map(|(low, high)| vec![(low, low), (high, high)]).unwrap_or_default();
            marks.push(Mark::Line {
                points,
                hue,
                look: Look::Dashed,
                name: name.clone(),
                end: false,
                hover: false,
            });
            let sample = Sample::Line { hue, dashed: true, marker: false };
            legend.push(Entry { name: name.clone(), sample });
        }
        for cloud in &self.clouds {
            let hue = drawing.palette.settle(&cloud.name, cloud.tone);
            let say = |(i, &(x, y)): (usize, &(f64, f64))| {
                title(cloud.labels.get(i).map_or(cloud.name.as_str(), String::as_str), x, y)
            };
            let titles = cloud.points.iter().enumerate().map(say).collect();
            marks.push(Mark::Dots { points: cloud.points.clone(), hue, faint: true, titles });
            if cloud.fit {
                let points = least_squares(&cloud.points, log_x, log_y).unwrap_or_default();
                let name = format!("{}, fitted", cloud.name);
                marks.push(Mark::Line { points, hue, look: Look::Bold, name, end: false, hover: false });
            }
            legend.push(Entry { name: cloud.name.clone(), sample: Sample::Dot(hue) });
        }
        drawing.push(self.frame.panel(marks, legend));
    }
}

/// The range of x in which the line x = y meets the points' own ranges.
fn shared_range<'a>(points: impl Iterator<Item = &'a (f64, f64)>, log: bool) -> Option<(f64, f64)> {
    let far = f64::INFINITY;
    let sound = |v: f64| v.is_finite() && (!log || v > 0.0);
    let (mut x, mut y) = ((far, -far), (far, -far));
    for point in points.filter(|p| sound(p.0) && sound(p.1)) {
        x = (x.0.min(point.0), x.1.max(point.0));
        y = (y.0.min(point.1), y.1.max(point.1));
    }
    let (low, high) = (x.0.max(y.0), x.1.min(y.1));
    (low < high).then_some((low, high))
}

/// The ends of the least-squares line over the range of x, or nothing where x does not vary.
fn least_squares(points: &[(f64, f64)], log_x: bool, log_y: bool) -> Option<Vec<(f64, f64)>> {
    let flat = |v: f64, log: bool| if log { v.ln() } else { v };
    let back = |v: f64, log: bool| if log { v.exp() } else { v };
    let points: Vec<(f64, f64)> = points
        .iter()
        .map(|&(x, y)| (flat(x, log_x), flat(y, log_y)))
        .filter(|(x, y)| x.is_finite() && y.is_finite())
        .collect();
    let n = points.len() as f64;
    let mean = points.iter().fold((0.0, 0.0), |m, p| (m.0 + p.0 / n, m.1 + p.1 / n));
    let spread: f64 = points.iter().map(|p| (p.0 - mean.0).powi(2)).sum();
    let joint: f64 = points.iter().map(|p| (p.0 - mean.0) * (p.1 - mean.1)).sum();
    if points.len() < 2 || spread <= 0.0 || !(joint / spread).is_finite() {
        return None;
    }
    let ends = [f64::min, f64::max].map(|pick| points.iter().map(|p| p.0).reduce(pick).unwrap_or(mean.0));
    let on_line = |x: f64| (back(x, log_x), back(mean.1 + joint / spread * (x - mean.0), log_y));
    Some(ends.map(on_line).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fit_is_least_squares() {
        // (0,1), (1,3), (2,2): mean (1,2), slope (−1·−1 + 0·1 + 1·0)/2 = 0.5, so 1.5 at 0 and 2.5 at 2.
        let ends =
            least_squares(&[(0.0, 1.0), (1.0, 3.0), (2.0, 2.0), (f64::NAN, 9.0)], false, false).unwrap();
        assert_eq!(ends, [(0.0, 1.5), (2.0, 2.5)]);
        // y = x³ is a straight line of slope 3 on log axes.
        let cubes = [(1.0, 1.0), (2.0, 8.0), (4.0, 64.0), (-1.0, 2.0)];
        let ends = least_squares(&cubes, true, true).unwrap();
        assert!((ends[1].1 - 64.0).abs() < 1e-9 && (ends[0].1 - 1.0).abs() < 1e-12);
        assert_eq!(least_squares(&[(1.0, 1.0), (1.0, 2.0)], false, false), None);
    }
}
