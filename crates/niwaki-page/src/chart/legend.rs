//! Legends: one row of samples and names below the plots, wrapped to the drawing's width.

use super::ink::marker;
use super::svg::{label, px, rule, text_width};
use super::tone::Hue;
use crate::inline::escape;

/// Where a chart names its series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Legend {
    /// Below the plot, left out when there is only one series. The default.
    #[default]
    Below,
    /// At the end of each line, in a gutter right of the plot; labels move apart where lines end close together.
    Ends,
    /// Nowhere.
    None,
}

/// One entry: a sample and its name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) sample: Sample,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sample {
    Line {
        hue: Hue,
        dashed: bool,
        marker: bool,
    },
    Dot(Hue),
    Box(Hue),
    /// A colour ramp from the lowest to the highest value.
    Ramp {
        low: String,
        high: String,
        diverging: bool,
    },
}

const ROW: f64 = 20.0;
const SWATCH: f64 = 26.0;
const RAMP: f64 = 140.0;

/// Entries without repeats, in order of first appearance.
pub(crate) fn merge<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<Entry> {
    let mut merged: Vec<Entry> = Vec::new();
    for entry in entries {
        if !merged.contains(entry) {
            merged.push(entry.clone());
        }
    }
    merged
}

/// Draws the legend with its top left corner at `(left, top)` and gives its height.
pub(crate) fn draw(out: &mut String, entries: &[Entry], left: f64, top: f64, width: f64) -> f64 {
    if entries.is_empty() {
        return 0.0;
    }
    out.push_str(r#"<g class="legend">"#);
    let (mut x, mut y) = (left, top + ROW / 2.0);
    for entry in entries {
        let sample = match &entry.sample {
            Sample::Ramp { low, high, .. } => RAMP + text_width(low, 12.0) + text_width(high, 12.0) + 24.0,
            _ => SWATCH,
        };
        let wide = sample + text_width(&entry.name, 12.0) + 18.0;
        if x > left && x + wide - 18.0 > left + width {
            (x, y) = (left, y + ROW);
        }
        out.push_str(r#"<g class="key">"#);
        draw_sample(out, entry, x, y);
        let text = if matches!(entry.sample, Sample::Ramp { .. }) { x + sample } else { x + SWATCH };
        label(out, text, y, r#" dy=".34em""#, &entry.name, width - sample);
        out.push_str("</g>");
        x += wide;
    }
    out.push_str("</g>");
    y + ROW / 2.0 - top
}

fn draw_sample(out: &mut String, entry: &Entry, x: f64, y: f64) {
    match &entry.sample {
        Sample::Line { hue, dashed, marker: marked } => {
            let dash = if *dashed { " dash" } else { "" };
            rule(out, &format!("line {}{dash}", hue.class), (x + 1.0, y), (x + 19.0, y));
            if *marked {
                marker(out, *hue, "dot", (x + 10.0, y), None);
            }
        }
        Sample::Dot(hue) => marker(out, *hue, "dot", (x + 12.0, y), None),
        Sample::Box(hue) => {
            let (x, y) = (px(x + 6.0), px(y - 5.0));
            out.push_str(&format!(
                r#"<rect class="bar {}" x="{x}" y="{y}" width="12" height="10" rx="1"/>"#,
                hue.class
            ));
        }
        Sample::Ramp { low, high, diverging } => {
            let start = x + text_width(low, 12.0) + 6.0;
            out.push_str(&format!(r#"<text x="{}" y="{}" dy=".34em">{}</text>"#, px(x), px(y), escape(low)));
            let steps = 28;
            for i in 0..steps {
                let level = (f64::from(i) + 0.5) / f64::from(steps);
                let (class, share) = ramp(level, *diverging);
                out.push_str(&format!(
                    r#"<rect class="{class}" style="--t:{share}%" x="{}" y="{}" width="5" height="10" shape-rendering="crispEdges"/>"#,
                    px(start + f64::from(i) * 5.0),
                    px(y - 5.0)
                ));
            }
            let end = px(start + RAMP + 6.0);
            out.push_str(&format!(r#"<text x="{end}" y="{}" dy=".34em">{}</text>"#, px(y), escape(high)));
        }
    }
}

/// The class and the share of the ramp's half that a level from 0 to 1 stands for.
pub(crate) fn ramp(level: f64, diverging: bool) -> (&'static str, String) {
    let share = |s: f64| px((s * 200.0).clamp(0.0, 100.0));
    match (diverging, level > 0.5) {
        (false, false) => ("heat", share(level)),
        (false, true) => ("heat up", share(level - 0.5)),
        (true, false) => ("div", share(level)),
        (true, true) => ("div up", share(level - 0.5)),
    }
}
