//! The tables of a training study.

use super::{Board, Comparison, Endpoint, Estimate};
use crate::Error;
use crate::ahead::{RULE, mean_cell};
use niwaki_page::{Cell, Column, Format, Table, csv_text};
use std::fmt::Write as _;

/// One row per arm and cell, one column per endpoint; the best of each cell is marked.
///
/// # Errors
/// Where a curve holds a value that is not a number.
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
        Column::text("verdict"),
        Column::text("arm"),
        Column::number("lead").format(Format::significant(2).signed()),
        Column::number("p").format(Format::significant(2)),
        Column::text("w/l/t"),
        Column::number("sign test").format(Format::significant(2)),
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
            Cell::from(found.decision.verdict.words()),
            Cell::from(board.plan.arm_label(found.arm)),
            mean_cell(&found.decision),
            Cell::from(found.decision.p),
            Cell::from(format!("{}/{}/{}", signs.wins, signs.losses, signs.ties)),
            Cell::from(signs.greater()),
        ]);
    }
    table.note(format!(
        "{RULE} The sign is turned where less is better, so that a positive lead is good; brackets: the 95% interval. Then wins, \
         losses and ties, and the paper's test: the one-sided sign test without the ties."
    ))
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
            let value = run.value(*endpoint).map_or_else(String::new, |value| value.to_string());
            let _ = write!(text, ",{value}");
        }
        let _ = writeln!(text, ",{},{}", run.course.curve.len(), run.device);
    }
    text
}
