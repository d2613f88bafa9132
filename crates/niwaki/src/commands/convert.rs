//! `niwaki convert`: a shop from one layout to another.

use super::solve::layout;
use crate::output::{self, has_ending};
use crate::terminal;
use anyhow::Context;
use niwaki_shop::formats::Format;
use niwaki_shop::planning::{self, Layout, Problem};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes a shop in another layout.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shop, in any known layout.
    from: PathBuf,
    /// Where to write it.
    to: PathBuf,
    /// The input file's layout; recognised if absent.
    #[arg(long)]
    layout: Option<String>,
    /// The layout to write: standard, pairs, taillard, taillard-job, fjs, jobshoplib, scheduleopt, schedulinglab, niwaki, csv
    /// or json; by the ending (.csv, .json, .fjs, else standard) if absent. Names and dates are kept by csv and json.
    #[arg(long)]
    format: Option<String>,
}

impl Args {
    /// Reads, writes and says what was written.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let to = match &self.format {
            Some(name) => Layout::named(name).context("--format")?,
            None => by_ending(&self.to),
        };
        let opened = planning::open(&self.from, layout(self.layout.as_deref())?)?;
        let text = opened.problem.write(to).with_context(|| self.from.display().to_string())?;
        output::write_whole(&self.to, &text)?;
        terminal::say(&format!(
            "{} ({}) -> {} ({})",
            self.from.display(),
            opened.layout.name(),
            self.to.display(),
            to.name()
        ));
        if let Problem::Plan(plan) = &opened.problem {
            plan.notes().iter().for_each(|note| terminal::say(note));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn by_ending(path: &Path) -> Layout {
    match ["csv", "json", "fjs"].into_iter().find(|ending| has_ending(path, ending)) {
        Some("csv") => Layout::Csv,
        Some("json") => Layout::Json,
        Some(_) => Layout::Special(Format::Fjs),
        None if has_ending(path, "xlsx") => Layout::Xlsx,
        None => Layout::Special(Format::Standard),
    }
}
