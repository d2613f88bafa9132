//! The page of a study of the paper.

use super::Diagnostics;
use crate::claim::Outcome;
use crate::verdict::{Count, numbers_table, statements_table, verdict};
use niwaki_exact::diagnostics::{Row, Summary, figures, league_table};
use niwaki_page::{Figure, Made, Page, Section, Tile};

/// The page of a study: the verdict, the paper's statements beside ours, and all that was measured.
#[must_use]
pub fn study_page(
    study: &Diagnostics,
    outcomes: &[Outcome],
    rows: &[Row],
    summaries: &[Summary],
    made: Made,
) -> Page {
    let mut statements = Section::new("The paper and this run")
        .id("claims")
        .table(numbers_table("The paper's numbers, and what came out here", outcomes))
        .note(
            "difference (SE): the difference, less half a unit of the paper's last printed digit, in standard errors \
             (ours and, where printed, the paper's, together). A number agrees up to two of them.",
        );
    if let Some(table) = statements_table("The paper's other statements", outcomes) {
        statements = statements.table(table);
    }
    if !study.readings.is_empty() {
        statements = statements
            .prose("Where the paper is silent or contradicts itself, it is read as follows:")
            .list(study.readings.clone());
    }
    let mut first = Section::new("Verdict").id("verdict").callout(verdict(outcomes));
    let mut rewards = Vec::new();
    for reward in &study.rewards {
        let here: Vec<Summary> = summaries.iter().filter(|row| row.reward == *reward).cloned().collect();
        let mut drawn = overviews(study, reward, &here);
        // The verdict stands over the first one.
        if rewards.is_empty() && !drawn.is_empty() {
            first = first.figure(drawn.remove(0));
        }
        rewards.push(reward_section(study, reward, &here, rows, drawn));
    }
    let page = Page::new(study.title.clone())
        .subtitle(format!("{}, re-run", study.label))
        .lead(study.question.clone())
        .tile(Count::of(outcomes).tile())
        .tile(Tile::new("seeds", summaries.first().map_or(0, |row| row.seeds).to_string()))
        .section(first)
        .section(statements);
    rewards.into_iter().fold(page, Page::section).made(made)
}

/// The largest drift of a study, and what was measured there.
fn at_largest(study: &Diagnostics, here: &[Summary]) -> (f64, Vec<Summary>) {
    let largest = study.drifts.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (largest, here.iter().filter(|row| row.drift == largest).cloned().collect())
}

/// The figures that show all losses of one reward together.
fn overviews(study: &Diagnostics, reward: &str, here: &[Summary]) -> Vec<Figure> {
    let (largest, rows) = at_largest(study, here);
    let mut drawn = Vec::new();
    if rows.iter().filter(|row| row.surrogate.correction.name() == "tempered").count() > 1 {
        drawn.push(Figure::new(&figures::mse_against_alpha(&rows)).caption(format!(
            "The {reward} reward at δ = {largest}; bars are one standard error over seeds."
        )));
    }
    if study.drifts.len() > 1 {
        drawn.push(Figure::new(&figures::over_drift(here)).caption(format!(
            "The {reward} reward at all drifts of the study, means over seeds{}.",
            figures::left_out(here)
        )));
    }
    drawn
}

/// Tables and figures of one reward, after those that show all losses together.
fn reward_section(
    study: &Diagnostics,
    reward: &str,
    here: &[Summary],
    rows: &[Row],
    drawn: Vec<Figure>,
) -> Section {
    let (largest, at_largest) = at_largest(study, here);
    let section = drawn
        .into_iter()
        .fold(Section::new(format!("Reward: {reward}")).id(reward), Section::figure)
        .table(league_table("All measurements", here))
        .figure(Figure::new(&figures::channels(&at_largest)).caption(format!("At δ = {largest}.")));
    let witnessed: Vec<Row> =
        rows.iter().filter(|row| row.reward == reward && row.drift == largest).cloned().collect();
    match figures::witness(&witnessed) {
        Some(chart) => section
            .figure(Figure::new(&chart).caption(format!("At δ = {largest}; thin lines are single pairs."))),
        None => section,
    }
}
