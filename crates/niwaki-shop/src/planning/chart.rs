//! What Gantt charts show beyond bars: a plan's names, shifts, setups, windows and dates; due dates and rests of special
//! problems.

use crate::gantt::{Details, Gantt, Lag, Window};
use crate::plan::{Date, Plan};
use crate::{Instance, Placed, Schedule};
use std::collections::{BTreeMap, HashMap};

/// What a chart of a plan's schedule shows, with a deadline that everything should keep, if there is one.
#[must_use]
pub fn chart(plan: &Plan, schedule: &Schedule, title: &str, deadline: Option<u32>) -> Gantt {
    let shop = &plan.shop;
    let makespan = schedule.makespan();
    let details = Details {
        machines: shop.machines().iter().map(|machine| machine.name.clone()).collect(),
        jobs: shop.jobs().iter().map(|job| job.name.clone()).collect(),
        closed: shop.machines().iter().map(|machine| machine.calendar.closed().to_vec()).collect(),
        setups: setups(plan, schedule),
        due: shop.jobs().iter().map(|job| job.due).collect(),
        overdue: (0..)
            .zip(shop.jobs())
            .filter(|(_, job)| job.overdue > 0)
            .filter_map(|(number, job)| Some((number, plan.due(job)?)))
            .collect(),
        windows: windows(plan, schedule),
        operations: shop
            .jobs()
            .iter()
            .map(|job| job.operations.iter().map(|one| one.name.clone()).collect())
            .collect(),
        lags: Vec::new(),
        ticks: ticks(plan, makespan),
        words: words(plan, schedule, deadline),
        clock: plan.clock.start.map(|start| (start.seconds_since(Date::EPOCH), plan.clock.seconds())),
    };
    let (title, machines) = (title.to_owned(), shop.machines().len());
    Gantt { title, machines, deadline, details, ..Gantt::default() }
}

/// What a chart shows of a special problem: due dates, and the rests and windows between operations.
#[must_use]
pub fn details(instance: &Instance, schedule: &Schedule) -> Details {
    let mut details = Details::default();
    match instance {
        Instance::Single(shop) => details.due = shop.due().iter().map(|&due| Some(due)).collect(),
        Instance::Lags(shop) => {
            details.due = shop.all().iter().map(|job| job.due).collect();
            for here in schedule.operations.iter().filter(|here| here.machine == 0) {
                let lag = shop.all()[here.job as usize].lag;
                if lag > 0 {
                    details.lags.push(Lag { job: here.job, from: (0, here.end), to: (1, here.end + lag) });
                }
            }
        }
        Instance::Flexible(shop) if shop.has_windows() => {
            let places: HashMap<(u32, u32), &Placed> =
                schedule.operations.iter().map(|here| ((here.job, here.op), here)).collect();
            for here in schedule.operations.iter().filter(|here| here.op > 0) {
                let rest = shop.window(shop.job(here.job as usize).start + here.op as usize);
                let Some(before) = places.get(&(here.job, here.op - 1)) else { continue };
                if rest.min > 0 {
                    let to = (here.machine, before.end + rest.min);
                    details.lags.push(Lag { job: here.job, from: (before.machine, before.end), to });
                }
                if let Some(most) = rest.max {
                    let latest = Some(before.end + most + (here.end - here.start));
                    details.windows.push(Window {
                        machine: here.machine,
                        job: here.job,
                        earliest: None,
                        latest,
                    });
                }
            }
        }
        _ => {}
    }
    details
}

/// Every time that is drawn, in words.
fn words(plan: &Plan, schedule: &Schedule, deadline: Option<u32>) -> BTreeMap<u32, String> {
    let ends = schedule.operations.iter().flat_map(|here| [here.start, here.end]);
    let due = plan.shop.jobs().iter().flat_map(|job| [job.due, job.deadline, Some(job.release)]);
    let windows = plan.shop.jobs().iter().flat_map(|job| &job.operations);
    let windows = windows.flat_map(|operation| [operation.latest, Some(operation.earliest)]);
    let times = ends.chain(due.flatten()).chain(windows.flatten()).chain(deadline);
    times.map(|time| (time, plan.clock.show(time))).collect()
}

/// The windows that files give to operations, and releases and deadlines where jobs begin and end.
fn windows(plan: &Plan, schedule: &Schedule) -> Vec<Window> {
    // When each job begins and ends.
    let mut spans = vec![(u32::MAX, 0); plan.shop.jobs().len()];
    for here in &schedule.operations {
        let (from, to) = &mut spans[here.job as usize];
        (*from, *to) = ((*from).min(here.start), (*to).max(here.end));
    }
    let window = |here: &Placed| {
        let job = &plan.shop.jobs()[here.job as usize];
        let operation = &job.operations[here.op as usize];
        let (begins, ends) = spans[here.job as usize];
        let (is_first, is_last) = (here.start == begins, here.end == ends);
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
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
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
                format!("{} {day} {}", DAYS[at.weekday()], MONTHS[month as usize - 1])
            } else {
                format!("{hour:02}:{minute:02}")
            };
            ticks.push((tick, label));
        }
        at = at.plus_seconds(step);
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LaggedJob, TwoMachineLags};

    #[test]
    fn rests_and_due_dates_of_a_lagged_shop_are_drawn() {
        let jobs = vec![
            LaggedJob { first: 3, lag: 4, second: 2, due: Some(8) },
            LaggedJob { first: 2, lag: 0, second: 1, due: None },
        ];
        let shop = Instance::Lags(TwoMachineLags::new(jobs).unwrap());
        let place = |job, op, machine, start, end| Placed { job, op, machine, start, end };
        // The first job rests from 3 to 7; the second one needs no rest.
        let operations =
            vec![place(0, 0, 0, 0, 3), place(1, 0, 0, 3, 5), place(0, 1, 1, 7, 9), place(1, 1, 1, 9, 10)];
        let details = details(&shop, &Schedule { operations });
        assert_eq!(details.due, [Some(8), None]);
        assert_eq!(details.lags, [Lag { job: 0, from: (0, 3), to: (1, 7) }]);
    }
}
