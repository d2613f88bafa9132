//! Schedules with names and dates: CSV and JSON out and back in.

use super::csv::{line, read_csv};
use super::local::SETTINGS;
use super::table::{Cell, Row, Table, Tables, read_json};
use super::{Clock, Plan, parse_date};
use crate::general::{Job, Shop};
use crate::{Error, Placed, Result, Schedule};
use serde_json::{Map, Value};
use std::collections::HashMap;

const COLUMNS: [&str; 10] =
    ["job", "operation", "machine", "start", "end", "starts", "ends", "setup", "due", "late"];

/// One operation of a schedule, in words.
pub(super) struct Entry<'a> {
    pub(super) placed: Placed,
    pub(super) job: &'a str,
    pub(super) operation: &'a str,
    pub(super) machine: &'a str,
    setup: u32,
    due: Option<String>,
    late: u32,
}

impl Plan {
    /// When a job is due, in words.
    #[must_use]
    pub fn due(&self, job: &Job) -> Option<String> {
        let shown =
            |due| if job.overdue > 0 { self.clock.show_before(job.overdue) } else { self.clock.show(due) };
        job.due.map(shown)
    }

    pub(super) fn entries(&self, schedule: &Schedule) -> Vec<Entry<'_>> {
        let mut placed = schedule.operations.clone();
        placed.sort_by_key(|here| (here.start, here.machine, here.end, here.job));
        let (mut family, mut entries) = (Vec::new(), Vec::with_capacity(placed.len()));
        family.extend(self.shop.machines().iter().map(|machine| machine.family));
        let mut ends = vec![0; self.shop.jobs().len()];
        for here in &placed {
            ends[here.job as usize] = here.end.max(ends[here.job as usize]);
        }
        for placed in placed {
            let job = &self.shop.jobs()[placed.job as usize];
            let operation = &job.operations[placed.op as usize];
            let machine = placed.machine as usize;
            let setup = self.shop.setups().time(machine, family[machine], operation.family);
            family[machine] = operation.family;
            let late = job.late(ends[placed.job as usize]) as u32;
            let machine = self.shop.machines()[machine].name.as_str();
            entries.push(Entry {
                placed,
                job: &job.name,
                operation: &operation.name,
                machine,
                setup,
                due: self.due(job),
                late,
            });
        }
        entries
    }

    /// The schedule as CSV: names, times in the plan's unit, and dates where time 0 has one.
    #[must_use]
    pub fn schedule_csv(&self, schedule: &Schedule) -> String {
        let mut text = line(&COLUMNS) + "\n";
        for entry in self.entries(schedule) {
            text += &line(&self.cells(&entry));
            text.push('\n');
        }
        text
    }

    /// The schedule as JSON, with the same fields as the CSV.
    #[must_use]
    pub fn schedule_json(&self, schedule: &Schedule) -> String {
        let row = |entry: &Entry<'_>| {
            let cells = COLUMNS.iter().zip(self.cells(entry)).filter(|(_, cell)| !cell.is_empty());
            let object: Map<String, Value> =
                cells.map(|(column, cell)| ((*column).to_owned(), Value::from(cell))).collect();
            format!("    {}", Value::from(object))
        };
        let rows: Vec<String> = self.entries(schedule).iter().map(row).collect();
        format!("{{\n  \"schedule\": [\n{}\n  ]\n}}\n", rows.join(",\n"))
    }

    fn cells(&self, entry: &Entry<'_>) -> Vec<String> {
        let date = |time| self.clock.date(time).map_or(String::new(), |date| date.to_string());
        let some = |time: u32| if time > 0 { self.clock.number(time) } else { String::new() };
        let Placed { start, end, .. } = entry.placed;
        vec![
            entry.job.to_owned(),
            entry.operation.to_owned(),
            entry.machine.to_owned(),
            self.clock.number(start),
            self.clock.number(end),
            date(start),
            date(end),
            some(entry.setup),
            entry.due.clone().unwrap_or_default(),
            some(entry.late),
        ]
    }

    /// A moment as people write it, in ticks.
    ///
    /// # Errors
    /// If it is none.
    pub fn moment(&self, text: &str) -> Result<u32> {
        exact(&self.clock, text.trim()).map_err(Error::Choice)
    }

    /// Reads a schedule that names jobs, operations and machines as the plan does.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn read_schedule(&self, text: &str) -> Result<Schedule> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let tables = if text.trim_start().starts_with('{') {
            read_json(text, &["schedule"])?
        } else {
            read_csv(text, &["operations"])?
        };
        let Tables { all, .. } = &tables;
        let Some(table) = all.first() else {
            return Err(Error::Instance("expected a schedule, got nothing".into()));
        };
        table.only(&COLUMNS)?;
        if let Some((_, line, cell)) = tables.like_rows.first() {
            let what = format!(
                "`{cell}` begins a comment that looks like a row; quote the cell, or take the line out"
            );
            return Err(Error::Parse { line: *line, column: 1, what });
        }
        let names = Names::new(&self.shop);
        let operations =
            table.rows.iter().map(|row| self.placed(&names, table, row)).collect::<Result<_>>()?;
        Ok(Schedule { operations })
    }

    fn placed(&self, names: &Names<'_>, table: &Table, row: &Row) -> Result<Placed> {
        let cell = table.need(row, "job")?;
        let job = names.jobs.get(cell.text).copied();
        let job =
            job.ok_or_else(|| cell.fault(format!("expected a job of the plan, got `{}`", cell.text)))?;
        let cell = table.need(row, "operation")?;
        let op = names.operations.get(&(job, cell.text)).copied();
        let op = op.ok_or_else(|| {
            let job = &self.shop.jobs()[job as usize].name;
            cell.fault(format!("expected an operation of job {job}, got `{}`", cell.text))
        })?;
        let cell = table.need(row, "machine")?;
        let machine = names.machines.get(cell.text).copied();
        let machine = machine
            .ok_or_else(|| cell.fault(format!("expected a machine of the plan, got `{}`", cell.text)))?;
        let (start, end) = (self.time(table, row, "start", "starts")?, self.time(table, row, "end", "ends")?);
        Ok(Placed { job, op, machine, start, end })
    }

    /// A moment that a row gives as a number, as a date or as both, which must then agree.
    fn time(&self, table: &Table, row: &Row, number: &str, date: &str) -> Result<u32> {
        let read = |cell: Cell<'_>| exact(&self.clock, cell.text).map_err(|what| cell.fault(what));
        let time = match (table.cell(row, number), table.cell(row, date)) {
            (Some(number), None) => return read(number),
            (None, Some(date)) => return read(date),
            (None, None) => return table.need(row, number).and_then(read),
            (Some(number), Some(_)) => read(number)?,
        };
        let (number, date) = (table.need(row, number)?, table.need(row, date)?);
        // A date has whole seconds, a tick may be less.
        let agree = match parse_date(date.text).filter(|_| self.clock.start.is_some()) {
            Some(there) => self.clock.date(time) == Some(there),
            None => read(date)? == time,
        };
        if agree {
            return Ok(time);
        }
        Err(date.fault(format!(
            "`{}` is another time than `{}` in column {}, which is {}; change both, or leave one of them empty",
            date.text,
            number.text,
            number.column,
            self.clock.show(time)
        )))
    }
}

/// What jobs, operations and machines of a shop are called, with their numbers.
struct Names<'a> {
    jobs: HashMap<&'a str, u32>,
    operations: HashMap<(u32, &'a str), u32>,
    machines: HashMap<&'a str, u32>,
}

impl<'a> Names<'a> {
    fn new(shop: &'a Shop) -> Self {
        let jobs = || (0..).zip(shop.jobs());
        let operations = |(job, about): (u32, &'a Job)| {
            (0..).zip(&about.operations).map(move |(op, operation)| ((job, operation.name.as_str()), op))
        };
        Self {
            jobs: jobs().map(|(job, about)| (about.name.as_str(), job)).collect(),
            operations: jobs().flat_map(operations).collect(),
            machines: (0..)
                .zip(shop.machines())
                .map(|(machine, about)| (about.name.as_str(), machine))
                .collect(),
        }
    }
}

/// A moment in ticks, if it is a whole number of them.
fn exact(clock: &Clock, text: &str) -> std::result::Result<u32, String> {
    // The settings of a plan are about its own file.
    let mend = |what: String| what.split(SETTINGS).next().unwrap_or_default().to_owned();
    let fine = clock.moment(text).map_err(mend)?;
    clock.whole_ticks(fine).ok_or_else(|| format!("expected a time that the plan can count, got `{text}`"))
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;
    use crate::{Placed, Schedule};

    fn plan() -> Plan {
        Plan::read(
            "[settings]\nsetting,value\nunit,min\nstart,2026-11-16 06:00\n[operations]\njob,operation,machine,time\n\
             A,cut,saw,2h\nA,mill,mill,30\n",
        )
        .unwrap()
    }

    /// A tick is a minute.
    fn schedule() -> Schedule {
        let place = |op, machine, start, end| Placed { job: 0, op, machine, start, end };
        Schedule { operations: vec![place(0, 0, 0, 120), place(1, 1, 120, 150)] }
    }

    #[test]
    fn a_row_that_reads_as_a_comment_is_not_passed_over() {
        let plan = Plan::read("job,machine,time\n\"#1\",m,2\n").unwrap();
        let place = Placed { job: 0, op: 0, machine: 0, start: 0, end: 2 };
        let text = plan.schedule_csv(&Schedule { operations: vec![place] });
        assert_eq!(plan.read_schedule(&format!("# a note\n{text}")).unwrap().operations, [place]);
        // As a spreadsheet program saves it.
        assert_eq!(
            plan.read_schedule(&text.replace('"', "")).unwrap_err().to_string(),
            "line 2, column 1: `#1` begins a comment that looks like a row; quote the cell, or take the line out"
        );
    }

    #[test]
    fn dates_that_disagree_with_numbers_are_refused() {
        let plan = plan();
        let text = plan.schedule_csv(&schedule());
        assert!(text.contains("A,mill,mill,120,150,2026-11-16 08:00,2026-11-16 08:30"), "{text}");
        assert_eq!(plan.read_schedule(&text).unwrap(), schedule());
        let read = |from: &str, to: &str| {
            assert!(text.contains(from));
            plan.read_schedule(&text.replace(from, to)).map_err(|error| error.to_string())
        };
        let refused = "operations, row 3, column starts: `2026-11-16 09:00` is another time than `120` in column start, which is \
                       2026-11-16 08:00; change both, or leave one of them empty";
        assert_eq!(read("120,150,2026-11-16 08:00", "120,150,2026-11-16 09:00").unwrap_err(), refused);
        assert!(read("2026-11-16 08:30", "2026-11-16 08:31").unwrap_err().contains("row 3, column ends"));
        assert!(read("120,150", "150,180").unwrap_err().contains("column starts"));
        assert!(
            read("2026-11-16 08:30", "soon").unwrap_err().contains("row 3, column ends: expected a time")
        );
        // One of them alone is the time; the same in JSON.
        for (from, to) in [
            ("120,150", ","),
            ("2026-11-16 08:00,2026-11-16 08:30", ","),
            ("120,150,2026-11-16 08:00,", "120,,,"),
        ] {
            assert_eq!(read(from, to).unwrap(), schedule(), "{to}");
        }
        let moved =
            read("120,150,2026-11-16 08:00,2026-11-16 08:30", ",,2026-11-16 09:00,2026-11-16 09:30").unwrap();
        assert_eq!((moved.operations[1].start, moved.operations[1].end), (180, 210));
        assert!(
            read("120,150,2026-11-16 08:00,", ",150,,")
                .unwrap_err()
                .contains("column start: the cell is empty")
        );
        let json = plan.schedule_json(&schedule()).replace("2026-11-16 08:30", "2026-11-16 08:45");
        assert!(plan.read_schedule(&json).unwrap_err().to_string().contains("schedule, row 2, column ends"));
    }
}
