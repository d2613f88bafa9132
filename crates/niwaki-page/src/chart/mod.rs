//! Charts as inline SVG: each kind turns its data into marks on two scales, and one renderer draws the marks.
//!
//! `line`, `scatter`, `bar`, `forest`, `histogram` and `heatmap` know their data and nothing of pixels; `plan`,
//! `draw` and `ink` know pixels and nothing of the kinds. Legends stand below the plot and line labels in a gutter to its right,
//! so neither ever covers data.

mod axis;
mod bar;
mod draw;
mod forest;
mod frame;
mod grid;
mod gutter;
mod heatmap;
mod histogram;
mod ink;
mod legend;
mod line;
mod mark;
mod panel;
mod plan;
mod scale;
mod scatter;
mod svg;
mod thin;
mod tone;

pub use axis::Axis;
pub use bar::{BarChart, Bars};
pub use forest::{ForestChart, Interval};
pub use grid::Grid;
pub use heatmap::Heatmap;
pub use histogram::Histogram;
pub use legend::Legend;
pub use line::{LineChart, Series};
pub use panel::{Chart, Drawing};
pub use scale::{Scale, Tick};
pub use scatter::{Cloud, ScatterChart};
pub use tone::Tone;

pub(crate) use svg::CHART_STYLE;
