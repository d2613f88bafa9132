//! A comparison as text and JSON.

use super::compare::Comparison;
use super::{Group, Row};
use crate::Error;
use crate::ahead::{RULE, interval_words};
use niwaki_page::{Cell, Column, Format, Table};
use niwaki_train::reading::Standing;
use serde_json::{Value, json};
use std::sync::Arc;

impl Comparison {
    /// Every group: its runs, and what they came to.
    #[must_use]
    pub fn groups_table(&self) -> Table {
        let mut table = Table::new(format!("Runs, by their {}", self.judged.words()))
            .column(Column::text("group"))
            .column(Column::number("seeds").format(Format::fixed(0)));
        for endpoint in self.endpoints() {
            table = table.column(Column::number(endpoint.words()).format(Format::fixed(3)));
        }
        table = table.column(Column::number("mean drift").format(Format::significant(3)));
        for (at, group) in self.groups.iter().enumerate() {
            let mean = |values: Vec<f64>| niwaki_stats::mean(&values).map_or(Cell::blank(), Cell::from);
            let mut cells = vec![Cell::from(group.name.as_str()), Cell::from(group.runs.len() as f64)];
            for endpoint in self.endpoints() {
                cells.push(mean(self.values(at, endpoint).into_values().collect()));
            }
            cells.push(mean(group.runs.iter().filter_map(|row| row.drift).collect()));
            table.push(cells);
        }
        table
    }

    /// Every group against its baseline, seed by seed; the verdict comes first.
    ///
    /// # Errors
    /// As [`Comparison::difference`].
    pub fn differences_table(&self) -> Result<Table, Error> {
        let mut table = Table::new(format!("Against {}, paired by seed", self.against()))
            .column(Column::text("verdict"))
            .column(Column::text("group"))
            .column(Column::text("endpoint"))
            .column(Column::number("difference").format(Format::significant(2).signed()))
            .column(Column::text("95% interval"))
            .column(Column::text("seeds ahead"))
            .column(Column::number("p").format(Format::significant(2)));
        for at in self.compared() {
            let group = &self.groups[at];
            for endpoint in self.endpoints() {
                let cells = match self.difference(at, endpoint, self.baseline)? {
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

    /// What is left out, a line each: runs that are not finished, cannot be read, are judged by something else, or stand twice.
    #[must_use]
    pub fn left_out(&self) -> Vec<String> {
        let line = |count: usize, one: &str, many: &str, first: Option<String>| {
            let first = first?;
            Some(match count {
                1 => format!("1 run {one}: {first}"),
                more => format!("{more} runs {many}: {first} and {} more", more - 1),
            })
        };
        let of = |rows: Vec<&Arc<Row>>, one: &str, many: &str| {
            line(rows.len(), one, many, rows.first().map(|row| row.folder.display().to_string()))
        };
        let damaged = self.damaged.first().map(|damaged| damaged.reason.clone());
        let lines = [
            of(
                self.unfinished().collect(),
                "is not finished and not counted",
                "are not finished and not counted",
            ),
            line(
                self.damaged.len(),
                "cannot be read and is not counted",
                "cannot be read and are not counted",
                damaged,
            ),
            of(
                self.odd.iter().collect(),
                "is judged by something else and not counted",
                "are judged by something else and not counted",
            ),
            of(
                self.twice.iter().collect(),
                "is there twice and counted once",
                "are there twice and counted once",
            ),
        ];
        lines.into_iter().flatten().collect()
    }

    /// Runs that diverged, in a line; none where all went well.
    #[must_use]
    pub fn diverged_words(&self) -> Option<String> {
        let count = self.over().filter(|row| row.standing == Standing::Diverged).count();
        let runs = if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
        (count > 0).then(|| format!("{runs} diverged; what was not reached counts as nothing earned"))
    }

    /// All numbers, for programs.
    ///
    /// # Errors
    /// As [`Comparison::difference`].
    pub fn json(&self) -> Result<String, Error> {
        let names = self.endpoints().map(|endpoint| endpoint.to_string());
        let run = |row: &Arc<Row>| {
            let mut said = json!({
                "folder": row.folder.display().to_string(),
                "seed": row.spec.seed,
                "standing": row.standing.words(),
                "iterations": row.done,
                "mean_drift": row.drift,
            });
            for (name, endpoint) in names.iter().zip(self.endpoints()) {
                said[name] = json!(row.value(self.judged, endpoint));
            }
            said
        };
        let group = |group: &Group| json!({ "name": group.name, "runs": group.runs.iter().map(run).collect::<Vec<_>>() });
        let mut differences: Vec<Value> = Vec::new();
        for at in self.compared() {
            for endpoint in self.endpoints() {
                if let Some(found) = self.difference(at, endpoint, self.baseline)? {
                    let against = self.twin(at, self.baseline).map(|twin| self.groups[twin].name.as_str());
                    differences.push(json!({
                        "group": self.groups[at].name,
                        "against": against,
                        "endpoint": endpoint.to_string(),
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
        let folders = |rows: Vec<&Arc<Row>>| -> Vec<String> {
            rows.into_iter().map(|row| row.folder.display().to_string()).collect()
        };
        let document = json!({
            "judged_by": self.judged.words(),
            "groups": self.groups.iter().map(group).collect::<Vec<_>>(),
            "against": self.against(),
            "differences": differences,
            "unfinished": folders(self.unfinished().collect()),
            "damaged": self.damaged.iter().map(|damaged| damaged.folder.display().to_string()).collect::<Vec<_>>(),
            "judged_otherwise": folders(self.odd.iter().collect()),
            "twice": folders(self.twice.iter().collect()),
        });
        Ok(format!("{document:#}"))
    }
}
