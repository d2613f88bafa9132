//! The pages: one for a question of the user's own, one for a study of the paper.

use super::{Diagnostics, Row, Summary, figures, league_table};
use crate::claim::{Judgement, Outcome};
use crate::verdict::{numbers_table, statements_table, verdict};
use niwaki_page::{Figure, Format, Made, Page, Section, Tile};

/// What an oracle page shows.
#[derive(Debug)]
pub struct OracleResults<'a> {
    /// Rows of the question itself.
    pub rows: &'a [Row],
    /// Their summaries.
    pub league: &'a [Summary],
    /// The tempered member from α = 0 to 1 on the same pairs.
    pub alphas: &'a [Summary],
    /// The losses from little drift to the one asked for.
    pub sweep: &'a [Summary],
    /// Whether the policies were given, so that no δ was asked for.
    pub given: bool,
}

/// The page of a question: for each reward the league table, MSE against α, the sweep over drift, the two channels
/// and the witness.
#[must_use]
pub fn oracle_page(title: &str, results: &OracleResults<'_>, made: Made) -> Page {
    let Some(first) = results.league.first() else { return Page::new(title).made(made) };
    let lowest = results.league.iter().min_by(|a, b| a.mse.mean.total_cmp(&b.mse.mean)).unwrap_or(first);
    let seeds = if first.seeds == 1 { "one pair".to_owned() } else { format!("{} pairs", first.seeds) };
    let mut rewards: Vec<&str> = results.league.iter().map(|row| row.reward.as_str()).collect();
    rewards.dedup();
    let mut page = Page::new(title)
        .subtitle(format!(
            "Exact values on {seeds} of policies; {}; reward: {}",
            setting(first, results.given),
            rewards.join(", ")
        ))
        .lead(
            "Every number is a finite sum over the tree of sequences: no sampling, no estimate. Bias, variance and \
             MSE are those of the single-trajectory estimate; the cosine is that between the gradient of its mean \
             and the gradient of the return.",
        )
        .tile(Tile::new("mean KL", Format::significant(3).text(first.mean_kl.mean)))
        .tile(Tile::new("drift σ²T", Format::significant(3).text(first.total_drift.mean)));
    // What depends on the reward has no one value for several.
    if rewards.len() == 1 {
        page = page
            .tile(
                Tile::new("dose Σ|b|", Format::significant(3).text(first.dose.mean))
                    .note("bias that PPO drops"),
            )
            .tile(
                Tile::new("lowest MSE", Format::significant(3).text(lowest.mse.mean))
                    .note(lowest.surrogate.correction.label()),
            );
    }
    for reward in &rewards {
        let name = if rewards.len() > 1 { format!(" on {reward}") } else { String::new() };
        page = reward_sections(page, results, reward, &name);
    }
    page.made(made)
}

/// What was measured, in a few words.
fn setting(row: &Summary, given: bool) -> String {
    let mut words = vec![format!("V = {}", row.process.vocab()), format!("T = {}", row.process.horizon())];
    if !given {
        words.push(format!("δ = {}", row.drift));
    }
    words.push(match row.surrogate.clip {
        None => "no clip".to_owned(),
        Some(clip) => format!("ratios clipped to [{}, {}]", 1.0 - clip.low, 1.0 + clip.high),
    });
    if !row.surrogate.routing {
        words.push("prefix detached".to_owned());
    }
    words.join(", ")
}

/// The sections of one reward; `name` is added to their headings.
fn reward_sections(page: Page, results: &OracleResults<'_>, reward: &str, name: &str) -> Page {
    let here = |summaries: &[Summary]| -> Vec<Summary> {
        summaries.iter().filter(|row| row.reward == reward).cloned().collect()
    };
    let (league, alphas, sweep) = (here(results.league), here(results.alphas), here(results.sweep));
    let rows: Vec<Row> = results.rows.iter().filter(|row| row.reward == reward).cloned().collect();
    let section =
        |heading: &str, id: &str| Section::new(format!("{heading}{name}")).id(format!("{id}-{reward}"));
    page.section(section("League table", "league").table(league_table("Every loss on the same pairs", &league)))
        .section(section("How much to correct", "alpha").figure(
            Figure::new(&figures::mse_against_alpha(&alphas))
                .caption("The tempered family on the same pairs; bars are one standard error over seeds."),
        ))
        .section(section("How drift moves it", "drift").figure(
            Figure::new(&figures::over_drift(&sweep))
                .caption(format!("From little drift to the one asked for{}.", figures::left_out(&sweep))),
        ))
        .section(
            section("The two channels", "channels")
                .prose(
                    "The gradient of a loss differs from PPO's by two parts: PPO's own term reweighted by the prefix, \
                     and credit routed back along the prefix. Both are shown as their component along the gradient of \
                     the return; what PPO itself lacks is what they must add.",
                )
                .figure(Figure::new(&figures::channels(&league)).caption("Mean over pairs, one standard error.")),
        )
        .section(witness_section(section("Where the bias lives", "witness"), &rows))
}

fn witness_section(section: Section, rows: &[Row]) -> Section {
    let section = section.prose(
        "The witness is the covariance of the prefix ratio with the step's own content. Its sum over positions is \
         minus PPO's bias.",
    );
    match figures::witness(rows) {
        Some(chart) => section.figure(Figure::new(&chart).caption("Thin lines are single pairs.")),
        None => section,
    }
}

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
    let mut statements = Section::new("The paper beside this run")
        .id("claims")
        .verdict(verdict(outcomes, agreeing))
        .table(numbers_table("The paper's numbers, and what came out here", outcomes))
        .note(
            "SEMs apart: the difference, less half a unit of the paper's last printed digit, in standard errors \
             (ours and, where printed, the paper's, together). A number agrees up to two of them.",
        );
    if let Some(table) = statements_table("The paper's other statements", outcomes) {
        statements = statements.table(table);
    }
    if !study.readings.is_empty() {
        statements =
            statements.prose("How silent or contradictory places are read:").list(study.readings.clone());
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
        .table(league_table("All that was measured", here))
        .figure(Figure::new(&figures::channels(&at_largest)).caption(format!("At δ = {largest}.")));
    let witnessed: Vec<Row> =
        rows.iter().filter(|row| row.reward == reward && row.drift == largest).cloned().collect();
    match figures::witness(&witnessed) {
        Some(chart) => section
            .figure(Figure::new(&chart).caption(format!("At δ = {largest}; thin lines are single pairs."))),
        None => section,
    }
}
