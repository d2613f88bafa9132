//! Times as people write them: `90`, `1.5`, `1h30`, `2d 4h`, `2026-11-16 06:00`; inside, whole ticks.
//!
//! Everything is first read in thousandths of the unit (or of a second, where the unit is one of time); the largest tick
//! that divides all of it is then the shop's unit, so that no decimal is rounded.

use super::date::{Date, parse_date};
use super::local::other_way;
use crate::general::Says;

/// The unit of bare numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Numbers without a meaning.
    Bare,
    /// Seconds.
    Seconds,
    /// Minutes.
    Minutes,
    /// Hours.
    Hours,
    /// Days.
    Days,
}

impl Unit {
    /// All units with their names.
    pub const ALL: [(&'static str, Self); 5] = [
        ("none", Self::Bare),
        ("s", Self::Seconds),
        ("min", Self::Minutes),
        ("h", Self::Hours),
        ("d", Self::Days),
    ];

    /// The unit's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, unit)| *unit == self).map_or("none", |(name, _)| name)
    }

    /// Thousandths that a bare number counts.
    const fn fine(self) -> u64 {
        match self {
            Self::Bare | Self::Seconds => 1000,
            Self::Minutes => 60_000,
            Self::Hours => 3_600_000,
            Self::Days => 86_400_000,
        }
    }
}

/// What times mean: the unit of bare numbers, the date of time 0, and the tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The unit of bare numbers.
    pub unit: Unit,
    /// The date of time 0.
    pub start: Option<Date>,
    /// Thousandths of a tick.
    tick: u64,
}

impl Clock {
    /// A clock before its tick is known: it reads thousandths.
    pub(super) const fn fine(unit: Unit, start: Option<Date>) -> Self {
        Self { unit, start, tick: 1 }
    }

    /// The same clock with the largest tick that divides all of these and the unit.
    pub(super) fn ticking(self, all: impl IntoIterator<Item = u64>) -> Self {
        Self { tick: all.into_iter().fold(self.unit.fine(), gcd), ..self }
    }

    /// Ticks of one unit.
    #[must_use]
    pub const fn per_unit(&self) -> u64 {
        self.unit.fine() / self.tick
    }

    /// Seconds of one tick.
    #[must_use]
    pub const fn seconds(&self) -> f64 {
        self.tick as f64 / 1000.0
    }

    /// Ticks of a time that was read in thousandths, if they can be counted.
    pub(super) fn ticks(&self, fine: u64) -> Option<u32> {
        u32::try_from(fine / self.tick).ok()
    }

    /// A number of ticks as a bare number of the unit, without needless digits. What six decimals cannot say exactly (a
    /// minute in hours) is said in words.
    #[must_use]
    pub fn number(&self, ticks: u32) -> String {
        let number = self.amount(u64::from(ticks));
        let exact = decimal(&number).and_then(|digits| thousandths(digits, self.unit.fine()));
        let fine = u64::from(ticks) * self.tick;
        if exact == Some(fine) {
            return number;
        }
        let (minutes, rest) = (fine / 60_000, fine % 60_000);
        let seconds = if rest > 0 { format!("{}.{:03}s", rest / 1000, rest % 1000) } else { String::new() };
        format!("{}h{:02}m{seconds}", minutes / 60, minutes % 60)
    }

    /// A sum of ticks as a number of the unit, rounded to six decimals.
    #[must_use]
    pub fn amount(&self, ticks: u64) -> String {
        let per_unit = u128::from(self.per_unit());
        let scaled = (u128::from(ticks) * 1_000_000 + per_unit / 2) / per_unit;
        let (whole, part) = (scaled / 1_000_000, scaled % 1_000_000);
        let text = format!("{whole}.{part:06}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    /// Ticks as a date, where time 0 has one.
    #[must_use]
    pub fn date(&self, ticks: u32) -> Option<Date> {
        self.start.map(|start| start.plus_seconds((u64::from(ticks) * self.tick / 1000) as i64))
    }

    /// Ticks as people read them: the date, or the bare number.
    #[must_use]
    pub fn show(&self, ticks: u32) -> String {
        self.date(ticks).map_or_else(|| self.number(ticks), |date| date.to_string())
    }

    /// So many ticks before time 0 as people read it.
    #[must_use]
    pub fn show_before(&self, ticks: u32) -> String {
        let seconds = (u64::from(ticks) * self.tick).div_ceil(1000) as i64;
        let date = self.start.map(|start| start.plus_seconds(-seconds));
        date.map_or_else(|| format!("-{}", self.number(ticks)), |date| date.to_string())
    }

    /// A length in ticks as people read it: with its unit.
    #[must_use]
    pub fn show_length(&self, ticks: u32) -> String {
        let number = self.number(ticks);
        let bare = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        if self.unit == Unit::Bare || !bare { number } else { format!("{number} {}", self.unit.name()) }
    }

    /// How a shop on this clock says times.
    pub(super) fn says(&self) -> Says {
        let whole = |time: u64| u32::try_from(time).unwrap_or(u32::MAX);
        let (one, other) = (self.clone(), self.clone());
        Says::new(move |time| one.show(whole(time)), move |time| other.show_length(whole(time)))
    }

    /// Ticks of a number of seconds, where they are whole.
    #[must_use]
    pub fn ticks_of_seconds(&self, seconds: u64) -> Option<u32> {
        self.whole_ticks(seconds.checked_mul(1000)?)
    }

    /// Ticks of a time that was read in thousandths, if they are whole.
    pub(super) fn whole_ticks(&self, fine: u64) -> Option<u32> {
        if fine.is_multiple_of(self.tick) { self.ticks(fine) } else { None }
    }

    /// A length of time, in thousandths.
    ///
    /// # Errors
    /// What was expected.
    pub(super) fn length(&self, text: &str) -> Result<u64, String> {
        let text = text.trim();
        if let Some(fine) = decimal(text) {
            return thousandths(fine, self.unit.fine()).ok_or_else(|| too_fine(text));
        }
        if let Some(way) = other_way(text) {
            return Err(way);
        }
        if self.unit == Unit::Bare {
            return Err(format!(
                "expected a number such as 90 or 1.5 (a time such as 1h30 needs a unit), got `{text}`"
            ));
        }
        worded(text).ok_or_else(|| format!("expected a time such as 90, 1.5, 1h30 or 45min, got `{text}`"))
    }

    /// A moment that may lie before time 0, in thousandths: as [`Self::moment`], or with a minus.
    ///
    /// # Errors
    /// What was expected.
    pub(super) fn signed_moment(&self, text: &str) -> Result<i64, String> {
        let text = text.trim();
        let before = match (text.strip_prefix('-'), parse_date(text), self.start) {
            (Some(length), _, _) => self.length(length).ok().map(|fine| -(fine as i64)),
            (None, Some(date), Some(start)) => {
                Some(date.seconds_since(start) * 1000).filter(|&fine| fine < 0)
            }
            _ => None,
        };
        before.map_or_else(|| self.moment(text).map(|fine| fine as i64), Ok)
    }

    /// A moment: a length since time 0, or a date, in thousandths.
    ///
    /// # Errors
    /// What was expected.
    pub(super) fn moment(&self, text: &str) -> Result<u64, String> {
        let Some(date) = parse_date(text) else {
            return self.length(text).map_err(|error| {
                if self.start.is_some() && other_way(text).is_none() {
                    format!("{error}, nor a date such as 2026-11-16 06:00")
                } else {
                    error
                }
            });
        };
        let start = self.start.ok_or_else(|| {
            format!("got the date `{}`, but the settings have no `start`, the date of time 0", text.trim())
        })?;
        let seconds = date.seconds_since(start);
        u64::try_from(seconds)
            .map(|seconds| seconds * 1000)
            .map_err(|_| format!("expected a date from {start} on, got `{}`", text.trim()))
    }
}

fn too_fine(text: &str) -> String {
    format!("expected at most three decimals and a smaller number, got `{text}`")
}

/// A decimal number as digits and the power of ten that divides them.
fn decimal(text: &str) -> Option<(u64, u32)> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = !whole.is_empty() && whole.len() <= 15 && part.len() <= 6;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || !digits(whole) || !digits(part) || text.ends_with('.') {
        return None;
    }
    let part = part.trim_end_matches('0');
    let number = format!("{whole}{part}").parse().ok()?;
    Some((number, part.len() as u32))
}

/// The number in thousandths, if it is whole there.
fn thousandths((digits, power): (u64, u32), unit: u64) -> Option<u64> {
    let scaled = u128::from(digits) * u128::from(unit);
    let divisor = 10_u128.pow(power);
    if !scaled.is_multiple_of(divisor) {
        return None;
    }
    u64::try_from(scaled / divisor).ok().filter(|&fine| fine <= u64::MAX / 4)
}

/// `1h30`, `2d 4h`, `45min`, `90s`; a last number without a letter counts the next smaller unit.
fn worded(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (mut rest, mut total, mut next) = (lower.as_str(), 0_u64, None);
    let mut previous = u64::MAX;
    while !rest.is_empty() {
        let digits =
            rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|letter: char| letter.is_ascii_digit()).unwrap_or(tail.len());
        let (word, tail) = tail.split_at(letters);
        let unit = match word.trim() {
            "" => next?,
            "d" | "day" | "days" => 86_400_000,
            "h" | "hour" | "hours" => 3_600_000,
            "m" | "min" | "mins" => 60_000,
            "s" | "sec" => 1000,
            _ => return None,
        };
        // Units fall: 30min1h is a slip.
        if unit >= previous {
            return None;
        }
        previous = unit;
        next = match unit {
            86_400_000 => Some(3_600_000),
            3_600_000 => Some(60_000),
            60_000 => Some(1000),
            _ => None,
        };
        total = total.checked_add(thousandths(decimal(number)?, unit)?)?;
        rest = tail;
    }
    (previous < u64::MAX).then_some(total)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_by_hand() {
        let minutes = Clock::fine(Unit::Minutes, None);
        let read = |text: &str| minutes.length(text).map(|fine| fine / 1000);
        // In seconds: 90 min, 1.5 min, 1 h 30 min, 2 d 4 h, 45 min, 1 h 30 s.
        assert_eq!(read("90"), Ok(5400));
        assert_eq!((read("1.5"), read("1h30"), read("2d 4h")), (Ok(90), Ok(5400), Ok(187_200)));
        assert_eq!((read("45min"), read("1h 0m 30s"), read("0.5h")), (Ok(2700), Ok(3630), Ok(1800)));
        for wrong in ["", "1h30h", "30min1h", "h", "-3", "1e3", "1.2345678", "twelve", "1..2", "1."] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let bare = Clock::fine(Unit::Bare, None);
        assert_eq!(bare.length("1.25"), Ok(1250));
        assert!(bare.length("1h30").unwrap_err().contains("needs a unit"));
        assert!(bare.length("1.2345").unwrap_err().contains("three decimals"));
    }

    #[test]
    fn ticks_divide_everything() {
        // 1.5 and 2.25: in thousandths 1500 and 2250, and the unit is 1000, so a tick is 250.
        let clock = Clock::fine(Unit::Bare, None).ticking([1500, 2250]);
        assert_eq!((clock.ticks(1500), clock.ticks(2250), clock.per_unit()), (Some(6), Some(9), 4));
        assert_eq!(
            (clock.number(6), clock.number(9), clock.amount(12)),
            ("1.5".into(), "2.25".into(), "3".into())
        );
        // A minute has no decimals in hours that end.
        let hours = Clock::fine(Unit::Hours, None).ticking([60_000]);
        assert_eq!((hours.number(1), hours.number(90)), ("0h01m".into(), "1.5".into()));
        assert_eq!(hours.length("0h01m"), Ok(60_000));
    }

    #[test]
    fn moments_are_dates_or_lengths() {
        let start = parse_date("2026-11-16 06:00");
        let clock = Clock::fine(Unit::Hours, start);
        assert_eq!(clock.moment("2026-11-17"), Ok(18 * 3_600_000));
        assert_eq!(clock.moment("1.5"), Ok(5_400_000));
        assert!(clock.moment("2026-11-15").unwrap_err().contains("from 2026-11-16 06:00 on"));
        assert!(Clock::fine(Unit::Hours, None).moment("2026-11-17").unwrap_err().contains("no `start`"));
        let ticking = clock.ticking([3_600_000]);
        assert_eq!(ticking.show(18), "2026-11-17 00:00");
    }
}
