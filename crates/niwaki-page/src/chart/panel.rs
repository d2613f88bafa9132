//! A drawing is panels in columns over one legend. Lays them out; `draw` fills each one in.

use super::axis::Axis;
use super::draw;
use super::legend::{self, Entry, Sample};
use super::mark::Mark;
use super::plan::Plan;
use super::scale::drawable;
use super::svg::{own_style, px};
use super::tone::Palette;
use crate::inline::escape;

/// Anything that can be drawn; put it on a page with [`crate::Figure::new`].
pub trait Chart {
    /// What the chart shows, in a few words: the figure's title and what a screen reader says.
    fn title(&self) -> &str;

    /// Adds the chart's panel to a drawing.
    fn draw(&self, drawing: &mut Drawing);

    /// The chart as an `<svg>` element that takes its colours from the page around it.
    fn to_svg(&self) -> String {
        render(self.title(), self, Form::Wide)
    }

    /// The same, laid out for the width of a phone.
    fn to_narrow_svg(&self) -> String {
        render(self.title(), self, Form::Narrow)
    }

    /// The chart as an SVG file of its own, with title and style inside; follows the reader's theme.
    fn to_svg_file(&self) -> String {
        render(self.title(), self, Form::File)
    }
}

/// What a drawing is laid out for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A page on a screen or on paper.
    Wide,
    /// A page on a phone.
    Narrow,
    /// A file of its own.
    File,
}

impl Form {
    /// The drawing's width in its own units, which pages scale to the column.
    const fn width(self) -> f64 {
        match self {
            Self::Wide | Self::File => WIDTH,
            Self::Narrow => NARROW,
        }
    }
}

/// A drawing under way: the panels that charts have added, and the hues they share.
#[derive(Debug, Default)]
pub struct Drawing {
    pub(crate) palette: Palette,
    pub(crate) panels: Vec<Panel>,
    pub(crate) columns: usize,
    pub(crate) titled: bool,
    /// Laid out for a phone: names of lines stand below, nothing beside the plot.
    pub(crate) narrow: bool,
}

/// One plot: two axes, marks, and what the legend says about them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) marks: Vec<Mark>,
    pub(crate) legend: Vec<Entry>,
    pub(crate) height: f64,
}

/// The width of every drawing, in its own units; pages scale it to the column.
pub(crate) const WIDTH: f64 = 880.0;
/// The same on a phone.
const NARROW: f64 = 360.0;
const GAP: (f64, f64) = (26.0, 26.0);

impl Drawing {
    /// Adds a panel.
    pub(crate) fn push(&mut self, panel: Panel) {
        self.panels.push(panel);
    }
}

impl Panel {
    /// The least and greatest value that the marks need on an axis, among those that can stand on it.
    pub(crate) fn extent(&self, axis: fn(&(f64, f64)) -> f64, log: bool) -> Option<(f64, f64)> {
        let values = self.marks.iter().flat_map(|mark| mark.reach()).map(|point| axis(&point));
        values.filter(|v| drawable(*v, log)).fold(None, |extent, v| match extent {
            None => Some((v, v)),
            Some((low, high)) => Some((v.min(low), v.max(high))),
        })
    }
}

fn render<C: Chart + ?Sized>(title: &str, chart: &C, form: Form) -> String {
    let (alone, narrow, width) = (form == Form::File, form == Form::Narrow, form.width());
    let mut drawing = Drawing { columns: 1, narrow, ..Drawing::default() };
    chart.draw(&mut drawing);
    let columns = if narrow { 1 } else { drawing.columns.clamp(1, drawing.panels.len().max(1)) };
    let cell = (width - GAP.0 * (columns - 1) as f64) / columns as f64;

    // Panels of one drawing share their margins, so that plots line up.
    let mut plans: Vec<Plan> =
        drawing.panels.iter().map(|panel| Plan::new(panel, cell, drawing.titled, narrow)).collect();
    let left = plans.iter().map(Plan::left).fold(0.0, f64::max);
    let right = plans.iter().map(Plan::right).fold(0.0, f64::max);
    for plan in &mut plans {
        plan.settle(left, cell - left - right);
    }

    let mut body = String::new();
    let mut top = 0.0;
    if alone && !title.is_empty() {
        body.push_str(&format!(r#"<text class="title head" x="0" y="16">{}</text>"#, escape(title)));
        top += 30.0;
    }
    for (row, plans) in plans.chunks(columns).enumerate() {
        if row > 0 {
            top += GAP.1;
        }
        let above = plans.iter().map(Plan::above).fold(0.0, f64::max);
        let below = plans.iter().map(Plan::below).fold(0.0, f64::max);
        let height = plans.iter().map(Plan::height).fold(0.0, f64::max);
        for (column, plan) in plans.iter().enumerate() {
            let x = (cell + GAP.0) * column as f64;
            body.push_str(&format!(
                r#"<g class="panel" transform="translate({} {})"{}>"#,
                px(x + left),
                px(top + above),
                plan.measures()
            ));
            draw::draw(&mut body, plan, above);
            body.push_str("</g>");
        }
        top += above + height + below;
    }
    let entries = legend::merge(drawing.panels.iter().flat_map(|panel| &panel.legend));
    // A single series needs no key: the title names it.
    let needed =
        entries.len() > 1 || matches!(entries.first(), Some(Entry { sample: Sample::Ramp { .. }, .. }));
    if needed {
        top += 10.0;
        top += legend::draw(&mut body, &entries, left, top, width - left);
    }
    let height = px(top.max(1.0).ceil());
    let (size, style) = match alone {
        true => {
            (format!(r#" xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}""#), own_style())
        }
        false => (String::new(), String::new()),
    };
    format!(
        r#"<svg class="chart{}" role="img" aria-label="{}" viewBox="0 0 {width} {height}"{size}>{style}{body}</svg>"#,
        match form {
            Form::Wide => " wide",
            Form::Narrow => " narrow",
            Form::File => "",
        },
        escape(title)
    )
}
