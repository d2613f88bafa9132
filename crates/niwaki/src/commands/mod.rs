//! The doors. A new command is one file here, one variant and one line in [`Command::run`].

mod advise;
mod bench;
mod board;
mod cluster;
mod compare;
mod convert;
mod export;
mod generate;
mod help;
mod models;
mod oracle;
mod policy;
mod reproduce;
mod solve;
mod sweep;
mod template;
mod tour;
mod train;
mod verify;

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

/// What the command was called before, and is called now.
const MOVED: [(&str, &str); 6] = [
    ("split", "cluster split"),
    ("launch", "cluster launch"),
    ("work", "cluster work"),
    ("status", "cluster status"),
    ("completions", "help completions"),
    ("man", "help man"),
];

/// Today's name of a command that had another one.
pub(crate) fn moved(name: &str) -> Option<&'static str> {
    MOVED.iter().find(|(old, _)| *old == name).map(|(_, new)| *new)
}

/// What a user can ask for.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// See everything in a minute, on built-in examples: a stale run, a loss table, a shop, a training run.
    Tour(tour::Args),
    /// Read the log-probs of any run and say whether stale data is holding it back, and what to do about it.
    Advise(advise::Args),
    /// Measure policy losses exactly: bias, variance, MSE, gradient direction and ESS on an enumerable process.
    Oracle(oracle::Oracle),
    /// Re-run a table or figure of the paper and check it against the printed numbers.
    Reproduce(reproduce::Reproduce),
    /// Compare corrections over settings and seeds of your own: write the study, run it and report it.
    Sweep(sweep::Args),
    /// Share studies among many machines: split them into a plan, launch it, work on it, watch it.
    Cluster(cluster::Args),
    /// Train a policy from a spec: curves, TensorBoard events, checkpoints, a page; a stopped run resumes.
    Train(train::Args),
    /// Look at all runs below some folders on one page, while they train: who is ahead, at which setting, how sure.
    Board(board::Args),
    /// Compare finished runs side by side: curves, and differences paired by seed.
    Compare(compare::Args),
    /// Write the decoder that a run fine-tuned as a Hugging Face folder.
    Export(export::Args),
    /// Schedule a shop: read it in any known layout, find a good schedule, check it and draw it.
    Solve(solve::Args),
    /// Check a schedule against its instance and say which constraint it breaks, if any.
    Verify(verify::Args),
    /// Write a shop file to start from, with named jobs, machines, shifts, setups and due dates.
    Template(template::Args),
    /// Convert a shop to another file layout.
    Convert(convert::Args),
    /// Draw random instances: the paper's tasks, those of the learning literature, or Taillard's benchmarks.
    Generate(generate::Args),
    /// Measure speed, and the quality of schedules, against peers and the machine's limits.
    Bench(bench::Args),
    /// Explain a command; print completions for your shell; write manual pages.
    Help(help::Args),
}

impl Command {
    /// Runs the chosen command. Errors are the user's to mend: one line, exit code 2.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Tour(args) => args.run(),
            Self::Advise(args) => args.run(),
            Self::Oracle(oracle) => oracle.run(),
            Self::Reproduce(reproduce) => reproduce.run(),
            Self::Sweep(args) => args.run(),
            Self::Cluster(args) => args.run(),
            Self::Train(args) => args.run(),
            Self::Board(args) => args.run(),
            Self::Compare(args) => args.run(),
            Self::Export(args) => args.run(),
            Self::Solve(args) => args.run(),
            Self::Verify(args) => args.run(),
            Self::Template(args) => args.run(),
            Self::Convert(args) => args.run(),
            Self::Generate(args) => args.run(),
            Self::Bench(args) => args.run(),
            Self::Help(args) => args.run(),
        }
    }
}
