//! The independent checker of general shops: judges a schedule by its shop alone.
//!
//! It depends on the model and the schedule and on nothing that makes schedules: the calendar is read as a list of closed
//! times, measures are summed afresh. The first fault is named in one line.

use super::{Measure, Shop, Sum};
use crate::{Error, Placed, Result, Schedule};

/// What the checker found out about a correct schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// When each job ends.
    pub ends: Vec<u32>,
    /// The value of each measure, in the order of [`Measure::ALL`].
    pub measures: [u64; 7],
    /// The value of each sum of the objective.
    pub values: Vec<u64>,
}

impl Verification {
    /// One measure's value.
    #[must_use]
    pub fn of(&self, measure: Measure) -> u64 {
        let index = Measure::ALL.iter().position(|&one| one == measure).unwrap_or(0);
        self.measures[index]
    }

    fn sum(&self, sum: &Sum) -> u64 {
        sum.terms.iter().map(|&(factor, measure)| u64::from(factor) * self.of(measure)).sum()
    }
}

fn fault<T>(what: String) -> Result<T> {
    Err(Error::Schedule(what))
}

/// Checks a schedule against its shop.
///
/// # Errors
/// The first constraint that does not hold, in one line.
pub fn verify(shop: &Shop, schedule: &Schedule) -> Result<Verification> {
    let placed = collect(shop, schedule)?;
    for (number, here) in placed.iter().enumerate() {
        check_alone(shop, number, here)?;
    }
    for link in shop.precedences() {
        let (before, after) = (placed[link.before as usize], placed[link.after as usize]);
        let called = shop.called(link.after as usize);
        if u64::from(after.start) < u64::from(before.end) + u64::from(link.min) {
            return fault(format!(
                "{called}: starts at {}, expected {} or later: {} ends at {} and {} must pass",
                shop.moment(after.start),
                shop.moment(u64::from(before.end) + u64::from(link.min)),
                shop.called(link.before as usize),
                shop.moment(before.end),
                shop.length(link.min)
            ));
        }
        if let Some(max) = link.max
            && u64::from(after.start) > u64::from(before.end) + u64::from(max)
        {
            return fault(format!(
                "{called}: starts at {}, expected {} or earlier: {} ends at {} and at most {} may pass",
                shop.moment(after.start),
                shop.moment(u64::from(before.end) + u64::from(max)),
                shop.called(link.before as usize),
                shop.moment(before.end),
                shop.length(max)
            ));
        }
    }
    let setup_time = check_machines(shop, &placed)?;
    let ends = check_jobs(shop, &placed)?;
    let mut verdict = Verification { measures: [0; 7], values: Vec::new(), ends };
    verdict.measures = measure(shop, &placed, &verdict.ends, setup_time);
    verdict.values = shop.objective().sums.iter().map(|sum| verdict.sum(sum)).collect();
    Ok(verdict)
}

/// Every operation once, by flat number.
fn collect(shop: &Shop, schedule: &Schedule) -> Result<Vec<Placed>> {
    let mut placed: Vec<Option<Placed>> = vec![None; shop.operations()];
    for here in &schedule.operations {
        let job = here.job as usize;
        let known = job < shop.jobs().len() && (here.op as usize) < shop.of_job(job).len();
        if !known {
            return fault(format!("job {}, operation {}: the shop has no such operation", here.job, here.op));
        }
        let number = shop.of_job(job).start + here.op as usize;
        if placed[number].replace(*here).is_some() {
            return fault(format!("{}: expected once, got it twice", shop.called(number)));
        }
    }
    let missing = placed.iter().position(Option::is_none);
    match missing {
        Some(number) => fault(format!("{}: is missing", shop.called(number))),
        None => Ok(placed.into_iter().flatten().collect()),
    }
}

/// Machine, work, calendar and window of one operation.
fn check_alone(shop: &Shop, number: usize, here: &Placed) -> Result<()> {
    let operation = shop.operation(number);
    let called = || shop.called(number);
    let Some(mode) = operation.modes.iter().find(|mode| mode.machine == here.machine) else {
        let names: Vec<_> =
            operation.modes.iter().map(|mode| shop.machines()[mode.machine as usize].name.as_str()).collect();
        return fault(format!(
            "{}: runs on machine {}, expected {}",
            called(),
            here.machine,
            names.join(" or ")
        ));
    };
    let machine = &shop.machines()[here.machine as usize];
    if here.end < here.start {
        let (end, start) = (shop.moment(here.end), shop.moment(here.start));
        return fault(format!("{}: ends at {end}, before its start at {start}", called()));
    }
    let mut closed = 0;
    let times = machine.calendar.closed();
    let first = times.partition_point(|&(_, to)| to <= here.start);
    for &(from, to) in times[first..].iter().take_while(|&&(from, _)| from < here.end) {
        let (from, to) = (from.max(here.start), to.min(here.end));
        if from < to {
            if !operation.interruptible {
                return fault(format!(
                    "{}: runs from {} to {}, but machine {} is closed at {}",
                    called(),
                    shop.moment(here.start),
                    shop.moment(here.end),
                    machine.name,
                    shop.moment(from)
                ));
            }
            if from == here.start || to == here.end {
                return fault(format!(
                    "{}: starts at {} and ends at {}, expected both in open time of machine {}",
                    called(),
                    shop.moment(here.start),
                    shop.moment(here.end),
                    machine.name
                ));
            }
            closed += to - from;
        }
    }
    let work = here.end - here.start - closed;
    if work != mode.time {
        let (work, time) = (shop.length(work), shop.length(mode.time));
        return fault(format!("{}: works for {work}, expected {time}", called()));
    }
    let (job, _) = shop.place_of(number);
    let earliest = operation.earliest.max(shop.jobs()[job].release).max(machine.available);
    if here.start < earliest {
        let (start, earliest) = (shop.moment(here.start), shop.moment(earliest));
        return fault(format!("{}: starts at {start}, expected {earliest} or later", called()));
    }
    let latest = operation.latest.unwrap_or(u32::MAX).min(shop.horizon());
    if here.end > latest {
        let (end, latest) = (shop.moment(here.end), shop.moment(latest));
        return fault(format!("{}: ends at {end}, expected {latest} or earlier", called()));
    }
    Ok(())
}

/// One operation at a time, with setups in between; the time that setups take in all.
fn check_machines(shop: &Shop, placed: &[Placed]) -> Result<u64> {
    let mut lists: Vec<Vec<usize>> = vec![Vec::new(); shop.machines().len()];
    for (number, here) in placed.iter().enumerate() {
        lists[here.machine as usize].push(number);
    }
    let mut total = 0;
    for (machine, list) in lists.iter_mut().enumerate() {
        list.sort_by_key(|&number| (placed[number].start, placed[number].end, number));
        let about = &shop.machines()[machine];
        let (mut family, mut free, mut before) = (about.family, about.available, None);
        for &number in &*list {
            let operation = shop.operation(number);
            let setup = shop.setups().time(machine, family, operation.family);
            if u64::from(placed[number].start) < u64::from(free) + u64::from(setup) {
                let after = before.map_or("its setup".into(), |one| shop.called(one));
                return fault(format!(
                    "{}: starts at {} on machine {}, expected {} or later, after {after}{}",
                    shop.called(number),
                    shop.moment(placed[number].start),
                    about.name,
                    shop.moment(u64::from(free) + u64::from(setup)),
                    if setup > 0 { format!(" and a setup of {}", shop.length(setup)) } else { String::new() }
                ));
            }
            total += u64::from(setup);
            (family, free, before) = (operation.family, placed[number].end, Some(number));
        }
    }
    Ok(total)
}

fn check_jobs(shop: &Shop, placed: &[Placed]) -> Result<Vec<u32>> {
    let mut ends = Vec::with_capacity(shop.jobs().len());
    for (number, job) in shop.jobs().iter().enumerate() {
        let end = placed[shop.of_job(number)].iter().map(|here| here.end).max().unwrap_or(0);
        if let Some(deadline) = job.deadline.filter(|&deadline| end > deadline) {
            let (end, deadline) = (shop.moment(end), shop.moment(deadline));
            return fault(format!("job {}: ends at {end}, after its deadline {deadline}", job.name));
        }
        ends.push(end);
    }
    Ok(ends)
}

fn measure(shop: &Shop, placed: &[Placed], ends: &[u32], setup_time: u64) -> [u64; 7] {
    let makespan = placed.iter().map(|here| here.end).max().unwrap_or(0);
    let (mut tardiness, mut most, mut tardy, mut flow, mut early) = (0, 0, 0, 0, 0);
    for (job, &end) in shop.jobs().iter().zip(ends) {
        let weight = u64::from(job.weight);
        flow += weight * u64::from(end - job.release.min(end));
        if let Some(due) = job.due {
            let late = (u64::from(end) + u64::from(job.overdue)).saturating_sub(due.into());
            tardiness += weight * late;
            most = most.max(late);
            tardy += if late > 0 { weight } else { 0 };
            early += weight * u64::from(due.saturating_sub(end));
        }
    }
    [u64::from(makespan), tardiness, most, tardy, flow, early, setup_time]
}
