//! Shifts and breaks to closed times, as far into the future as any schedule may reach.

use super::date::{Date, parse_time_of_day};
use super::table::{Row, Table};
use super::time::Clock;
use crate::general::{Calendar, Machine};
use crate::instance::HORIZON;
use crate::{Error, Result};

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const WEEK: u64 = 7 * 86_400;

/// The most closed times of all machines together.
const MOST: u64 = 2_000_000;

/// When machines are open: weekly shifts, if a machine has any, less breaks.
pub(super) struct Opening {
    start: Option<Date>,
    /// Open times of the week in seconds since Monday 00:00, for each machine that has shifts.
    shifts: Vec<Vec<(u64, u64)>>,
    /// Breaks in ticks.
    breaks: Vec<Vec<(u32, u32)>>,
    /// How many of both there are.
    count: u64,
}

impl Opening {
    pub(super) fn new(machines: usize, start: Option<Date>) -> Self {
        Self { start, shifts: vec![Vec::new(); machines], breaks: vec![Vec::new(); machines], count: 0 }
    }

    /// Adds a row of breaks.
    pub(super) fn add_break(
        &mut self,
        table: &Table,
        row: &Row,
        machines: &[usize],
        times: (u32, u32),
    ) -> Result<()> {
        self.take(table, row, machines.len())?;
        machines.iter().for_each(|&machine| self.breaks[machine].push(times));
        Ok(())
    }

    /// Counts what a row adds: one with a star adds to every machine.
    fn take(&mut self, table: &Table, row: &Row, count: usize) -> Result<()> {
        self.count += count as u64;
        if self.count > MOST {
            let what = format!("expected at most {MOST} shifts and breaks of all machines together");
            return Err(table.fault(row, "machine", what));
        }
        Ok(())
    }

    /// Adds a row of shifts; returns the times at which it opens and closes, in thousandths of a second.
    pub(super) fn add_shift(&mut self, table: &Table, row: &Row, machines: &[usize]) -> Result<Vec<u64>> {
        let Some(start) = self.start else {
            return Err(table.fault(
                row,
                "from",
                "shifts need a `start` in the settings, the date of time 0",
            ));
        };
        let time = |column| {
            let cell = table.need(row, column)?;
            parse_time_of_day(cell.text).ok_or_else(|| {
                cell.fault(format!("expected a time of day such as 06:00, got `{}`", cell.text))
            })
        };
        let (from, to) = (u64::from(time("from")?), u64::from(time("to")?));
        let days = match table.cell(row, "days") {
            None => vec![true; 7],
            Some(cell) => days(cell.text).ok_or_else(|| {
                cell.fault(format!("expected days such as mon-fri or sat|sun, got `{}`", cell.text))
            })?,
        };
        if from == to {
            return Err(table.fault(
                row,
                "to",
                "a shift from and to the same time of day could be none or a whole day: write 00:00 to 24:00 for a whole day",
            ));
        }
        self.take(table, row, 8 * machines.len())?;
        // A shift that ends before it begins goes on until the next day.
        let length = if to > from { to - from } else { to + 86_400 - from };
        for &machine in machines {
            for (day, _) in days.iter().enumerate().filter(|(_, is_open)| **is_open) {
                let opens = day as u64 * 86_400 + from;
                let closes = opens + length;
                self.shifts[machine].push((opens, closes.min(WEEK)));
                if closes > WEEK {
                    self.shifts[machine].push((0, closes - WEEK));
                }
            }
        }
        let since = start.seconds_since(start.midnight()) as u64;
        // Moments count from the start, so the offsets of midnight to it matter, too.
        let offset = |second: u64| (second + 86_400 - since % 86_400) % 86_400 * 1000;
        Ok(vec![offset(from), offset(to), 86_400_000])
    }

    /// Closes the machines; returns a horizon by which all work from `latest` on can be done, one after the other.
    pub(super) fn close(
        &self,
        clock: &Clock,
        latest: u64,
        work: u64,
        machines: &mut [Machine],
    ) -> Result<u32> {
        let too_long = || {
            Error::Instance(format!(
                "shop: expected to end within {HORIZON} ticks; use a coarser unit of time"
            ))
        };
        let last_break = self.breaks.iter().flatten().map(|&(_, to)| u64::from(to)).max().unwrap_or(0);
        let mut horizon = latest.max(last_break) + work;
        let week = clock.ticks(WEEK * 1000).map_or(0, u64::from);
        let mut weekly = 0_u64;
        for (machine, shifts) in machines.iter().zip(&self.shifts).filter(|(_, shifts)| !shifts.is_empty()) {
            let open: u64 = shifts.iter().map(|&(from, to)| to - from).sum();
            if open == 0 {
                return Err(Error::Instance(format!("machine {}: its shifts are never open", machine.name)));
            }
            // Work in one piece may leave up to all but one unit of a shift unused: twice the time, and two weeks more.
            let weeks = (2 * work).div_ceil((open * week / WEEK).max(1)) + 2;
            horizon = horizon.max(latest.max(last_break) + weeks.saturating_mul(week));
            weekly += shifts.len() as u64 + 1;
        }
        let horizon =
            u32::try_from(horizon).ok().filter(|&horizon| horizon <= HORIZON).ok_or_else(too_long)?;
        if week > 0 && weekly.saturating_mul(u64::from(horizon) / week + 2) > MOST {
            return Err(Error::Instance(format!(
                "shifts: expected fewer than {MOST} closed times until {}, when all work could be done",
                clock.show(horizon)
            )));
        }
        for (machine, (shifts, breaks)) in machines.iter_mut().zip(self.shifts.iter().zip(&self.breaks)) {
            let mut closed = breaks.clone();
            if !shifts.is_empty() {
                closed.extend(self.nights(clock, shifts, horizon));
            }
            machine.calendar = Calendar::new(closed);
        }
        Ok(horizon)
    }

    /// The times between shifts.
    fn nights(&self, clock: &Clock, shifts: &[(u64, u64)], horizon: u32) -> Vec<(u32, u32)> {
        let Some(start) = self.start else { return Vec::new() };
        let mut open = shifts.to_vec();
        open.sort_unstable();
        // Seconds from Monday 00:00 of the first week to time 0.
        let into_week = start.weekday() as u64 * 86_400 + start.seconds_since(start.midnight()) as u64;
        let mut closed = Vec::new();
        // What has been open up to here, in seconds since that Monday.
        let (mut until, mut week) = (0, 0);
        loop {
            for &(opens, closes) in &open {
                let (opens, closes) = (week * WEEK + opens, week * WEEK + closes);
                if opens > until {
                    let tick = |second: u64| {
                        clock.ticks(second.saturating_sub(into_week) * 1000).unwrap_or(u32::MAX)
                    };
                    let (from, to) = (tick(until), tick(opens));
                    if from >= horizon {
                        return closed;
                    }
                    closed.push((from, to));
                }
                until = until.max(closes);
            }
            week += 1;
            // The time after the last shift is closed as well: what is not listed is open.
            if clock.ticks(until.saturating_sub(into_week) * 1000).is_none_or(|tick| tick >= horizon) {
                return closed;
            }
        }
    }
}

/// `mon-fri`, `sat`, `mon|wed-fri`.
fn days(text: &str) -> Option<Vec<bool>> {
    let mut open = vec![false; 7];
    let day = |name: &str| DAYS.iter().position(|day| name.trim().eq_ignore_ascii_case(day));
    for part in text.split(['|', ' ']).filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (day(from)?, day(to)?);
        let mut at = from;
        loop {
            open[at] = true;
            if at == to {
                break;
            }
            at = (at + 1) % 7;
        }
    }
    open.contains(&true).then_some(open)
}

#[cfg(test)]
mod tests {
    use crate::general::{Past, solve};
    use crate::plan::Plan;
    use crate::{Limits, Result};
    use std::time::Duration;

    /// Two hours of work on a machine that is open so, to be done by 09:30.
    fn plan(to: &str) -> Result<Plan> {
        Plan::read(&format!(
            "[settings]\nsetting,value\nunit,min\nstart,2026-11-16 08:00\n[shifts]\nmachine,days,from,to\n*,mon-fri,08:00,{to}\n\
             [operations]\njob,operation,machine,time,deadline\nA,cut,saw,2h,2026-11-16 09:30\n"
        ))
    }

    #[test]
    fn a_shift_of_no_length_is_refused() {
        assert_eq!(
            plan("08:00").unwrap_err().to_string(),
            "shifts, row 7, column to: a shift from and to the same time of day could be none or a whole day: \
             write 00:00 to 24:00 for a whole day"
        );
    }

    #[test]
    fn complaints_about_a_dated_plan_say_dates() {
        let plan_of_a_day = plan("12:00").unwrap();
        let limits = Limits::new(Duration::ZERO, 1);
        let found = solve(&plan_of_a_day.shop, limits, Past::default(), &mut |_| ());
        assert_eq!(
            found.unwrap_err().to_string(),
            "job A: its deadline is 2026-11-16 09:30, but it cannot end before 2026-11-16 10:00"
        );
        let line = plan("09:00").unwrap_err().to_string();
        assert!(line.contains("machine saw is never open for 120 min before 2026-"), "{line}");
    }
}
