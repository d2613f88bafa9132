//! `niwaki solve`: one instance in, a checked schedule out.

use super::planned;
use super::policy::{self, DecodeArgs};
use crate::{output, terminal};
use anyhow::{Context, bail};
use niwaki_shop::formats;
use niwaki_shop::gantt::{Gantt, gantt};
use niwaki_shop::general::Objective;
use niwaki_shop::optimum::{self, Watch};
use niwaki_shop::plan::Plan;
use niwaki_shop::planning::{self, Layout, Method, Problem, Solved};
use niwaki_shop::{Bounds, Instance, Limits};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Exit code of a search that was interrupted: 128 and the signal's number.
const INTERRUPTED: u8 = 130;

/// Raised by Ctrl-C: the search ends and what it has found is printed and written.
pub(super) static STOP: AtomicBool = AtomicBool::new(false);

/// Schedules a shop.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shop: a table of operations (.csv, see `niwaki template`), or an instance in any known layout.
    pub(super) file: PathBuf,
    /// exact, neh, ig, johnson, jackson, or rule:NAME with NAME one of spt, lpt, fifo, mwkr, lwkr, mopnr, random, e.g.
    /// rule:mwkr; rule:NAME*100 for the best of 100 samples; rule:active-NAME for active rather than non-delay schedules
    /// (job shops, flexible or not).
    #[arg(long, default_value = "exact")]
    method: Method,
    /// Folder that `niwaki train` has written: its policy schedules the shop instead.
    #[arg(long, value_name = "RUN", conflicts_with = "method")]
    policy: Option<PathBuf>,
    /// Go on from the policy's schedule with the exact search, for as long as --time says in all (job shops, flexible or
    /// not).
    #[arg(long, requires = "policy")]
    improve: bool,
    #[command(flatten)]
    decode: DecodeArgs,
    /// How long exact and ig may search, e.g. 500ms, 10s, 2m.
    #[arg(long, default_value = "10s", value_parser = duration)]
    pub(super) time: Duration,
    /// What to minimise, by importance: sums of makespan, tardiness, max-tardiness, tardy-jobs, flow-time, earliness and
    /// setup-time, e.g. "tardy-jobs, 3*tardiness + setup-time"; what the file says, or the makespan, if absent.
    #[arg(long, conflicts_with_all = ["method", "policy"])]
    pub(super) objective: Option<Objective>,
    /// Threads that search a general shop; all of the machine's if absent.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// A schedule to start from, as `--out` has written it.
    #[arg(long, value_name = "SCHEDULE", conflicts_with_all = ["method", "policy"])]
    pub(super) from: Option<PathBuf>,
    /// What has started in that schedule before this time stays where it is: a date, or a time since the start.
    #[arg(long, value_name = "TIME")]
    pub(super) fixed_until: Option<String>,
    /// Seed of whatever the method draws.
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,
    /// The file's layout, where it should not be recognised: standard, pairs, taillard, taillard-job, fjs, jobshoplib,
    /// scheduleopt, schedulinglab, niwaki, csv or json.
    #[arg(long)]
    format: Option<String>,
    /// Where to write the schedule: a name that ends in .json or .csv, or in .ics for a shop with dates.
    #[arg(long)]
    pub(super) out: Option<PathBuf>,
    /// Where to draw the schedule: a name that ends in .svg.
    #[arg(long)]
    pub(super) gantt: Option<PathBuf>,
    /// A deadline to draw, and to compare the makespan with.
    #[arg(long)]
    deadline: Option<u32>,
}

impl Args {
    /// Solves, checks, writes, and prints what was found.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        // A wrong ending must not cost the user a search.
        let ending = self.out.as_deref().map(Ending::of).transpose()?;
        if let Some(path) = &self.gantt
            && !has_ending(path, "svg")
        {
            bail!("--gantt {}: expected a name that ends in .svg", path.display());
        }
        let opened = planning::open(&self.file, layout(self.format.as_deref())?)?;
        watch_for_interrupts()?;
        let general = self.objective.is_some() || self.from.is_some() || self.fixed_until.is_some();
        let lines = match opened.problem {
            Problem::Special(instance) if !general => self.special(instance, ending)?,
            Problem::Special(instance) => {
                let objective = planning::usual_objective(&instance);
                let plan = Plan::from_instance(&instance, objective)
                    .with_context(|| self.file.display().to_string())?;
                planned::run(&self, plan, ending)?
            }
            Problem::Plan(plan) => planned::run(&self, *plan, ending)?,
        };
        // Beside a result, not before a refusal.
        if let Some(open) = opened.open {
            terminal::warn(&format!("{}: {open} (--format pairs)", self.file.display()));
        }
        terminal::say(&lines.join("\n"));
        if STOP.load(Ordering::Relaxed) {
            terminal::warn("stopped before the time was up: this is the best schedule so far");
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Threads for a general shop.
    pub(super) fn threads(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(all, usize::from)
    }

    /// Schedules one of the special problems.
    fn special(&self, instance: Instance, ending: Option<Ending>) -> anyhow::Result<Vec<String>> {
        if let (Some(path), Some(Ending::Ics)) = (&self.out, ending) {
            bail!(
                "--out {}: this instance has no dates; choose a name that ends in .csv or .json",
                path.display()
            );
        }
        let mut lines = vec![recognised(&self.file, &instance)];
        let (instance, found, said) = self.find(instance)?;
        if let (Some(path), Some(ending)) = (&self.out, ending) {
            let text = if ending == Ending::Json {
                formats::write_schedule_json(&found.schedule)
            } else {
                formats::write_schedule_csv(&found.schedule)
            };
            output::write_whole(path, &text)?;
        }
        if let Some(path) = &self.gantt {
            let options = Gantt {
                title: name(&self.file),
                machines: instance.machines(),
                deadline: self.deadline,
                bound: (!found.makespan.proven()).then_some(found.makespan.lower),
                ..Gantt::default()
            };
            output::write_whole(path, &gantt(&found.schedule, &options))?;
        }
        lines.extend(said);
        lines.extend(self.judged(&instance, &found));
        Ok(lines)
    }

    /// The instance as its method reads it, what was found, and what there is to say of the way.
    fn find(&self, instance: Instance) -> anyhow::Result<(Instance, Solved, Option<String>)> {
        let Some(folder) = &self.policy else {
            let limits = Limits::new(self.time, self.seed).stopped_by(&STOP);
            let found = search(self.method, &instance, limits)?;
            return Ok((instance, found, None));
        };
        let began = Instant::now();
        let trained = policy::open(folder)?;
        let instance = trained.accept(instance).with_context(|| self.file.display().to_string())?;
        let how = self.decode.decoding(self.seed);
        let bar = terminal::progress(trained.steps(&instance, how) as u64, "decoding");
        let found = trained.schedule(&instance, how, &mut |steps| bar.inc(steps as u64));
        bar.finish_and_clear();
        let (mut found, decoded) = found?;
        let said = format!(
            "policy {}, {} iterations: {} schedules tried, the best by {}",
            folder.display(),
            trained.iteration(),
            decoded.tried,
            decoded.way
        );
        if self.improve {
            let left = self.time.saturating_sub(began.elapsed());
            let limits = Limits::new(left, self.seed).stopped_by(&STOP);
            found =
                beside_a_bar(limits, |show| optimum::solve_from(&instance, &found.schedule, limits, show));
        }
        let found = planning::judge(&instance, found)?;
        Ok((instance, found, Some(said)))
    }

    /// What a schedule is worth, line by line; the last four speak of what was minimised.
    fn judged(&self, instance: &Instance, found: &Solved) -> Vec<String> {
        let (verdict, score) = (&found.verdict, &found.score);
        let mut lines = Vec::new();
        if matches!(instance, Instance::Flexible(shop) if shop.has_windows()) {
            lines.push(format!("violation {}", verdict.violation));
        }
        if matches!(instance, Instance::Lags(_) | Instance::Single(_)) {
            lines.push(format!("late {} of {} jobs", verdict.late, instance.jobs()));
        }
        if let Some(deadline) = self.deadline {
            let kept = if verdict.makespan <= deadline { "met" } else { "missed" };
            lines.push(format!("deadline {deadline} {kept}"));
        }
        if score.objective != "makespan" {
            lines.push(format!("makespan {}", verdict.makespan));
        }
        lines.push(format!("objective {}", score.objective));
        lines.push(format!("{} {}", score.objective, score.value));
        lines.push(format!("bound {}", score.bound));
        lines.push(format!("proven {}", if score.proven() { "yes" } else { "no" }));
        lines.push(format!("gap {:.1}%", 100.0 * score.gap()));
        lines
    }
}

/// The layout of a name that a flag gives.
pub(crate) fn layout(name: Option<&str>) -> anyhow::Result<Option<Layout>> {
    name.map(|name| Layout::named(name).context("--format")).transpose()
}

/// What was read, in one line.
fn recognised(file: &Path, instance: &Instance) -> String {
    format!(
        "{}: {}, {} jobs, {} machines, {} operations",
        name(file),
        instance.kind(),
        instance.jobs(),
        instance.machines(),
        instance.operations()
    )
}

/// Lets the first Ctrl-C end the search, and the second one the program.
fn watch_for_interrupts() -> anyhow::Result<()> {
    let stop = || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED.into());
        }
    };
    ctrlc::set_handler(stop).context("cannot watch for Ctrl-C")
}

/// Searches, beside a bar where that takes time.
fn search(method: Method, instance: &Instance, limits: Limits) -> anyhow::Result<Solved> {
    if !method.is_timed() {
        return Ok(planning::solve(instance, method, limits, &mut |_| {})?);
    }
    Ok(beside_a_bar(limits, |show| planning::solve(instance, method, limits, show))?)
}

/// Shows the incumbent and the bound as they move.
fn beside_a_bar<T>(limits: Limits, search: impl FnOnce(Watch<'_>) -> T) -> T {
    let bar = terminal::progress(limits.time.as_secs().max(1), "searching");
    let began = Instant::now();
    let (stop, stopped) = mpsc::channel::<()>();
    let found = std::thread::scope(|scope| {
        let ticking = bar.clone();
        scope.spawn(move || {
            while stopped
                .recv_timeout(Duration::from_millis(250))
                .is_err_and(|why| why == mpsc::RecvTimeoutError::Timeout)
            {
                ticking.set_position(began.elapsed().as_secs().min(limits.time.as_secs()));
            }
        });
        let mut show = |bounds: Bounds| {
            let gap = 100.0 * bounds.gap();
            bar.set_message(format!("makespan {}, bound {}, gap {gap:.1}%", bounds.upper, bounds.lower));
        };
        let found = search(&mut show);
        drop(stop);
        found
    });
    bar.finish_and_clear();
    found
}

/// A file's name without folder and ending.
pub(super) fn name(path: &Path) -> String {
    path.file_stem().map_or_else(|| path.display().to_string(), |stem| stem.to_string_lossy().into_owned())
}

pub(crate) fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending))
}

/// What a schedule's file is, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Csv,
    Json,
    Ics,
}

impl Ending {
    fn of(path: &Path) -> anyhow::Result<Self> {
        let known = [("csv", Self::Csv), ("json", Self::Json), ("ics", Self::Ics)];
        match known.into_iter().find(|(ending, _)| has_ending(path, ending)) {
            Some((_, ending)) => Ok(ending),
            None => bail!("--out {}: expected a name that ends in .json or .csv (or .ics)", path.display()),
        }
    }
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
