//! The doors. A new command is one file here, one variant and one line in [`Command::run`].

mod bench;
mod generate;
mod method;
mod solve;
mod verify;

use clap::Subcommand;
use std::process::ExitCode;

/// What a user can ask for.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measures the parts that must be fast, as ratios to a peer and to the machine's limit.
    Bench(bench::Args),
    /// Draws instances of the paper's tasks, of the learning literature or of Taillard's benchmarks.
    Generate(generate::Args),
    /// Schedules a shop: reads an instance in any known layout, finds a short schedule, checks and draws it.
    Solve(solve::Args),
    /// Checks a schedule against its instance and says which constraint it breaks, if any.
    Verify(verify::Args),
}

impl Command {
    /// Runs the chosen command. Errors are the user's to mend: one line, exit code 2.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Bench(args) => args.run(),
            Self::Generate(args) => args.run(),
            Self::Solve(args) => args.run(),
            Self::Verify(args) => args.run(),
        }
    }
}
