//! `niwaki solve` for plans: shops with names, dates and an objective.

use super::solve::{Args, Ending, STOP, name};
use crate::{output, terminal};
use anyhow::{Context, bail};
use niwaki_shop::general::{self, Answer, Past, Progress};
use niwaki_shop::plan::Plan;
use niwaki_shop::planning::chart;
use niwaki_shop::{Limits, Schedule};
use std::path::Path;

/// Schedules a plan, writes what was asked for, and says how good it is, line by line.
pub(super) fn run(args: &Args, plan: Plan, ending: Option<Ending>) -> anyhow::Result<Vec<String>> {
    let plan = match &args.objective {
        Some(objective) => plan.with_objective(objective)?,
        None => plan,
    };
    let given = args.from.as_deref().map(|path| given(&plan, path)).transpose()?;
    let fixed_until = match &args.fixed_until {
        Some(_) if given.is_none() => bail!("--fixed-until: name the schedule that has begun with --from"),
        Some(text) => Some(plan.moment(text).context("--fixed-until")?),
        None => None,
    };
    let past = Past { schedule: given.as_ref(), fixed_until };
    let limits = Limits::new(args.time, args.seed).stopped_by(&STOP);
    let bar = terminal::progress(args.time.as_secs().max(1), "searching");
    let mut show = |progress: &Progress<'_>| {
        let values: Vec<String> =
            progress.values.iter().enumerate().map(|(sum, &value)| plan.amount(sum, value)).collect();
        bar.set_message(format!("{} {}", plan.objective, values.join(", ")));
    };
    let answer = general::solve(&plan.shop, limits, args.threads(), past, &mut show);
    bar.finish_and_clear();
    let answer = answer.with_context(|| args.file.display().to_string())?;
    write(args, &plan, &answer, ending)?;
    Ok(judged(args, &plan, &answer))
}

fn given(plan: &Plan, path: &Path) -> anyhow::Result<Schedule> {
    let at = || format!("--from {}", path.display());
    let text = niwaki_files::read_text(path).with_context(at)?;
    plan.read_schedule(&text).with_context(at)
}

fn write(args: &Args, plan: &Plan, answer: &Answer, ending: Option<Ending>) -> anyhow::Result<()> {
    if let (Some(path), Some(ending)) = (&args.out, ending) {
        let text = match ending {
            Ending::Csv => plan.schedule_csv(&answer.schedule),
            Ending::Json => plan.schedule_json(&answer.schedule),
            Ending::Ics => {
                plan.schedule_ics(&answer.schedule).with_context(|| format!("--out {}", path.display()))?
            }
        };
        output::write_whole(path, &text)?;
    }
    if let Some(path) = &args.gantt {
        output::write_whole(path, &chart(plan, &answer.schedule, &name(&args.file)))?;
    }
    Ok(())
}

fn judged(args: &Args, plan: &Plan, answer: &Answer) -> Vec<String> {
    let shop = &plan.shop;
    let mut lines = vec![format!(
        "{}: shop, {} jobs, {} machines, {} operations",
        name(&args.file),
        shop.jobs().len(),
        shop.machines().len(),
        shop.operations()
    )];
    let ends = shop.jobs().iter().zip(&answer.verdict.ends);
    let late: Vec<&str> = ends
        .filter(|(job, end)| job.due.is_some_and(|due| **end > due))
        .map(|(job, _)| job.name.as_str())
        .collect();
    if shop.jobs().iter().any(|job| job.due.is_some()) {
        let few =
            if late.is_empty() || late.len() > 12 { String::new() } else { format!(": {}", late.join(", ")) };
        lines.push(format!("late {} of {} jobs{few}", late.len(), shop.jobs().len()));
    }
    lines.push(format!("ends {}", plan.clock.show(answer.schedule.makespan())));
    lines.push(format!("objective {}", plan.objective));
    let pairs = answer.verdict.values.iter().zip(&answer.bounds).enumerate();
    for (sum, (&value, &bound)) in pairs {
        let bound = bound.min(value);
        let title = &plan.objective.sums[sum];
        lines.push(format!("{title} {} (bound {})", plan.amount(sum, value), plan.amount(sum, bound)));
    }
    lines.push(format!("proven {}", if answer.proven() { "yes" } else { "no" }));
    lines
}
