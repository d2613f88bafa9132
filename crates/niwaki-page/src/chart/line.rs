//! Line charts: curves with their seeds, ribbons and error bars.

use super::axis::Axis;
use super::frame::{Frame, framed};
use super::ink::title;
use super::legend::{Entry, Legend, Sample};
use super::mark::{Look, Mark};
use super::panel::{Chart, Drawing};
use super::tone::Tone;

/// One curve of a [`LineChart`], drawn bold, with whatever shows its spread.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    name: String,
    points: Vec<(f64, f64)>,
    runs: Vec<Vec<(f64, f64)>>,
    band: Vec<(f64, f64, f64)>,
    errors: Vec<(f64, f64, f64)>,
    markers: bool,
    dashed: bool,
    tone: Tone,
}

impl Series {
    /// A curve through `points`; one that is not finite leaves a gap, a lone point becomes a marker.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), ..Self::default() }
    }

    /// Adds a thin line below the curve: one seed, one run.
    pub fn run(mut self, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.runs.push(points.into_iter().collect());
        self
    }

    /// Adds a ribbon of `(x, low, high)`.
    pub fn band(mut self, band: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        self.band = band.into_iter().collect();
        self
    }

    /// Adds error bars of `(x, low, high)`.
    pub fn errors(mut self, errors: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        self.errors = errors.into_iter().collect();
        self
    }

    /// Marks every point; the shape goes with the colour.
    pub fn markers(mut self) -> Self {
        self.markers = true;
        self
    }

    /// Draws the curve dashed.
    pub fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }

    /// Sets the colour; [`Tone::Auto`] by default.
    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}

/// Curves over a common axis. By default both axes are linear, the legend stands below, the plot is 300 units high.
#[derive(Debug, Clone, PartialEq)]
pub struct LineChart {
    frame: Frame,
    series: Vec<Series>,
    levels: Vec<(f64, String)>,
    posts: Vec<(f64, String)>,
    legend: Legend,
}

impl LineChart {
    /// An empty chart; the title says what it shows.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            frame: Frame::new(title, 300.0),
            series: Vec::new(),
            levels: Vec::new(),
            posts: Vec::new(),
            legend: Legend::default(),
        }
    }

    /// Adds a curve.
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a dashed horizontal line, named right of the plot.
    pub fn level(mut self, y: f64, name: impl Into<String>) -> Self {
        self.levels.push((y, name.into()));
        self
    }

    /// Adds a dashed vertical line, named above the plot.
    pub fn post(mut self, x: f64, name: impl Into<String>) -> Self {
        self.posts.push((x, name.into()));
        self
    }

    /// Says where series are named.
    pub fn legend(mut self, legend: Legend) -> Self {
        self.legend = legend;
        self
    }
}

framed!(LineChart);

impl Chart for LineChart {
    fn title(&self) -> &str {
        &self.frame.title
    }

    fn draw(&self, drawing: &mut Drawing) {
        let hues: Vec<_> = self.series.iter().map(|s| drawing.palette.settle(&s.name, s.tone)).collect();
        let mut marks = Vec::new();
        marks.extend(self.levels.iter().map(|(y, name)| Mark::Level { y: *y, name: name.clone() }));
        marks.extend(self.posts.iter().map(|(x, name)| Mark::Post { x: *x, name: name.clone() }));
        // Spread first, curves on top, so that no ribbon hides a mean.
        for (s, &hue) in self.series.iter().zip(&hues) {
            if !s.band.is_empty() {
                marks.push(Mark::Band { points: s.band.clone(), hue });
            }
            for run in &s.runs {
                let name = s.name.clone();
                marks.push(Mark::Line {
                    points: run.clone(),
                    hue,
                    look: Look::Thin,
                    name,
                    end: false,
                    hover: false,
                });
            }
        }
        for (s, &hue) in self.series.iter().zip(&hues) {
            if !s.errors.is_empty() {
                marks.push(Mark::Whiskers { points: s.errors.clone(), hue, lying: false });
            }
            marks.push(Mark::Line {
                points: s.points.clone(),
                hue,
                look: if s.dashed { Look::Dashed } else { Look::Bold },
                name: s.name.clone(),
                end: self.legend == Legend::Ends && !drawing.narrow,
                hover: !s.markers,
            });
            if s.markers {
                let titles = s.points.iter().map(|&(x, y)| title(&s.name, x, y)).collect();
                marks.push(Mark::Dots { points: s.points.clone(), hue, faint: false, titles });
            }
        }
        let entry = |(s, &hue): (&Series, _)| Entry {
            name: s.name.clone(),
            sample: Sample::Line { hue, dashed: s.dashed, marker: s.markers },
        };
        let legend = match self.legend {
            Legend::Ends if !drawing.narrow => Vec::new(),
            Legend::Below | Legend::Ends => self.series.iter().zip(&hues).map(entry).collect(),
            Legend::None => Vec::new(),
        };
        drawing.push(self.frame.panel(marks, legend));
    }
}
