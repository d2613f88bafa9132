//! Title, two axes and a height: what charts on two numeric axes share.

use super::axis::Axis;
use super::legend::Entry;
use super::mark::Mark;
use super::panel::Panel;

/// What stands around the marks of a chart.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) height: f64,
}

impl Frame {
    pub(super) fn new(title: impl Into<String>, height: f64) -> Self {
        Self { title: title.into(), x: Axis::default(), y: Axis::default(), height }
    }

    /// The panel that shows some marks in this frame.
    pub(super) fn panel(&self, marks: Vec<Mark>, legend: Vec<Entry>) -> Panel {
        let Self { title, x, y, height } = self.clone();
        Panel { title, x, y, marks, legend, height }
    }
}

/// The builders of a chart's frame, which it keeps in `frame`.
macro_rules! framed {
    ($chart:ident) => {
        impl $chart {
            /// Sets the x axis.
            pub fn x(mut self, axis: Axis) -> Self {
                self.frame.x = axis;
                self
            }

            /// Sets the y axis.
            pub fn y(mut self, axis: Axis) -> Self {
                self.frame.y = axis;
                self
            }

            /// Sets the plot's height; drawings are 880 units wide.
            pub fn height(mut self, height: f64) -> Self {
                self.frame.height = height;
                self
            }
        }
    };
}
pub(super) use framed;
