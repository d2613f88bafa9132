//! `niwaki compare`: finished runs side by side.

use crate::output::{self, FormatArgs, Out, Piece};
use crate::terminal;
use anyhow::bail;
use niwaki_study::board::board_page;
use niwaki_study::runs::{Comparison, Row};
use niwaki_train::reading::Reader;
use std::path::PathBuf;
use std::process::ExitCode;

/// Compares finished runs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folders that `niwaki train` or a study has written, or folders above them. Runs that differ in their seed alone are
    /// one group; each group is compared, seed by seed, with the one that has the same settings and the baseline's loss.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// What groups are compared with: a loss, or a key with its value, e.g. ppo or optimiser.rate=0.1 [default: ppo where
    /// losses differ and one is ppo, else the first run's].
    #[arg(long, value_name = "SETTING")]
    against: Option<String>,
    #[command(flatten)]
    format: FormatArgs,
    /// Where to write a page with the curves, and all numbers as JSON: a folder for both, or one file that ends in .html or
    /// .json.
    #[arg(long, value_name = "PLACE")]
    out: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let place = self.out.as_deref().map(|path| Out::new(path, &["html", "json"])).transpose()?;
        let found = Reader::new(Row::of).below(&self.runs)?;
        let comparison = Comparison::of(found, self.against.as_deref())?;
        let lines = comparison.left_out();
        let places =
            || self.runs.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ");
        if comparison.over().next().is_none() {
            let why = if lines.is_empty() { String::new() } else { format!(" ({})", lines.join("; ")) };
            bail!("{}: no finished run is in it or below it{why}", places());
        }
        lines.into_iter().chain(comparison.diverged_words()).for_each(|line| terminal::warn(&line));
        let json = comparison.json()?;
        if self.format.is_json() {
            terminal::give(&output::signed(&json));
        } else {
            terminal::say(comparison.groups_table().to_text(terminal::width()).trim_end());
            if comparison.groups.len() > 1 {
                terminal::say(&format!(
                    "\n{}",
                    comparison.differences_table()?.to_text(terminal::width()).trim_end()
                ));
            }
        }
        if let Some(out) = place {
            let page = board_page(&comparison, output::made(), false)?.to_html();
            let pieces = [Piece::json("compare.json", &json), Piece::new("index.html", page)];
            output::name_written(&out.write(&pieces)?, self.format.is_json());
        }
        Ok(ExitCode::SUCCESS)
    }
}
