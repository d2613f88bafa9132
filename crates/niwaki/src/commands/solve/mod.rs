//! `niwaki solve`: one instance in, a checked schedule out.

mod found;
mod page;
mod planned;
mod search;
mod special;

pub(crate) use found::Found;
pub(crate) use page::page;

use super::policy::DecodeArgs;
use crate::output::{FormatArgs, Out, has_ending, name_written};
use crate::terminal;
use anyhow::{Context, bail};
use niwaki_shop::general::Objective;
use niwaki_shop::plan::Plan;
use niwaki_shop::planning::{self, Layout, Method, Problem};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Schedules a shop.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shop: a table of operations (.csv, see `niwaki template`), or an instance in any known layout.
    file: PathBuf,
    /// How to search: exact, neh, ig, johnson, jackson or rule:NAME. NAME is one of spt, lpt, fifo, mwkr, lwkr, mopnr, bound
    /// and random. rule:NAME*100 takes the best of 100 samples; rule:active-NAME builds active instead of non-delay
    /// schedules (job shops, flexible or not).
    #[arg(long, default_value = "exact")]
    method: Method,
    /// Folder written by `niwaki train`, or one that comes with the program, builtin:flexible for flexible shops or builtin:jobs for job shops: its policy schedules the shop instead.
    #[arg(long, value_name = "RUN", conflicts_with = "method")]
    policy: Option<PathBuf>,
    /// Improve the policy's schedule by exact search, within --time in all, beside the search that is made without a policy; the better
    /// one counts (job shops, flexible or not).
    #[arg(long, requires = "policy")]
    improve: bool,
    #[command(flatten)]
    decode: DecodeArgs,
    /// Time limit of the search, e.g. 500ms, 10s, 2m.
    #[arg(long, default_value = "10s", value_parser = duration)]
    time: Duration,
    /// End after so many rounds of the search instead, each half as long again as the last: the same seed then gives the same
    /// schedule on any machine, with any number of threads.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["time", "method", "policy"])]
    rounds: Option<u32>,
    /// What to minimise, by importance: sums of makespan, tardiness, max-tardiness, tardy-jobs, flow-time, earliness and
    /// setup-time, e.g. "tardy-jobs, 3*tardiness + setup-time"; what the file says, or the makespan, if absent.
    #[arg(long, conflicts_with_all = ["method", "policy"])]
    objective: Option<Objective>,
    /// Threads that search; all of the machine's if absent. With --rounds the schedule does not depend on them.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// A schedule to start from, as written by --out.
    #[arg(long, value_name = "SCHEDULE", conflicts_with_all = ["method", "policy"])]
    from: Option<PathBuf>,
    /// Keep everything that starts before this time in that schedule: a date, or a time since the start.
    #[arg(long, value_name = "TIME")]
    fixed_until: Option<String>,
    /// Random seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The file's layout: standard, pairs, taillard, taillard-job, fjs, jobshoplib, scheduleopt, schedulinglab, niwaki, csv
    /// or json; recognised if absent.
    #[arg(long)]
    layout: Option<String>,
    #[command(flatten)]
    format: FormatArgs,
    /// Where to write the schedule: a folder, or one file that ends in .csv, .json, .html, .svg or .ics. A folder gets CSV,
    /// JSON, a page with the chart, and a calendar where there are dates.
    #[arg(long, value_name = "PLACE")]
    out: Option<PathBuf>,
    /// Also draw the schedule to this file: .svg for the chart, .html for a page.
    #[arg(long, value_name = "FILE")]
    gantt: Option<PathBuf>,
    /// When everything should be done: a number, or a date if the shop has dates. It is drawn, and the exit code is 1 if it
    /// is missed.
    #[arg(long, value_name = "TIME")]
    deadline: Option<String>,
}

impl Args {
    /// Solves, checks, writes, and prints what was found.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        // A wrong ending must not cost the user a search.
        if let Some(path) = &self.out {
            Out::new(path, &found::ENDINGS)?;
        }
        if let Some(path) = &self.gantt
            && !has_ending(path, "svg")
            && !has_ending(path, "html")
        {
            bail!("--gantt {}: expected a name that ends in .svg or .html", path.display());
        }
        if self.policy.is_none() {
            self.decode.check_alone()?;
        }
        search::watch_for_interrupts()?;
        let (found, open) = self.solve()?;
        search::found();
        let written = found.write(&self, &name(&self.file))?;
        // Beside a result, not before a refusal.
        if let Some(open) = open {
            terminal::warn(&format!("{}: {open} (--layout pairs)", self.file.display()));
        }
        if self.format.is_json() {
            terminal::give(&found.document(&written)?);
        } else {
            terminal::say(&found.lines.join("\n"));
        }
        name_written(&written, self.format.is_json());
        if search::STOP.load(Ordering::Relaxed) {
            terminal::warn("stopped before the time was up: this is the best schedule so far");
            return Ok(ExitCode::from(search::INTERRUPTED));
        }
        Ok(if found.missed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    /// What was found, and what else the file might have meant.
    pub(super) fn solve(&self) -> anyhow::Result<(Found, Option<&'static str>)> {
        let opened = planning::open(&self.file, layout(self.layout.as_deref())?)?;
        let general = self.objective.is_some()
            || self.from.is_some()
            || self.fixed_until.is_some()
            || self.rounds.is_some();
        let found = match opened.problem {
            Problem::Special(instance) if !general => special::run(self, instance)?,
            Problem::Special(instance) => {
                self.check_planned()?;
                let objective = planning::usual_objective(&instance);
                let plan = Plan::from_instance(&instance, objective)
                    .with_context(|| self.file.display().to_string())?;
                planned::run(self, plan)?
            }
            Problem::Plan(plan) => {
                self.check_planned()?;
                planned::run(self, *plan)?
            }
        };
        Ok((found, opened.open))
    }

    /// Refuses what only the special problems heed.
    fn check_planned(&self) -> anyhow::Result<()> {
        let file = self.file.display();
        if self.policy.is_some() {
            bail!(
                "--policy: {file} is searched as a general shop, which policies do not schedule; leave it out"
            );
        }
        if self.method != Method::Exact {
            bail!(
                "--method: {file} is searched as a general shop, for which there is one method; leave it out"
            );
        }
        Ok(())
    }

    /// Refuses threads where nothing is searched.
    fn check_threads(&self) -> anyhow::Result<()> {
        let searches = if self.policy.is_some() { self.improve } else { self.method == Method::Exact };
        if !searches && self.threads.is_some_and(|threads| threads > 1) {
            bail!("--threads: only the exact search has several; leave it out, or the way to schedule");
        }
        Ok(())
    }

    /// Threads that search.
    fn threads(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(all, usize::from)
    }
}

/// The layout of a name that a flag gives.
pub(crate) fn layout(name: Option<&str>) -> anyhow::Result<Option<Layout>> {
    name.map(|name| Layout::named(name).context("--layout")).transpose()
}

/// A file's name without folder and ending.
fn name(path: &Path) -> String {
    path.file_stem().map_or_else(|| path.display().to_string(), |stem| stem.to_string_lossy().into_owned())
}

/// A duration such as `500ms`, `10s`, `2m` or `1h`; a bare number counts seconds.
pub(crate) fn duration(text: &str) -> anyhow::Result<Duration> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => bail!("expected a time such as 500ms, 10s or 2m, got {text}"),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| anyhow::anyhow!("expected a time such as 500ms, 10s or 2m, got {text}"))?;
    Duration::try_from_secs_f64(number * scale)
        .map_err(|_| anyhow::anyhow!("expected a shorter time, got {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(duration("1.5").unwrap(), Duration::from_millis(1500));
        assert_eq!(duration("2m").unwrap(), Duration::from_secs(120));
        assert!(duration("x").is_err() && duration("3 days").is_err() && duration("").is_err());
    }
}
