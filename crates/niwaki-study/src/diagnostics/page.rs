//! The page of a study of the paper.

use super::Diagnostics;
use crate::claim::{Judgement, Outcome};
use crate::verdict::{numbers_table, statements_table, verdict};
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
    let agreeing = outcomes.iter().filter(|outcome| outcome.judgement == Judgement::Agrees).count();
    let mut statements = Section::new("The paper and this run")
        .id("claims")
        .callout(verdict(outcomes, agreeing))
        .table(numbers_table("The paper's numbers, and what came out here", outcomes))
        .note(
            "SEMs apart: the difference, less half a unit of the paper's last printed digit, in standard errors \
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
    let mut page = Page::new(study.title.clone())
        .subtitle(format!("{}, re-run", study.label))
        .lead(study.question.clone())
        .tile(Tile::new("statements that agree", format!("{agreeing} of {}", outcomes.len())))
        .tile(Tile::new("seeds", summaries.first().map_or(0, |row| row.seeds).to_string()))
        .section(statements);
    for reward in &study.rewards {
        let here: Vec<Summary> = summaries.iter().filter(|row| row.reward == *reward).cloned().collect();
        page = page.section(reward_section(study, reward, &here, rows));
    }
    page.made(made)
}

/// Tables and figures of one reward.
fn reward_section(study: &Diagnostics, reward: &str, here: &[Summary], rows: &[Row]) -> Section {
    let largest = study.drifts.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let at_largest: Vec<Summary> = here.iter().filter(|row| row.drift == largest).cloned().collect();
    let tempered = at_largest.iter().filter(|row| row.surrogate.correction.name() == "tempered").count();
    let mut section = Section::new(format!("Reward: {reward}")).id(reward);
    if tempered > 1 {
        section = section.figure(
            Figure::new(&figures::mse_against_alpha(&at_largest))
                .caption(format!("At δ = {largest}; bars are one standard error over seeds.")),
        );
    }
    if study.drifts.len() > 1 {
        section = section.figure(
            Figure::new(&figures::over_drift(here))
                .caption(format!("All drifts of the study, means over seeds{}.", figures::left_out(here))),
        );
    }
    section = section
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
