//! What the pilot tried for each cell before any other arm ran, and what the paper printed of it.

use super::{Analysis, Place};
use crate::Error;
use crate::claim::{Ours, Outcome, Printed, compare};
use crate::training::claims::TriedClaim;
use crate::training::{Board, Calibration, Training};
use niwaki_page::{Cell, Column, Format, Section, Table};

/// The analysis; a study asks for it with `[pilot]`.
pub(super) struct Pilots;

impl Analysis for Pilots {
    fn statements(&self, study: &Training) -> usize {
        study.tried.len()
    }

    fn outcomes(&self, board: &Board<'_>) -> Result<Vec<Outcome>, Error> {
        let claims = board.plan.study.tried.iter();
        let outcomes = claims.map(|claim| tried(board, claim)).collect::<Result<Vec<_>, _>>()?;
        Ok(outcomes.into_iter().flatten().collect())
    }

    fn section(&self, place: Place, board: &Board<'_>) -> Result<Option<Section>, Error> {
        let calibration = board.plan.study.chosen.as_ref().filter(|_| place == Place::Settings);
        Ok(calibration.map(chosen))
    }
}

fn tried(board: &Board<'_>, claim: &TriedClaim) -> Result<Option<Outcome>, Error> {
    let Some(calibration) = &board.plan.study.chosen else { return Ok(None) };
    let cell = calibration.cells.iter().find(|choice| choice.cell == claim.cell);
    let found = cell.and_then(|cell| cell.tried.iter().find(|tried| tried.value == claim.value));
    let Some(found) = found else { return Ok(None) };
    let printed = Printed::of(&board.plan.study.label, &claim.paper)?;
    let (sems, judgement) = compare(printed, None, found.came, found.sem.unwrap_or(f64::NAN));
    Ok(Some(Outcome {
        group: format!("{} of the pilot, {}", calibration.endpoint, claim.cell),
        statement: format!("{} = {}", calibration.key, claim.value),
        paper: Some(printed.value),
        paper_sem: None,
        ours: Ours::Number(found.came, found.sem.unwrap_or(0.0)),
        sems,
        judgement,
        remark: claim.remark.clone(),
    }))
}

/// What the pilot measured and chose.
fn chosen(calibration: &Calibration) -> Section {
    let band = calibration.within.map_or_else(String::new, |[low, high]| {
        format!(", accepted only from {low} to {high}; a cell without such a value is left out")
    });
    Section::new("The pilot")
        .id("pilot")
        .prose(format!(
            "Before any other arm ran, {} alone chose {} for each cell: the value whose {} is nearest to the aim{band}.",
            calibration.arm, calibration.key, calibration.endpoint
        ))
        .table(calibration_table("What was tried", calibration))
}

/// What the pilot tried for each cell, and what it chose.
fn calibration_table(caption: &str, calibration: &Calibration) -> Table {
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
