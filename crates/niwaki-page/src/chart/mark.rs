//! The marks that every chart is made of, in data coordinates.

use super::tone::Hue;

/// A point with its spread: `(x, low, high)`.
pub(crate) type Spread = (f64, f64, f64);

#[derive(Debug, Clone)]
pub(crate) enum Mark {
    /// A polyline; values without a place break it. `name` labels hovered points, and `end` its last point.
    Line { points: Vec<(f64, f64)>, hue: Hue, look: Look, name: String, end: bool, hover: bool },
    /// A ribbon between two curves.
    Band { points: Vec<Spread>, hue: Hue },
    /// Markers; `faint` for clouds.
    Dots { points: Vec<(f64, f64)>, hue: Hue, faint: bool, titles: Vec<String> },
    /// Error bars, standing or lying (then the spread is `(y, low, high)`).
    Whiskers { points: Vec<Spread>, hue: Hue, lying: bool },
    /// A filled box.
    Bar { x: (f64, f64), y: (f64, f64), hue: Hue, title: String },
    /// A heatmap cell; `level` from 0 to 1, `None` where there is no value.
    Cell { x: f64, y: f64, level: Option<f64>, diverging: bool, text: String, title: String },
    /// A dashed line across the plot at `y`, named in the gutter.
    Level { y: f64, name: String },
    /// A dashed line across the plot at `x`, named above it.
    Post { x: f64, name: String },
    /// A text beside the plot, level with `y`.
    Aside { y: f64, text: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Bold,
    Thin,
    Dashed,
}

impl Mark {
    /// Every `(x, y)` that must fit on the axes; `NaN` stands for "no say".
    pub(crate) fn reach(&self) -> Vec<(f64, f64)> {
        let nan = f64::NAN;
        match self {
            Self::Line { points, .. } | Self::Dots { points, .. } => points.clone(),
            Self::Band { points, .. } | Self::Whiskers { points, lying: false, .. } => {
                points.iter().flat_map(|&(x, low, high)| [(x, low), (x, high)]).collect()
            }
            Self::Whiskers { points, lying: true, .. } => {
                points.iter().flat_map(|&(y, low, high)| [(low, y), (high, y)]).collect()
            }
            Self::Bar { x, y, .. } => vec![(x.0, y.0), (x.1, y.1)],
            Self::Cell { x, y, .. } => vec![(*x, *y)],
            Self::Level { y, .. } => vec![(nan, *y)],
            Self::Post { x, .. } => vec![(*x, nan)],
            Self::Aside { .. } => Vec::new(),
        }
    }

    /// Whether the mark is data rather than a line drawn for reference.
    pub(crate) fn is_data(&self) -> bool {
        !matches!(self, Self::Level { .. } | Self::Post { .. } | Self::Aside { .. })
    }
}
