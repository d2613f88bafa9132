//! `niwaki generate`: instances out of nothing.

use crate::{output, terminal};
use anyhow::{Context, bail};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use niwaki_shop::formats::Format;
use niwaki_shop::generate::{Size, Task};
use niwaki_shop::planning::Draws;
use std::path::PathBuf;
use std::process::ExitCode;

/// Draws instances.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to draw.
    #[arg(value_parser = task_parser())]
    task: Task,
    /// Number of jobs; the task's own if absent.
    #[arg(long)]
    jobs: Option<usize>,
    /// Number of machines; the task's own if absent.
    #[arg(long)]
    machines: Option<usize>,
    /// How many instances.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Seed; instance 7 of a seed is the same however many are drawn.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Layout to write: standard, pairs, taillard, taillard-job, fjs, jobshoplib, scheduleopt, schedulinglab or niwaki; the
    /// problem's usual one if absent.
    #[arg(long)]
    format: Option<String>,
    /// Folder to write to; one instance is printed if absent.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Task names as clap shows them, each with what it draws.
fn task_parser() -> impl TypedValueParser<Value = Task> {
    PossibleValuesParser::new(Task::all().map(|task| PossibleValue::new(task.name()).help(task.about())))
        .try_map(|name| Task::named(&name))
}

impl Args {
    /// Prints or writes the instances.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let own = self.task.size();
        let size =
            Size { jobs: self.jobs.unwrap_or(own.jobs), machines: self.machines.unwrap_or(own.machines) };
        let format = self.format.as_deref().map(Format::named).transpose()?;
        let draws = Draws { task: self.task, size, seed: self.seed, format };
        let Some(folder) = &self.out else {
            if self.count != 1 {
                bail!("--count {}: name a folder with --out to write more than one instance", self.count);
            }
            terminal::give(draws.file(0)?.text.trim_end());
            return Ok(ExitCode::SUCCESS);
        };
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let bar = terminal::progress(self.count, "drawing");
        for index in 0..self.count {
            let file = draws.file(index)?;
            output::write_whole(&folder.join(file.name), &file.text)?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        let what = if self.count == 1 { "instance" } else { "instances" };
        terminal::say(&format!("wrote {} {what} into {}", self.count, folder.display()));
        Ok(ExitCode::SUCCESS)
    }
}
