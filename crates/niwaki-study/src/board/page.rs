//! The page of several runs: who is ahead, curves, differences, groups. It says so without its script, which adds choices.

use super::board_data;
use crate::Error;
use crate::ahead::callout;
use crate::runs::Comparison;
use niwaki_page::{
    Axis, Callout, Figure, ForestChart, Interval, LineChart, Live, Made, Page, Section, Series, Tile, Tone,
};
use niwaki_stats::Verdict;
use niwaki_train::reading::Standing;
use std::collections::BTreeMap;

/// Verdicts that a page shows one by one, and groups whose curves a drawing holds.
const FEW: usize = 4;
const DRAWN: usize = 8;
/// Groups whose tables are written without the script.
const WRITTEN: usize = 100;

/// What the page's script is made of.
const SCRIPTS: &[&str] = &[include_str!("draw.js"), include_str!("board.js")];

/// The page. `served` says whether it asks for what is new.
///
/// # Errors
/// As [`Comparison::difference`].
pub fn board_page(found: &Comparison, made: Made, served: bool) -> Result<Page, Error> {
    let mut data = board_data(found)?;
    data["live"] = served.into();
    let live =
        Live { id: "board-data", data: data.to_string(), scripts: SCRIPTS, style: include_str!("board.css") };
    Ok(without_script(found)?.live(live).made(made))
}

/// Conclusion, curves, differences, groups.
fn without_script(found: &Comparison) -> Result<Page, Error> {
    let mut section = Section::new("Who is ahead").id("ahead");
    let left_out = found.left_out();
    if let Some((first, rest)) = left_out.split_first() {
        section =
            section.callout(Callout::neutral("Not every run counts.", format!("{}.", sentence(first, rest))));
    }
    if let Some(diverged) = found.diverged_words() {
        section = section.callout(Callout::neutral("Some runs diverged.", format!("{diverged}.")));
    }
    section = verdicts(section, found)?
        .figure(Figure::new(&curves(found)).caption("Bold: the mean over seeds. Thin: every seed."));
    let count = |standing: Standing| {
        found.over().chain(found.unfinished()).filter(|row| row.standing == standing).count()
    };
    let (unfinished, diverged) = (count(Standing::Running), count(Standing::Diverged));
    let runs = found.over().count() + unfinished + found.damaged.len() + found.odd.len();
    let mut page = Page::new("Runs side by side")
        .subtitle(format!("{} groups, judged by their {}", found.groups.len(), found.judged.words()))
        .tile(Tile::new("runs", runs.to_string()).note(format!("{} seeds", found.seeds().len())))
        .tile(Tile::new("finished", count(Standing::Finished).to_string()))
        .tile(Tile::new("unfinished", unfinished.to_string()))
        .tile(
            Tile::new("failed", (diverged + found.damaged.len()).to_string())
                .note(format!("{diverged} diverged, {} cannot be read", found.damaged.len())),
        )
        .section(section);
    if found.groups.len() > WRITTEN {
        let many = format!("The tables of {} groups are written by this page's script.", found.groups.len());
        return Ok(page.section(Section::new("All groups").id("groups").prose(many)));
    }
    if found.groups.len() > 1 {
        let mut differences = Section::new("Differences").id("differences");
        if let Some(chart) = forest(found)? {
            differences = differences.figure(
                Figure::new(&chart)
                    .caption("Mean paired difference with its 95% interval; right of zero is ahead."),
            );
        }
        page = page.section(differences.table(found.differences_table()?));
    }
    Ok(page.section(Section::new("All groups").id("groups").table(found.groups_table())))
}

fn sentence(first: &str, rest: &[String]) -> String {
    std::iter::once(first.to_owned()).chain(rest.iter().cloned()).collect::<Vec<_>>().join("; ")
}

/// The verdict on every group, or their counts where there are many.
fn verdicts(mut section: Section, found: &Comparison) -> Result<Section, Error> {
    let [endpoint, _] = found.endpoints();
    let mut verdicts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut each = Vec::new();
    for at in found.compared() {
        let Some(difference) = found.difference(at, endpoint, found.baseline)? else { continue };
        let twin = found.twin(at, found.baseline).map_or("", |twin| found.groups[twin].name.as_str());
        let decision = &difference.decision;
        *verdicts.entry(decision.verdict.words()).or_default() += 1;
        let name = &found.groups[at].name;
        each.push((decision.verdict, callout(decision, difference.signs, name, twin, &endpoint.words())));
    }
    if each.len() <= FEW {
        return Ok(each.into_iter().fold(section, |section, (_, callout)| section.callout(callout)));
    }
    let ahead = each.iter().any(|(verdict, _)| *verdict == Verdict::Ahead);
    let counts: Vec<String> = verdicts.iter().map(|(words, count)| format!("{words}: {count}")).collect();
    let says = format!("Each against {}: {}.", found.against(), counts.join(", "));
    let because = format!("Verdicts on {}; each alone is wrong at most once in twenty.", endpoint.words());
    let callout = if ahead { Callout::good(says, because) } else { Callout::neutral(says, because) };
    section = section.callout(callout);
    Ok(section)
}

/// The mean curve of every group, each seed as a thin line behind it; of the first ones where there are many.
#[must_use]
pub fn curves(found: &Comparison) -> LineChart {
    let mut chart = LineChart::new("Curves, run by run")
        .x(Axis::linear("iteration").whole())
        .y(Axis::linear(found.judged.words()));
    for (at, group) in found.groups.iter().take(DRAWN).enumerate() {
        let runs = group.runs.iter().chain(&group.unfinished);
        let runs: Vec<Vec<(f64, f64)>> = runs
            .map(|row| row.curve.iter().map(|point| (point.iteration as f64, point.value)).collect())
            .collect();
        let mut sums: BTreeMap<usize, (f64, usize)> = BTreeMap::new();
        for &(x, y) in runs.iter().flatten() {
            let sum = sums.entry(x as usize).or_default();
            *sum = (sum.0 + y, sum.1 + 1);
        }
        // Where some runs have ended, the others' mean would jump.
        let all = runs.len();
        let mean =
            sums.iter().filter(|(_, sum)| sum.1 == all).map(|(&x, sum)| (x as f64, sum.0 / all as f64));
        let mut series = Series::new(group.name.clone(), mean.collect::<Vec<_>>()).tone(Tone::Hue(at));
        if all > 1 {
            series = runs.into_iter().fold(series, Series::run);
        }
        chart = chart.series(series);
    }
    chart
}

/// Every difference with its interval; nothing where none has one.
fn forest(found: &Comparison) -> Result<Option<ForestChart>, Error> {
    let [endpoint, _] = found.endpoints();
    let mut chart = ForestChart::new(format!("Difference from {}", found.against()))
        .x(Axis::linear(endpoint.words()).include(0.0));
    let mut drawn = false;
    for at in found.compared() {
        let decision = found.difference(at, endpoint, found.baseline)?.map(|found| found.decision);
        if let Some((decision, interval)) = decision.and_then(|found| Some((found, found.interval?))) {
            let name = found.groups[at].name.clone();
            chart = chart.line(Interval::new(name, decision.mean, interval.low, interval.high));
            drawn = true;
        }
    }
    Ok(drawn.then_some(chart))
}
