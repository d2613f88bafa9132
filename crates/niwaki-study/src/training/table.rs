//! The tables of a training study.

use super::anatomy::Anatomy;
use super::claims::Half;
use super::dose::{Correlated, DosePoint, correlation, partialled};
use super::scaling::Scaling;
use super::{Board, Calibration, Comparison, Endpoint, Estimate};
use crate::Error;
use niwaki_page::{Cell, Column, Format, Table, csv_text};
use std::fmt::Write as _;

/// One row per arm and cell, one column per endpoint; the best of each cell is marked.
///
/// # Errors
/// Where a curve holds what is no number.
pub fn endpoints_table(caption: &str, board: &Board<'_>) -> Result<Table, Error> {
    let (plan, endpoints) = (board.plan, &board.plan.study.endpoints);
    let mut table = Table::new(caption)
        .column(Column::text("arm"))
        .column(Column::number("seeds").format(Format::fixed(0)));
    for endpoint in endpoints {
        let format = match endpoint {
            _ if endpoint.counts() => Format::fixed(0),
            _ if endpoint.ranks() => Format::fixed(3),
            _ => Format::significant(3),
        };
        table = table.column(Column::number(endpoint.words()).format(format));
    }
    for cell in 0..plan.places().count() {
        if let Some(name) = plan.place_name(cell) {
            table.push_heading(name);
        }
        let mut rows: Vec<(usize, Vec<Option<Estimate>>)> = Vec::new();
        for arm in 0..plan.study.arm.len() {
            let found = endpoints.iter().map(|&endpoint| board.estimate(arm, cell, endpoint));
            rows.push((arm, found.collect::<Result<_, _>>()?));
        }
        let best: Vec<Option<f64>> = (0..endpoints.len())
            .map(|column| {
                if !endpoints[column].ranks() {
                    return None;
                }
                let turn = if endpoints[column].falls() { -1.0 } else { 1.0 };
                let values = rows.iter().filter_map(|(_, row)| row[column].as_ref());
                values.map(|found| turn * found.value).reduce(f64::max).map(|best| turn * best)
            })
            .collect();
        for (arm, row) in rows {
            let seeds = board.runs(arm, cell).len();
            if seeds == 0 {
                continue;
            }
            let mut cells = vec![Cell::from(plan.arm_label(arm)), Cell::from(seeds as f64)];
            for ((found, endpoint), best) in row.into_iter().zip(endpoints).zip(&best) {
                cells.push(found.map_or(Cell::blank(), |found| shown(&found, *endpoint, *best)));
            }
            table.push(cells);
        }
    }
    Ok(table)
}

fn shown(found: &Estimate, endpoint: Endpoint, best: Option<f64>) -> Cell {
    let cell = Cell::from(found.value);
    let cell = match endpoint {
        Endpoint::BreakThrough => cell.interval(found.range.0, found.range.1),
        Endpoint::Solved | Endpoint::Drift => cell.interval(found.interval.low, found.interval.high),
        Endpoint::Success => {
            cell.hint(format!("{} of {}", found.seeds.iter().sum::<f64>(), found.seeds.len()))
        }
        _ if found.seeds.len() > 1 => cell.error(found.sem),
        _ => cell,
    };
    if best == Some(found.value) { cell.best() } else { cell }
}

/// Every comparison of the study.
#[must_use]
pub fn comparisons_table(caption: &str, board: &Board<'_>, comparisons: &[Comparison]) -> Table {
    let mut table = Table::new(caption).columns([
        Column::text("arm"),
        Column::number("lead").format(Format::significant(2).signed()),
        Column::text("w/l/t"),
        Column::number("p, one").format(Format::significant(2)),
        Column::number("p, two").format(Format::significant(2)),
    ]);
    let mut before = None;
    for found in comparisons {
        let here = (found.over, found.cell, found.endpoint);
        if before.replace(here) != Some(here) {
            let over = board.plan.arm_label(found.over);
            let cell = board.plan.place_name(found.cell).map_or_else(String::new, |name| format!(", {name}"));
            table.push_heading(format!("{} over {over}{cell}", found.endpoint.words()));
        }
        let signs = found.signs;
        table.push([
            Cell::from(board.plan.arm_label(found.arm)),
            Cell::from(found.lead).interval(found.interval.low, found.interval.high),
            Cell::from(format!("{}/{}/{}", signs.wins, signs.losses, signs.ties)),
            Cell::from(signs.greater()),
            Cell::from(signs.two_sided()),
        ]);
    }
    table.note(
        "Paired by seed; the sign is turned where less is better, so that a positive lead is good. Brackets: 95% of \
         resampled pairs. Then wins, losses and ties, and the exact sign test without the ties, one- and two-sided.",
    )
}

/// How the runs of each arm and cell failed; nothing where none did.
pub(super) fn anatomy_table(caption: &str, board: &Board<'_>) -> Option<Table> {
    let mut table = Table::new(caption).columns([
        Column::text("arm"),
        Column::number("runs").format(Format::fixed(0)),
        Column::number("failed").format(Format::fixed(0)),
        Column::number("dead first token").format(Format::fixed(0)),
        Column::number("wrong last token").format(Format::fixed(0)),
        Column::number("no reward at the end").format(Format::fixed(0)),
        Column::text("committed at"),
        Column::text("last token A, B, C, D"),
    ]);
    let mut any = false;
    for (cell, name) in board.plan.cells.iter().enumerate() {
        let found: Vec<(usize, Anatomy)> =
            (0..board.plan.study.arm.len()).map(|arm| (arm, board.anatomy(arm, cell))).collect();
        if found.iter().all(|(_, anatomy)| anatomy.failed == 0) {
            continue;
        }
        any = true;
        if board.plan.cells.len() > 1 {
            table.push_heading(name);
        }
        for (arm, anatomy) in found.into_iter().filter(|(_, anatomy)| anatomy.failed > 0) {
            let count = |count: usize| Cell::from(count as f64);
            let quantile = |share: f64| niwaki_stats::quantile(&anatomy.committed, share);
            let committed = match (quantile(0.0), quantile(0.5), quantile(1.0)) {
                (Ok(low), Ok(middle), Ok(high)) => format!("{middle:.0} ({low:.0} to {high:.0})"),
                _ => String::new(),
            };
            let last: Vec<String> = anatomy.last.iter().map(|share| format!("{share:.2}")).collect();
            table.push([
                Cell::from(board.plan.arm_label(arm)),
                count(anatomy.runs),
                count(anatomy.failed),
                count(anatomy.dead_start),
                count(anatomy.wrong_end),
                count(anatomy.silent),
                Cell::from(committed),
                Cell::from(last.join(", ")),
            ]);
        }
    }
    any.then_some(table.note(
        "Dead first token: most of the last batch starts with B or D. Committed at: the iteration at which 90% of the batch \
         first did, median and range over those runs. No reward at the end: the last batch held no rewarded trajectory, so \
         its gradient is zero. The last column is the mean over failed runs of the last token's share in the last batch.",
    ))
}

/// What the pilot tried for each cell, and what it chose.
pub(super) fn calibration_table(caption: &str, calibration: &Calibration) -> Table {
    let mut table = Table::new(caption).columns([
        Column::text(calibration.key.clone()),
        Column::number(calibration.endpoint.clone()).format(Format::fixed(3)),
        Column::number("seeds").format(Format::fixed(0)),
        Column::text(""),
    ]);
    for choice in &calibration.cells {
        let chosen = choice.chosen.map_or_else(|| "left out".to_owned(), |value| value.to_string());
        table.push_heading(format!("{}: aim {}, {chosen}", choice.cell, choice.aim));
        for tried in &choice.tried {
            let taken = choice.chosen == Some(tried.value);
            table.push([
                Cell::from(tried.value.to_string()),
                Cell::from(tried.came),
                Cell::from(tried.seeds as f64),
                Cell::from(if taken { "chosen" } else { "" }),
            ]);
        }
    }
    table
}

/// How dose and lead go together in each cell, and over all of them.
pub(super) fn dose_table(caption: &str, board: &Board<'_>, points: &[DosePoint]) -> Table {
    let mut table = Table::new(caption).columns([
        Column::text("cell"),
        Column::number("points").format(Format::fixed(0)),
        Column::number("dose").format(Format::significant(3)),
        Column::number("r, first half").format(Format::fixed(2).signed()),
        Column::number("r, second half").format(Format::fixed(2).signed()),
    ]);
    let shown = |found: Option<Correlated>| {
        let cell = found.map_or(Cell::blank(), |found| Cell::from(found.r));
        match found.and_then(|found| found.interval) {
            Some(interval) => cell.interval(interval.low, interval.high),
            None => cell,
        }
    };
    let halves = [Half::First, Half::Second];
    for (cell, name) in board.plan.cells.iter().enumerate() {
        let here: Vec<DosePoint> = points.iter().copied().filter(|point| point.cell == cell).collect();
        let doses: Vec<f64> = here.iter().map(|point| point.dose).collect();
        let Ok(dose) = niwaki_stats::mean(&doses) else { continue };
        let [first, second] = halves.map(|half| shown(correlation(&here, half)));
        let dose = Cell::from(dose).error(niwaki_stats::sem(&doses).unwrap_or(0.0));
        table.push([Cell::from(name.as_str()), Cell::from(here.len() as f64), dose, first, second]);
    }
    for (name, over) in [
        ("all, as they are", correlation as fn(&[DosePoint], Half) -> Option<Correlated>),
        ("all, z-scored within each cell", partialled),
    ] {
        let [first, second] = halves.map(|half| shown(over(points, half)));
        table.push([Cell::from(name), Cell::from(points.len() as f64), Cell::blank(), first, second]);
    }
    table.note(
        "Brackets: Fisher's 95% interval, with a degree of freedom less for every cell that is set aside.",
    )
}

/// The exponents of each arm's power law.
pub(super) fn scaling_table(caption: &str, board: &Board<'_>, scalings: &[Scaling]) -> Table {
    let mut table = Table::new(caption).column(Column::text("arm"));
    let axes = scalings.first().map(|scaling| scaling.axes.as_slice()).unwrap_or_default();
    for axis in axes {
        table = table.column(Column::number(format!("exponent of {axis}")).format(Format::fixed(2).signed()));
    }
    table = table.column(Column::text("cells"));
    for scaling in scalings {
        let mut cells = vec![Cell::from(board.plan.arm_label(scaling.arm))];
        cells.extend(
            scaling.exponents.iter().zip(&scaling.errors).map(|(e, error)| Cell::from(*e).error(*error)),
        );
        cells.push(Cell::from(format!("{} fitted, {} without a lead", scaling.fitted, scaling.left_out)));
        table.push(cells);
    }
    table
}

/// One line per run: arm, cell, seed, every endpoint, and where it ran, at full precision.
#[must_use]
pub fn endpoints_csv(board: &Board<'_>) -> String {
    let endpoints = &board.plan.study.endpoints;
    let names: Vec<String> = endpoints.iter().map(ToString::to_string).collect();
    let mut text = format!("arm,cell,seed,{},iterations,device\n", names.join(","));
    for run in &board.results.runs {
        let (arm, cell) = (&board.plan.study.arm[run.arm].name, &board.plan.cells[run.cell]);
        let _ = write!(text, "{},{},{}", csv_text(arm), csv_text(&cell.to_string()), run.seed);
        for endpoint in endpoints {
            let value = endpoint.of(run).map_or_else(String::new, |value| value.to_string());
            let _ = write!(text, ",{value}");
        }
        let _ = writeln!(text, ",{},{}", run.curve.len(), run.device);
    }
    text
}
