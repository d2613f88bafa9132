//! `niwaki bench …`: one file per thing measured.

mod against;
mod decoder;
mod device;
mod engine;
mod meter;
mod peer;
#[cfg(feature = "cuda")]
mod pointer;
mod shop;
mod trainer;

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
    Shop(Box<shop::Args>),
    /// The population engine: one update step of the testbed transformer.
    Engine(engine::Args),
    /// The trainer: whole iterations of a cohort, rollout and evaluation included.
    Trainer(trainer::Args),
    /// A pretrained decoder: a step on a minibatch of records, and all prefixes of a record.
    Decoder(decoder::Args),
    /// The GPU: every op against the CPU engine, the laws of a population, the step's profile, and a soak.
    Device(device::Args),
}

impl Args {
    /// Runs the chosen measurement.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.what {
            What::Shop(args) => args.run(),
            What::Engine(args) => args.run(),
            What::Trainer(args) => args.run(),
            What::Decoder(args) => args.run(),
            What::Device(args) => args.run(),
        }
    }
}
