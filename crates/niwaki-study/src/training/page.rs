//! The page of a training study.

use super::table::{anatomy_table, comparisons_table, endpoints_table, scaling_table};
use super::{Board, Comparison, Speed};
use crate::Error;
use crate::claim::{Judgement, Outcome};
use crate::verdict::{numbers_table, statements_table, verdict};
use niwaki_page::{Figure, Format, Made, Page, Section, Tile};

/// The page: what was asked, the verdict, the paper's numbers beside ours, comparisons, curves, failures, speed.
///
/// # Errors
/// Where a curve holds what is no number.
pub fn training_page(
    board: &Board<'_>,
    outcomes: &[Outcome],
    comparisons: &[Comparison],
    made: Made,
) -> Result<Page, Error> {
    let (study, results) = (&board.plan.study, board.results);
    let agreeing = outcomes.iter().filter(|outcome| outcome.judgement == Judgement::Agrees).count();
    let labels: Vec<&str> =
        std::iter::once(study.label.as_str()).chain(study.also.iter().map(String::as_str)).collect();
    let beside = study.paper_seeds.map_or_else(String::new, |seeds| format!("; the paper had {seeds}"));
    let seeds = results.runs.iter().map(|run| run.seed + 1).max().unwrap_or(0);
    let mut page = Page::new(study.title.clone())
        .subtitle(format!("{}, re-run", labels.join(", ")))
        .lead(study.question.clone())
        .tile(
            Tile::new("runs", format!("{} of {}", results.runs.len(), results.planned))
                .note(format!("up to {seeds} seeds{beside}")),
        );
    if !outcomes.is_empty() {
        page = page.tile(Tile::new("statements that agree", format!("{agreeing} of {}", outcomes.len())));
    }
    if let Some(speed) = &results.speed {
        page = page.tile(
            Tile::new("run-iterations per second", Format::significant(3).text(speed.rate()))
                .note(speed.device.clone()),
        );
    }
    page = page.section(claims(board, outcomes, agreeing)?);
    if !comparisons.is_empty() {
        page = page.section(leads(board, comparisons)?);
    }
    for (cell, name) in board.plan.cells.iter().enumerate() {
        let heading =
            if board.plan.cells.len() == 1 { "Curves".to_owned() } else { format!("Curves, {name}") };
        let mut section = Section::new(heading)
            .id(format!("curves-{cell}"))
            .figure(Figure::new(&board.curves(cell)).caption("Bold lines are means over seeds."));
        if let Some(grid) = board.seeds(cell) {
            section = section
                .figure(Figure::new(&grid).caption("Each seed is a thin line, the mean of them bold."));
        }
        page = page.section(section);
    }
    if study.anatomy {
        page = page.section(failures(board));
    }
    if let Some(speed) = &results.speed {
        page = page.section(Section::new("Speed").id("speed").prose(speed_line(speed)));
    }
    Ok(page.made(made))
}

fn claims(board: &Board<'_>, outcomes: &[Outcome], agreeing: usize) -> Result<Section, Error> {
    let study = &board.plan.study;
    let mut section = Section::new("The paper beside this run").id("claims");
    if outcomes.is_empty() {
        section = section.prose("The paper proposes this study and prints no number of it.");
    } else {
        section = section.verdict(verdict(outcomes, agreeing));
    }
    section = section.table(endpoints_table("What came out", board)?).note(
        "± is one standard error over seeds. Brackets: the lowest and highest seed of the break-through, and 95% of \
         resampled seeds for the iteration to η = 1, which is read off the mean curve at multiples of 5 (η ≥ 0.95). What \
         never happens counts as one iteration after the last. Success: the final η is above a half.",
    );
    if outcomes.iter().any(|outcome| outcome.paper.is_some()) {
        section = section.table(numbers_table("The paper's numbers, and what came out here", outcomes)).note(
            "A mean agrees within two standard errors (ours and the paper's together) and the rounding of the print; a \
             share where Fisher's exact test gives p > 0.05; an iteration where it lies within the 95% interval of \
             resampled seeds, give or take 5; a range over seeds where ours covers it, give or take 5.",
        );
    }
    if let Some(table) = statements_table("The paper's statements", outcomes) {
        section = section.table(table).note(
            "An order holds where every arm of a group does better than every arm of the next one. An arm is ahead where its \
             mean lead is positive and the one-sided sign test gives p ≤ 0.05.",
        );
    }
    if !study.readings.is_empty() {
        section = section.prose("How silent or contradictory places are read:").list(study.readings.clone());
    }
    Ok(section)
}

fn leads(board: &Board<'_>, comparisons: &[Comparison]) -> Result<Section, Error> {
    let mut section = Section::new("Paired comparisons").id("comparisons");
    if let Some(chart) = board.leads(comparisons) {
        section = section.figure(Figure::new(&chart).caption("Bars: 95% of resampled pairs."));
    }
    if board.plan.study.scaling {
        for arm in 0..board.plan.study.arm.len() {
            let asked = comparisons.iter().any(|found| found.arm == arm);
            if let Some(map) = board.lead_map(arm, comparisons).filter(|_| asked) {
                section = section.figure(Figure::new(&map).caption("Mean lead over seeds in each cell."));
            }
        }
        let scalings = board.scalings(comparisons)?;
        if !scalings.is_empty() {
            let caption = "Power laws fitted to the leads that are positive";
            section = section.table(scaling_table(caption, board, &scalings));
        }
    }
    Ok(section.table(comparisons_table("All comparisons", board, comparisons)))
}

fn failures(board: &Board<'_>) -> Section {
    let mut section = Section::new("How runs fail").id("failures");
    let Some(table) = anatomy_table("Failed runs (final η at most a half)", board) else {
        return section.prose("No run failed.");
    };
    for (cell, name) in board.plan.cells.iter().enumerate() {
        if let Some(chart) = board.dead_starts(cell) {
            let caption = match board.plan.cells.len() {
                1 => "All arms; thin lines are single runs, at most 80 of each kind.".to_owned(),
                _ => format!("{name}, all arms; thin lines are single runs, at most 80 of each kind."),
            };
            section = section.figure(Figure::new(&chart).caption(caption));
        }
    }
    section.table(table)
}

fn speed_line(speed: &Speed) -> String {
    format!(
        "{} runs, {} run-iterations in {:.1} s on {} ({} threads): {} per second, start-up of {:.1} s included.",
        speed.runs,
        speed.run_iterations,
        speed.seconds,
        speed.device,
        speed.threads,
        Format::significant(4).text(speed.rate()),
        speed.start_up_seconds
    )
}
