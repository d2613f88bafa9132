//! Small multiples: panels in columns over one legend, each name with one colour throughout.

use super::axis::Axis;
use super::panel::{Chart, Drawing, Panel};

/// Charts side by side, each under its own title. Two columns by default; axes are each panel's own until shared.
pub struct Grid {
    title: String,
    panels: Vec<Box<dyn Chart>>,
    columns: usize,
    share: (bool, bool),
}

impl Grid {
    /// An empty grid; the title says what the panels show together.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), panels: Vec::new(), columns: 2, share: (false, false) }
    }

    /// Adds a panel.
    pub fn panel(mut self, chart: impl Chart + 'static) -> Self {
        self.panels.push(Box::new(chart));
        self
    }

    /// Sets the number of columns (at least one).
    pub fn columns(mut self, columns: usize) -> Self {
        self.columns = columns.max(1);
        self
    }

    /// Gives all panels the same x range.
    pub fn share_x(mut self) -> Self {
        self.share.0 = true;
        self
    }

    /// Gives all panels the same y range.
    pub fn share_y(mut self) -> Self {
        self.share.1 = true;
        self
    }
}

impl Chart for Grid {
    fn title(&self) -> &str {
        &self.title
    }

    fn draw(&self, drawing: &mut Drawing) {
        let start = drawing.panels.len();
        for chart in &self.panels {
            chart.draw(drawing);
        }
        (drawing.columns, drawing.titled) = (self.columns, true);
        let panels = &mut drawing.panels[start..];
        if self.share.0 {
            share(panels, |point| point.0, |panel| &mut panel.x);
        }
        if self.share.1 {
            share(panels, |point| point.1, |panel| &mut panel.y);
        }
    }
}

/// Makes every axis include every panel's extent, from which the same round range follows.
fn share(panels: &mut [Panel], value: fn(&(f64, f64)) -> f64, axis: fn(&mut Panel) -> &mut Axis) {
    let mut ends = Vec::new();
    for panel in panels.iter_mut() {
        let log = axis(panel).is_log();
        ends.extend(panel.extent(value, log).map(|(low, high)| [low, high]));
    }
    for panel in panels {
        for end in ends.iter().flatten() {
            let axis = axis(panel);
            *axis = axis.clone().include(*end);
        }
    }
}
