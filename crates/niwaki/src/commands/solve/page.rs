//! A schedule as a page: what was found, the chart, and how to get the rest.

use super::found::Found;
use niwaki_page::{Callout, Figure, Made, Page, Section, Tile};

/// Widths of the chart on a page and on a phone: all of it is in view, and readers zoom.
const WIDE: f64 = 1200.0;
const NARROW: f64 = 380.0;

/// The page of a schedule.
pub(crate) fn page(found: &Found, title: &str, made: Made) -> Page {
    let text = |name: &str| {
        found.facts.get(name).map(|value| match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    };
    let mut page = Page::new(format!("A schedule for {title}"));
    if let Some(shop) = found.lines.first() {
        page = page.subtitle(shop.clone());
    }
    let proven = found.facts.get("proven").and_then(serde_json::Value::as_bool).unwrap_or(false);
    let mut section = Section::new("What was found");
    if found.missed {
        let end = text("makespan").unwrap_or_default();
        let deadline = text("deadline").unwrap_or_default();
        section = section.callout(Callout::bad(
            "The deadline is missed.",
            format!("The last operation ends at {end}; it should be done by {deadline}."),
        ));
    }
    section = section.callout(if proven {
        Callout::good("No schedule is better.", "The search proved it for this objective.")
    } else {
        Callout::neutral(
            "A better schedule may exist.",
            "The search ended before it could prove that this is the best; a longer `--time` may find one or the proof.",
        )
    });
    for (label, name) in
        [("ends at", "ends"), ("makespan", "makespan"), ("lower bound", "bound"), ("late jobs", "late")]
    {
        if let Some(value) = text(name) {
            page = page.tile(Tile::new(label, value));
        }
    }
    if let Some(gap) = found.facts.get("gap").and_then(serde_json::Value::as_f64) {
        page = page.tile(Tile::new("gap to the bound", format!("{:.1}%", 100.0 * gap)));
    }
    let figure = Figure::from_svg("The schedule", found.drawn(Some(WIDE))).narrow(found.drawn(Some(NARROW))).caption(
        "One row per machine, one colour per job. Click a job in the legend to highlight it; zoom with the buttons, or \
         drag over the chart. Triangles mark due dates, brackets mark windows, dotted lines mark waits between operations; machines are \
         closed where the chart is grey.",
    );
    page.section(section.figure(figure))
        .section(Section::new("In numbers").list(found.lines.iter().skip(1).cloned()))
        .made(made)
}
