//! The doors. A new command is one file here, one variant and one line in [`Command::run`].

mod advise;
mod bench;
mod convert;
mod export;
mod generate;
mod launch;
mod models;
mod oracle;
mod planned;
mod policy;
mod reproduce;
mod solve;
mod split;
mod status;
mod sweep;
mod template;
mod train;
mod verify;
mod work;

use anyhow::ensure;
use clap::Subcommand;
use niwaki_correction::Clip;
use niwaki_train::Spec;
use std::process::ExitCode;

/// Refuses a number of seeds that runs nothing, or more than memory has room for.
fn check_seeds(seeds: u64) -> anyhow::Result<()> {
    ensure!(seeds > 0, "--seeds 0 runs nothing; give at least 1");
    ensure!(seeds <= 100_000, "--seeds {seeds} is too many; give at most 100000");
    Ok(())
}

/// The clip range of `--clip EPS` or `--clip LOW HIGH`; none where nothing is written.
fn clip(widths: &[f64]) -> anyhow::Result<Option<Clip>> {
    let clip = match *widths {
        [] => return Ok(None),
        [epsilon] => Clip::new(epsilon, epsilon),
        [low, high, ..] => Clip::new(low, high),
    };
    clip.map(Some).map_err(|error| anyhow::anyhow!("--{error}"))
}

/// A run's spec with what `--set` says.
fn spec(name: &str, text: &str, settings: &[String]) -> anyhow::Result<Spec> {
    Spec::read(name, text, settings).map_err(|error| match error {
        niwaki_train::Error::Setting { .. } => anyhow::anyhow!("--set {error}"),
        other => other.into(),
    })
}

/// What a user can ask for.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Read the log-probs of any run and say whether stale data costs it signal, and what to do.
    Advise(advise::Args),
    /// Measure policy losses exactly: bias, variance, MSE, gradient direction and ESS on an enumerable process.
    Oracle(oracle::Oracle),
    /// Re-run a table or figure of the paper and hold it against the printed numbers.
    Reproduce(reproduce::Reproduce),
    /// Compare corrections over settings and seeds of your own: writes the study, runs it, reports it.
    Sweep(sweep::Args),
    /// Split studies into units of work that many machines can share.
    Split(split::Args),
    /// Work on units of a plan, beside any number of other processes.
    Work(work::Args),
    /// Hand a plan to this machine's GPUs and cores, or to Slurm, Kubernetes or Ray.
    Launch(launch::Launching),
    /// Say how far a plan is: done, running, failed and why, time left.
    Status(status::Args),
    /// Train a policy from a spec: curve, TensorBoard events, checkpoints; a stopped run goes on where it was.
    Train(train::Args),
    /// Write the decoder that a run fine-tuned as a Hugging Face folder.
    Export(export::Args),
    /// Schedule a shop: read an instance in any known layout, find a short schedule, check and draw it.
    Solve(solve::Args),
    /// Check a schedule against its instance and say which constraint it breaks, if any.
    Verify(verify::Args),
    /// Write a shop's file to start from: named jobs, machines, shifts, setups and due dates.
    Template(template::Args),
    /// Write a shop in another layout.
    Convert(convert::Args),
    /// Draw instances of the paper's tasks, of the learning literature or of Taillard's benchmarks.
    Generate(generate::Args),
    /// Measure the parts that must be fast, as ratios to a peer and to the machine's limit.
    Bench(bench::Args),
}

impl Command {
    /// Runs the chosen command. Errors are the user's to mend: one line, exit code 2.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Advise(args) => args.run(),
            Self::Oracle(oracle) => oracle.run(),
            Self::Reproduce(reproduce) => reproduce.run(),
            Self::Sweep(args) => args.run(),
            Self::Split(args) => args.run(),
            Self::Work(args) => args.run(),
            Self::Launch(args) => args.run(),
            Self::Status(args) => args.run(),
            Self::Train(args) => args.run(),
            Self::Export(args) => args.run(),
            Self::Solve(args) => args.run(),
            Self::Verify(args) => args.run(),
            Self::Template(args) => args.run(),
            Self::Convert(args) => args.run(),
            Self::Generate(args) => args.run(),
            Self::Bench(args) => args.run(),
        }
    }
}
