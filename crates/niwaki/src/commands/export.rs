//! `niwaki export`: the policy of a run, without what only training needs.

use crate::terminal;
use anyhow::ensure;
use niwaki_train::export;
use std::path::PathBuf;
use std::process::ExitCode;

/// Writes the policy of a run without the optimiser's state: a decoder as a Hugging Face folder, any other as a folder that `solve` and Python read.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder of a run.
    run: PathBuf,
    /// Where to write it; must not exist.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl Args {
    /// Writes the folder and says what it holds.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        ensure!(!self.out.exists(), "--out {} exists already; choose a new folder", self.out.display());
        let iterations = export(&self.run, &self.out)?;
        terminal::say(&format!("{}: the policy after {iterations} iterations", self.out.display()));
        Ok(ExitCode::SUCCESS)
    }
}
