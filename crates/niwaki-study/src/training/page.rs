//! The page of a training study.

use super::analysis::{ANALYSES, Place};
use super::table::{comparisons_table, endpoints_table};
use super::{Board, Comparison, Endpoint, charts, figures};
use crate::Error;
use crate::ahead;
use crate::claim::Outcome;
use crate::report::Speed;
use crate::shipped;
use crate::verdict::{Count, leads_table, numbers_table, statements_table, verdict};
use niwaki_page::{Callout, Figure, Format, Made, Page, Section, Tile};
use niwaki_stats::Verdict;
use std::collections::BTreeSet;

/// The page: what was asked, the verdict, the paper's numbers beside ours, comparisons, curves, failures, speed.
///
/// # Errors
/// Where a curve holds a value that is not a number.
pub fn training_page(
    board: &Board<'_>,
    outcomes: &[Outcome],
    comparisons: &[Comparison],
    made: Made,
) -> Result<Page, Error> {
    let (study, results) = (&board.plan.study, board.results);
    let labels: Vec<&str> =
        std::iter::once(study.label.as_str()).chain(study.also.iter().map(String::as_str)).collect();
    let beside = study.paper_seeds.map_or_else(String::new, |seeds| format!("; the paper had {seeds}"));
    let seeds = results.runs.iter().map(|run| run.seed).collect::<BTreeSet<_>>().len();
    let subtitle = if of_the_paper(board, outcomes) {
        format!("{}, re-run", labels.join(", "))
    } else {
        labels.join(", ")
    };
    let mut page = Page::new(study.title.clone()).subtitle(subtitle).lead(study.question.clone()).tile(
        Tile::new("runs", format!("{} of {}", results.runs.len(), results.planned))
            .note(format!("up to {seeds} seeds{beside}")),
    );
    if !outcomes.is_empty() {
        page = page.tile(Count::of(outcomes).tile());
    }
    if let Some(speed) = &results.speed {
        page = page.tile(
            Tile::new("run-iterations per second", Format::significant(3).text(speed.rate()))
                .note(speed.device.clone()),
        );
    }
    let conclusion = conclusion(board, outcomes, comparisons);
    let shown = conclusion.is_some();
    page = conclusion.into_iter().fold(page, Page::section);
    page = page.section(claims(board, outcomes)?);
    page = analysed(page, board, Place::Settings)?;
    if !study.chart.is_empty() || !study.early.is_empty() {
        let mut section = Section::new("Figures").id("figures");
        for wanted in &study.chart {
            let bars = "Bars: two standard errors either side; of a median, 95% of resampled seeds.";
            section = section.figure(Figure::new(&charts::against(board, wanted)?).caption(bars));
        }
        for wanted in &study.early {
            let lines =
                "Each seed is a thin line, the mean of them bold; iteration 0 is the untrained policy.";
            section = section.figure(Figure::new(&figures::early(board, wanted)?).caption(lines));
        }
        page = page.section(section);
    }
    page = analysed(page, board, Place::Findings)?;
    if !comparisons.is_empty() {
        page = page.section(leads(board, comparisons)?);
    }
    for (cell, name) in board.plan.cells.iter().enumerate() {
        let heading =
            if board.plan.cells.len() == 1 { "Curves".to_owned() } else { format!("Curves, {name}") };
        let mut drawn = Vec::new();
        // The verdict stands over the first ones.
        if !shown || cell > 0 {
            drawn.push(
                Figure::new(&figures::curves(board, cell)).caption(figures::curves_caption(board, cell)),
            );
        }
        if let Some(grid) = figures::seeds(board, cell) {
            drawn.push(Figure::new(&grid).caption("Each seed is a thin line, the mean of them bold."));
        }
        if !drawn.is_empty() {
            let section = Section::new(heading).id(format!("curves-{cell}"));
            page = page.section(drawn.into_iter().fold(section, Section::figure));
        }
    }
    page = analysed(page, board, Place::Runs)?;
    if let Some(speed) = &results.speed {
        page = page.section(Section::new("Speed").id("speed").prose(speed_line(speed)));
    }
    Ok(page.made(made))
}

/// Whether a study is about the paper: it ships with the program, or says what the paper printed.
fn of_the_paper(board: &Board<'_>, outcomes: &[Outcome]) -> bool {
    !outcomes.is_empty() || shipped::find(&board.plan.study.label).is_some()
}

/// The verdict over the first curves, before any table: on the paper's statements, or else on every arm.
fn conclusion(board: &Board<'_>, outcomes: &[Outcome], comparisons: &[Comparison]) -> Option<Section> {
    let callouts = if outcomes.is_empty() { standings(board, comparisons) } else { vec![verdict(outcomes)] };
    (!callouts.is_empty()).then(|| {
        callouts
            .into_iter()
            .fold(Section::new("Verdict").id("verdict"), Section::callout)
            .figure(Figure::new(&figures::curves(board, 0)).caption(figures::curves_caption(board, 0)))
    })
}

/// How each arm does against the first one it is compared with, by the first endpoint.
fn standings(board: &Board<'_>, comparisons: &[Comparison]) -> Vec<Callout> {
    let Some(first) = comparisons.first() else { return Vec::new() };
    let other = board.plan.arm_label(first.over);
    let about = |one: &&Comparison| one.over == first.over && one.endpoint == first.endpoint;
    let arms: BTreeSet<usize> = comparisons.iter().filter(about).map(|one| one.arm).collect();
    let callout = |arm: usize| {
        let found: Vec<&Comparison> = comparisons.iter().filter(about).filter(|one| one.arm == arm).collect();
        let (name, endpoint) = (board.plan.arm_label(arm), first.endpoint.words());
        if let [only] = found[..] {
            return ahead::callout(&only.decision, only.signs, &name, &other, &endpoint);
        }
        let count = |what: Verdict| found.iter().filter(|one| one.decision.verdict == what).count();
        let (ahead, behind) = (count(Verdict::Ahead), count(Verdict::Behind));
        let open = found.len() - ahead - behind;
        Callout::neutral(
            format!("{name} is ahead of {other} in {ahead} of {} settings.", found.len()),
            format!(
                "It is behind in {behind}, and {open} are open; the comparisons below have each ({endpoint})."
            ),
        )
    };
    arms.into_iter().map(callout).collect()
}

/// How leads are held against the paper's.
const LEADS: &str = "Sign: whether the arm is ahead (or behind) as the paper has it. Size: whether the printed lead lies inside our interval, or our \
     mean inside the one that the paper's own wins imply if its differences are normal; open where our interval holds zero as \
     well. A lead is counted by its sign; one that the paper gives as a range, by its size. Seeds: won, of those that do not tie, with \
     the one-sided sign test that the paper prints.";

fn claims(board: &Board<'_>, outcomes: &[Outcome]) -> Result<Section, Error> {
    let study = &board.plan.study;
    let own = !of_the_paper(board, outcomes);
    let mut section = Section::new(if own { "Results" } else { "The paper and this run" }).id("claims");
    if outcomes.is_empty() && !own {
        section = section.prose("The paper proposes this study and prints no number of it.");
    }
    section = section.table(endpoints_table("What came out", board)?).note(endpoints_note(board));
    if outcomes.iter().any(|outcome| outcome.paper.is_some()) {
        section = section.table(numbers_table("The paper's numbers, and what came out here", outcomes)).note(
            "A mean agrees within two standard errors (ours and the paper's together) and the rounding of the print; a \
             share where Fisher's exact test gives p > 0.05 where that number of seeds could have given less; an iteration where it lies within the 95% interval of \
             resampled seeds, give or take 5; a range where our mean lies in it, give or take two standard errors; a range over \
             seeds where our mean lies in it or ours covers it, give or take 5; a correlation where it \
             lies within Fisher's 95% interval of ours, and is open where zero does too. A single seed leaves a number open.",
        );
    }
    if let Some(table) = leads_table("The paper's leads, and what came out here", outcomes) {
        section = section.table(table).note(format!("{} {LEADS}", ahead::RULE));
    }
    if let Some(table) = statements_table("The paper's statements", outcomes) {
        section = section.table(table).note(
            "Tested by the same rule, seed by seed. An order holds where every arm of a group is ahead of every arm of the next one; a \
             trend where the slope over its cells is above zero and no step is below. It is decided against where a pair is the other \
             way round, or a step (p ≤ 0.05 over all of them together); everything else is open. Words that allow a range of \
             ratios are borne out where two standard errors either side lie in it.",
        );
    }
    if !study.readings.is_empty() {
        section = section
            .prose("Where the paper is silent or contradicts itself, it is read as follows:")
            .list(study.readings.clone());
    }
    Ok(section)
}

/// What the numbers of the endpoints' table are, those that it has.
fn endpoints_note(board: &Board<'_>) -> String {
    let has = |wanted: Endpoint| board.plan.study.endpoints.contains(&wanted);
    let (broke, solved, drift) = (has(Endpoint::BreakThrough), has(Endpoint::Solved), has(Endpoint::Drift));
    let notes = [
        (true, "± is one standard error over seeds."),
        (broke, "Brackets of the break-through: the lowest and the highest seed."),
        (solved || drift, "Other brackets: 95% of resampled seeds."),
        (solved, "The iteration to η = 1 is read off the mean curve at multiples of 5 (η ≥ 0.95)."),
        (broke || solved, "What never happens counts as one iteration after the last."),
        (has(Endpoint::Success), "Success: the final η is above a half."),
    ];
    notes.iter().filter(|(there, _)| *there).map(|(_, words)| *words).collect::<Vec<_>>().join(" ")
}

/// The sections that analyses have at a place of the page.
fn analysed(page: Page, board: &Board<'_>, place: Place) -> Result<Page, Error> {
    ANALYSES.iter().try_fold(page, |page, analysis| {
        Ok(match analysis.section(place, board)? {
            Some(section) => page.section(section),
            None => page,
        })
    })
}

fn leads(board: &Board<'_>, comparisons: &[Comparison]) -> Result<Section, Error> {
    let mut section = Section::new("Paired comparisons").id("comparisons");
    if let Some(chart) = figures::leads(board, comparisons) {
        section = section.figure(
            Figure::new(&chart)
                .caption("Bars: 95% intervals, which exclude 0 exactly where there is a verdict."),
        );
    }
    for analysis in ANALYSES {
        section = analysis.beside_leads(section, board, comparisons)?;
    }
    Ok(section.table(comparisons_table("All comparisons", board, comparisons)))
}

fn speed_line(speed: &Speed) -> String {
    format!(
        "{} runs, {} run-iterations in {:.1} s on {} ({} threads): {} per second, start-up of {} included.",
        speed.runs,
        speed.run_iterations,
        speed.seconds,
        speed.device,
        speed.threads,
        Format::significant(4).text(speed.rate()),
        seconds(speed.start_up_seconds)
    )
}

/// A short time, in the unit in which it is not zero.
fn seconds(time: f64) -> String {
    if time < 0.1 { format!("{:.0} ms", (1e3 * time).max(1.0)) } else { format!("{time:.1} s") }
}
