//! `niwaki solve` for the special problems: flow shops, job shops, single machines and their like.

use super::found::Found;
use super::search::{STOP, beside_a_bar};
use super::{Args, name};
use crate::commands::policy;
use crate::output::Piece;
use crate::terminal;
use anyhow::{Context, anyhow};
use indicatif::ProgressBar;
use niwaki_shop::gantt::Gantt;
use niwaki_shop::planning::{self, Method, Solved};
use niwaki_shop::{Bounds, Instance, Limits, formats, optimum};
use std::time::Instant;

/// Schedules one of the special problems.
pub(super) fn run(args: &Args, instance: Instance) -> anyhow::Result<Found> {
    let deadline = args
        .deadline
        .as_deref()
        .map(|text| {
            text.parse::<u32>().map_err(|_| {
                anyhow!("--deadline {text}: this instance has no dates; expected a whole number")
            })
        })
        .transpose()?;
    let searched = if args.policy.is_some() { args.improve } else { args.method.is_timed() };
    let mut found = Found { searched, ..Found::default() };
    found.lines.push(format!(
        "{}: {}, {} jobs, {} machines, {} operations",
        name(&args.file),
        instance.kind(),
        instance.jobs(),
        instance.machines(),
        instance.operations()
    ));
    let (instance, solved, said) = find(args, instance)?;
    found.fact("instance", name(&args.file));
    found.fact("kind", instance.kind());
    found.fact("jobs", instance.jobs());
    found.fact("machines", instance.machines());
    found.fact("operations", instance.operations());
    found.lines.extend(said);
    judge(&mut found, &instance, &solved, deadline);
    found.files.push(Piece::new("schedule.csv", formats::write_schedule_csv(&solved.schedule)));
    found.files.push(Piece::json("schedule.json", &formats::write_schedule_json(&solved.schedule)));
    found.chart = Gantt {
        title: name(&args.file),
        machines: instance.machines(),
        deadline,
        bound: (!solved.makespan.proven()).then_some(solved.makespan.lower),
        details: planning::details(&instance, &solved.schedule),
        ..Gantt::default()
    };
    found.schedule = solved.schedule;
    Ok(found)
}

/// The instance as its method reads it, what was found, and what there is to say of the way.
fn find(args: &Args, instance: Instance) -> anyhow::Result<(Instance, Solved, Option<String>)> {
    let Some(folder) = &args.policy else {
        let limits = Limits::new(args.time, args.seed).stopped_by(&STOP);
        let found = search(args.method, &instance, limits)?;
        return Ok((instance, found, None));
    };
    let began = Instant::now();
    let trained = policy::open(folder, args.decode)?;
    let instance = trained.accept(instance).with_context(|| args.file.display().to_string())?;
    let how = args.decode.decoding(args.seed);
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
    if args.improve {
        let left = args.time.saturating_sub(began.elapsed());
        let limits = Limits::new(left, args.seed).stopped_by(&STOP);
        found = beside_a_bar(Some(left), |bar| {
            optimum::solve_from(&instance, &found.schedule, limits, &mut |bounds| show(bar, bounds))
        });
    }
    let found = planning::judge(&instance, found)?;
    Ok((instance, found, Some(said)))
}

/// Searches, beside a bar where that takes time.
fn search(method: Method, instance: &Instance, limits: Limits) -> anyhow::Result<Solved> {
    if !method.is_timed() {
        return Ok(planning::solve(instance, method, limits, &mut |_| {})?);
    }
    Ok(beside_a_bar(Some(limits.time), |bar| {
        planning::solve(instance, method, limits, &mut |bounds| show(bar, bounds))
    })?)
}

fn show(bar: &ProgressBar, bounds: Bounds) {
    let gap = 100.0 * bounds.gap();
    bar.set_message(format!("makespan {}, bound {}, gap {gap:.1}%", bounds.upper, bounds.lower));
}

/// What a schedule is worth, line by line; the last five speak of what was minimised.
fn judge(found: &mut Found, instance: &Instance, solved: &Solved, deadline: Option<u32>) {
    let (verdict, score) = (&solved.verdict, &solved.score);
    if matches!(instance, Instance::Flexible(shop) if shop.has_windows()) {
        found.lines.push(format!("violation {}", verdict.violation));
        found.fact("violation", verdict.violation);
    }
    if matches!(instance, Instance::Lags(_) | Instance::Single(_)) {
        found.lines.push(format!("late {} of {} jobs", verdict.late, instance.jobs()));
        found.fact("late", verdict.late);
    }
    if let Some(deadline) = deadline {
        found.hold(verdict.makespan, deadline, &deadline.to_string());
    }
    if score.objective != "makespan" {
        found.lines.push(format!("makespan {}", verdict.makespan));
    }
    found.fact("makespan", verdict.makespan);
    found.lines.push(format!("objective {}", score.objective));
    found.fact("objective", score.objective);
    found.lines.push(format!("{} {}", score.objective, score.value));
    found.fact("value", score.value);
    found.lines.push(format!("bound {}", score.bound));
    found.fact("bound", score.bound);
    found.lines.push(format!("proven {}", if score.proven() { "yes" } else { "no" }));
    found.fact("proven", score.proven());
    found.lines.push(format!("gap {:.1}%", 100.0 * score.gap()));
    found.fact("gap", score.gap());
}
