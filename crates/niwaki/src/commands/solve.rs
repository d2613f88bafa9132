//! `niwaki solve`: one instance in, a checked schedule out.

use super::method::{Method, duration};
use super::policy::{self, DecodeArgs};
use crate::{output, terminal};
use anyhow::{Context, bail};
use niwaki_shop::formats::{self, Format};
use niwaki_shop::gantt::{Gantt, gantt};
use niwaki_shop::{Bounds, Instance, Limits, Optimum, verify};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};

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
        let instance = read(&self.file, self.format.as_deref())?;
        let (instance, found, said) = self.find(instance)?;
        let verdict = verify(&instance, &found.schedule)?;
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
                bound: (!found.proven).then_some(found.lower),
            };
            output::write_whole(path, &gantt(&found.schedule, &options))?;
        }
        let mut lines = vec![format!(
            "{}: {}, {} jobs, {} machines, {} operations",
            name(&self.file),
            instance.kind(),
            instance.jobs(),
            instance.machines(),
            instance.operations()
        )];
        lines.extend(said);
        if matches!(&instance, Instance::Flexible(shop) if shop.has_windows()) {
            lines.push(format!("violation {}", verdict.violation));
        }
        if matches!(instance, Instance::Lags(_) | Instance::Single(_)) {
            lines.push(format!("late {} of {} jobs", verdict.late, instance.jobs()));
        }
        if let Some(deadline) = self.deadline {
            let kept = if verdict.makespan <= deadline { "met" } else { "missed" };
            lines.push(format!("deadline {deadline} {kept}"));
        }
        lines.push(format!("makespan {}", found.upper));
        lines.push(format!("bound {}", found.lower));
        lines.push(format!("proven {}", if found.proven { "yes" } else { "no" }));
        lines.push(format!("gap {:.1}%", 100.0 * found.bounds().gap()));
        terminal::say(&lines.join("\n"));
        Ok(ExitCode::SUCCESS)
    }
}

impl Args {
    /// The instance as its method reads it, what was found, and what there is to say of the way.
    fn find(&self, instance: Instance) -> anyhow::Result<(Instance, Optimum, Option<String>)> {
        let Some(folder) = &self.policy else {
            let found = search(self.method, &instance, Limits { time: self.time, seed: self.seed })?;
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
        Ok((instance, found, Some(said)))
    }
}

/// Reads an instance in the layout that is named, or in the one that it has.
pub(crate) fn read(file: &Path, format: Option<&str>) -> anyhow::Result<Instance> {
    let Some(format) = format else { return Ok(formats::load(file)?) };
    let format = Format::named(format)?;
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    format.read(&text).with_context(|| file.display().to_string())
}

/// Searches beside a bar that shows the incumbent and the bound as they move.
fn search(method: Method, instance: &Instance, limits: Limits) -> anyhow::Result<Optimum> {
    if !method.is_timed() {
        return method.run(instance, limits, &mut |_| {});
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
        let found = method.run(instance, limits, &mut show);
        drop(stop);
        found
    });
    bar.finish_and_clear();
    found
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
