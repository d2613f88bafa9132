//! Marks in pixels. Knows marks and a panel's plan, never which chart they came from.

use super::legend::ramp;
use super::mark::{Look, Mark};
use super::plan::Plan;
use super::svg::{label, path, px, rule, text_width};
use super::thin;
use super::tone::Hue;
use crate::inline::escape;
use crate::number::Format;

/// Hovered points per line, and titled points per cloud.
const HOVERS: usize = 60;
const TITLED: usize = 600;
/// Longer lines are drawn with a finer pen.
const DENSE: usize = 1000;

/// Draws one mark.
pub(super) fn draw_mark(out: &mut String, plan: &Plan, mark: &Mark) {
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
        Look::Bold if points.len() > DENSE => " dense",
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
    // A finger has no hover, and a phone's drawing stays small.
    if hover && !plan.narrow {
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
        let strong = level.is_some_and(|l| if diverging { (l - 0.5).abs() > 0.34 } else { l > 0.56 });
        let class = if strong { "on up" } else { "on" };
        let attributes = format!(r#" class="{class}" dy=".34em" text-anchor="middle""#);
        label(out, left + wide / 2.0, top + tall / 2.0, &attributes, text, wide + 12.0);
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
