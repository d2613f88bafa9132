//! `niwaki bench …`: one file per thing measured.

mod engine;
mod meter;
mod peer;

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
    /// The population engine: one update step of the testbed transformer.
    Engine(engine::Args),
}

impl Args {
    /// Runs the chosen measurement.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.what {
            What::Engine(args) => args.run(),
        }
    }
}
