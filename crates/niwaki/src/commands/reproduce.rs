//! `niwaki reproduce`: the paper's tables and figures, re-run beside the printed numbers.

use crate::{output, terminal};
use anyhow::ensure;
use clap::Args;
use niwaki_page::{Cell, Column, Table};
use niwaki_study::claim::Judgement;
use niwaki_study::diagnostics::{league_table, numbers_table, statements_table, study_page, summarise};
use niwaki_study::{Study, find, studies};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Re-run tables and figures of the paper.
#[derive(Args)]
pub(crate) struct Reproduce {
    /// Labels of the paper, e.g. tab:diag-summary; `all` for every one.
    #[arg(value_name = "LABEL", required_unless_present = "list")]
    labels: Vec<String>,
    /// List the labels that exist so far.
    #[arg(long)]
    list: bool,
    /// Number of seeds, in place of the study's own.
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Folder for pages and rows; each study gets a folder of its own in it.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
}

impl Reproduce {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if self.list {
            return list();
        }
        ensure!(self.seeds != Some(0), "--seeds 0 runs nothing; give at least 1");
        let chosen = if self.labels.iter().any(|label| label == "all") {
            studies().to_vec()
        } else {
            self.labels.iter().map(|label| find(label)).collect::<Result<Vec<_>, _>>()?
        };
        for study in chosen {
            self.reproduce(study)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn reproduce(&self, study: Study) -> anyhow::Result<()> {
        let spec = study.read()?;
        let grid = spec.grid(self.seeds)?;
        let bar = terminal::progress(grid.pairs() as u64, study.label);
        let rows = grid.run(|| bar.inc(1));
        bar.finish_and_clear();
        let rows = rows?;
        let summaries = summarise(&rows)?;
        let outcomes = spec.judge(&summaries)?;

        let folder = self.out.join(study.label.replace(':', "-"));
        let page = study_page(&spec, &outcomes, &rows, &summaries, output::made());
        output::write_whole(&folder.join("rows.csv"), &output::summaries_as_csv(&summaries))?;
        output::write_whole(&folder.join("rows.json"), &output::summaries_as_json(&summaries)?)?;
        output::write_whole(&folder.join("index.html"), &page.to_html())?;

        let agree = outcomes.iter().filter(|outcome| outcome.judgement == Judgement::Agrees).count();
        if grid.drifts.len() == 1 {
            terminal::say(&league_table(&spec.title, &summaries).to_text(terminal::width()));
        }
        terminal::say(&numbers_table("The paper beside this run", &outcomes).to_text(terminal::width()));
        if let Some(table) = statements_table("The paper's other statements", &outcomes) {
            terminal::say(&table.to_text(terminal::width()));
        }
        terminal::say(&format!("{}: {agree} of {} statements agree", study.label, outcomes.len()));
        terminal::say(&format!("report: {}", shown(&folder.join("index.html"))));
        Ok(())
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn list() -> anyhow::Result<ExitCode> {
    let mut table = Table::new("").columns([
        Column::text("label"),
        Column::text("what it is"),
        Column::number("statements"),
    ]);
    for study in studies() {
        let spec = study.read()?;
        let statements = spec.value.len()
            + spec.bound.len()
            + spec.order.len()
            + spec.lowest.len()
            + spec.falling.len()
            + spec.margin.len();
        table.push([Cell::code(study.label), Cell::from(spec.title), Cell::from(statements as f64)]);
    }
    terminal::say(&table.to_text(terminal::width()));
    Ok(ExitCode::SUCCESS)
}
