//! `niwaki bench …`: one file per thing measured.

mod device;
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
    /// The GPU: every op against the CPU engine, the laws of a population, the step's profile, and a soak.
    Device(device::Args),
}

impl Args {
    /// Runs the chosen measurement.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.what {
            What::Engine(args) => args.run(),
            What::Device(args) => args.run(),
        }
    }
}
