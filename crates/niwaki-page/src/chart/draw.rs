//! One panel around its marks: axes, ticks, titles, and the names of lines.

use super::gutter::{self, Wish};
use super::ink::draw_mark;
use super::mark::Mark;
use super::plan::{LINE, Plan, Slots};
use super::svg::{label, path, px, rule, text_width};

/// How far markers and line caps may reach over the plot's edge.
const BLEED: f64 = 8.0;

/// Draws the panel with its plot's top left corner at the origin; its title stands `above` it, level with its row's.
pub(crate) fn draw(out: &mut String, plan: &Plan, above: f64) {
    if plan.has_title() {
        label(out, -plan.left, 13.0 - above, r#" class="title""#, &plan.panel.title, plan.cell);
    }
    frame(out, plan);
    if plan.empty {
        let (x, y) = (plan.width / 2.0, plan.height() / 2.0);
        label(out, x, y, r#" dy=".34em" text-anchor="middle""#, "no data", plan.width);
        return;
    }
    // A nested viewport clips without an id, which a page full of charts could not keep unique. What has an area ends at
    // the plot's edge; lines and markers may reach over it by half their width.
    for (bleed, of_area) in [(0.0, true), (BLEED, false)] {
        let marks = plan.panel.marks.iter().filter(|mark| matches!(mark, Mark::Band { .. }) == of_area);
        let mut inside = String::new();
        marks.for_each(|mark| draw_mark(&mut inside, plan, mark));
        if !inside.is_empty() {
            let (w, h) = (px(plan.width + 2.0 * bleed), px(plan.height() + 2.0 * bleed));
            let edge = px(-bleed);
            out.push_str(&format!(
                r#"<svg class="plot" x="{edge}" y="{edge}" width="{w}" height="{h}" viewBox="{edge} {edge} {w} {h}">{inside}</svg>"#
            ));
        }
    }
    name_lines(out, plan);
}

fn frame(out: &mut String, plan: &Plan) {
    let (w, h) = (plan.width, plan.height());
    let above = -8.0 - LINE * plan.post_rows() as f64;
    for (x, name, row) in plan.posts() {
        let half = text_width(name, 12.0) / 2.0;
        let x = x.clamp(half.min(w / 2.0), (w + plan.right() - half).max(w / 2.0));
        label(out, x, -6.0 - LINE * row as f64, r#" text-anchor="middle""#, name, w);
    }
    let y_label = plan.y_label();
    if !y_label.is_empty() {
        label(out, -plan.left, above - 5.0, "", &y_label, plan.cell);
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
        out.push_str(r#"<g class="ticks">"#);
        x_ticks(out, plan, sideways);
        out.push_str("</g>");
    }
    let inside = |y: &f64| !plan.empty && !sideways && !plan.y.is_log() && *y > 1.0 && *y < h - 1.0;
    match plan.py(0.0).filter(inside) {
        // Zero is the base of signed data; the plot's own edge steps back.
        Some(y) => {
            rule(out, "tie", (0.0, h), (w, h));
            rule(out, "axis", (0.0, y), (w, y));
        }
        None => rule(out, "axis", (0.0, h), (w, h)),
    }
    let mut below = h + plan.under_ticks();
    let x_label = plan.panel.x.label(&plan.x);
    if !x_label.is_empty() {
        below += 14.0;
        label(out, w / 2.0, below, r#" text-anchor="middle""#, &x_label, plan.cell);
        below += 4.0;
    }
    if plan.missing > 0 {
        let values = if plan.missing == 1 { "value" } else { "values" };
        let note = format!("{} {values} ≤ 0 not shown", plan.missing);
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
                    from: Some(at.0 + 4.0),
                }));
            }
            Mark::Level { y, name } if !name.is_empty() => {
                wishes.extend(plan.py(*y).map(|y| Wish {
                    y,
                    text: name.clone(),
                    class: "",
                    from: Some(plan.width + 1.0),
                }));
            }
            Mark::Aside { y, text } => {
                wishes.extend(plan.py(*y).map(|y| Wish { y, text: text.clone(), class: "", from: None }));
            }
            _ => {}
        }
    }
    let height = plan.height();
    let places = gutter::spread(&wishes.iter().map(|wish| wish.y).collect::<Vec<_>>(), height);
    for (wish, place) in wishes.iter().zip(places) {
        let moved = (place - wish.y).abs() > 2.0;
        if let Some(from) = wish.from.filter(|&from| moved || from < plan.width - 8.0) {
            let y = wish.y.clamp(0.0, height);
            let d = path([(from, y), (plan.width.max(from), y), (plan.width + 8.0, place)]);
            out.push_str(&format!(r#"<path class="tie" d="{d}"/>"#));
        }
        let class = match wish.class {
            "" => String::new(),
            class => format!(r#" class="name {class}""#),
        };
        label(out, plan.width + 10.0, place, &format!(r#"{class} dy=".34em""#), &wish.text, plan.right());
    }
}
