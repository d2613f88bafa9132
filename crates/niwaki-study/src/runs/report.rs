//! A comparison as text, JSON and a page.

use super::compare::{Comparison, Endpoint, Group};
use crate::Error;
use crate::ahead::{RULE, callout, interval_words};
use niwaki_page::{
    Axis, Callout, Cell, Column, Figure, ForestChart, Format, Interval, LineChart, Made, Page, Section,
    Series, Table, Tone,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Verdicts that a page shows one by one.
const FEW: usize = 4;

impl Comparison {
    /// Every group: its runs, and where they end.
    #[must_use]
    pub fn groups_table(&self) -> Table {
        let mut table = Table::new(format!("Runs, by their {}", self.judged.words()))
            .column(Column::text("group"))
            .column(Column::number("seeds").format(Format::fixed(0)));
        for endpoint in Endpoint::ALL {
            table = table.column(Column::number(endpoint.words()).format(Format::fixed(3)));
        }
        table = table.column(Column::number("mean drift").format(Format::significant(3)));
        for group in &self.groups {
            let mean = |value: &dyn Fn(&super::Run) -> f64| {
                group.runs.iter().map(value).sum::<f64>() / group.runs.len().max(1) as f64
            };
            let mut cells = vec![Cell::from(group.name.as_str()), Cell::from(group.runs.len() as f64)];
            for endpoint in Endpoint::ALL {
                cells.push(Cell::from(mean(&|run| endpoint.of(run, self.judged))));
            }
            cells.push(Cell::from(mean(&|run| run.finished.summary.mean_drift)));
            table.push(cells);
        }
        table
    }

    /// Every group against its baseline, seed by seed; the verdict comes first.
    ///
    /// # Errors
    /// As [`Comparison::difference`].
    pub fn differences_table(&self) -> Result<Table, Error> {
        let mut table = Table::new(format!("Against {}, paired by seed", self.against))
            .column(Column::text("verdict"))
            .column(Column::text("group"))
            .column(Column::text("endpoint"))
            .column(Column::number("difference").format(Format::significant(2).signed()))
            .column(Column::text("95% interval"))
            .column(Column::text("seeds ahead"))
            .column(Column::number("p").format(Format::significant(2)));
        for (at, group) in self.compared() {
            for endpoint in Endpoint::ALL {
                let cells = match self.difference(at, endpoint)? {
                    None => vec![
                        Cell::from("no seed in common"),
                        Cell::from(group.name.as_str()),
                        Cell::from(endpoint.words()),
                    ],
                    Some(found) => vec![
                        Cell::from(found.decision.verdict.words()),
                        Cell::from(group.name.as_str()),
                        Cell::from(endpoint.words()),
                        Cell::from(found.decision.mean),
                        Cell::from(interval_words(&found.decision)),
                        Cell::from(format!("{} of {}", found.signs.wins, found.decision.pairs)),
                        Cell::from(found.decision.p),
                    ],
                };
                table.push(cells);
            }
        }
        Ok(table.note(format!("{RULE} Positive means ahead of the baseline.")))
    }

    /// Groups that have a baseline, with their places; without a match a group stands in the table of all groups alone.
    fn compared(&self) -> impl Iterator<Item = (usize, &Group)> {
        self.groups.iter().enumerate().filter(|(_, group)| group.baseline.is_some())
    }

    /// The name of a group's baseline.
    fn baseline(&self, group: &Group) -> &str {
        group.baseline.map_or("", |at| self.groups[at].name.as_str())
    }

    /// Which runs are not finished, in a line; none where all are.
    #[must_use]
    pub fn unfinished_words(&self) -> Option<String> {
        let [first, rest @ ..] = &self.unfinished[..] else { return None };
        let first = first.display();
        Some(match rest.len() {
            0 => format!("1 run is not finished and not counted: {first}"),
            more => format!("{} runs are not finished and not counted: {first} and {more} more", more + 1),
        })
    }

    /// All numbers, for programs.
    ///
    /// # Errors
    /// As [`Comparison::difference`].
    pub fn json(&self) -> Result<String, Error> {
        let run = |run: &super::Run| {
            json!({
                "folder": run.folder.display().to_string(),
                "seed": run.spec.seed,
                "auc": Endpoint::Auc.of(run, self.judged),
                "final": Endpoint::Final.of(run, self.judged),
                "mean_drift": run.finished.summary.mean_drift,
            })
        };
        let group = |group: &Group| json!({ "name": group.name, "runs": group.runs.iter().map(run).collect::<Vec<_>>() });
        let mut differences: Vec<Value> = Vec::new();
        for (at, group) in self.compared() {
            for (name, endpoint) in [("auc", Endpoint::Auc), ("final", Endpoint::Final)] {
                if let Some(found) = self.difference(at, endpoint)? {
                    differences.push(json!({
                        "group": group.name,
                        "against": self.baseline(group),
                        "endpoint": name,
                        "verdict": found.decision.verdict.words(),
                        "pairs": found.decision.pairs,
                        "mean": found.decision.mean,
                        "low": found.decision.interval.map(|interval| interval.low),
                        "high": found.decision.interval.map(|interval| interval.high),
                        "wins": found.signs.wins,
                        "losses": found.signs.losses,
                        "ties": found.signs.ties,
                        "p": found.decision.p,
                        "sign_p": found.signs.two_sided(),
                    }));
                }
            }
        }
        let document = json!({
            "judged_by": self.judged.words(),
            "groups": self.groups.iter().map(group).collect::<Vec<_>>(),
            "against": self.against,
            "differences": differences,
            "unfinished": self.unfinished.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>(),
        });
        Ok(format!("{document:#}"))
    }

    /// The mean curve of every group, each seed as a thin line behind it.
    #[must_use]
    pub fn curves(&self) -> LineChart {
        let mut chart = LineChart::new("Curves, run by run")
            .x(Axis::linear("iteration").whole())
            .y(Axis::linear(self.judged.words()));
        for (at, group) in self.groups.iter().enumerate() {
            let curves: Vec<Vec<(f64, f64)>> = group.runs.iter().map(|run| run.curve(self.judged)).collect();
            let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
            for &(x, y) in curves.iter().flatten() {
                let sum = sums.entry(x as u64).or_default();
                *sum = (sum.0 + y, sum.1 + 1.0);
            }
            // Where some runs have ended, the others' mean would jump.
            let all = curves.len() as f64;
            let mean = sums.iter().filter(|(_, sum)| sum.1 == all).map(|(&x, sum)| (x as f64, sum.0 / sum.1));
            let mut series = Series::new(group.name.clone(), mean.collect::<Vec<_>>()).tone(Tone::Hue(at));
            if curves.len() > 1 {
                series = curves.into_iter().fold(series, Series::run);
            }
            chart = chart.series(series);
        }
        chart
    }

    /// Conclusion, curves, differences, all runs.
    ///
    /// # Errors
    /// As [`Comparison::difference`].
    pub fn page(&self, made: Made) -> Result<Page, Error> {
        let mut section = Section::new("Who is ahead");
        if let Some(unfinished) = self.unfinished_words() {
            section = section.callout(Callout::neutral("Not all runs are finished.", unfinished));
        }
        let many = self.compared().count() > FEW;
        let mut verdicts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut forest = ForestChart::new(format!("Difference from {}", self.against))
            .x(Axis::linear(Endpoint::Auc.words()).include(0.0));
        let mut drawn = false;
        for (at, group) in self.compared() {
            let Some(found) = self.difference(at, Endpoint::Auc)? else { continue };
            *verdicts.entry(found.decision.verdict.words()).or_default() += 1;
            if !many {
                section = section.callout(callout(
                    &found.decision,
                    found.signs,
                    &group.name,
                    self.baseline(group),
                    Endpoint::Auc.words(),
                ));
            }
            if let Some(interval) = found.decision.interval {
                let mean = found.decision.mean;
                forest = forest.line(Interval::new(group.name.clone(), mean, interval.low, interval.high));
                drawn = true;
            }
        }
        if many {
            let counts: Vec<String> =
                verdicts.iter().map(|(words, count)| format!("{words}: {count}")).collect();
            section = section.callout(Callout::neutral(
                format!("Each against {}: {}.", self.against, counts.join(", ")),
                format!("Verdicts on {}; each alone is wrong at most once in twenty.", Endpoint::Auc.words()),
            ));
        }
        let runs: usize = self.groups.iter().map(|group| group.runs.len()).sum();
        section = section.figure(
            Figure::new(&self.curves())
                .caption("Bold: the mean over seeds. Thin: every seed.")
                .hint("Click a name in the legend to hide or show it."),
        );
        let mut page = Page::new("Runs side by side")
            .subtitle(format!(
                "{} groups, {runs} runs, judged by their {}",
                self.groups.len(),
                self.judged.words()
            ))
            .section(section);
        if self.groups.len() > 1 {
            let mut differences = Section::new("Differences");
            if drawn {
                differences =
                    differences
                        .figure(Figure::new(&forest).caption(
                            "Mean paired difference with its 95% interval; right of zero is ahead.",
                        ));
            }
            page = page.section(differences.table(self.differences_table()?));
        }
        Ok(page.section(Section::new("All groups").table(self.groups_table())).made(made))
    }
}
