//! The room a panel needs and where its values stand: margins, scales, pixels. Writes no markup.

use super::gutter;
use super::mark::Mark;
use super::panel::Panel;
use super::scale::{Scale, drawable};
use super::svg::{px, text_width};

/// The height of a line of labels.
pub(super) const LINE: f64 = 15.0;

/// A panel with its scales settled.
pub(crate) struct Plan<'a> {
    pub(super) panel: &'a Panel,
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) cell: f64,
    pub(super) left: f64,
    pub(super) width: f64,
    titled: bool,
    pub(super) empty: bool,
    pub(super) slots: Slots,
    pub(super) missing: usize,
    pub(super) narrow: bool,
}

/// How the names of a category axis are set under the plot.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Slots {
    Flat,
    Wrapped(Vec<Vec<String>>),
    Slanted,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(panel: &'a Panel, cell: f64, titled: bool, narrow: bool) -> Self {
        let (log_x, log_y) = (panel.x.is_log(), panel.y.is_log());
        let data = || panel.marks.iter().filter(|mark| mark.is_data()).flat_map(Mark::reach);
        let empty = !data().any(|(x, y)| drawable(x, log_x) && drawable(y, log_y));
        let lost = |v: f64, log: bool| log && v <= 0.0;
        // Plain markers go with a line or a whisker that has the same values already.
        let counted = panel
            .marks
            .iter()
            .filter(|mark| mark.is_data() && !matches!(mark, Mark::Dots { faint: false, .. }));
        let missing =
            counted.flat_map(Mark::reach).filter(|&(x, y)| lost(x, log_x) || lost(y, log_y)).count();
        let y = panel.y.scale(panel.extent(|p| p.1, log_y), (panel.height / 40.0) as usize + 2);
        // Only a first guess, from which the last label's width is known; `settle` has the last word.
        let x = panel.x.scale(panel.extent(|p| p.0, log_x), 8);
        Self { panel, x, y, cell, left: 0.0, width: 0.0, titled, empty, slots: Slots::Flat, missing, narrow }
    }

    /// The room the y axis wants.
    pub(crate) fn left(&self) -> f64 {
        let widest = self.y.ticks().iter().map(|t| text_width(&t.label, 12.0)).fold(0.0, f64::max);
        widest.min(self.cell * 0.38) + 12.0
    }

    /// The room that labels right of the plot want.
    pub(crate) fn right(&self) -> f64 {
        let texts = self.panel.marks.iter().filter_map(|mark| match mark {
            Mark::Line { name, end: true, .. } | Mark::Level { name, .. } if !name.is_empty() => Some(name),
            Mark::Aside { text, .. } => Some(text),
            _ => None,
        });
        let most = self.cell * if self.narrow { 0.26 } else { 0.42 };
        let width = texts.map(|text| gutter::label_width(text)).fold(0.0, f64::max).min(most);
        let last = self.x.ticks().last().map_or(0.0, |tick| text_width(&tick.label, 12.0) / 2.0);
        let tick = if self.panel.x.is_category() { 4.0 } else { last.max(10.0) };
        if width > 0.0 { (width + 12.0).max(tick) } else { tick }
    }

    /// What a script needs to read values off the plot: its size, and the ends of numeric axes. Nothing where an axis has
    /// no numbers.
    pub(crate) fn measures(&self) -> String {
        if self.empty || self.panel.x.is_category() || self.panel.y.is_category() {
            return String::new();
        }
        let ends = |name: &str, scale: &Scale, percent: bool| {
            let (low, high) = scale.domain();
            let kind = match (scale.is_log(), percent) {
                (true, _) => " log",
                (false, true) => " %",
                (false, false) => "",
            };
            format!(r#" data-{name}="{low:e} {high:e}{kind}""#)
        };
        format!(
            r#" data-size="{} {}"{}{}"#,
            px(self.width),
            px(self.height()),
            ends("x", &self.x, self.panel.x.is_percent()),
            ends("y", &self.y, self.panel.y.is_percent())
        )
    }

    /// Fixes the plot's width, which decides the x axis.
    pub(crate) fn settle(&mut self, left: f64, width: f64) {
        (self.left, self.width) = (left, width.max(40.0));
        let extent = self.panel.extent(|p| p.0, self.panel.x.is_log());
        self.x = self.panel.x.scale(extent, (self.width / 72.0) as usize + 1);
        if self.panel.x.is_category() {
            self.slots = self.set_slots();
        }
    }

    fn set_slots(&self) -> Slots {
        let names: Vec<&str> = self.x.ticks().iter().map(|t| t.label.as_str()).collect();
        let slot = self.width / names.len().max(1) as f64 - 6.0;
        let fits = |text: &str| text_width(text, 12.0) <= slot;
        if names.iter().all(|name| fits(name)) {
            return Slots::Flat;
        }
        let wrapped: Vec<Vec<String>> = names.iter().map(|name| wrap(name, slot)).collect();
        if wrapped.iter().all(|lines| lines.len() <= 3 && lines.iter().all(|line| fits(line))) {
            return Slots::Wrapped(wrapped);
        }
        Slots::Slanted
    }

    pub(super) fn y_label(&self) -> String {
        self.panel.y.label(&self.y)
    }

    pub(super) fn posts(&self) -> Vec<(f64, &str, usize)> {
        let mut posts: Vec<(f64, &str)> = self
            .panel
            .marks
            .iter()
            .filter_map(|mark| match mark {
                Mark::Post { x, name } => Some((self.px(*x)?, name.as_str())),
                _ => None,
            })
            .collect();
        posts.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Each name takes the lowest row where it does not touch its neighbour.
        let mut rows: Vec<f64> = Vec::new();
        posts
            .into_iter()
            .map(|(x, name)| {
                let half = text_width(name, 12.0) / 2.0 + 4.0;
                let row = rows.iter().position(|&end| end <= x - half).unwrap_or(rows.len());
                if row == rows.len() {
                    rows.push(0.0);
                }
                rows[row] = x + half;
                (x, name, row)
            })
            .collect()
    }

    pub(super) fn post_rows(&self) -> usize {
        self.posts().iter().map(|post| post.2 + 1).max().unwrap_or(0)
    }

    pub(super) fn has_title(&self) -> bool {
        self.titled && !self.panel.title.is_empty()
    }

    /// The room above the plot: title, y label, names of vertical lines.
    pub(crate) fn above(&self) -> f64 {
        let title = if self.has_title() { 20.0 } else { 0.0 };
        let name = match (self.y_label().is_empty(), self.has_title()) {
            (false, _) => 24.0,
            (true, true) => 6.0,
            (true, false) => 0.0,
        };
        title + name + LINE * self.post_rows() as f64 + 8.0
    }

    /// The room below the plot: ticks, x label, a note on values without a place.
    pub(crate) fn below(&self) -> f64 {
        let note = if self.missing > 0 { LINE } else { 0.0 };
        self.under_ticks() + if self.panel.x.label(&self.x).is_empty() { 0.0 } else { 18.0 } + note + 4.0
    }

    pub(super) fn under_ticks(&self) -> f64 {
        match &self.slots {
            Slots::Flat => 20.0,
            Slots::Wrapped(names) => 6.0 + LINE * names.iter().map(Vec::len).max().unwrap_or(1) as f64,
            Slots::Slanted => 20.0 + 0.57 * self.slanted_room(),
        }
    }

    fn slanted_room(&self) -> f64 {
        self.x.ticks().iter().map(|t| text_width(&t.label, 12.0)).fold(0.0, f64::max).min(150.0)
    }

    pub(crate) fn height(&self) -> f64 {
        self.panel.height
    }

    pub(super) fn px(&self, x: f64) -> Option<f64> {
        Some(self.x.unit(x)? * self.width)
    }

    /// Categories run from the top, numbers from the bottom.
    pub(super) fn py(&self, y: f64) -> Option<f64> {
        let unit = self.y.unit(y)?;
        Some(self.height() * if self.panel.y.is_category() { unit } else { 1.0 - unit })
    }

    pub(super) fn at(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.px(x)?, self.py(y)?))
    }
}

fn wrap(text: &str, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line, 12.0) + text_width(word, 12.0) + 4.0 <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}
