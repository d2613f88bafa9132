//! What a search found, whatever the kind of shop: lines for people, facts for programs, files.

use super::Args;
use crate::output::{self, Out, Piece, has_ending};
use anyhow::bail;
use niwaki_shop::Schedule;
use niwaki_shop::gantt::{Gantt, gantt};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Endings of the files that a schedule can be written to.
pub(super) const ENDINGS: [&str; 5] = ["csv", "json", "ics", "svg", "html"];

/// A schedule that was found and checked.
#[derive(Default)]
pub(crate) struct Found {
    /// What there is to say, line by line.
    pub(crate) lines: Vec<String>,
    /// The same for programs.
    pub(super) facts: Map<String, Value>,
    /// The schedule as files: CSV, JSON, iCalendar where it has dates.
    pub(super) files: Vec<Piece>,
    /// The schedule itself.
    pub(super) schedule: Schedule,
    /// What its chart shows.
    pub(super) chart: Gantt,
    /// Whether the deadline that was asked about is missed.
    pub(super) missed: bool,
    /// That deadline, in words.
    pub(super) deadline: Option<String>,
    /// Whether a search looked for it, which more time might help, rather than a rule.
    pub(super) searched: bool,
}

impl Found {
    /// Adds a fact.
    pub(super) fn fact(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// The chart, as wide as it needs to be or as wide as this.
    pub(super) fn drawn(&self, width: Option<f64>) -> String {
        gantt(&self.schedule, &Gantt { width, ..self.chart.clone() })
    }

    /// Compares the end with a deadline.
    pub(super) fn hold(&mut self, end: u32, deadline: u32, words: &str) {
        self.missed = end > deadline;
        self.deadline = Some(words.to_owned());
        self.lines.push(format!("deadline {words} {}", if self.missed { "missed" } else { "met" }));
        self.fact("deadline", deadline);
        self.fact("deadline_met", !self.missed);
    }

    /// Writes what the flags ask for, and gives the paths.
    pub(crate) fn write(&self, args: &Args, title: &str) -> anyhow::Result<Vec<PathBuf>> {
        let mut written = Vec::new();
        let page = || super::page::page(self, title, output::made()).to_html();
        if let Some(path) = &args.out {
            let out = Out::new(path, &ENDINGS)?;
            if has_ending(path, "ics") && !self.files.iter().any(|file| file.name.ends_with(".ics")) {
                bail!(
                    "--out {}: this instance has no dates; choose a name that ends in .csv or .json",
                    path.display()
                );
            }
            written = out.write(&self.files)?;
            if out.wants("svg") && has_ending(path, "svg") {
                written.extend(out.write(&[Piece::new("schedule.svg", self.drawn(None))])?);
            } else if out.wants("html") {
                written.extend(out.write(&[Piece::new("index.html", page())])?);
            }
        }
        if let Some(path) = &args.gantt {
            let text = if has_ending(path, "html") { page() } else { self.drawn(None) };
            output::write_whole(path, &text)?;
            written.push(path.clone());
        }
        Ok(written)
    }

    /// The document that `--json` prints.
    pub(super) fn document(&self, written: &[PathBuf]) -> anyhow::Result<String> {
        let mut facts = self.facts.clone();
        if let Some(file) = self.files.iter().find(|file| file.name.ends_with(".json")) {
            let mut schedule: Value = serde_json::from_str(&file.text)?;
            for key in ["operations", "schedule"] {
                if let Some(rows) = schedule.get_mut(key) {
                    facts.insert("schedule".to_owned(), rows.take());
                }
            }
        }
        facts.insert("files".to_owned(), written.iter().map(|path| path.display().to_string()).collect());
        Ok(output::signed(&serde_json::to_string_pretty(&facts)?))
    }
}
