//! Dates of the Gregorian calendar and times of day, without time zones.

use std::fmt;

const DAY: i64 = 86_400;

/// A date and a time of day, in seconds since 1970-01-01 00:00.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    seconds: i64,
}

impl Date {
    /// 1970-01-01 00:00.
    pub const EPOCH: Self = Self { seconds: 0 };

    /// The date so many seconds later.
    #[must_use]
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        Self { seconds: self.seconds.saturating_add(seconds) }
    }

    /// Seconds from another date to this one.
    #[must_use]
    pub const fn seconds_since(self, other: Self) -> i64 {
        self.seconds - other.seconds
    }

    /// The day of the week, Monday 0.
    #[must_use]
    pub const fn weekday(self) -> usize {
        // 1970-01-01 was a Thursday.
        (self.seconds.div_euclid(DAY) + 3).rem_euclid(7) as usize
    }

    /// Midnight of this day.
    #[must_use]
    pub const fn midnight(self) -> Self {
        Self { seconds: self.seconds.div_euclid(DAY) * DAY }
    }

    /// Year, month and day.
    #[must_use]
    pub const fn civil(self) -> (i64, u32, u32) {
        civil(self.seconds.div_euclid(DAY))
    }

    /// Hours, minutes and seconds since midnight.
    #[must_use]
    pub const fn time(self) -> (u32, u32, u32) {
        let second = self.seconds.rem_euclid(DAY) as u32;
        (second / 3600, second / 60 % 60, second % 60)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((year, month, day), (hour, minute, second)) = (self.civil(), self.time());
        write!(to, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")?;
        if second > 0 { write!(to, ":{second:02}") } else { Ok(()) }
    }
}

/// `2026-11-16`, `2026-11-16 06:00`, `2026-11-16T06:00:30`, and with points the day comes first: `16.11.2026`; nothing if
/// the text is no date.
#[must_use]
pub fn parse_date(text: &str) -> Option<Date> {
    let text = text.trim();
    let (day, time) = match text.split_once(['T', ' ']) {
        Some((day, time)) => (day, time.trim()),
        None => (text, "00:00"),
    };
    let pointed = day.contains('.');
    let mark = if pointed { '.' } else { '-' };
    let mut parts: Vec<(usize, Option<u32>)> =
        day.split(mark).map(|part| (part.len(), number(part))).collect();
    if pointed {
        parts.reverse();
    }
    let [(4, Some(year)), (month_digits, Some(month)), (day_digits, Some(day))] = parts[..] else {
        return None;
    };
    if [month_digits, day_digits].iter().any(|&digits| digits > 2 || digits < 2 && !pointed) {
        return None;
    }
    if !(1..=12).contains(&month) || day == 0 || day > days_in(i64::from(year), month) {
        return None;
    }
    let days = days_from_civil(i64::from(year), month, day);
    Some(Date { seconds: days * DAY + i64::from(parse_time_of_day(time)?) })
}

/// `6:00`, `06:00`, `22:30:15`, and `24:00` for the end of the day, in seconds since midnight.
#[must_use]
pub(super) fn parse_time_of_day(text: &str) -> Option<u32> {
    let mut parts = text.trim().split(':').map(number);
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = match parts.next() {
        Some(second) => second?,
        None => 0,
    };
    let whole = hour * 3600 + minute * 60 + second;
    (parts.next().is_none() && hour <= 24 && minute < 60 && second < 60 && whole <= 86_400).then_some(whole)
}

fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

const fn days_in(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01, counting years from March so that leap days come last.
const fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = (month as i64 + 9) % 12;
    let of_year = (153 * from_march + 2) / 5 + day as i64 - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
const fn civil(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year + era * 400 + (month <= 2) as i64, month as u32, day as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_by_hand() {
        // 2026-11-16 is a Monday, 20773 days after 1970-01-01.
        let date = parse_date("2026-11-16 06:30").unwrap();
        assert_eq!((date.weekday(), date.to_string().as_str()), (0, "2026-11-16 06:30"));
        assert_eq!(date.midnight().seconds_since(parse_date("1970-01-01").unwrap()), 20_773 * DAY);
        assert_eq!(date.plus_seconds(18 * 3600).to_string(), "2026-11-17 00:30");
        assert_eq!(
            parse_date("2028-02-29T23:59:58").unwrap().plus_seconds(2).to_string(),
            "2028-03-01 00:00"
        );
        for same in ["16.11.2026 06:30", "16.11.2026T06:30:00"] {
            assert_eq!(parse_date(same), Some(date), "{same}");
        }
        assert_eq!(parse_date("1.2.2026"), parse_date("2026-02-01"));
        let wrong = [
            "2026-02-29",
            "2026-13-01",
            "2026-1-1",
            "2026-11-16 25:00",
            "",
            "12",
            "29.2.2026",
            "16.11.26",
            "11/16/2026",
        ];
        for wrong in wrong.into_iter().chain(["2026.11.16", "1.2", "16.11.2026.", "16-11-2026"]) {
            assert!(parse_date(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn every_day_comes_back() {
        for days in (-200_000..200_000).step_by(37) {
            let (year, month, day) = civil(days);
            assert_eq!(days_from_civil(year, month, day), days);
            assert!(day >= 1 && day <= days_in(year, month));
        }
    }

    #[test]
    fn times_of_day() {
        assert_eq!((parse_time_of_day("6:00"), parse_time_of_day("24:00")), (Some(21_600), Some(86_400)));
        assert!(parse_time_of_day("24:01").is_none() && parse_time_of_day("6").is_none());
    }
}
