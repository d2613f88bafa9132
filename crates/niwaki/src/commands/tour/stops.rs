//! The stops of the tour.

use super::{Line, Stop};
use crate::commands::Command;
use crate::commands::{reproduce, solve};
use crate::{output, terminal};
use anyhow::{Context, bail};
use niwaki_page::{Callout, Figure, Page, Section};
use niwaki_study::board::board_page;
use niwaki_study::runs::{Comparison, Row};
use niwaki_train::reading::Reader;
use std::path::Path;

/// Examples that the program carries, under the names that the tour gives them.
const EXAMPLES: [(&str, &str); 3] = [
    ("stale.jsonl", include_str!("../../../../../examples/advise/win.jsonl")),
    ("shop.csv", include_str!("../../../../../examples/planner/shop.csv")),
    ("train.toml", include_str!("../../../../../examples/train/tour.toml")),
];

/// Writes the examples.
pub(super) fn unpack(folder: &Path) -> anyhow::Result<()> {
    EXAMPLES.iter().try_for_each(|(name, text)| output::write_whole(&folder.join(name), text))
}

/// A page of a stop's own, and its first figure for the tour's.
fn keep(folder: &Path, page: &Page) -> anyhow::Result<Option<Figure>> {
    output::write_whole(&folder.join("index.html"), &page.to_html())?;
    Ok(page.figures().next().cloned())
}

fn with(section: Section, figure: Option<Figure>) -> Section {
    figure.into_iter().fold(section, Section::figure)
}

/// Is my run stale?
pub(super) fn advise(home: &Path) -> anyhow::Result<Stop> {
    let line = Line::new("niwaki advise HOME/stale.jsonl --out HOME/advise", home);
    let command = line.typed();
    let Command::Advise(args) = line.parsed()? else { bail!("{command} is not advice") };
    let advices = args.advise()?;
    let advice = advices.first().context("the example holds no run")?;
    let figure = keep(&home.join("advise"), &advice.page(output::made_by(&command)))?;
    let section = Section::new("Is my run stale?")
        .prose(
            "A trainer that reuses its batches learns from data sampled by an older policy. From the log-probs of both \
             policies, which every trainer has, `advise` says how stale the data is, what that costs, and what to set. \
             This example is a small training run that reuses every batch twelve times.",
        )
        .command("Any trainer's dump works the same way: JSONL, npz or parquet.", command.clone())
        .callout(Callout::neutral(
            format!("Verdict: {}", advice.verdict.says),
            format!("How sure: {}.", advice.verdict.sure),
        ));
    let section =
        with(section, figure).link("The whole page, with every number and its interval", "advise/index.html");
    let said = first_lines(&advice.text(terminal::width()), 12);
    Ok(Stop { heading: "Is my run stale?", command, said, section })
}

/// Which loss?
pub(super) fn oracle(home: &Path) -> anyhow::Result<Stop> {
    let losses = "ppo tempered:0.25 tempered:0.5 full gspo cispo";
    let line = Line::new(&format!("niwaki oracle --losses {losses} --out HOME/oracle"), home);
    let command = line.typed();
    let Command::Oracle(args) = line.parsed()? else { bail!("{command} is not an oracle") };
    let report = args.measure()?;
    let page = report
        .page("What a policy loss is worth", output::made_by(&command))
        .context("the oracle has no page")?;
    let figure = keep(&home.join("oracle"), &page)?;
    let table = || report.tables().swap_remove(0);
    let section = Section::new("Which loss?")
        .prose(
            "On a process small enough to enumerate, a policy loss has no secrets: `oracle` sums over every sequence and \
             ranks the losses by how much of a batch's update points where the return rises (1 is perfect), with its bias \
             and its noise beside it.",
        )
        .command("Name the losses of your trainer; `niwaki oracle --help` lists all of them.", command.clone())
        .table(table());
    let section = with(section, figure).link("The whole page", "oracle/index.html");
    Ok(Stop { heading: "Which loss?", command, said: table().to_text(terminal::width()), section })
}

/// Schedule a shop.
pub(super) fn solve(home: &Path) -> anyhow::Result<Stop> {
    let line = Line::new("niwaki solve HOME/shop.csv --time 2s --out HOME/schedule", home);
    let command = line.typed();
    let Command::Solve(args) = line.parsed()? else { bail!("{command} is not a search") };
    let (found, _) = args.solve()?;
    found.write(&args, "shop")?;
    let figure = keep(&home.join("schedule"), &solve::page(&found, "shop", output::made_by(&command)))?;
    let section = Section::new("Schedule a shop")
        .prose(
            "A table of jobs with machines, times, shifts, setups and due dates becomes a schedule that an independent \
             checker has passed, with a bound on how much better any schedule could be. Click a job to highlight it.",
        )
        .command("`niwaki template shop.csv` writes a table to fill in.", command.clone())
        .list(found.lines.iter().skip(1).cloned());
    let section = with(section, figure).link("The schedule's own page", "schedule/index.html");
    Ok(Stop { heading: "Schedule a shop", command, said: found.lines.join("\n"), section })
}

/// Train with the correction.
pub(super) fn train(home: &Path) -> anyhow::Result<Stop> {
    let arms = "--arm ppo --arm tempered:0.25 --seeds 8";
    let line = Line::new(&format!("niwaki sweep HOME/train.toml {arms} --out HOME/training"), home);
    let command = line.typed();
    let Command::Sweep(args) = line.parsed()? else { bail!("{command} is not a sweep") };
    let folder = reproduce::Reproduce::study(&args.write()?, &home.join("training"))?;
    let comparison = Comparison::of(Reader::new(Row::of).below(&[folder])?, None)?;
    let page = board_page(&comparison, output::made_by(&command), false)?;
    let figure = keep(&home.join("training").join("compare"), &page)?;
    let section = Section::new("Train with the correction")
        .prose(
            "The same small task, trained from eight seeds with PPO's loss, and with a quarter of the ratio that PPO drops put \
             back (`tempered:0.25`). Runs with the same seed see the same noise, so they can be compared pair by pair. \
             Advantages are exact here, so only the loss differs. With estimated advantages the gain is smaller, and often \
             there is none: that is what `advise` is for.",
        )
        .command("A spec of your own works the same way; `niwaki train` trains a single run.", command.clone())
        .table(comparison.differences_table()?);
    let section = with(section, figure).link("The whole comparison", "training/compare/index.html");
    let said = match comparison.difference(1, comparison.endpoints()[0], comparison.baseline)? {
        None => String::new(),
        Some(found) => format!(
            "{}\n{}",
            comparison.groups_table().to_text(terminal::width()).trim_end(),
            format_args!(
                "the correction is ahead on {} of {} seeds (mean over the run {:+.3})",
                found.signs.wins, found.decision.pairs, found.decision.mean
            )
        ),
    };
    Ok(Stop { heading: "Train with the correction", command, said, section })
}

/// The head of a text.
fn first_lines(text: &str, most: usize) -> String {
    text.lines().take(most).collect::<Vec<_>>().join("\n")
}
