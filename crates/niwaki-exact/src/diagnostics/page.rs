//! The page of a question: every loss, how much to correct, how drift moves it, the two channels and the witness.

use super::ranking::{against_batch, direction_against_noise, leaders_in_words};
use super::{Report, Row, Summary, Sweeps, figures, ranking};
use niwaki_correction::Correction;
use niwaki_page::{Callout, Figure, Format, Grid, Made, Page, Section, Tile};

/// The page of a question: for each reward the league table, MSE against α, the sweep over drift, the two channels
/// and the witness.
pub(super) fn page(title: &str, results: &Report, sweeps: &Sweeps, made: Made) -> Page {
    let Some(first) = results.league.first() else { return Page::new(title).made(made) };
    let best =
        results.league.iter().max_by(|a, b| a.alignment.mean.total_cmp(&b.alignment.mean)).unwrap_or(first);
    let pairs = match (results.along, first.seeds) {
        (false, 1) => "one pair of policies".to_owned(),
        (false, pairs) => format!("{pairs} pairs of policies"),
        (true, 1) => "the one iteration of a run".to_owned(),
        (true, iterations) => format!("the {iterations} iterations of a run"),
    };
    let mut rewards: Vec<&str> = results.league.iter().map(|row| row.reward.as_str()).collect();
    rewards.dedup();
    let mut page = Page::new(title)
        .subtitle(format!(
            "Exact values on {pairs}; {}; reward: {}",
            setting(first, results.given),
            rewards.join(", ")
        ))
        .lead(
            format!(
                "Losses are ranked by A({}): the part of a batch's update that points where the return rises, over its \
                 whole size, with a fresh batch of {} trajectories. Every number but the column \u{201c}drawn\u{201d} is a \
                 finite sum over the tree of sequences: no sampling, no estimate.",
                results.batch, results.batch
            ),
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
                Tile::new(
                    format!("best A({})", results.batch),
                    Format::significant(3).text(best.alignment.mean),
                )
                .note(best.surrogate.correction.label()),
            );
    }
    for reward in &rewards {
        let name = if rewards.len() > 1 { format!(" on {reward}") } else { String::new() };
        page = reward_sections(page, results, sweeps, reward, &name);
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

/// Which of several losses makes the most of a batch, and what that takes.
fn conclusion(league: &[Summary], batch: u64) -> Option<Callout> {
    let best = league
        .iter()
        .reduce(|best, row| if row.alignment.mean > best.alignment.mean { row } else { best })?;
    let least = league.iter().min_by(|a, b| a.alignment.mean.total_cmp(&b.alignment.mean))?;
    // PPO is what readers have; where it is not asked for, or is the best itself, the other end of the table.
    let ppo = league.iter().find(|row| row.surrogate.correction == Correction::ppo());
    let beside = ppo.filter(|row| row.alignment.mean < best.alignment.mean).unwrap_or(least);
    let number = |value: f64| Format::significant(3).text(value);
    let name = |row: &Summary| row.surrogate.correction.label();
    (league.len() > 1 && best.alignment.mean > 0.0).then(|| {
        Callout::neutral(
            format!("With {batch} trajectories in a batch, {} is aligned best.", name(best)),
            format!(
                "Its alignment is {}, against {} for {}. With endless batches its cosine would be {}.",
                number(best.alignment.mean),
                number(beside.alignment.mean),
                name(beside),
                number(best.cosine.mean)
            ),
        )
    })
}

/// The sections of one reward; `name` is added to their headings.
fn reward_sections(page: Page, results: &Report, sweeps: &Sweeps, reward: &str, name: &str) -> Page {
    let here = |summaries: &[Summary]| -> Vec<Summary> {
        summaries.iter().filter(|row| row.reward == reward).cloned().collect()
    };
    let (league, alphas, sweep) = (here(&results.league), here(&sweeps.alphas), here(&sweeps.drifts));
    let rows: Vec<Row> = results.rows.iter().filter(|row| row.reward == reward).cloned().collect();
    let section =
        |heading: &str, id: &str| Section::new(format!("{heading}{name}")).id(format!("{id}-{reward}"));
    let batch = results.batch;
    let league_section = section("Which loss?", "league");
    let league_section = conclusion(&league, batch).into_iter().fold(league_section, Section::callout);
    let crossings =
        leaders_in_words(&rows).unwrap_or_else(|| "No loss is aligned with this return at all.".to_owned());
    let first_figures = Grid::new("Direction, noise and what a batch makes of them")
        .columns(2)
        .panel(direction_against_noise(&league))
        .panel(against_batch(&rows, &league, batch));
    let league_section = league_section
        .figure(Figure::new(&first_figures).caption(format!(
            "Left: upper left is best; larger batches help a loss up to its cosine and no further. Right: where lines cross, \
             two losses change place. {crossings}"
        )))
        .table(ranking("Every loss on the same pairs", batch, &league));
    let league_section = if league.iter().any(|row| !row.batch_cosine.mean.is_nan()) {
        league_section.prose(format!(
            "A({batch}) is exact. It is not the mean cosine of batches: that one, \u{201c}drawn\u{201d}, is sampled from batches of \
             {batch} and carries their noise. Both are of fresh batches; a batch that an update has already reused is fitted \
             to, and its gradient points elsewhere."
        ))
    } else {
        league_section
    };
    let alpha_figures = Grid::new("Tempering")
        .columns(2)
        .panel(figures::alignment_against_alpha(&alphas, batch))
        .panel(figures::mse_against_alpha(&alphas));
    page.section(league_section)
        .section(section("How much to correct", "alpha").figure(
            Figure::new(&alpha_figures)
                .caption("The tempered family on the same pairs; bars are one standard error over pairs."),
        ))
        .section(if results.along {
            section("Iteration by iteration", "iterations")
                .prose(
                    "The policy that drew an iteration's batch against the one that the iteration made of it: what each loss \
                     would have been worth on that drift.",
                )
                .figure(
                    Figure::new(&figures::over_iterations(&rows))
                        .caption(format!("Exact values of each iteration{}.", figures::left_out(&league))),
                )
        } else {
            section("How drift changes the picture", "drift").figure(
                Figure::new(&figures::over_drift(&sweep))
                    .caption(format!("From little drift up to the drift asked for{}.", figures::left_out(&sweep))),
            )
        })
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
        Some(chart) => section
            .figure(Figure::new(&chart).caption("Thin lines are single pairs; the thick one is their mean.")),
        None => section,
    }
}
