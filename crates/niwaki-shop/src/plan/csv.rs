//! CSV: text to records and back. What a quoted first cell says is data, whatever it begins with.

use super::table::{Marks, Record, Tables, assemble};
use crate::{Error, Result};

/// Reads CSV: tables after lines `[name]`, the first one `operations` unless it is named; each begins with its header.
/// Fields are separated by commas, semicolons or tabs, whichever the first header has; `"` quotes; lines that begin with
/// `#` are comments, which are counted; empty ones say nothing.
pub(super) fn read_csv(text: &str, names: &[&str]) -> Result<Tables> {
    let mut tables = Tables::default();
    let (told, text) = told_separator(text)?;
    let records = records(text, told.unwrap_or_else(|| separator(text)))?;
    one_separator(&records)?;
    assemble(records, names, "operations", Marks::CommentsAndHeadings, &mut tables)?;
    for cell in tables.all.iter_mut().flat_map(|table| &mut table.rows).flat_map(|row| &mut row.cells) {
        if is_guarded(cell) {
            cell.remove(0);
        }
    }
    Ok(tables)
}

/// The separator of a first line `sep=;`, as spreadsheet programs write it, and the text without that line's letters.
fn told_separator(text: &str) -> Result<(Option<char>, &str)> {
    let end = text.find(['\r', '\n']).unwrap_or(text.len());
    let line = text[..end].trim().trim_matches('"');
    let Some(told) = line.get(..4).filter(|key| key.eq_ignore_ascii_case("sep=")).map(|_| &line[4..]) else {
        return Ok((None, text));
    };
    // Blanks are trimmed, and a tab is one.
    match told.chars().next().or_else(|| text[..end].ends_with('\t').then_some('\t')) {
        Some(mark @ (',' | ';' | '\t')) if told.len() < 2 => Ok((Some(mark), &text[end..])),
        _ => {
            let what =
                format!("`{line}`: expected a comma, a semicolon or a tab; save the file with one of them");
            Err(Error::Parse { line: 1, column: 1, what })
        }
    }
}

/// Refuses a table whose header has another separator than the first one's.
fn one_separator(records: &[Record]) -> Result<()> {
    const OTHERS: [char; 3] = [',', ';', '\t'];
    let (mut first, mut awaits_header) = (None, true);
    for record in records {
        let alone = || record.cells.iter().skip(1).all(|cell| cell.trim().is_empty());
        let text = record.cells[0].trim();
        if record.quoted || text.starts_with('#') || text.is_empty() && alone() {
            awaits_header &= !record.quoted;
            continue;
        }
        let bare = text.trim_end_matches(OTHERS).trim_end();
        let is_heading = alone() && bare.starts_with('[') && bare.ends_with(']');
        if (is_heading || awaits_header)
            && record.cells.len() == 1
            && let (Some(mark), Some(line)) = (text.chars().find(|letter| OTHERS.contains(letter)), first)
        {
            let mark = if mark == '\t' { "tabs".to_owned() } else { format!("`{mark}`") };
            let what = format!(
                "this line has {mark} between cells, the table of line {line} has another separator; use one in the whole file"
            );
            return Err(Error::Parse { line: record.place, column: 1, what });
        }
        if !is_heading && awaits_header {
            first = first.or(Some(record.place));
        }
        awaits_header = is_heading;
    }
    Ok(())
}

/// What separates fields: what the first line with several of them has most of.
fn separator(text: &str) -> char {
    let header = text.lines().find(|line| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with(['#', '['])
    });
    let count = |mark: char| header.unwrap_or("").matches(mark).count();
    [',', ';', '\t'].into_iter().max_by_key(|&mark| (count(mark), mark == ',')).unwrap_or(',')
}

/// Records with the line on which each begins.
fn records(text: &str, separator: char) -> Result<Vec<Record>> {
    let mut reader = Reader { separator, line: 1, records: Vec::new(), record: Record::at(1) };
    let mut rest = text;
    while !rest.is_empty() {
        rest = reader.cell(rest)?;
    }
    // A last line without an end, or one that ends in a separator.
    if !reader.record.cells.is_empty() {
        reader
            .record
            .cells
            .resize_with(reader.record.cells.len() + usize::from(text.ends_with(separator)), String::new);
        reader.records.push(reader.record);
    }
    Ok(reader.records)
}

struct Reader {
    separator: char,
    line: usize,
    records: Vec<Record>,
    /// The record that is not whole yet.
    record: Record,
}

impl Reader {
    /// Reads one cell, or a whole comment, and what ends it; returns the rest.
    fn cell<'a>(&mut self, text: &'a str) -> Result<&'a str> {
        let bare = text.trim_start_matches(|letter: char| {
            letter != '\n' && letter != self.separator && letter.is_whitespace()
        });
        let is_first = self.record.cells.is_empty();
        if is_first && bare.starts_with('#') {
            // Quotes mean nothing in a comment, and its commas only tell how it would look as a row.
            let line = &text[..text.find('\n').unwrap_or(text.len())];
            self.record.cells.extend(line.trim_end_matches('\r').split(self.separator).map(str::to_owned));
            return Ok(self.ended(&text[line.len()..]));
        }
        let Some(quoted) = bare.strip_prefix('"') else {
            let end = text.find(['\n', self.separator]).unwrap_or(text.len());
            let cell =
                if text[end..].starts_with('\n') { text[..end].trim_end_matches('\r') } else { &text[..end] };
            self.record.cells.push(cell.to_owned());
            return Ok(self.ended(&text[end..]));
        };
        self.record.quoted |= is_first;
        let began = self.line;
        let (mut cell, mut rest) = (String::new(), quoted);
        loop {
            let Some((inside, after)) = rest.split_once('"') else {
                let what = "expected a closing quote, got the end of the file".to_owned();
                return Err(Error::Parse { line: began, column: 1, what });
            };
            cell += inside;
            self.line += inside.bytes().filter(|&byte| byte == b'\n').count();
            rest = after;
            let Some(after) = rest.strip_prefix('"') else { break };
            cell.push('"');
            rest = after;
        }
        self.record.cells.push(cell);
        let end = rest.find(['\n', self.separator]).unwrap_or(rest.len());
        if !rest[..end].trim().is_empty() {
            let what = format!(
                "expected the end of the cell after its closing quote, got `{}`; double quotes within quotes",
                rest[..end].trim().chars().take(24).collect::<String>()
            );
            return Err(Error::Parse { line: self.line, column: 1, what });
        }
        Ok(self.ended(&rest[end..]))
    }

    /// Goes over what ends a cell: a separator, a line's end, or the text's.
    fn ended<'a>(&mut self, rest: &'a str) -> &'a str {
        let Some(rest) = rest.strip_prefix('\n') else {
            return rest.strip_prefix(self.separator).unwrap_or(rest);
        };
        self.line += 1;
        self.records.push(std::mem::replace(&mut self.record, Record::at(self.line)));
        rest
    }
}

/// Writes tables as CSV.
pub(super) fn write_csv(tables: &Tables) -> String {
    let mut text = String::new();
    for (index, table) in tables.all.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text += &format!("[{}]\n{}\n", table.name, line(&table.columns));
        for row in &table.rows {
            text += &line(&row.cells);
            text.push('\n');
        }
    }
    text
}

/// One line of CSV. What a spreadsheet would take for a formula has an apostrophe before it; what reads as a comment or as a
/// table's name is quoted.
pub(super) fn line<S: AsRef<str>>(cells: &[S]) -> String {
    cells.iter().map(|cell| field(cell.as_ref())).collect::<Vec<_>>().join(",")
}

fn field(cell: &str) -> String {
    let formula = cell.starts_with(['=', '+', '@']) || cell.starts_with('-') && cell.parse::<f64>().is_err();
    let guarded = if formula || is_guarded(cell) { format!("'{cell}") } else { cell.to_owned() };
    if guarded.contains(['"', ',', ';', '\t', '\n', '\r']) || guarded.starts_with(['#', '[']) {
        format!("\"{}\"", guarded.replace('"', "\"\""))
    } else {
        guarded
    }
}

/// Whether an apostrophe disarms a formula here.
fn is_guarded(cell: &str) -> bool {
    let rest = cell.trim_start_matches('\'');
    rest.len() < cell.len() && rest.starts_with(['=', '+', '@', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn tables_come_and_go() {
        let text = "# a shop\njob,Operation,time\nA,\"cut, \"\"fine\"\"\",3\n\n[jobs]\njob,due\nA,9\n";
        let tables = read_csv(text, &["operations", "jobs"]).unwrap();
        let operations = tables.get("operations").unwrap();
        assert_eq!(operations.columns, ["job", "operation", "time"]);
        let cell = operations.cell(&operations.rows[0], "operation").unwrap();
        assert_eq!((cell.text, operations.rows[0].place), ("cut, \"fine\"", 3));
        let again = read_csv(&write_csv(&tables), &["operations", "jobs"]).unwrap();
        assert_eq!(again.get("jobs").unwrap().rows[0].cells, ["A", "9"]);
    }

    #[test]
    fn records_by_hand() {
        let of = |text: &str| -> Vec<(usize, bool, Vec<String>)> {
            let whole = |record: Record| (record.place, record.quoted, record.cells);
            records(text, ',').unwrap().into_iter().map(whole).collect()
        };
        let row = |place, quoted, cells: &[&str]| {
            (place, quoted, cells.iter().map(|&cell| cell.to_owned()).collect())
        };
        assert_eq!(
            of("a,b\r\n\"c\nd\" ,\n\n,e"),
            [
                row(1, false, &["a", "b"]),
                row(2, true, &["c\nd", ""]),
                row(4, false, &[""]),
                row(5, false, &["", "e"])
            ]
        );
        assert_eq!(of("a,"), [row(1, false, &["a", ""])]);
        assert_eq!(of("a,\"\"\n"), [row(1, false, &["a", ""])]);
        // A quote in a comment opens nothing, and the line after it counts.
        assert_eq!(of(" # 5 in, \"b\nc"), [row(1, false, &[" # 5 in", " \"b"]), row(2, false, &["c"])]);
        assert_eq!(of("a \"b\",c"), [row(1, false, &["a \"b\"", "c"])]);
        assert!(of("").is_empty());
    }

    #[test]
    fn separators_are_told_apart_and_mistakes_named() {
        let tables = read_csv("job;time\nA;1,5\n", &["operations"]).unwrap();
        assert_eq!(tables.all[0].rows[0].cells, ["A", "1,5"]);
        let refusal = |text: &str| read_csv(text, &["operations"]).unwrap_err().to_string();
        assert_eq!(
            refusal("job\n\"A\n"),
            "line 2, column 1: expected a closing quote, got the end of the file"
        );
        // Two quotes for inches would swallow the rows between them.
        assert_eq!(
            refusal("job,operation,time\nA,\"saw,1\nB,\"mill,2\n"),
            "line 3, column 1: expected the end of the cell after its closing quote, got `mill`; double quotes within quotes"
        );
        assert!(refusal("[shops]\n").contains("got [shops]"));
        assert!(refusal("job,time\nA,1,2\n").contains("expected 2 columns, got more: `2`"));
        let fault = tables.all[0].need(&tables.all[0].rows[0], "machine").err().unwrap().to_string();
        assert_eq!(fault, "operations, row 2, column machine: the table has no such column; add it");
        let tables = read_csv("job,time\nA,\n", &["operations"]).unwrap();
        let fault = tables.all[0].need(&tables.all[0].rows[0], "time").err().unwrap().to_string();
        assert_eq!(fault, "operations, row 2, column time: the cell is empty; write the row's time");
        assert!(refusal("job\nA,1\n").contains("expected 1 column, got more: `1`"));
    }

    #[test]
    fn a_line_that_names_the_separator_is_heard() {
        for text in ["sep=;\r\njob;time\r\nA;1,5\r\n", "\"SEP=;\"\njob;time\nA;1,5\n"] {
            let tables = read_csv(text, &["operations"]).unwrap();
            assert_eq!((tables.all[0].rows[0].place, &tables.all[0].rows[0].cells[1][..]), (3, "1,5"));
        }
        assert_eq!(read_csv("sep=\t\njob\ttime\nA\t1\n", &["operations"]).unwrap().all[0].columns.len(), 2);
        assert_eq!(
            read_csv("sep=|\njob|time\n", &["operations"]).unwrap_err().to_string(),
            "line 1, column 1: `sep=|`: expected a comma, a semicolon or a tab; save the file with one of them"
        );
    }

    #[test]
    fn tables_with_different_separators_and_tables_that_come_twice_are_named() {
        let refusal =
            |text: &str| read_csv(text, &["jobs", "settings", "operations"]).unwrap_err().to_string();
        let other = "this line has `;` between cells, the table of line 2 has another separator; use one in the whole file";
        assert_eq!(
            refusal("[jobs]\njob,due\nA,9\n\n[operations]\njob;machine;time\nA;m;1\n"),
            format!("line 6, column 1: {other}")
        );
        assert_eq!(
            refusal("[jobs]\njob,due\nA,9\n[operations];;\njob;m;time\n"),
            format!("line 4, column 1: {other}")
        );
        // A table of one column has none, and a quoted cell may have any.
        assert!(
            read_csv("[jobs]\njob\nA;1\n[operations]\n\"a,b\",c\n1,2\n", &["jobs", "operations"]).is_ok()
        );
        assert_eq!(
            refusal("[jobs]\njob,due\nA,9\n[operations]\njob,time\nA,1\n[jobs]\njob,due\nB,9\n"),
            "line 7, column 1: the table [jobs] begins in line 1 already; put its rows there"
        );
        assert_eq!(
            refusal("job,time\nA,1\n[operations]\njob,time\nB,1\n"),
            "line 3, column 1: the table [operations] begins in line 1 already; put its rows there"
        );
    }

    #[test]
    fn a_file_of_comments_says_so() {
        for (text, count) in [
            ("# job,time\n", "1 row was a comment"),
            ("job,machine,time\n# A,m,1\n# B,m,1\n", "2 rows were comments"),
        ] {
            assert_eq!(
                Plan::read(text).unwrap_err().to_string(),
                format!(
                    "operations: expected at least one row, got none; {count} (a `#` at a line's start makes one)"
                )
            );
        }
    }

    #[test]
    fn comments_are_counted_and_quoted_cells_are_data() {
        let text = "# two,rows\njob,time\n#1001,3\n\"#1002\",4\n\"[jobs]\",5\n[jobs],6\n# end\n";
        let tables = read_csv(text, &["operations", "jobs"]).unwrap();
        let jobs: Vec<&str> = tables.all[0].rows.iter().map(|row| row.cells[0].as_str()).collect();
        assert_eq!((tables.all.len(), jobs), (1, vec!["#1002", "[jobs]", "[jobs]"]));
        assert_eq!(
            tables.comments(),
            Some(
                "3 rows were comments, one of them like a row of operations (line 3, `#1001`): quote its first cell if it counts"
                    .into()
            )
        );
        let again = read_csv(&write_csv(&tables), &["operations", "jobs"]).unwrap();
        assert_eq!((again.all[0].rows.len(), again.comments()), (3, None));
        let said = |text: &str| read_csv(text, &["operations"]).unwrap().comments().unwrap();
        assert_eq!(said("# a\njob,time\n"), "1 row was a comment");
        let like =
            "1 row was a comment, like a row of operations (line 2, `#A`): quote its first cell if it counts";
        assert_eq!(said("job,time\n#A,1\n"), like);
        // Prose with a comma has a row's shape, but no name's.
        assert_eq!(said("job,time\n# first this, then that\n"), "1 row was a comment");
        let template = Plan::read(crate::plan::template()).unwrap();
        assert_eq!(template.notes(), ["10 rows were comments"]);
    }

    #[test]
    fn formulas_are_disarmed_and_what_looks_disarmed_comes_back() {
        assert_eq!(line(&["=1+2", "-3", "-x", "a\"b", "plain"]), "'=1+2,-3,'-x,\"a\"\"b\",plain");
        for name in ["=1+2", "'=1+2", "''=1", "-x", "-3", "'tis", "#1", "[jobs]", "@"] {
            let text = format!("job,time\n{}\n", line(&[name, "1"]));
            assert_eq!(read_csv(&text, &["operations"]).unwrap().all[0].rows[0].cells, [name, "1"], "{text}");
        }
    }
}
