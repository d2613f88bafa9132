//! One panel in pixels: margins, axes, marks, labels. Knows marks and scales, never which chart they came from.

use super::gutter::{self, Wish};
use super::legend::ramp;
use super::mark::{Look, Mark};
use super::panel::Panel;
use super::scale::{Scale, drawable};
use super::svg::{label, path, px, rule, text_width};
use super::thin;
use super::tone::Hue;
use crate::inline::escape;
use crate::number::Format;

/// Hovered points per line, and titled points per cloud.
const HOVERS: usize = 60;
const TITLED: usize = 600;
/// How far markers and line caps may reach over the plot's edge.
const BLEED: f64 = 8.0;
const LINE: f64 = 15.0;

/// A panel with its scales settled.
pub(crate) struct Plan<'a> {
    panel: &'a Panel,
    x: Scale,
    y: Scale,
    cell: f64,
    left: f64,
    width: f64,
    titled: bool,
    empty: bool,
    slots: Slots,
    missing: usize,
}

/// How the names of a category axis are set under the plot.
#[derive(Debug, Clone, PartialEq)]
enum Slots {
    Flat,
    Wrapped(Vec<Vec<String>>),
    Slanted,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(panel: &'a Panel, cell: f64, titled: bool) -> Self {
        let (log_x, log_y) = (panel.x.is_log(), panel.y.is_log());
        let data = || panel.marks.iter().filter(|mark| mark.is_data()).flat_map(Mark::reach);
        let empty = !data().any(|(x, y)| drawable(x, log_x) && drawable(y, log_y));
        let lost = |v: f64, log: bool| log && v <= 0.0;
        let missing = data().filter(|&(x, y)| lost(x, log_x) || lost(y, log_y)).count();
        let y = panel.y.scale(panel.extent(|p| p.1, log_y), (panel.height / 42.0) as usize + 1);
        let x = panel.x.scale(None, 5);
        Self { panel, x, y, cell, left: 0.0, width: 0.0, titled, empty, slots: Slots::Flat, missing }
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
        let width = gutter::width(texts.map(|text| gutter::label_width(text))).min(self.cell * 0.4);
        if width > 0.0 { width + 12.0 } else { 10.0 }
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

    fn y_label(&self) -> String {
        self.panel.y.label(&self.y)
    }

    fn posts(&self) -> Vec<(f64, &str, usize)> {
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
        let place = |(x, name): (f64, &'a str)| (x, name);
        posts
            .into_iter()
            .map(place)
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

    fn post_rows(&self) -> usize {
        self.posts().iter().map(|post| post.2 + 1).max().unwrap_or(0)
    }

    /// The room above the plot: title, y label, names of vertical lines.
    pub(crate) fn above(&self) -> f64 {
        let title = if self.titled && !self.panel.title.is_empty() { 20.0 } else { 0.0 };
        let name = if self.y_label().is_empty() { 0.0 } else { 20.0 };
        title + name + LINE * self.post_rows() as f64 + 8.0
    }

    /// The room below the plot: ticks, x label, a note on values without a place.
    pub(crate) fn below(&self) -> f64 {
        let note = if self.missing > 0 { LINE } else { 0.0 };
        self.under_ticks() + if self.panel.x.label(&self.x).is_empty() { 0.0 } else { 18.0 } + note + 4.0
    }

    fn under_ticks(&self) -> f64 {
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

    fn px(&self, x: f64) -> Option<f64> {
        Some(self.x.unit(x)? * self.width)
    }

    /// Categories run from the top, numbers from the bottom.
    fn py(&self, y: f64) -> Option<f64> {
        let unit = self.y.unit(y)?;
        Some(self.height() * if self.panel.y.is_category() { unit } else { 1.0 - unit })
    }

    fn at(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.px(x)?, self.py(y)?))
    }
}

/// Draws the panel with its plot's top left corner at the origin.
pub(crate) fn draw(out: &mut String, plan: &Plan) {
    frame(out, plan);
    if plan.empty {
        let (x, y) = (plan.width / 2.0, plan.height() / 2.0);
        label(out, x, y, r#" dy=".34em" text-anchor="middle""#, "no data", plan.width);
        return;
    }
    // A nested viewport clips without an id, which a page full of charts could not keep unique.
    let (w, h) = (px(plan.width + 2.0 * BLEED), px(plan.height() + 2.0 * BLEED));
    out.push_str(&format!(
        r#"<svg x="-{BLEED}" y="-{BLEED}" width="{w}" height="{h}" viewBox="-{BLEED} -{BLEED} {w} {h}">"#
    ));
    for mark in &plan.panel.marks {
        draw_mark(out, plan, mark);
    }
    out.push_str("</svg>");
    name_lines(out, plan);
}

fn frame(out: &mut String, plan: &Plan) {
    let (w, h) = (plan.width, plan.height());
    let mut above = -8.0 - LINE * plan.post_rows() as f64;
    for (x, name, row) in plan.posts() {
        let half = text_width(name, 12.0) / 2.0;
        let x = x.clamp(half.min(w / 2.0), (w + plan.right() - 10.0 - half).max(w / 2.0));
        label(out, x, -6.0 - LINE * row as f64, r#" text-anchor="middle""#, name, w);
    }
    let y_label = plan.y_label();
    if !y_label.is_empty() {
        label(out, -plan.left, above - 2.0, "", &y_label, plan.cell);
        above -= 20.0;
    }
    if plan.titled && !plan.panel.title.is_empty() {
        label(out, -plan.left, above - 2.0, r#" class="title""#, &plan.panel.title, plan.cell);
    }
    let sideways = plan.panel.y.is_category();
    if !plan.empty || sideways {
        for tick in plan.y.ticks() {
            let Some(y) = plan.py(tick.value) else { continue };
            if !sideways {
                rule(out, "grid", (0.0, y), (w, y));
            }
            label(out, -8.0, y, r#" dy=".34em" text-anchor="end""#, &tick.label, plan.left - 8.0);
        }
    }
    for y in plan.y.minor().iter().filter_map(|&v| plan.py(v)).filter(|_| !plan.empty) {
        rule(out, "minor", (-3.0, y), (0.0, y));
    }
    if !plan.empty || plan.panel.x.is_category() {
        x_ticks(out, plan, sideways);
    }
    rule(out, "axis", (0.0, h), (w, h));
    let zero = plan.py(0.0).filter(|&y| !sideways && !plan.y.is_log() && y > 1.0 && y < h - 1.0);
    if let Some(y) = zero {
        rule(out, "axis", (0.0, y), (w, y));
    }
    let mut below = h + plan.under_ticks();
    let x_label = plan.panel.x.label(&plan.x);
    if !x_label.is_empty() {
        below += 14.0;
        label(out, w / 2.0, below, r#" text-anchor="middle""#, &x_label, plan.cell);
        below += 4.0;
    }
    if plan.missing > 0 {
        let (values, have) = if plan.missing == 1 { ("value", "has") } else { ("values", "have") };
        let note = format!("{} {values} at or below zero {have} no place on a log axis", plan.missing);
        label(out, w / 2.0, below + LINE - 3.0, r#" text-anchor="middle""#, &note, plan.cell);
    }
}

fn x_ticks(out: &mut String, plan: &Plan, sideways: bool) {
    let h = plan.height();
    for (i, tick) in plan.x.ticks().iter().enumerate() {
        let Some(x) = plan.px(tick.value) else { continue };
        if sideways && !plan.panel.x.is_category() {
            rule(out, "grid", (x, 0.0), (x, h));
        }
        if !plan.panel.x.is_category() {
            rule(out, "tick", (x, h), (x, h + 4.0));
        }
        match &plan.slots {
            Slots::Flat => label(out, x, h + 17.0, r#" text-anchor="middle""#, &tick.label, plan.cell),
            Slots::Wrapped(names) => {
                for (line, text) in names[i].iter().enumerate() {
                    label(out, x, h + 16.0 + LINE * line as f64, r#" text-anchor="middle""#, text, plan.cell);
                }
            }
            Slots::Slanted => {
                let turn =
                    format!(r#" text-anchor="end" transform="rotate(-35 {} {})""#, px(x + 4.0), px(h + 14.0));
                label(out, x + 4.0, h + 14.0, &turn, &tick.label, 150.0);
            }
        }
    }
    for x in plan.x.minor().iter().filter_map(|&v| plan.px(v)) {
        rule(out, "minor", (x, h), (x, h + 3.0));
    }
}

fn draw_mark(out: &mut String, plan: &Plan, mark: &Mark) {
    match mark {
        Mark::Line { points, hue, look, name, hover, .. } => {
            draw_line(out, plan, points, *hue, *look, name, *hover)
        }
        Mark::Band { points, hue } => {
            let place = |&(x, low, high): &(f64, f64, f64)| Some((plan.at((x, low))?, plan.at((x, high))?));
            for run in points.iter().map(place).collect::<Vec<_>>().split(Option::is_none) {
                let upper: Vec<_> = run.iter().flatten().map(|pair| Some(pair.1)).collect();
                let lower: Vec<_> = run.iter().flatten().map(|pair| Some(pair.0)).collect();
                let there = thin::runs(&upper).concat();
                let back = thin::runs(&lower).concat();
                if there.len() > 1 {
                    let d = path(there.into_iter().chain(back.into_iter().rev()));
                    out.push_str(&format!(r#"<path class="band {}" d="{d}Z"/>"#, hue.class));
                }
            }
        }
        Mark::Dots { points, hue, faint, titles } => {
            let placed: Vec<_> = points.iter().map(|&point| plan.at(point)).collect();
            let kept = thin::cloud(&placed, 2000);
            let titled = kept.len() <= TITLED;
            for i in kept {
                if let Some(at) = placed[i] {
                    let title = titles.get(i).filter(|_| titled).map(String::as_str);
                    marker(out, *hue, if *faint { "dot faint" } else { "dot" }, at, title);
                }
            }
        }
        Mark::Whiskers { points, hue, lying } => {
            for &(at, low, high) in points {
                let turn = |v| if *lying { plan.at((v, at)) } else { plan.at((at, v)) };
                if let (Some(a), Some(b)) = (turn(low), turn(high)) {
                    let cap = if *lying { (0.0, 3.5) } else { (3.5, 0.0) };
                    let ends = [a, b].map(|p| path([(p.0 - cap.0, p.1 - cap.1), (p.0 + cap.0, p.1 + cap.1)]));
                    let d = format!("{}{}{}", path([a, b]), ends[0], ends[1]);
                    out.push_str(&format!(r#"<path class="whisker {}" d="{d}"/>"#, hue.class));
                }
            }
        }
        Mark::Bar { x, y, hue, title } => {
            if let (Some(a), Some(b)) = (plan.at((x.0, y.0)), plan.at((x.1, y.1))) {
                let (left, top) = (px(a.0.min(b.0)), px(a.1.min(b.1)));
                let (wide, tall) = (px((a.0 - b.0).abs()), px((a.1 - b.1).abs()));
                out.push_str(&format!(
                    r#"<rect class="bar {}" x="{left}" y="{top}" width="{wide}" height="{tall}"><title>{}</title></rect>"#,
                    hue.class,
                    escape(title)
                ));
            }
        }
        Mark::Cell { x, y, level, diverging, text, title } => {
            let corners = (plan.at((x - 0.5, y - 0.5)), plan.at((x + 0.5, y + 0.5)));
            if let (Some(a), Some(b)) = corners {
                draw_cell(out, a, b, *level, *diverging, text, title);
            }
        }
        Mark::Level { y, .. } => {
            if let Some(y) = plan.py(*y) {
                rule(out, "rule", (0.0, y), (plan.width, y));
            }
        }
        Mark::Post { x, .. } => {
            if let Some(x) = plan.px(*x) {
                rule(out, "rule", (x, 0.0), (x, plan.height()));
            }
        }
        Mark::Aside { .. } => {}
    }
}

fn draw_line(
    out: &mut String,
    plan: &Plan,
    points: &[(f64, f64)],
    hue: Hue,
    look: Look,
    name: &str,
    hover: bool,
) {
    let placed: Vec<_> = points.iter().map(|&point| plan.at(point)).collect();
    let extra = match look {
        Look::Thin => " thin",
        Look::Bold if !hue.repeats() => "",
        Look::Bold | Look::Dashed => " dash",
    };
    let mut d = String::new();
    for run in thin::runs(&placed) {
        match run[..] {
            [only] if look != Look::Thin => marker(out, hue, "dot", only, None),
            _ => d.push_str(&path(run)),
        }
    }
    if !d.is_empty() {
        let title = escape(name);
        out.push_str(&format!(
            r#"<path class="line {}{extra}" d="{d}"><title>{title}</title></path>"#,
            hue.class
        ));
    }
    if hover {
        let stride = points.len().div_ceil(HOVERS).max(1);
        for (point, at) in points.iter().zip(&placed).step_by(stride) {
            if let Some(at) = at {
                let title = title(name, point.0, point.1);
                let (x, y) = (px(at.0), px(at.1));
                out.push_str(&format!(
                    r#"<circle class="hit {}" cx="{x}" cy="{y}" r="5"><title>{}</title></circle>"#,
                    hue.class,
                    escape(&title)
                ));
            }
        }
    }
}

fn draw_cell(
    out: &mut String,
    a: (f64, f64),
    b: (f64, f64),
    level: Option<f64>,
    diverging: bool,
    text: &str,
    title: &str,
) {
    let (left, top) = (a.0.min(b.0) + 0.75, a.1.min(b.1) + 0.75);
    let (wide, tall) = ((a.0 - b.0).abs() - 1.5, (a.1 - b.1).abs() - 1.5);
    let (class, style) = match level {
        Some(level) => {
            let (class, share) = ramp(level, diverging);
            (class, format!(r#" style="--t:{share}%""#))
        }
        None => ("gap", String::new()),
    };
    let [x, y, w, h] = [left, top, wide, tall].map(|v| px(v.max(0.0)));
    let title = escape(title);
    out.push_str(&format!(
        r#"<rect class="{class}"{style} x="{x}" y="{y}" width="{w}" height="{h}" rx="2"><title>{title}</title></rect>"#
    ));
    if !text.is_empty() && text_width(text, 11.0) <= wide && tall >= 14.0 {
        let strong = level.is_some_and(|l| if diverging { (l - 0.5).abs() > 0.3 } else { l > 0.5 });
        let class = if strong { "on up" } else { "on" };
        let attributes = format!(r#" class="{class}" dy=".34em" text-anchor="middle""#);
        label(out, left + wide / 2.0, top + tall / 2.0, &attributes, text, wide + 12.0);
    }
}

/// Names of lines and levels in the gutter, each as near to its line as its neighbours allow.
fn name_lines(out: &mut String, plan: &Plan) {
    let mut wishes = Vec::new();
    for mark in &plan.panel.marks {
        match mark {
            Mark::Line { points, hue, name, end: true, .. } => {
                let last = points.iter().rev().find_map(|&point| plan.at(point));
                wishes.extend(last.map(|at| Wish {
                    y: at.1,
                    text: name.clone(),
                    class: hue.class,
                    tie: true,
                }));
            }
            Mark::Level { y, name } if !name.is_empty() => {
                wishes.extend(plan.py(*y).map(|y| Wish { y, text: name.clone(), class: "", tie: true }));
            }
            Mark::Aside { y, text } => {
                wishes.extend(plan.py(*y).map(|y| Wish { y, text: text.clone(), class: "", tie: false }));
            }
            _ => {}
        }
    }
    let height = plan.height();
    let places = gutter::spread(&wishes.iter().map(|wish| wish.y).collect::<Vec<_>>(), height);
    for (wish, place) in wishes.iter().zip(places) {
        if wish.tie && (place - wish.y).abs() > 2.0 {
            let y = wish.y.clamp(0.0, height);
            let d = path([(plan.width + 1.0, y), (plan.width + 8.0, place)]);
            out.push_str(&format!(r#"<path class="tie" d="{d}"/>"#));
        }
        let class = match wish.class {
            "" => String::new(),
            class => format!(r#" class="name {class}""#),
        };
        label(out, plan.width + 10.0, place, &format!(r#"{class} dy=".34em""#), &wish.text, gutter::WIDEST);
    }
}

/// A marker whose shape goes with its hue's turn.
pub(crate) fn marker(out: &mut String, hue: Hue, class: &str, (x, y): (f64, f64), title: Option<&str>) {
    let close = |tag: &str| match title {
        Some(title) => format!("><title>{}</title></{tag}>", escape(title)),
        None => "/>".to_string(),
    };
    let class = format!(r#"class="{class} {}""#, hue.class);
    let d = match hue.turn % 4 {
        0 => {
            let (x, y) = (px(x), px(y));
            out.push_str(&format!(r#"<circle {class} cx="{x}" cy="{y}" r="3.8"{}"#, close("circle")));
            return;
        }
        1 => path([(x - 3.4, y - 3.4), (x + 3.4, y - 3.4), (x + 3.4, y + 3.4), (x - 3.4, y + 3.4)]),
        2 => path([(x, y - 4.4), (x + 4.2, y + 3.2), (x - 4.2, y + 3.2)]),
        _ => path([(x, y - 4.8), (x + 4.8, y), (x, y + 4.8), (x - 4.8, y)]),
    };
    out.push_str(&format!(r#"<path {class} d="{d}Z"{}"#, close("path")));
}

/// What a hovered point says.
pub(crate) fn title(name: &str, x: f64, y: f64) -> String {
    let number = |v: f64| Format::auto().text(v);
    let lead = if name.is_empty() { String::new() } else { format!("{name}: ") };
    format!("{lead}{}, {}", number(x), number(y))
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
