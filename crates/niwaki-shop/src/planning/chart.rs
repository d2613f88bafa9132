//! A plan's schedule as a Gantt chart: names, shifts, setups, windows, due dates and dates on the axis.

use crate::gantt::{Details, Gantt, Window, gantt};
use crate::plan::Plan;
use crate::{Placed, Schedule};

/// Draws a plan's schedule as SVG.
#[must_use]
pub fn chart(plan: &Plan, schedule: &Schedule, title: &str) -> String {
    let shop = &plan.shop;
    let makespan = schedule.makespan();
    let details = Details {
        machines: shop.machines().iter().map(|machine| machine.name.clone()).collect(),
        jobs: shop.jobs().iter().map(|job| job.name.clone()).collect(),
        closed: shop.machines().iter().map(|machine| machine.calendar.closed().to_vec()).collect(),
        setups: setups(plan, schedule),
        due: shop.jobs().iter().map(|job| job.due).collect(),
        windows: windows(plan, schedule),
        ticks: ticks(plan, makespan),
        end: Some(plan.clock.show(makespan)),
    };
    let options =
        Gantt { title: title.to_owned(), machines: shop.machines().len(), details, ..Gantt::default() };
    gantt(schedule, &options)
}

/// The windows that files give to operations, and releases and deadlines where jobs begin and end.
fn windows(plan: &Plan, schedule: &Schedule) -> Vec<Window> {
    let ends = |job: u32| schedule.operations.iter().filter(move |here| here.job == job);
    let window = |here: &Placed| {
        let job = &plan.shop.jobs()[here.job as usize];
        let operation = &job.operations[here.op as usize];
        let is_first = ends(here.job).all(|other| other.start >= here.start);
        let is_last = ends(here.job).all(|other| other.end <= here.end);
        let release = if is_first { job.release } else { 0 };
        let earliest = Some(operation.earliest.max(release)).filter(|&time| time > 0);
        let deadline = job.deadline.filter(|_| is_last);
        let latest = [operation.latest, deadline].into_iter().flatten().min();
        (earliest.is_some() || latest.is_some()).then_some(Window {
            machine: here.machine,
            job: here.job,
            earliest,
            latest,
        })
    };
    schedule.operations.iter().filter_map(window).collect()
}

/// Setups right before the operations that need them.
fn setups(plan: &Plan, schedule: &Schedule) -> Vec<(u32, u32, u32)> {
    let shop = &plan.shop;
    let mut placed: Vec<Placed> = schedule.operations.clone();
    placed.sort_by_key(|here| (here.machine, here.start, here.end));
    let mut found = Vec::new();
    let mut before: Option<Placed> = None;
    for here in placed {
        let machine = here.machine as usize;
        let family = |one: &Placed| shop.jobs()[one.job as usize].operations[one.op as usize].family;
        let last = before.filter(|one| one.machine == here.machine);
        let from = last.as_ref().map_or(shop.machines()[machine].family, family);
        let setup = shop.setups().time(machine, from, family(&here));
        if setup > 0 {
            found.push((here.machine, here.start - setup.min(here.start), here.start));
        }
        before = Some(here);
    }
    found
}

/// Midnights, or full hours where a schedule ends soon; none for numbers without dates.
fn ticks(plan: &Plan, makespan: u32) -> Vec<(u32, String)> {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    const STEPS: [i64; 8] = [1800, 3600, 2 * 3600, 4 * 3600, 8 * 3600, 86_400, 7 * 86_400, 28 * 86_400];
    let (Some(start), Some(end)) = (plan.clock.start, plan.clock.date(makespan)) else { return Vec::new() };
    let span = end.seconds_since(start).max(1);
    let step = STEPS.into_iter().find(|step| span / step <= 14).unwrap_or(span / 14);
    let mut ticks = Vec::new();
    let mut at = start.midnight();
    while at <= end {
        let since = at.seconds_since(start);
        // Marks lie on whole ticks only where the clock has them.
        let tick = u64::try_from(since).ok().and_then(|seconds| plan.clock.ticks_of_seconds(seconds));
        if let Some(tick) = tick {
            let ((_, month, day), (hour, minute, _)) = (at.civil(), at.time());
            let label = if step >= 86_400 || hour == 0 && minute == 0 {
                format!("{} {day:02}.{month:02}.", DAYS[at.weekday()])
            } else {
                format!("{hour:02}:{minute:02}")
            };
            ticks.push((tick, label));
        }
        at = at.plus_seconds(step);
    }
    ticks
}
