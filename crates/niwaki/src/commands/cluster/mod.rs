//! `niwaki cluster …`: a plan of studies for many machines, and the processes that work on it.

mod launch;
mod split;
mod status;
mod work;

pub(super) use launch::{Local, PlanArgs};

use clap::Subcommand;
use std::process::ExitCode;

/// Many machines, one plan.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Split studies into a plan: units of work that many machines can share.
    Split(split::Args),
    /// Start a plan's units on this machine's GPUs and cores, or through Slurm, Kubernetes or Ray.
    Launch(launch::Launching),
    /// Work on units of a plan, alongside any number of other processes.
    Work(work::Args),
    /// Show the progress of a plan: what is done, running, failed and why, and the time left.
    Status(status::Args),
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.what {
            What::Split(args) => args.run(),
            What::Launch(args) => args.run(),
            What::Work(args) => args.run(),
            What::Status(args) => args.run(),
        }
    }
}
