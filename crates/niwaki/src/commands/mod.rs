//! The doors. A new command is one file here, one variant and one line in [`Command::run`].

mod bench;

use clap::Subcommand;
use std::process::ExitCode;

/// What a user can ask for.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measures the parts that must be fast, as ratios to a peer and to the machine's limit.
    Bench(bench::Args),
}

impl Command {
    /// Runs the chosen command. Errors are the user's to mend: one line, exit code 2.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Bench(args) => args.run(),
        }
    }
}
