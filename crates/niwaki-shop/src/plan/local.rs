//! Numbers and dates as a country writes them, to those that every reader of a plan knows: `1,5` to `1.5`, `3/4/2026` to
//! `2026-04-03`. What could mean two things is read only where the settings say which.

use super::date::parse_time_of_day;
use super::parse_date;
use super::table::{Table, Tables};
use crate::Result;

/// Columns that hold lengths and moments, by table.
const TIMES: [(&str, &[&str]); 5] = [
    ("operations", &["time", "wait", "max wait", "earliest", "latest", "release", "due", "deadline"]),
    ("jobs", &["release", "due", "deadline"]),
    ("machines", &["available"]),
    ("setups", &["time"]),
    ("breaks", &["from", "to"]),
];

/// The order of day and month in dates such as `3/4/2026`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    DayFirst,
    MonthFirst,
}

/// What the settings say of how numbers and dates are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Local {
    comma: bool,
    order: Option<Order>,
}

/// Rewrites all lengths and moments as the settings `decimal` and `dates` say, and takes these two out.
///
/// # Errors
/// A setting or a cell that cannot be understood so.
pub(super) fn settle(tables: &mut Tables) -> Result<()> {
    let typed = tables.typed;
    let Some(settings) = tables.all.iter_mut().find(|table| table.name == "settings") else { return Ok(()) };
    let local = take(settings, typed)?;
    if local == Local::default() {
        return Ok(());
    }
    let value = settings.columns.iter().position(|column| column == "value");
    let starts: Vec<usize> = (0..settings.rows.len())
        .filter(|&row| settings.cell(&settings.rows[row], "setting").is_some_and(|cell| cell.text == "start"))
        .collect();
    for (row, column) in starts.into_iter().zip(value) {
        let text = local.dated(&settings.rows[row].cells[column]);
        settings.rows[row].cells[column] = text;
    }
    for table in &mut tables.all {
        let columns =
            TIMES.iter().find(|(name, _)| *name == table.name).map_or(&[][..], |(_, columns)| columns);
        for column in (0..table.columns.len()).filter(|&one| columns.contains(&table.columns[one].as_str())) {
            for row in 0..table.rows.len() {
                let Some(text) = table.rows[row].cells.get(column) else { continue };
                let text = local
                    .cell(text)
                    .map_err(|what| table.fault(&table.rows[row], &table.columns[column], what))?;
                table.rows[row].cells[column] = text;
            }
        }
    }
    Ok(())
}

/// Reads the settings `decimal` and `dates` and takes them out of their table.
fn take(settings: &mut Table, typed: bool) -> Result<Local> {
    let mut local = Local::default();
    let mut seen = [false; 2];
    for row in &settings.rows {
        let (Some(key), Some(value)) = (settings.cell(row, "setting"), settings.cell(row, "value")) else {
            continue;
        };
        let known = match key.text {
            "decimal" => 0,
            "dates" => 1,
            _ => continue,
        };
        // The one that comes twice is refused with its places when the settings are read.
        if std::mem::replace(&mut seen[known], true) {
            return Ok(Local::default());
        }
        match (key.text, value.text) {
            ("decimal", "point") => {}
            ("decimal", "comma") if typed => {
                return Err(value.fault("numbers of a spreadsheet or of JSON have no decimal sign; leave this row out and write numbers as such"));
            }
            ("decimal", "comma") => local.comma = true,
            ("dates", "YYYY-MM-DD") => {}
            ("dates", "DD/MM/YYYY") => local.order = Some(Order::DayFirst),
            ("dates", "MM/DD/YYYY") => local.order = Some(Order::MonthFirst),
            ("decimal", other) => return Err(value.fault(format!("expected point or comma, got `{other}`"))),
            (_, other) => {
                return Err(
                    value.fault(format!("expected YYYY-MM-DD, DD/MM/YYYY or MM/DD/YYYY, got `{other}`"))
                );
            }
        }
    }
    let column = settings.columns.iter().position(|name| name == "setting");
    let is_ours = |cells: &[String]| {
        let key = column.and_then(|column| cells.get(column)).map_or("", |cell| cell.trim());
        matches!(key, "decimal" | "dates")
    };
    settings.rows.retain(|row| !is_ours(&row.cells));
    Ok(local)
}

impl Local {
    /// A cell of one or more lengths or moments.
    fn cell(self, text: &str) -> std::result::Result<String, String> {
        let parts = text.split('|').map(|part| {
            let dated = self.dated(part);
            if !self.comma || parse_date(&dated).is_some() {
                return Ok(dated);
            }
            if dated.contains('.') {
                return Err(format!("`{}` has a point, but by the settings `decimal` is comma", part.trim()));
            }
            Ok(if has_decimal_comma(&dated) { dated.replace(',', ".") } else { dated })
        });
        parts.collect::<std::result::Result<Vec<_>, _>>().map(|parts| parts.join("|"))
    }

    /// A date in the order that is named, if it is one; otherwise the text.
    fn dated(self, text: &str) -> String {
        let plain = || text.to_owned();
        let (Some(order), Some((numbers, time))) = (self.order, slashed(text)) else { return plain() };
        let [one, other, year] = numbers;
        let (day, month) = if order == Order::DayFirst { (one, other) } else { (other, one) };
        let date = format!("{year:04}-{month:02}-{day:02} {time}");
        if parse_date(&date).is_some() { date } else { plain() }
    }
}

/// A date such as `3/4/2026 06:00` or `3-4-2026`: its numbers, and its time of day.
fn slashed(text: &str) -> Option<([u32; 3], &str)> {
    let (date, time) = text.trim().split_once(['T', ' ']).unwrap_or((text.trim(), "00:00"));
    let mark = if date.contains('/') { '/' } else { '-' };
    let parts: Vec<&str> = date.split(mark).collect();
    let [one, other, year] = parts[..] else { return None };
    let number = |text: &str, most: usize| {
        let digits = (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten()
    };
    let year = number(year, 4).filter(|_| year.len() == 4)?;
    parse_time_of_day(time)?;
    Some(([number(one, 2)?, number(other, 2)?, year], time.trim()))
}

/// Whether a comma stands between two digits, as in `1,5`.
fn has_decimal_comma(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.match_indices(',').any(|(at, _)| {
        let digit =
            |index: Option<usize>| index.and_then(|index| bytes.get(index)).is_some_and(u8::is_ascii_digit);
        digit(at.checked_sub(1)) && digit(Some(at + 1))
    })
}

/// Where a mend by the settings begins in what [`other_way`] says.
pub(super) const SETTINGS: &str = ", or set `";

/// Why a text is no time here, where another way of writing would make it one.
pub(super) fn other_way(text: &str) -> Option<String> {
    let text = text.trim();
    if has_decimal_comma(text) {
        let point = text.replace(',', ".");
        return Some(format!(
            "`{text}` has a decimal comma; write {point}, or set `decimal` to comma in a CSV file's settings"
        ));
    }
    let ([one, other, year], _) = slashed(text)?;
    let named = [(other, one, "DD/MM/YYYY"), (one, other, "MM/DD/YYYY")];
    let dates: Vec<(String, &str)> = named
        .into_iter()
        .map(|(month, day, order)| (format!("{year:04}-{month:02}-{day:02}"), order))
        .filter(|(date, _)| parse_date(date).is_some())
        .collect();
    match &dates[..] {
        [(date, order)] => Some(format!(
            "`{text}` ends in its year; write {date}, or set `dates` to {order} in the plan's settings"
        )),
        [(one, first), (other, second)] => Some(format!(
            "`{text}` could be two dates; write {one} or {other}, or set `dates` to {first} or {second} in the plan's settings"
        )),
        _ => None,
    }
}

/// What a surplus cell may come from: a number with a decimal comma where commas separate cells.
pub(super) fn torn_number(cells: &[String]) -> &'static str {
    let number = |cell: &String| {
        let cell = cell.trim();
        !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit())
    };
    if cells.windows(2).any(|pair| pair.iter().all(number)) {
        "; for decimal commas separate cells by ; and set `decimal` to comma"
    } else {
        ""
    }
}

/// The date of time 0.
///
/// # Errors
/// What was expected.
pub(super) fn start_of(text: &str) -> std::result::Result<super::Date, String> {
    parse_date(text).ok_or_else(|| {
        other_way(text).unwrap_or_else(|| format!("expected a date such as 2026-11-16 06:00, got `{text}`"))
    })
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;

    /// An hour and a half on the first of two machines, two on the other, due on 3 April.
    fn plan(settings: &str, time: &str, due: &str) -> Result<Plan, String> {
        let text = format!(
            "[settings]\nsetting;value\nunit;h\nstart;1.4.2026 06:00\n{settings}[operations]\njob;machine;time;due\nA;m | n;{time};{due}\n"
        );
        Plan::read(&text).map_err(|error| error.to_string())
    }

    fn refusal(settings: &str, time: &str, due: &str) -> String {
        plan(settings, time, due).err().unwrap()
    }

    #[test]
    fn one_plan_in_many_ways() {
        let known = plan("", "1.5 | 2", "2026-04-03 12:00").unwrap();
        let comma = "decimal;comma\n";
        let ways = [
            ("", "1.5 | 2", "3.4.2026 12:00"),
            ("", "1.5 | 2", "03.04.2026 12:00"),
            (comma, "1,5 | 2", "2026-04-03 12:00"),
            (comma, "1,5 | 2,0", "03.04.2026 12:00"),
            (comma, "1h30 | 2", "54"),
            ("decimal;comma\ndates;DD/MM/YYYY\n", "1,5|2", "3/4/2026 12:00"),
            ("dates;DD/MM/YYYY\n", "1.5 | 2", "03-04-2026 12:00"),
            ("dates;MM/DD/YYYY\ndecimal;point\n", "1.5 | 2", "4/3/2026 12:00"),
            ("dates;MM/DD/YYYY\n", "1.5 | 2", "2026-04-03 12:00"),
        ];
        for (settings, time, due) in ways {
            let plan = plan(settings, time, due).unwrap();
            assert_eq!(plan.shop, known.shop, "{settings} {time} {due}");
            // What is written says the same without these settings.
            for written in [plan.to_csv(), plan.to_json()] {
                assert!(!written.contains("comma") && !written.contains("MM/"), "{written}");
                assert_eq!(Plan::read(&written).unwrap().shop, known.shop, "{written}");
            }
        }
        // 4 March 12:00 is 27 days and 18 hours before 1 April 06:00.
        let other = plan("dates;MM/DD/YYYY\n", "1.5 | 2", "3/4/2026 12:00").unwrap();
        assert_eq!(other.shop.jobs()[0].due_at(), Some(-666 * i64::from(other.clock.per_unit() as u32)));
    }

    #[test]
    fn what_could_mean_two_things_is_refused_with_the_setting() {
        assert_eq!(
            refusal("", "1,5", ""),
            "operations, row 7, column time: `1,5` has a decimal comma; write 1.5, or set `decimal` to comma in a CSV file's settings"
        );
        assert_eq!(
            refusal("", "1", "3/4/2026"),
            "operations, row 7, column due: `3/4/2026` could be two dates; write 2026-04-03 or 2026-03-04, or set `dates` to \
             DD/MM/YYYY or MM/DD/YYYY in the plan's settings"
        );
        // 1.500 would be fifteen hundred here.
        assert_eq!(
            refusal("decimal;comma\n", "1.500", ""),
            "operations, row 8, column time: `1.500` has a point, but by the settings `decimal` is comma"
        );
        assert!(refusal("decimal;dot\n", "1", "").ends_with("expected point or comma, got `dot`"));
        assert!(refusal("dates;DMY\n", "1", "").ends_with("MM/DD/YYYY, got `DMY`"));
        let twice = refusal("decimal;comma\ndecimal;point\n", "1", "");
        assert!(twice.ends_with("`decimal` stands in row 5 as well; keep one of them"), "{twice}");
        assert!(refusal("", "1", "16/11/2026").contains("write 2026-11-16, or set `dates` to DD/MM/YYYY in"));
        assert!(refusal("dates;DD/MM/YYYY\n", "1", "31/2/2026").contains("expected a time such as"));
        let json = r#"{"settings": [{"setting": "decimal", "value": "comma"}], "operations": []}"#;
        let line = Plan::read(json).unwrap_err().to_string();
        assert!(
            line.starts_with("settings, row 1, column value: numbers of a spreadsheet or of JSON"),
            "{line}"
        );
        let torn = Plan::read("job,machine,time\nA,m,1,5\n").unwrap_err().to_string();
        assert_eq!(
            torn,
            "line 2, column 1: expected 3 columns, got more: `5`; for decimal commas separate cells by ; and set `decimal` to comma"
        );
    }
}
