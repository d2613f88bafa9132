//! Slow and obvious twins: a checker that looks at every unit of time, and the optimum over all lists and modes.

use niwaki_shop::general::{Measure, Shop};
use niwaki_shop::{Placed, Schedule};

/// Whether a machine is closed during `[time, time + 1)`.
fn is_closed(shop: &Shop, machine: usize, time: u32) -> bool {
    shop.machines()[machine].calendar.closed().iter().any(|&(from, to)| from <= time && time < to)
}

/// Whether every constraint holds, and the objective's sums if so.
pub(crate) fn judge(shop: &Shop, schedule: &Schedule) -> Option<Vec<u64>> {
    let mut at: Vec<Option<Placed>> = vec![None; shop.operations()];
    for here in &schedule.operations {
        let job = shop.jobs().get(here.job as usize)?;
        job.operations.get(here.op as usize)?;
        let number = shop.of_job(here.job as usize).start + here.op as usize;
        if at[number].is_some() {
            return None;
        }
        at[number] = Some(*here);
    }
    let at: Vec<Placed> = at.into_iter().collect::<Option<_>>()?;
    // Who works on each machine in each unit of time, and who holds it.
    let mut holds = vec![vec![None; shop.horizon() as usize + 1]; shop.machines().len()];
    for (number, here) in at.iter().enumerate() {
        let operation = shop.operation(number);
        let mode = operation.modes.iter().find(|mode| mode.machine == here.machine)?;
        let machine = here.machine as usize;
        if here.end < here.start || here.end > shop.horizon() {
            return None;
        }
        let mut work = 0;
        for time in here.start..here.end {
            if holds[machine][time as usize].replace(number).is_some() {
                return None;
            }
            if is_closed(shop, machine, time) {
                if !operation.interruptible || time == here.start || time + 1 == here.end {
                    return None;
                }
            } else {
                work += 1;
            }
        }
        let job = &shop.jobs()[here.job as usize];
        let early = here.start < operation.earliest
            || here.start < job.release
            || here.start < shop.machines()[machine].available;
        let late = operation.latest.is_some_and(|latest| here.end > latest)
            || job.deadline.is_some_and(|deadline| here.end > deadline);
        if work != mode.time || early || late {
            return None;
        }
    }
    for link in shop.precedences() {
        let gap = i64::from(at[link.after as usize].start) - i64::from(at[link.before as usize].end);
        if gap < i64::from(link.min) || link.max.is_some_and(|max| gap > i64::from(max)) {
            return None;
        }
    }
    let mut setup_time = 0;
    for (machine, units) in holds.iter().enumerate() {
        let about = &shop.machines()[machine];
        let (mut family, mut free, mut last) = (about.family, about.available, None);
        for number in units.iter().flatten().copied() {
            if last == Some(number) {
                continue;
            }
            let operation = shop.operation(number);
            let setup = shop.setups().time(machine, family, operation.family);
            if at[number].start < free + setup {
                return None;
            }
            setup_time += u64::from(setup);
            (family, free, last) = (operation.family, at[number].end, Some(number));
        }
    }
    let ends: Vec<u32> = (0..shop.jobs().len())
        .map(|job| shop.of_job(job).map(|number| at[number].end).max().unwrap())
        .collect();
    let sum = |of: &dyn Fn(usize) -> u64| (0..ends.len()).map(of).sum::<u64>();
    let weight = |job: usize| u64::from(shop.jobs()[job].weight);
    let late = |job: usize| shop.jobs()[job].due.map_or(0, |due| u64::from(ends[job].saturating_sub(due)));
    let value = |measure| match measure {
        Measure::Makespan => u64::from(*ends.iter().max().unwrap()),
        Measure::Tardiness => sum(&|job| weight(job) * late(job)),
        Measure::MaxTardiness => (0..ends.len()).map(late).max().unwrap(),
        Measure::TardyJobs => sum(&|job| if late(job) > 0 { weight(job) } else { 0 }),
        Measure::FlowTime => sum(&|job| weight(job) * u64::from(ends[job] - shop.jobs()[job].release)),
        Measure::Earliness => {
            let early =
                |job: usize| shop.jobs()[job].due.map_or(0, |due| u64::from(due.saturating_sub(ends[job])));
            sum(&|job| weight(job) * early(job))
        }
        Measure::SetupTime => setup_time,
    };
    let sums = shop.objective().sums.iter();
    Some(
        sums.map(|sum| sum.terms.iter().map(|&(factor, one)| u64::from(factor) * value(one)).sum()).collect(),
    )
}

/// The best sums over all lists and modes, each operation as early as its list allows: the optimum of every objective that
/// only grows with ends, where no wait has a longest length.
pub(crate) fn optimum(shop: &Shop) -> Vec<u64> {
    let mut search = Search { shop, placed: Vec::new(), best: None };
    search.extend();
    search.best.unwrap()
}

/// The same where waits may have a longest length, and nothing if no schedule keeps every date and wait.
pub(crate) fn optimum_within_waits(shop: &Shop) -> Option<Vec<u64>> {
    let mut search = Search { shop, placed: Vec::new(), best: None };
    search.extend_pushed();
    search.best
}

struct Search<'a> {
    shop: &'a Shop,
    placed: Vec<(usize, Placed)>,
    best: Option<Vec<u64>>,
}

/// No schedule of a drawn shop that keeps its dates ends later.
const LATE: u32 = 120;

impl Search<'_> {
    /// All lists and modes; times follow once a list is whole.
    fn extend_pushed(&mut self) {
        if self.placed.len() == self.shop.operations() {
            let Some(schedule) = self.pushed() else { return };
            if let Some(values) = judge(self.shop, &schedule)
                && self.best.as_ref().is_none_or(|best| &values < best)
            {
                self.best = Some(values);
            }
            return;
        }
        for number in 0..self.shop.operations() {
            let has = |one: u32| self.placed.iter().any(|(known, _)| *known == one as usize);
            let mut waits = self.shop.precedences().iter().filter(|link| link.after as usize == number);
            if has(number as u32) || !waits.all(|link| has(link.before)) {
                continue;
            }
            let (job, op) = self.shop.place_of(number);
            for mode in self.shop.operation(number).modes.clone() {
                let here = Placed { job: job as u32, op: op as u32, machine: mode.machine, start: 0, end: 0 };
                self.placed.push((number, here));
                self.extend_pushed();
                self.placed.pop();
            }
        }
    }

    /// The earliest schedule of the list: whatever is too early, or lets another one wait too long, starts one unit later, until
    /// nothing does.
    fn pushed(&self) -> Option<Schedule> {
        let mut placed = self.placed.clone();
        loop {
            let mut late = vec![false; placed.len()];
            for (index, (number, here)) in placed.iter().enumerate() {
                let time =
                    self.shop.operation(*number).modes.iter().find(|mode| mode.machine == here.machine)?.time;
                // What stands before it on its machine, where that is, and what it follows.
                let one = Search { shop: self.shop, placed: placed[..index].to_vec(), best: None };
                let of =
                    |one: u32| placed.iter().find(|(known, _)| *known == one as usize).map(|(_, here)| *here);
                let before = self.shop.precedences().iter().filter(|link| link.after as usize == *number);
                let ready =
                    before.filter_map(|link| Some(of(link.before)?.end + link.min)).max().unwrap_or(0);
                late[index] = one.place(*number, here.machine, time, ready.max(here.start)) != *here;
                let after = self.shop.precedences().iter().filter(|link| link.before as usize == *number);
                for link in after {
                    let wait = of(link.after)?.start.saturating_sub(here.end);
                    late[index] |= link.max.is_some_and(|max| wait > max);
                }
            }
            let Some(index) = late.iter().position(|&late| late) else { break };
            let (number, here) = placed[index];
            let time =
                self.shop.operation(number).modes.iter().find(|mode| mode.machine == here.machine)?.time;
            let alone = Search { shop: self.shop, placed: Vec::new(), best: None };
            let from = here.start + u32::from(here.end > 0);
            placed[index].1 = alone.place(number, here.machine, time, from);
            if placed[index].1.start > LATE {
                return None;
            }
        }
        Some(Schedule { operations: placed.into_iter().map(|(_, here)| here).collect() })
    }
}

impl Search<'_> {
    fn extend(&mut self) {
        if self.placed.len() == self.shop.operations() {
            let schedule = Schedule { operations: self.placed.iter().map(|(_, here)| *here).collect() };
            let values = judge(self.shop, &schedule).expect("a list gives a schedule");
            if self.best.as_ref().is_none_or(|best| &values < best) {
                self.best = Some(values);
            }
            return;
        }
        for number in 0..self.shop.operations() {
            let end_of = |one: u32| {
                self.placed.iter().find(|(known, _)| *known == one as usize).map(|(_, here)| here.end)
            };
            if self.placed.iter().any(|(known, _)| *known == number) {
                continue;
            }
            let waits = self.shop.precedences().iter().filter(|link| link.after as usize == number);
            let Some(ready) =
                waits.map(|link| end_of(link.before).map(|end| end + link.min)).collect::<Option<Vec<_>>>()
            else {
                continue;
            };
            let ready = ready.into_iter().max().unwrap_or(0);
            for mode in self.shop.operation(number).modes.clone() {
                let here = self.place(number, mode.machine, mode.time, ready);
                self.placed.push((number, here));
                self.extend();
                self.placed.pop();
            }
        }
    }

    /// The first place after everything that is on the machine already, unit by unit.
    fn place(&self, number: usize, machine: u32, time: u32, ready: u32) -> Placed {
        let (job, op) = self.shop.place_of(number);
        let operation = self.shop.operation(number);
        let about = &self.shop.machines()[machine as usize];
        let here = self.placed.iter().filter(|(_, here)| here.machine == machine);
        let last = here.max_by_key(|(_, here)| here.end);
        let (free, family) = last.map_or((about.available, about.family), |(one, here)| {
            (here.end, self.shop.operation(*one).family)
        });
        let setup = self.shop.setups().time(machine as usize, family, operation.family);
        let mut start = ready.max(free + setup).max(operation.earliest).max(self.shop.jobs()[job].release);
        loop {
            let (mut now, mut left, mut broken) =
                (start, time, is_closed(self.shop, machine as usize, start));
            while left > 0 && !broken {
                if is_closed(self.shop, machine as usize, now) {
                    broken = !operation.interruptible;
                } else {
                    left -= 1;
                }
                now += 1;
            }
            if !broken {
                return Placed { job: job as u32, op: op as u32, machine, start, end: now };
            }
            start += 1;
        }
    }
}
