//! Schedules as iCalendar (RFC 5545): one event per operation, in the shop's own time.

use super::{Date, Plan};
use crate::{Error, Result, Schedule};
use niwaki_files::Digest;

/// The most octets of a line, without what ends it.
const LONGEST: usize = 75;

impl Plan {
    /// The schedule as iCalendar, one event per operation.
    ///
    /// An event is known by the plan's name, start and machines and by its job and operation: a later schedule of the same plan
    /// moves it, another plan's does not touch it. Times are floating, without a zone.
    ///
    /// # Errors
    /// If time 0 has no date.
    pub fn schedule_ics(&self, schedule: &Schedule, name: &str) -> Result<String> {
        let Some(began) = self.clock.start else {
            return Err(Error::Choice(
                "a calendar needs dates: give the plan a `start` in its settings".into(),
            ));
        };
        let machines = self.shop.machines().iter().map(|machine| machine.name.as_str());
        let plan = digest([name, &began.to_string()].into_iter().chain(machines));
        let mut text = String::new();
        let mut put = |line: &str| fold(line, &mut text);
        put("BEGIN:VCALENDAR");
        put("VERSION:2.0");
        put("PRODID:-//niwaki//schedule//EN");
        put(&format!("X-WR-CALNAME:{}", escaped(name)));
        put("X-WR-CALDESC:Times are the shop's own\\, without a time zone");
        for entry in self.entries(schedule) {
            let date = |time| self.clock.date(time).map(stamp).unwrap_or_default();
            put("BEGIN:VEVENT");
            put(&format!("UID:{plan}-{}@niwaki", digest([entry.job, entry.operation])));
            // The same schedule is the same file, so this is not when it was written.
            put(&format!("DTSTAMP:{}Z", stamp(began)));
            put(&format!("DTSTART:{}", date(entry.placed.start)));
            put(&format!("DTEND:{}", date(entry.placed.end)));
            put(&format!("SUMMARY:{} {}", escaped(entry.job), escaped(entry.operation)));
            put(&format!("LOCATION:{}", escaped(entry.machine)));
            put("END:VEVENT");
        }
        put("END:VCALENDAR");
        Ok(text)
    }
}

/// A checksum of words and of where each of them ends.
fn digest<'a>(words: impl IntoIterator<Item = &'a str>) -> Digest {
    words.into_iter().fold(Digest::default(), |digest, word| digest.and(word).and([0xff]))
}

/// A date and time without a zone.
fn stamp(date: Date) -> String {
    let ((year, month, day), (hour, minute, second)) = (date.civil(), date.time());
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}")
}

/// Text as iCalendar wants it.
fn escaped(text: &str) -> String {
    let plain: String = text.chars().filter(|letter| !letter.is_control()).collect();
    plain.replace('\\', "\\\\").replace(';', "\\;").replace(',', "\\,")
}

/// Adds a line; what is too long goes on after a blank in the next one, between two letters.
fn fold(line: &str, text: &mut String) {
    let (mut rest, mut room) = (line, LONGEST);
    while rest.len() > room {
        // A letter has at most four octets.
        let end = (room - 3..=room).rev().find(|&end| rest.is_char_boundary(end)).unwrap_or(room);
        let (here, next) = rest.split_at(end);
        *text += here;
        *text += "\r\n ";
        (rest, room) = (next, LONGEST - 1);
    }
    *text += rest;
    *text += "\r\n";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Placed;

    const PLAN: &str = "[settings]\nsetting,value\nunit,min\nstart,2026-03-28 22:00\n[operations]\njob,operation,machine,time\n\
                        A,cut,saw,8h\nB,cut,\"mill, old\",30\n";

    fn schedule(late: u32) -> Schedule {
        let place = |job, machine, start, end| Placed { job, op: 0, machine, start, end };
        Schedule { operations: vec![place(0, 0, late, late + 480), place(1, 1, 0, 30)] }
    }

    fn ics(text: &str, name: &str, late: u32) -> String {
        Plan::read(text).unwrap().schedule_ics(&schedule(late), name).unwrap()
    }

    fn ids(text: &str) -> Vec<&str> {
        text.lines().filter(|line| line.starts_with("UID:")).collect()
    }

    #[test]
    fn times_are_floating_whatever_night_it_is() {
        let text = ics(PLAN, "shop", 0);
        // Through the night in which clocks change in Europe: eight hours are eight hours on a clock that does not change.
        assert!(text.contains(
            "\r\nDTSTART:20260328T220000\r\nDTEND:20260329T060000\r\nSUMMARY:A cut\r\nLOCATION:saw\r\n"
        ));
        assert!(
            text.contains("\r\nX-WR-CALNAME:shop\r\n") && text.contains("\r\nLOCATION:mill\\, old\r\n"),
            "{text}"
        );
        assert!(
            !text.contains("TZID")
                && text.lines().all(|line| !line.starts_with("DTSTART") || !line.ends_with('Z'))
        );
        let undated = Plan::read("job,machine,time\nA,m,1\n").unwrap();
        let line = undated.schedule_ics(&Schedule::default(), "shop").unwrap_err().to_string();
        assert!(line.contains("a calendar needs dates"), "{line}");
    }

    #[test]
    fn an_event_keeps_its_name_within_its_plan_only() {
        let text = ics(PLAN, "shop", 0);
        let first = ids(&text);
        assert!(first.len() == 2 && first[0] != first[1], "{first:?}");
        // Another schedule, another due date, another job: the events of the plan are the same ones.
        let mut later = ids(&text).to_vec();
        later.sort_unstable();
        let moved = ics(PLAN, "shop", 60);
        let mut again = ids(&moved);
        again.sort_unstable();
        assert_eq!(again, later);
        let others = [
            ics(PLAN, "other", 0),
            ics(&PLAN.replace("03-28", "03-29"), "shop", 0),
            ics(&PLAN.replace("saw", "saw 2"), "shop", 0),
            ics(&PLAN.replace("\nA,", "\nC,").replace("\nB,", "\nD,"), "shop", 0),
        ];
        for other in &others {
            assert!(ids(other).iter().all(|id| !first.contains(id)), "{other}");
        }
    }

    #[test]
    fn lines_are_folded_between_letters() {
        let folded = |line: &str| {
            let mut text = String::new();
            fold(line, &mut text);
            text
        };
        assert_eq!(folded(&"a".repeat(75)), format!("{}\r\n", "a".repeat(75)));
        assert_eq!(folded(&"a".repeat(76)), format!("{}\r\n a\r\n", "a".repeat(75)));
        // 37 letters of two octets; then 37 on a line that begins with a blank.
        assert_eq!(folded(&"é".repeat(75)), format!("{0}\r\n {0}\r\n é\r\n", "é".repeat(37)));
        let name = "ein sehr langer Name für eine Fräsmaschine, ".repeat(4);
        let text = ics(&PLAN.replace("mill, old", &name), &name, 0);
        assert!(text.split("\r\n").all(|line| line.len() <= LONGEST), "{text}");
        assert!(text.replace("\r\n ", "").contains(&format!("LOCATION:{}", escaped(name.trim()))), "{text}");
    }
}
