//! `niwaki template`: a shop's file to start from.

use crate::output::{self, has_ending};
use crate::terminal;
use anyhow::bail;
use niwaki_shop::plan::{Plan, template};
use std::path::PathBuf;
use std::process::ExitCode;

/// Writes a small shop with every table, to be replaced by one's own.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where to write it: a name that ends in .csv or .json; printed as CSV if absent.
    file: Option<PathBuf>,
}

impl Args {
    /// Writes the template, never over a file that is there.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Some(path) = self.file else {
            terminal::give(template().trim_end());
            return Ok(ExitCode::SUCCESS);
        };
        if path.exists() {
            bail!("{}: is there already; choose another name", path.display());
        }
        let text = match (has_ending(&path, "csv"), has_ending(&path, "json")) {
            (true, _) => template().to_owned(),
            (_, true) => Plan::read(template())?.to_json(),
            _ => bail!("{}: expected a name that ends in .csv or .json", path.display()),
        };
        output::write_whole(&path, &text)?;
        terminal::say(&format!(
            "{}: fill in your jobs, then niwaki solve {}",
            path.display(),
            path.display()
        ));
        Ok(ExitCode::SUCCESS)
    }
}
