//! `niwaki solve`: one instance in, a checked schedule out.

use super::policy::{self, DecodeArgs};
use crate::{output, terminal};
use anyhow::{Context, bail};
use niwaki_shop::formats::{self, Format, Recognised};
use niwaki_shop::gantt::{Gantt, gantt};
use niwaki_shop::planning::{self, Method, Solved};
use niwaki_shop::{Bounds, Instance, Limits};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Exit code of a search that was interrupted: 128 and the signal's number.
const INTERRUPTED: u8 = 130;

/// Raised by Ctrl-C: the search ends and what it has found is printed and written.
static STOP: AtomicBool = AtomicBool::new(false);

/// Schedules a shop.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The instance, in any known layout.
    file: PathBuf,
    /// exact, neh, ig, johnson, jackson, or rule:NAME with NAME one of spt, lpt, fifo, mwkr, lwkr, mopnr, random, e.g.
    /// rule:mwkr; rule:NAME*100 for the best of 100 samples; rule:active-NAME for active rather than non-delay schedules
    /// (job shops, flexible or not).
    #[arg(long, default_value = "exact")]
    method: Method,
    /// Folder that `niwaki train` has written: its policy schedules the shop instead.
    #[arg(long, value_name = "RUN", conflicts_with = "method")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    decode: DecodeArgs,
    /// How long exact and ig may search, e.g. 500ms, 10s, 2m.
    #[arg(long, default_value = "10s", value_parser = duration)]
    time: Duration,
    /// Seed of whatever the method draws.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The instance's layout, where it should not be recognised: standard, pairs, taillard, taillard-job, fjs, jobshoplib,
    /// scheduleopt, schedulinglab or niwaki.
    #[arg(long)]
    format: Option<String>,
    /// Where to write the schedule: a name that ends in .json or .csv.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Where to draw the schedule: a name that ends in .svg.
    #[arg(long)]
    gantt: Option<PathBuf>,
    /// A deadline to draw, and to compare the makespan with.
    #[arg(long)]
    deadline: Option<u32>,
}

impl Args {
    /// Solves, checks, writes, and prints what was found.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        // A wrong ending must not cost the user a search.
        let as_json = self.out.as_deref().map(ending_is_json).transpose()?;
        if let Some(path) = &self.gantt
            && !has_ending(path, "svg")
        {
            bail!("--gantt {}: expected a name that ends in .svg", path.display());
        }
        let read = formats::recognise(&self.file, layout(self.format.as_deref())?)?;
        let mut lines = vec![recognised(&self.file, &read)];
        if let Some(open) = read.open {
            terminal::warn(&format!("{}: {open} (--format pairs)", self.file.display()));
        }
        watch_for_interrupts()?;
        let (instance, found, said) = self.find(read.instance)?;
        if let (Some(path), Some(as_json)) = (&self.out, as_json) {
            let text = if as_json {
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
            };
            output::write_whole(path, &gantt(&found.schedule, &options))?;
        }
        lines.extend(said);
        lines.extend(self.judged(&instance, &found));
        terminal::say(&lines.join("\n"));
        if STOP.load(Ordering::Relaxed) {
            terminal::warn("stopped before the time was up: this is the best schedule so far");
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The instance as its method reads it, what was found, and what there is to say of the way.
    fn find(&self, instance: Instance) -> anyhow::Result<(Instance, Solved, Option<String>)> {
        let Some(folder) = &self.policy else {
            let limits = Limits::new(self.time, self.seed).stopped_by(&STOP);
            let found = search(self.method, &instance, limits)?;
            return Ok((instance, found, None));
        };
        let trained = policy::open(folder)?;
        let instance = trained.accept(instance).with_context(|| self.file.display().to_string())?;
        let how = self.decode.decoding(self.seed);
        let bar = terminal::progress(trained.steps(&instance, how) as u64, "decoding");
        let found = policy::schedule(&trained, &instance, how, &mut |steps| bar.inc(steps as u64));
        bar.finish_and_clear();
        let (found, decoded) = found?;
        let said = format!(
            "policy {}, {} iterations: {} schedules tried, the best by {}",
            folder.display(),
            trained.iteration(),
            decoded.tried,
            decoded.way
        );
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
pub(crate) fn layout(name: Option<&str>) -> anyhow::Result<Option<Format>> {
    name.map(|name| Format::named(name).context("--format")).transpose()
}

/// What was read, in one line.
fn recognised(file: &Path, read: &Recognised) -> String {
    let instance = &read.instance;
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

/// Searches beside a bar that shows the incumbent and the bound as they move.
fn search(method: Method, instance: &Instance, limits: Limits) -> anyhow::Result<Solved> {
    if !method.is_timed() {
        return Ok(planning::solve(instance, method, limits, &mut |_| {})?);
    }
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
        let found = planning::solve(instance, method, limits, &mut show);
        drop(stop);
        found
    });
    bar.finish_and_clear();
    Ok(found?)
}

/// A file's name without folder and ending.
fn name(path: &Path) -> String {
    path.file_stem().map_or_else(|| path.display().to_string(), |stem| stem.to_string_lossy().into_owned())
}

pub(crate) fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending))
}

fn ending_is_json(path: &Path) -> anyhow::Result<bool> {
    match (has_ending(path, "json"), has_ending(path, "csv")) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => bail!("--out {}: expected a name that ends in .json or .csv", path.display()),
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
