//! Numbers that a spreadsheet shows as dates, times of day or lengths, as people write them.

use super::xml::{Event, Scanner};
use crate::plan::{Date, parse_date};
use std::collections::HashMap;

/// What a cell's number means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Meaning {
    #[default]
    Number,
    /// Days since the workbook's first day; without a date if less than one.
    Moment,
    /// Days, shown as hours.
    Length,
}

/// The meaning of each style of cells, by its number.
pub(super) fn meanings(styles: &str) -> Vec<Meaning> {
    // The first of two with one number counts.
    let mut formats: HashMap<u32, Meaning> = HashMap::new();
    let (mut meanings, mut inside) = (Vec::new(), false);
    for event in Scanner::new(styles) {
        match event {
            Event::Begin(element) if element.name == "numFmt" => {
                let number = element.get("numFmtId").and_then(|number| number.parse().ok());
                if let (Some(number), Some(code)) = (number, element.get("formatCode")) {
                    formats.entry(number).or_insert_with(|| meaning(number, Some(&code)));
                }
            }
            Event::Begin(element) if element.name == "cellXfs" => inside = true,
            Event::End("cellXfs") => inside = false,
            Event::Begin(element) if inside && element.name == "xf" => {
                let number = element.get("numFmtId").and_then(|number| number.parse().ok()).unwrap_or(0);
                meanings.push(formats.get(&number).copied().unwrap_or_else(|| meaning(number, None)));
            }
            _ => {}
        }
    }
    meanings
}

/// The meaning of a format: one that every workbook has, or its own code.
fn meaning(number: u32, code: Option<&str>) -> Meaning {
    let Some(code) = code else {
        return match number {
            14..=22 | 27..=36 | 45 | 47 | 50..=58 => Meaning::Moment,
            46 => Meaning::Length,
            _ => Meaning::Number,
        };
    };
    // Letters in quotes, after a backslash and in brackets (colours, places) say nothing; `[h]` and the like say that hours go on.
    let (mut quoted, mut bracket, mut escaped) = (false, None::<String>, false);
    let mut moment = false;
    for mark in code.to_lowercase().chars() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match (mark, &mut bracket) {
            ('"', None) => quoted = !quoted,
            _ if quoted => {}
            ('\\' | '_' | '*', None) => escaped = true,
            ('[', None) => bracket = Some(String::new()),
            (']', Some(inside)) => {
                if !inside.is_empty() && inside.chars().all(|one| matches!(one, 'h' | 'm' | 's')) {
                    return Meaning::Length;
                }
                bracket = None;
            }
            (_, Some(inside)) => inside.push(mark),
            ('d' | 'm' | 'y' | 'h' | 's', None) => moment = true,
            _ => {}
        }
    }
    if moment { Meaning::Moment } else { Meaning::Number }
}

/// A number as people write it; nothing if it is none, or no moment.
pub(super) fn written(text: &str, meaning: Meaning, from_1904: bool) -> Option<String> {
    let number: f64 = text.trim().parse().ok()?;
    if !number.is_finite() || number.abs() >= 1e15 {
        return None;
    }
    // Spreadsheets keep 15 digits: 1.1 + 2.2 is 3.3 there.
    let seconds = (number * 86_400.0).round() as i64;
    match meaning {
        Meaning::Number => Some(format!("{}", (number * 1e6).round() / 1e6)),
        Meaning::Length => {
            if seconds < 0 {
                return None;
            }
            let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            let rest = if seconds > 0 { format!(" {seconds}s") } else { String::new() };
            Some(format!("{hours}h {minutes}min{rest}"))
        }
        Meaning::Moment if (0..86_400).contains(&seconds) => {
            Some(format!("{:02}:{:02}", seconds / 3600, seconds / 60 % 60))
        }
        Meaning::Moment => {
            let first = parse_date(if from_1904 { "1904-01-01" } else { "1899-12-30" })?;
            (0..2_958_466 * 86_400).contains(&seconds).then(|| Date::plus_seconds(first, seconds).to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_mean_numbers_moments_or_lengths() {
        let of = |code| meaning(164, Some(code));
        assert_eq!((of("0.00"), of("#,##0 \"days\""), of("[Red]0")), Default::default());
        for code in ["yyyy-mm-dd hh:mm", "d.m.yy", "h:mm AM/PM", "[$-407]dddd"] {
            assert_eq!(of(code), Meaning::Moment, "{code}");
        }
        assert_eq!(
            (of("[h]:mm"), meaning(46, None), meaning(22, None)),
            (Meaning::Length, Meaning::Length, Meaning::Moment)
        );
    }

    #[test]
    fn as_many_formats_as_there_are_styles() {
        // Each style finds its own format without a look at the others: 4 × 10¹⁰ looks would be noticed.
        let count = 200_000;
        let format = |number: u32| {
            let code = if number.is_multiple_of(2) { "0.0" } else { "yyyy" };
            format!(
                "<numFmt numFmtId=\"{number}\" formatCode=\"{code}\"/><numFmt numFmtId=\"{number}\" formatCode=\"[h]\"/>"
            )
        };
        let formats: String = (1000..1000 + count).map(format).collect();
        let styles: String =
            (1000..1000 + count).rev().map(|number| format!("<xf numFmtId=\"{number}\"/>")).collect();
        let all = meanings(&format!("<s><numFmts>{formats}</numFmts><cellXfs>{styles}<xf/></cellXfs></s>"));
        assert_eq!((all.len(), all[0], all[1]), (200_001, Meaning::Moment, Meaning::Number));
        assert_eq!(all[200_000], Meaning::Number);
    }

    #[test]
    fn serial_numbers_by_hand() {
        // 2026-11-16 is day 46342: 2026-01-01 is 46023 (25569 for 1970-01-01, and 20454 days later), and 319 days follow.
        assert_eq!(written("46342.25", Meaning::Moment, false).as_deref(), Some("2026-11-16 06:00"));
        assert_eq!(written("0.5", Meaning::Moment, false).as_deref(), Some("12:00"));
        assert_eq!(written("1.0625", Meaning::Length, false).as_deref(), Some("25h 30min"));
        assert_eq!(written("3.3000000000000003", Meaning::Number, false).as_deref(), Some("3.3"));
        assert_eq!(
            (written("x", Meaning::Number, false), written("1e300", Meaning::Moment, false)),
            (None, None)
        );
    }
}
