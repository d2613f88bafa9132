//! Schedules with names and dates: CSV, JSON and iCalendar out; CSV and JSON back in.

use super::csv::{line, read_csv};
use super::table::{Row, Table, Tables, read_json};
use super::{Clock, Plan};
use crate::{Error, Placed, Result, Schedule};
use serde_json::{Map, Value};
use std::fmt::Write;

const COLUMNS: [&str; 10] =
    ["job", "operation", "machine", "start", "end", "starts", "ends", "setup", "due", "late"];

/// One operation of a schedule, in words.
struct Entry<'a> {
    placed: Placed,
    job: &'a str,
    operation: &'a str,
    machine: &'a str,
    setup: u32,
    due: Option<u32>,
    late: u32,
}

impl Plan {
    fn entries(&self, schedule: &Schedule) -> Vec<Entry<'_>> {
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
            let late = job.due.map_or(0, |due| ends[placed.job as usize].saturating_sub(due));
            let machine = self.shop.machines()[machine].name.as_str();
            entries.push(Entry {
                placed,
                job: &job.name,
                operation: &operation.name,
                machine,
                setup,
                due: job.due,
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
            entry.due.map_or(String::new(), |due| self.clock.show(due)),
            some(entry.late),
        ]
    }

    /// The schedule as iCalendar, one event per operation.
    ///
    /// # Errors
    /// If time 0 has no date.
    pub fn schedule_ics(&self, schedule: &Schedule) -> Result<String> {
        let mut text = String::from("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//niwaki//schedule//EN\r\n");
        for entry in self.entries(schedule) {
            let (Some(start), Some(end)) =
                (self.clock.date(entry.placed.start), self.clock.date(entry.placed.end))
            else {
                return Err(Error::Choice(
                    "a calendar needs dates: give the plan a `start` in its settings".into(),
                ));
            };
            let stamp = |date: super::Date| {
                let ((year, month, day), (hour, minute, second)) = (date.civil(), date.time());
                format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}")
            };
            // Writing to a string cannot fail.
            _ = write!(
                text,
                "BEGIN:VEVENT\r\nUID:{}-{}@niwaki\r\nDTSTAMP:{}Z\r\nDTSTART:{}\r\nDTEND:{}\r\nSUMMARY:{}\r\nLOCATION:{}\r\nEND:VEVENT\r\n",
                entry.placed.job,
                entry.placed.op,
                stamp(start),
                stamp(start),
                stamp(end),
                escaped(&format!("{} {}", entry.job, entry.operation)),
                escaped(entry.machine)
            );
        }
        text.push_str("END:VCALENDAR\r\n");
        Ok(text)
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
        let operations = table.rows.iter().map(|row| self.placed(table, row)).collect::<Result<_>>()?;
        Ok(Schedule { operations })
    }

    fn placed(&self, table: &Table, row: &Row) -> Result<Placed> {
        let job_cell = table.need(row, "job")?;
        let jobs = self.shop.jobs();
        let job = jobs.iter().position(|job| job.name == job_cell.text);
        let job = job
            .ok_or_else(|| job_cell.fault(format!("expected a job of the plan, got `{}`", job_cell.text)))?;
        let cell = table.need(row, "operation")?;
        let op = jobs[job].operations.iter().position(|operation| operation.name == cell.text);
        let op = op.ok_or_else(|| {
            cell.fault(format!("expected an operation of job {}, got `{}`", jobs[job].name, cell.text))
        })?;
        let cell = table.need(row, "machine")?;
        let machine = self.shop.machines().iter().position(|machine| machine.name == cell.text);
        let machine = machine
            .ok_or_else(|| cell.fault(format!("expected a machine of the plan, got `{}`", cell.text)))?;
        let time = |column| {
            let cell = table.need(row, column)?;
            exact(&self.clock, cell.text).map_err(|what| cell.fault(what))
        };
        let (start, end) = (time("start")?, time("end")?);
        Ok(Placed { job: job as u32, op: op as u32, machine: machine as u32, start, end })
    }
}

/// A moment in ticks, if it is a whole number of them.
fn exact(clock: &Clock, text: &str) -> std::result::Result<u32, String> {
    let fine = clock.moment(text)?;
    clock.whole_ticks(fine).ok_or_else(|| format!("expected a time that the plan can count, got `{text}`"))
}

/// Text as iCalendar wants it.
fn escaped(text: &str) -> String {
    let plain: String = text.chars().filter(|letter| !letter.is_control()).collect();
    plain.replace('\\', "\\\\").replace(';', "\\;").replace(',', "\\,")
}
