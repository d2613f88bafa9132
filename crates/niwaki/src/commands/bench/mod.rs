//! `niwaki bench …`: one file per thing measured.

mod shop;

use clap::Subcommand;
use std::process::ExitCode;

/// What to measure.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Schedules: how far each method is from the best known, by size, over a folder of instances.
    Shop(shop::Args),
}

impl Args {
    /// Runs the chosen measurement.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.what {
            What::Shop(args) => args.run(),
        }
    }
}
