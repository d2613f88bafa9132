//! A schedule as a page: what was found, the chart, and how to get the rest.

use super::found::Found;
use niwaki_page::{Callout, Figure, Made, Page, Section, Tile};
use niwaki_shop::gantt::Details;

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
        // The title has the name already.
        page = page.subtitle(shop.strip_prefix(&format!("{title}: ")).unwrap_or(shop));
    }
    let proven = found.facts.get("proven").and_then(serde_json::Value::as_bool).unwrap_or(false);
    let mut section = Section::new("What was found");
    if let Some(deadline) = &found.deadline {
        let end = text("ends").or_else(|| text("makespan")).unwrap_or_default();
        let because = format!("The last operation ends at {end}; everything should be done by {deadline}.");
        section = section.callout(if found.missed {
            Callout::bad("The deadline is missed.", because)
        } else {
            Callout::good("The deadline is met.", because)
        });
    }
    section = section.callout(if proven {
        Callout::good("No schedule is better.", "The search proved it for this objective.")
    } else {
        Callout::neutral(
            "A better schedule may exist.",
            if found.searched {
                "The search ended before it could prove that this is the best; a longer `--time` may find one or the proof."
            } else {
                "A rule made it in one go and proves nothing; `--method exact` searches for a better one."
            },
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
    let figure = Figure::from_svg("The schedule", found.drawn(Some(WIDE)))
        .narrow(found.drawn(Some(NARROW)))
        .caption(format!("One row per machine, one colour per job.{}", key(&found.chart.details)))
        .hint("Click a job in the legend to highlight it; zoom with the buttons, or drag over the chart.");
    page.section(section.figure(figure))
        .section(Section::new("In numbers").list(found.lines.iter().skip(1).cloned()))
        .made(made)
}

/// What the marks of a chart mean, those that it has.
fn key(details: &Details) -> String {
    let marks = [
        (details.due.iter().any(Option::is_some), "Triangles mark due dates."),
        (!details.windows.is_empty(), "Brackets mark the times between which an operation must lie."),
        (!details.lags.is_empty(), "Dotted lines mark waits that must lie between operations."),
        (!details.setups.is_empty(), "Dashed boxes are setups."),
        (
            details.closed.iter().any(|times| !times.is_empty()),
            "Machines are closed where the chart is grey.",
        ),
    ];
    marks.iter().filter(|(there, _)| *there).map(|(_, words)| format!(" {words}")).collect()
}
