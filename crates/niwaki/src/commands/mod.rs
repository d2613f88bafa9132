//! The doors. A new command is one file here, one variant and one line in [`Command::run`].

mod oracle;
mod reproduce;

use clap::Subcommand;
use std::process::ExitCode;

/// What a user can ask for.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure policy losses exactly: bias, variance, MSE, gradient direction and ESS on an enumerable process.
    Oracle(oracle::Oracle),
    /// Re-run a table or figure of the paper and hold it against the printed numbers.
    Reproduce(reproduce::Reproduce),
}

impl Command {
    /// Runs the chosen command. Errors are the user's to mend: one line, exit code 2.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Oracle(oracle) => oracle.run(),
            Self::Reproduce(reproduce) => reproduce.run(),
        }
    }
}
