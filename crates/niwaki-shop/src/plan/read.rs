//! Tables to a shop: names are resolved, times are read, and every complaint names table, row and column.

use super::csv;
use super::local;
use super::machines::Machines;
use super::operations::Drafts;
use super::settings::{Settings, in_ticks};
use super::shifts::Opening;
use super::table::{self, Cell, Row, Table, Tables};
use super::{Clock, KIND, TABLES};
use crate::general::{Job, Measure, Objective, Parts, Precedence, Setups, Shop};
use crate::instance::HORIZON;
use crate::{Error, Result};
use std::collections::HashMap;

const OPERATIONS: [&str; 15] = [
    "job",
    "operation",
    "machine",
    "time",
    "family",
    "interruptible",
    "earliest",
    "latest",
    "after",
    "wait",
    "max wait",
    "release",
    "due",
    "deadline",
    "weight",
];
const JOBS: [&str; 5] = ["job", "release", "due", "deadline", "weight"];

/// A general shop with the clock that gives its numbers a meaning.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The shop.
    pub shop: Shop,
    /// What its times mean.
    pub clock: Clock,
    /// What is minimised, in the plan's unit.
    pub objective: Objective,
    pub(super) tables: Tables,
}

impl Plan {
    /// Reads a plan: JSON if the text is an object, CSV otherwise.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn read(text: &str) -> Result<Self> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let tables = if text.trim_start().starts_with('{') {
            table::read_json(text, &TABLES)?
        } else {
            csv::read_csv(text, &TABLES)?
        };
        Self::from_tables(tables)
    }

    /// The plan as CSV.
    #[must_use]
    pub fn to_csv(&self) -> String {
        csv::write_csv(&self.tables)
    }

    /// The plan as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        table::write_json(&self.tables, KIND)
    }

    pub(super) fn from_tables(mut tables: Tables) -> Result<Self> {
        if tables.get("operations").is_none_or(|table| table.rows.is_empty())
            && let Some(comments) = tables.comments()
        {
            return Err(Error::Instance(format!(
                "operations: expected at least one row, got none; {comments} (a `#` at a line's start makes one)"
            )));
        }
        tables.check_names()?;
        local::settle(&mut tables)?;
        let settings = Settings::read(&tables)?;
        // Once in thousandths to find the tick, once in ticks.
        let fine = Clock::fine(settings.unit, settings.start);
        let mut seen = Vec::new();
        Reader {
            tables: &tables,
            clock: &fine,
            settings: &settings,
            seen: Some(&mut seen),
            modes: 0,
            after: 0,
        }
        .read()?;
        let clock = fine.ticking(seen);
        let shop =
            Reader { tables: &tables, clock: &clock, settings: &settings, seen: None, modes: 0, after: 0 }
                .read()?;
        let Some(mut parts) = shop else {
            return Err(Error::Instance("operations: expected at least one row".into()));
        };
        let objective = std::mem::replace(&mut parts.objective, Objective::only(Measure::Makespan));
        parts.objective = in_ticks(&objective, &clock)?;
        Ok(Self { shop: Shop::told(parts, clock.says())?, clock, objective, tables })
    }

    /// What was read and is not in the plan, line by line.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.tables.comments().into_iter().collect()
    }

    /// A sum of the objective as people read it: in the plan's unit, unless it counts jobs alone.
    #[must_use]
    pub fn amount(&self, sum: usize, value: u64) -> String {
        let counts = |&(_, measure): &(u32, Measure)| measure == Measure::TardyJobs;
        if self.objective.sums[sum].terms.iter().all(counts) {
            value.to_string()
        } else {
            self.clock.amount(value)
        }
    }
}

/// One pass over the tables: the first one collects all times, the second one makes the shop.
pub(super) struct Reader<'a> {
    pub(super) tables: &'a Tables,
    pub(super) clock: &'a Clock,
    pub(super) settings: &'a Settings,
    pub(super) seen: Option<&'a mut Vec<u64>>,
    /// Choices of machines so far.
    pub(super) modes: usize,
    /// Entries of `after` so far.
    pub(super) after: usize,
}

impl Reader<'_> {
    fn read(mut self) -> Result<Option<Parts>> {
        let Some(operations) = self.tables.get("operations") else {
            return Err(Error::Instance(
                "expected a table of operations with the columns job, machine and time".into(),
            ));
        };
        operations.only(&OPERATIONS)?;
        let mut machines = self.machines(operations)?;
        let mut setups = Setups::default();
        let families = self.families(&mut setups)?;
        let (mut jobs, mut job_of) = (Vec::<Job>::new(), HashMap::new());
        let mut given: Vec<Said> = Vec::new();
        if let Some(table) = self.tables.get("jobs") {
            table.only(&JOBS)?;
            for row in &table.rows {
                let name = table.need(row, "job")?;
                let mut job = Job::new(name.text, Vec::new());
                let mut said = Said::default();
                self.dates(table, row, &mut job, &mut said)?;
                given.push(said);
                if job_of.insert(name.text.to_owned(), jobs.len()).is_some() {
                    return Err(name.fault(format!("expected each job once, got {} twice", name.text)));
                }
                jobs.push(job);
            }
        }
        let has_jobs = !jobs.is_empty();
        let mut drafts = Drafts::new(operations, jobs.len());
        for (index, row) in operations.rows.iter().enumerate() {
            let name = operations.need(row, "job")?;
            let job = match job_of.get(name.text) {
                Some(&job) => job,
                None if has_jobs => {
                    return Err(name.fault(format!("expected a job of the table jobs, got `{}`", name.text)));
                }
                None => {
                    jobs.push(Job::new(name.text, Vec::new()));
                    given.push(Said::default());
                    job_of.insert(name.text.to_owned(), jobs.len() - 1);
                    drafts.add_job()
                }
            };
            self.dates(operations, row, &mut jobs[job], &mut given[job])?;
            let modes = self.modes(operations, row, &machines)?;
            let Some(operation) = drafts.begin(job, index, modes)? else { continue };
            let draft = self.draft(operations, index, job, operation, &families)?;
            drafts.all.push(draft);
        }
        if let Some(cell) = machines.family_cells.iter().find(|(_, name, _)| !families.contains_key(name)) {
            let table = self.tables.get("machines").unwrap_or(operations);
            return Err(table.fault(
                &table.rows[cell.2],
                "family",
                format!("expected a family that operations name, got `{}`", cell.1),
            ));
        }
        for (machine, name, _) in std::mem::take(&mut machines.family_cells) {
            machines.all[machine].family = families.get(&name).copied();
        }
        self.setup_times(&machines, &families, &mut setups)?;
        let opening = self.opening(&machines)?;
        if self.seen.is_some() {
            return Ok(None);
        }
        if let Some(job) = drafts.job_without() {
            return Err(Error::Instance(format!(
                "job {}: expected at least one operation, got none",
                jobs[job].name
            )));
        }
        let precedences = drafts.precedences(&job_of)?;
        self.finish(jobs, machines, drafts, precedences, setups, &opening).map(Some)
    }

    /// Gives jobs their operations and closes machines up to a horizon that suffices.
    fn finish(
        &self,
        mut jobs: Vec<Job>,
        mut machines: Machines,
        drafts: Drafts<'_>,
        precedences: Vec<Precedence>,
        setups: Setups,
        opening: &Opening,
    ) -> Result<Parts> {
        let mut work = 0_u64;
        let mut latest = machines.all.iter().map(|machine| machine.available).max().unwrap_or(0);
        let setup = setups.tables.iter().flatten().copied().max().unwrap_or(0);
        for draft in drafts.all {
            let longest = draft.operation.modes.iter().map(|mode| mode.time).max().unwrap_or(0);
            work += u64::from(longest) + u64::from(draft.min) + u64::from(setup);
            latest = latest.max(draft.operation.earliest).max(jobs[draft.job].release);
            jobs[draft.job].operations.push(draft.operation);
        }
        let horizon = opening.close(self.clock, u64::from(latest), work, &mut machines.all)?;
        Ok(Parts {
            jobs,
            machines: machines.all,
            precedences,
            setups,
            objective: self.settings.objective.clone(),
            horizon,
        })
    }

    pub(super) fn length(&mut self, cell: Cell<'_>) -> Result<u32> {
        let fine = self.clock.length(cell.text).map_err(|what| cell.fault(what))?;
        self.count(cell, fine)
    }

    /// A moment by which something must be done.
    pub(super) fn moment(&mut self, cell: Cell<'_>) -> Result<u32> {
        let fine = u64::try_from(self.instant(cell)?);
        let fine = fine.map_err(|_| {
            let start = self.clock.start.map_or("time 0".to_owned(), |start| format!("the start, {start}"));
            cell.fault(format!(
                "`{}` is before {start}, so nothing can keep it; move it, or leave the cell empty",
                cell.text
            ))
        })?;
        self.count(cell, fine)
    }

    /// A moment from which something may be; what has been so before the start is so at the start.
    pub(super) fn since_start(&mut self, cell: Cell<'_>) -> Result<u32> {
        let fine = self.instant(cell)?.max(0).unsigned_abs();
        self.count(cell, fine)
    }

    /// A moment in thousandths, before the start or after it.
    pub(super) fn instant(&self, cell: Cell<'_>) -> Result<i64> {
        self.clock.signed_moment(cell.text).map_err(|what| cell.fault(what))
    }

    pub(super) fn count(&mut self, cell: Cell<'_>, fine: u64) -> Result<u32> {
        if let Some(seen) = &mut self.seen {
            seen.push(fine);
            return Ok(0);
        }
        let ticks = self.clock.ticks(fine).filter(|&ticks| ticks <= HORIZON);
        ticks.ok_or_else(|| {
            cell.fault(format!(
                "expected a time that can be counted, got `{}`: use a coarser unit",
                cell.text
            ))
        })
    }

    /// Release, due date, deadline and weight of a job, wherever a row gives them; what is given twice must agree.
    fn dates(&mut self, table: &Table, row: &Row, job: &mut Job, said: &mut Said) -> Result<()> {
        if let Some(cell) = table.cell(row, "release") {
            job.release = self.since_start(cell)?;
            said.release.agree(cell, &job.name, job.release.into())?;
        }
        if let Some(cell) = table.cell(row, "due") {
            let fine = self.instant(cell)?;
            let time = self.count(cell, fine.unsigned_abs())?;
            // Before the start is not a time of the shop: the job is late by that much already.
            (job.due, job.overdue) = if fine < 0 { (Some(0), time) } else { (Some(time), 0) };
            said.due.agree(cell, &job.name, job.due_at().unwrap_or(0))?;
        }
        if let Some(cell) = table.cell(row, "deadline") {
            let deadline = self.moment(cell)?;
            said.deadline.agree(cell, &job.name, deadline.into())?;
            job.deadline = Some(deadline);
        }
        if let Some(cell) = table.cell(row, "weight") {
            let weight = cell.text.parse().ok().filter(|weight| (1..=1_000_000).contains(weight));
            job.weight = weight.ok_or_else(|| {
                cell.fault(format!("expected a whole number from 1 to 1000000, got `{}`", cell.text))
            })?;
            said.weight.agree(cell, &job.name, job.weight.into())?;
        }
        Ok(())
    }
}

/// What rows have said of a job.
#[derive(Default)]
struct Said {
    release: Once,
    due: Once,
    deadline: Once,
    weight: Once,
}

/// What a row has said, and where.
#[derive(Default)]
struct Once(Option<(i64, String)>);

impl Once {
    /// Keeps what a row says, unless another one has said something else.
    fn agree(&mut self, cell: Cell<'_>, job: &str, new: i64) -> Result<()> {
        match &self.0 {
            Some((known, place)) if *known != new => {
                return Err(cell.fault(format!("job {job}: {place} says something else; say it once")));
            }
            Some(_) => {}
            None => self.0 = Some((new, cell.place())),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::template;

    const SMALL: &str =
        "job,operation,machine,time,due\nA,cut,saw,1.5,4\nA,bend,press,2,\nB,cut,saw | mill,3 | 4,5\n";

    fn refusal(from: &str, to: &str) -> String {
        assert!(SMALL.contains(from));
        Plan::read(&SMALL.replace(from, to)).unwrap_err().to_string()
    }

    #[test]
    fn a_small_table_is_a_shop() {
        // The unit is 1, a half is written somewhere: a tick is half a unit.
        let plan = Plan::read(SMALL).unwrap();
        let shop = &plan.shop;
        assert_eq!((shop.jobs().len(), shop.machines().len(), shop.operations()), (2, 3, 3));
        assert_eq!((shop.operation(0).modes[0].time, shop.operation(2).modes[1].time), (3, 8));
        assert_eq!((shop.jobs()[0].due, shop.jobs()[1].due), (Some(8), Some(10)));
        assert_eq!(shop.precedences().len(), 1);
        let again = Plan::read(&plan.to_json()).unwrap();
        assert_eq!(again.shop, plan.shop);
        assert_eq!(Plan::read(&plan.to_csv()).unwrap().shop, plan.shop);
    }

    #[test]
    fn the_template_is_a_shop() {
        let plan = Plan::read(template()).unwrap();
        let shop = &plan.shop;
        let names: Vec<_> = shop.machines().iter().map(|machine| machine.name.as_str()).collect();
        assert_eq!(names, ["saw 1", "saw 2", "mill", "paint"]);
        // From Monday 06:00: open until 22:00, closed until 06:00; the mill also from 12:00 to 12:30. Ticks are 5 minutes.
        assert_eq!((plan.clock.per_unit(), plan.clock.amount(1)), (1, "1".into()));
        assert_eq!(shop.machines()[2].calendar.closed()[..2], [(360, 390), (960, 1440)]);
        assert_eq!((shop.machines()[2].available, shop.jobs()[1].release), (60, 120));
        // From steel to brass 45, from brass to steel 20.
        assert_eq!(
            (shop.setups().time(2, Some(0), Some(1)), shop.setups().time(2, Some(1), Some(0))),
            (45, 20)
        );
        assert_eq!(shop.setups().time(0, Some(0), Some(1)), 0);
        assert_eq!(plan.clock.show(90), "2026-11-16 07:30");
    }

    #[test]
    fn mistakes_name_row_and_column() {
        assert_eq!(
            refusal("1.5", "soon"),
            "operations, row 2, column time: expected a number such as 90 or 1.5 (a time such as 1h30 needs a unit), got `soon`"
        );
        assert_eq!(
            refusal("A,bend,press,2,", "A,bend,press,2,9"),
            "operations, row 3, column due: job A: row 2 of operations says something else; say it once"
        );
        assert_eq!(
            refusal("saw | mill,3 | 4", "saw | mill,3 | 4 | 5"),
            "operations, row 4, column time: expected one time, or one for each of 2 machines"
        );
        assert_eq!(
            refusal("B,cut", ",cut"),
            "operations, row 4, column job: the cell is empty; write the row's job"
        );
        assert!(refusal("due", "dew").starts_with(
            "operations, row 1, column dew: this column is not read; expected only the columns job"
        ));
        let cyclic = "job,operation,machine,time,after\nA,a,m,1,b\nA,b,m,1,a\n";
        let line = Plan::read(cyclic).unwrap_err().to_string();
        assert!(line.contains("waits for itself"), "{line}");
        assert!(
            Plan::read("job,machine,time\nA,m,4000000000000\n")
                .unwrap_err()
                .to_string()
                .contains("coarser unit")
        );
        assert!(Plan::read("").is_err() && Plan::read("{}").is_err() && Plan::read("[settings]\n").is_err());
    }

    #[test]
    fn what_two_rows_say_differently_is_refused() {
        let jobs =
            "[jobs]\njob,release,weight\nA,0,1\n[operations]\njob,machine,time,release,weight\nA,m,1,0,1\n";
        assert!(Plan::read(jobs).is_ok());
        for (from, to, column) in [("1,0,1\n", "1,5,1\n", "release"), ("1,0,1\n", "1,0,2\n", "weight")] {
            assert_eq!(
                Plan::read(&jobs.replace(from, to)).unwrap_err().to_string(),
                format!(
                    "operations, row 6, column {column}: job A: row 3 of jobs says something else; say it once"
                )
            );
        }
        let setups = "[setups]\nmachine,from,to,time\nm,x,y,5\n,x,y,6\nm,x,y,7\n[operations]\njob,machine,time,family\n\
                      A,m,1,x\nB,m,1,y\n";
        assert_eq!(
            Plan::read(setups).unwrap_err().to_string(),
            "setups, row 5, column time: row 3 gives this setup as well; keep one of them"
        );
    }

    #[test]
    fn an_operation_longer_than_every_shift_is_refused_on_whatever_day_the_plan_begins() {
        // Open all Monday, 1440 minutes, and then closed for six days.
        for day in 1..=7 {
            let plan = |minutes: u32| {
                Plan::read(&format!(
                    "[settings]\nsetting,value\nunit,min\nstart,2026-01-0{day} 00:00\n[shifts]\nmachine,days,from,to\n\
                     m,mon,00:00,24:00\n[operations]\njob,machine,time\nA,m,{minutes}\n"
                ))
            };
            assert!(plan(1440).is_ok(), "day {day}");
            let line = plan(1441).unwrap_err().to_string();
            assert!(line.contains("machine m is never open for 1441"), "day {day}: {line}");
        }
    }
}
