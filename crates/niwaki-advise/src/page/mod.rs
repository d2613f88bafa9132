//! The page: one answer with the figure that decides, then the reasons, then everything measured.
//!
//! | file | what belongs there |
//! |---|---|
//! | `deciding.rs` | the figure and the number that decide, by the question that did |
//! | `figures.rs` | the curves |

mod deciding;
mod figures;

use crate::measure::{AlphaRow, Measured, Number};
use crate::text::{age_table, facts, formulas, limit_table, number_table};
use crate::verdict::{Action, Trainer, Verdict};
use deciding::Shown;
pub(crate) use figures::reached;
use niwaki_page::{Callout, Cell, Column, Figure, Format, Made, Page, Section, Table, Tile};

/// The page of a dump.
#[must_use]
pub fn page(title: &str, measured: &Measured, verdict: &Verdict, clip: (f64, f64), made: Made) -> Page {
    let Shown { figure, shows, tile } = deciding::shown(measured, verdict);
    let mut page = Page::new(title).subtitle(facts(measured)).lead(format!("**{}**", capital(&verdict.says)));
    let short = Format::significant(2);
    let mut tiles = vec![
        ("Drift σ²T", "drift", short),
        ("ESS of a full correction", "ess", Format::percent(0)),
        ("Bias Σ b", "bias_total", short.signed()),
    ];
    // The number that decides comes first, and no number twice.
    if let Some((label, name, format)) = tile {
        tiles.retain(|(_, other, _)| *other != name);
        tiles.insert(0, (label, name, format));
        tiles.truncate(3);
    }
    for (label, name, format) in tiles {
        page = page.tile(told(measured, label, name, format));
    }
    page = page.section(verdict_section(verdict, figure));
    if !measured.ages.is_empty() {
        page = page.section(ages(measured));
    }
    page = page.section(figures::along(measured, shows));
    if measured.iterations.len() > 1 {
        page = page.section(figures::course(measured, shows));
    }
    page = page.section(figures::ratios(measured, clip)).section(strengths(measured, verdict)).section(
        Section::new("Every number")
            .folded_table("All numbers with their intervals", number_table(measured))
            .folded("How each number is made", formulas(measured)),
    );
    if let Some(section) = verl(measured, verdict) {
        page = page.section(section);
    }
    page.made(made)
}

/// A number with its interval.
fn told(measured: &Measured, label: &str, name: &str, format: Format) -> Tile {
    let number = measured.numbers.iter().find(|number| number.name == name);
    let tile = Tile::new(label, format.text(number.map_or(f64::NAN, |number| number.value)));
    match number {
        Some(Number { low: Some(low), high: Some(high), .. }) if low < high => {
            tile.note(format!("95%: {} to {}", format.text(*low), format.text(*high)))
        }
        _ => tile,
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn verdict_section(verdict: &Verdict, figure: Option<Figure>) -> Section {
    let says = capital(&verdict.says);
    let mut reasons = verdict.because.iter().cloned();
    let because = reasons.next().unwrap_or_default();
    let mut plain =
        vec![format!("**How sure:** {}", verdict.sure), format!("**If nothing changes:** {}", verdict.idle)];
    plain.extend(
        verdict.set.iter().map(|advised| format!("**In {}:** {}", advised.trainer.name(), advised.what)),
    );
    let callout = match verdict.action {
        Action::CorrectionWasted => Callout::good(says, because),
        Action::ShortWarmup { .. } | Action::NotEnoughData { .. } => Callout::neutral(says, because),
        Action::ReduceReuse | Action::NoSignal => Callout::bad(says, because),
    };
    let section = figure.into_iter().fold(Section::new("Verdict").callout(callout), Section::figure);
    section.list(plain).list(reasons)
}

/// Drift by the age of the policy that sampled.
fn ages(measured: &Measured) -> Section {
    Section::new("How old the sampling policies were")
        .figure(figures::by_age(measured))
        .table(limit_table(measured))
        .folded_table("By age, with every number", age_table(measured))
}

fn strengths(measured: &Measured, verdict: &Verdict) -> Section {
    let mut table = Table::new("A batch's estimate at each strength, the full correction taken as the truth")
        .column(Column::number("α").format(Format::fixed(1)))
        .column(Column::number("bias").format(Format::significant(2)))
        .column(Column::number("variance").format(Format::significant(3)))
        .column(Column::number("squared error").format(Format::significant(3)))
        .column(Column::number("ESS").format(Format::percent(0)))
        .column(Column::text("which"));
    // The advised row is marked, so that table and verdict tell one story; where the estimate errs least is another question.
    let (advised, name) = match verdict.action {
        Action::ShortWarmup { alpha, .. } => (alpha, "advised"),
        _ => (0.0, "PPO, as it is"),
    };
    let rows = || measured.alphas.iter().enumerate();
    let least = |of: &dyn Fn(&AlphaRow) -> f64| {
        rows()
            .filter(|(_, row)| of(row).is_finite())
            .min_by(|(_, one), (_, other)| of(one).total_cmp(&of(other)))
            .map(|(at, _)| at)
    };
    let marked = least(&|row| (row.alpha - advised).abs());
    let best = least(&|row| row.error);
    for (at, row) in rows() {
        let (is_marked, is_best) = (Some(at) == marked, Some(at) == best);
        let which = match (is_marked, is_best) {
            (true, true) => format!("{name}; least error"),
            (true, false) => name.to_owned(),
            (false, true) => "least error".to_owned(),
            _ => String::new(),
        };
        let alpha = Cell::from(row.alpha);
        table.push([
            if is_marked { alpha.best() } else { alpha },
            Cell::from(row.bias),
            Cell::from(row.variance),
            Cell::from(row.error),
            Cell::from(row.ess),
            Cell::from(which),
        ]);
    }
    let mut longer = Table::new("How many times as long as PPO's the gradient is")
        .column(Column::number("α").format(Format::significant(2)))
        .column(Column::number("amplification").format(Format::significant(3)));
    for row in &measured.amplifications {
        longer.push([Cell::from(row.alpha), Cell::from(row.amplification)]);
    }
    Section::new("Strengths")
        .prose(
            "The advised strength is not the one of least squared error. That error is of the estimated objective; an update also \
             routes credit back, and pays for it with a variance that this error does not hold.",
        )
        .folded_table("Bias, variance and error at each strength", table)
        .folded_table("How much longer the gradient becomes", longer)
}

/// verl's metrics, where the dump is verl's or has the engine's log-probs to compare with.
fn verl(measured: &Measured, verdict: &Verdict) -> Option<Section> {
    let of_verl = matches!(&verdict.set[..], [only] if only.trainer == Trainer::Verl);
    let compares = measured.facts.verl_pair == "old against behaviour";
    if !(of_verl || compares) {
        return None;
    }
    let mut table = Table::new(format!("`rollout_corr/*`, {}", measured.facts.verl_pair))
        .column(Column::text("metric"))
        .column(Column::number("value").format(Format::significant(4)));
    let value = |name: &str| measured.verl.iter().find(|(own, _)| own == name).map(|(_, value)| *value);
    // A twin without clamp and truncation says something only where it differs.
    let says = |name: &str, own: f64| {
        name.strip_suffix("_raw").is_none_or(|name| value(name).is_none_or(|other| other != own))
    };
    for (name, value) in measured.verl.iter().filter(|(name, value)| says(name, *value)) {
        table.push([Cell::code(format!("rollout_corr/{name}")), Cell::from(*value)]);
    }
    Some(
        Section::new("verl's metrics")
            .folded_table("By verl's names and definitions, over all of the data as one batch", table)
            .note("Names that end in `_raw` are the same without verl's clamp and truncation, shown where they differ."),
    )
}
