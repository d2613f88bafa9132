//! `niwaki solve` for plans: shops with names, dates and an objective.

use super::found::Found;
use super::search::{self, STOP, beside_a_bar};
use super::{Args, name};
use crate::output::Piece;
use anyhow::{Context, bail};
use niwaki_shop::general::{self, Answer, Past, Progress};
use niwaki_shop::plan::Plan;
use niwaki_shop::planning::chart;
use niwaki_shop::{Limits, Schedule};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

/// Schedules a plan.
pub(super) fn run(args: &Args, plan: Plan) -> anyhow::Result<Found> {
    let plan = match &args.objective {
        Some(objective) => plan.with_objective(objective)?,
        None => plan,
    };
    let given = args.from.as_deref().map(|path| given(&plan, path)).transpose()?;
    let unknown = given.as_ref().map_or(0, |given| plan.shop.operations() - given.operations.len());
    let fixed_until = match &args.fixed_until {
        Some(_) if given.is_none() => bail!("--fixed-until: name the schedule that has begun with --from"),
        Some(text) => Some(plan.moment(text).context("--fixed-until")?),
        None => None,
    };
    let deadline =
        args.deadline.as_deref().map(|text| plan.moment(text).context("--deadline")).transpose()?;
    let past = Past { schedule: given.as_ref(), fixed_until };
    let limits = match args.rounds {
        Some(rounds) => Limits::new(Duration::MAX, args.seed).for_rounds(rounds),
        None => Limits::new(args.time, args.seed),
    };
    let limits = limits.on(args.threads()).stopped_by(&STOP);
    let answer = beside_a_bar(args.rounds.is_none().then_some(args.time), |bar| {
        let mut show = |progress: &Progress<'_>| {
            search::found();
            let values: Vec<String> =
                progress.values.iter().enumerate().map(|(sum, &value)| plan.amount(sum, value)).collect();
            bar.set_message(format!("{} {}", plan.objective, values.join(", ")));
        };
        general::solve(&plan.shop, limits, past, &mut show)
    });
    let answer = answer.with_context(|| args.file.display().to_string())?;
    let mut found = found(args, &plan, &answer, deadline)?;
    if let (Some(path), 1..) = (&args.from, unknown) {
        let (count, are) =
            if unknown == 1 { ("1 operation", "is") } else { (&*format!("{unknown} operations"), "are") };
        found.lines.insert(1, format!("{count} {are} not in {}", path.display()));
        found.fact("not_in_from", unknown);
    }
    Ok(found)
}

fn given(plan: &Plan, path: &Path) -> anyhow::Result<Schedule> {
    let at = || format!("--from {}", path.display());
    let text = niwaki_files::read_text(path).with_context(at)?;
    let schedule = plan.read_schedule(&text).with_context(at)?;
    let mut seen = HashSet::new();
    for here in &schedule.operations {
        if !seen.insert((here.job, here.op)) {
            let job = &plan.shop.jobs()[here.job as usize];
            let operation = &job.operations[here.op as usize].name;
            bail!("{}: job {}, operation {operation}: expected once, got it twice", at(), job.name);
        }
    }
    Ok(schedule)
}

fn found(args: &Args, plan: &Plan, answer: &Answer, deadline: Option<u32>) -> anyhow::Result<Found> {
    let shop = &plan.shop;
    let mut found = Found {
        chart: chart(plan, &answer.schedule, &name(&args.file), deadline),
        schedule: answer.schedule.clone(),
        searched: true,
        ..Found::default()
    };
    found.files.push(Piece::new("schedule.csv", plan.schedule_csv(&answer.schedule)));
    found.files.push(Piece::json("schedule.json", &plan.schedule_json(&answer.schedule)));
    if plan.clock.start.is_some() {
        let calendar = plan.schedule_ics(&answer.schedule, &name(&args.file))?;
        found.files.push(Piece::new("schedule.ics", calendar));
    }
    found.lines.push(format!(
        "{}: shop, {} jobs, {} machines, {} operations",
        name(&args.file),
        shop.jobs().len(),
        shop.machines().len(),
        shop.operations()
    ));
    found.lines.extend(plan.notes());
    if !plan.notes().is_empty() {
        found.fact("not_read", plan.notes());
    }
    found.fact("instance", name(&args.file));
    found.fact("kind", "shop");
    found.fact("jobs", shop.jobs().len());
    found.fact("machines", shop.machines().len());
    found.fact("operations", shop.operations());
    let ends = shop.jobs().iter().zip(&answer.verdict.ends);
    let late: Vec<&str> =
        ends.filter(|(job, end)| job.late(**end) > 0).map(|(job, _)| job.name.as_str()).collect();
    if shop.jobs().iter().any(|job| job.due.is_some()) {
        let few =
            if late.is_empty() || late.len() > 12 { String::new() } else { format!(": {}", late.join(", ")) };
        found.lines.push(format!("late {} of {} jobs{few}", late.len(), shop.jobs().len()));
        found.fact("late", late.len());
        found.fact("late_jobs", late);
    }
    let makespan = answer.schedule.makespan();
    if let Some(deadline) = deadline {
        found.hold(makespan, deadline, &plan.clock.show(deadline));
    }
    found.lines.push(format!("ends {}", plan.clock.show(makespan)));
    found.fact("ends", plan.clock.show(makespan));
    found.lines.push(format!("objective {}", plan.objective));
    found.fact("objective", plan.objective.to_string());
    let pairs = answer.verdict.values.iter().zip(&answer.bounds).enumerate();
    let mut sums = Vec::new();
    for (sum, (&value, &bound)) in pairs {
        let bound = bound.min(value);
        let title = &plan.objective.sums[sum];
        found.lines.push(format!("{title} {} (bound {})", plan.amount(sum, value), plan.amount(sum, bound)));
        sums.push(json!({ "name": title.to_string(), "value": value, "bound": bound }));
    }
    found.fact("values", Value::from(sums));
    found.lines.push(format!("proven {}", if answer.proven() { "yes" } else { "no" }));
    found.fact("proven", answer.proven());
    Ok(found)
}
