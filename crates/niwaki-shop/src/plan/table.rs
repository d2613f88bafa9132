//! Tables: named, with a header and rows of cells that know their place; read from CSV or JSON, written to both.

use crate::formats::json::Node;
use crate::{Error, Result};
use serde_json::{Map, Value};

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Row>,
}

/// A row: where it stands in the file, and its cells by column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) place: usize,
    pub(super) cells: Vec<String>,
}

/// All tables of a file, and what a row is called there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tables {
    pub(super) all: Vec<Table>,
}

impl Tables {
    pub(super) fn get(&self, name: &str) -> Option<&Table> {
        self.all.iter().find(|table| table.name == name)
    }
}

/// A cell of a row, for reading and for complaints.
#[derive(Clone, Copy)]
pub(super) struct Cell<'a> {
    table: &'a Table,
    row: &'a Row,
    column: &'a str,
    pub(super) text: &'a str,
}

impl Cell<'_> {
    /// A complaint at this cell.
    pub(super) fn fault(&self, what: impl std::fmt::Display) -> Error {
        self.table.fault(self.row, self.column, what)
    }
}

impl Table {
    /// A complaint at a column of a row.
    pub(super) fn fault(&self, row: &Row, column: &str, what: impl std::fmt::Display) -> Error {
        Error::Cell {
            table: self.name.clone(),
            row: row.place,
            column: column.to_owned(),
            what: what.to_string(),
        }
    }

    /// A cell that has something in it.
    pub(super) fn cell<'a>(&'a self, row: &'a Row, column: &'a str) -> Option<Cell<'a>> {
        let index = self.columns.iter().position(|name| name == column)?;
        let text = row.cells.get(index)?.trim();
        (!text.is_empty()).then_some(Cell { table: self, row, column, text })
    }

    /// A cell that must have something in it.
    pub(super) fn need<'a>(&'a self, row: &'a Row, column: &'a str) -> Result<Cell<'a>> {
        self.cell(row, column).ok_or_else(|| {
            let there = self.columns.iter().any(|name| name == column);
            let what = if there {
                "expected something, got nothing"
            } else {
                "the table has no such column; add it"
            };
            self.fault(row, column, what)
        })
    }

    /// Refuses columns that are not in `known`, and columns that come twice.
    pub(super) fn only(&self, known: &[&str]) -> Result<()> {
        let header = Row {
            place: self.rows.first().map_or(1, |row| row.place.saturating_sub(1).max(1)),
            cells: Vec::new(),
        };
        for (index, column) in self.columns.iter().enumerate() {
            if !known.contains(&column.as_str()) {
                let what = format!("expected only the columns {}", known.join(", "));
                return Err(self.fault(&header, column, what));
            }
            if self.columns[..index].contains(column) {
                return Err(self.fault(&header, column, "expected each column once"));
            }
        }
        Ok(())
    }
}

/// Reads CSV: tables after lines `[name]`, the first one `operations` unless it is named; each begins with its header.
/// Fields are separated by commas, semicolons or tabs, whichever the first header has; `"` quotes; lines that begin with
/// `#` are comments, empty ones say nothing.
pub(super) fn read_csv(text: &str, names: &[&str]) -> Result<Tables> {
    let mut all = Vec::new();
    assemble(records(text, separator(text))?, names, "operations", &mut all)?;
    Ok(Tables { all })
}

/// Tables from rows with their places; the first one has this name unless a row `[name]` says otherwise.
pub(super) fn assemble(
    rows: Vec<(usize, Vec<String>)>,
    names: &[&str],
    first: &str,
    tables: &mut Vec<Table>,
) -> Result<()> {
    let mut name = first.to_owned();
    let mut has_header = false;
    let once = |name: &str, tables: &[Table], place| {
        if names.contains(&name) && tables.iter().all(|table| table.name != name) {
            return Ok(());
        }
        let what = format!("expected one of the tables {}, each once, got [{name}]", names.join(", "));
        Err(Error::Parse { line: place, column: 1, what })
    };
    for (place, cells) in rows {
        let first = cells[0].trim();
        if first.starts_with('#') || cells.iter().all(|cell| cell.trim().is_empty()) {
            continue;
        }
        if let Some(title) = first.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            title.trim().clone_into(&mut name);
            has_header = false;
            once(&name, tables, place)?;
            continue;
        }
        if !has_header {
            once(&name, tables, place)?;
            let mut columns: Vec<String> = cells.iter().map(|cell| cell.trim().to_lowercase()).collect();
            while columns.last().is_some_and(String::is_empty) {
                columns.pop();
            }
            tables.push(Table { name: name.clone(), columns, rows: Vec::new() });
            has_header = true;
            continue;
        }
        if let Some(table) = tables.last_mut() {
            let surplus = cells.iter().skip(table.columns.len()).find(|cell| !cell.trim().is_empty());
            if let Some(cell) = surplus {
                let what = format!("expected {} columns, got more: `{}`", table.columns.len(), cell.trim());
                return Err(Error::Parse { line: place, column: 1, what });
            }
            let cells = cells.iter().map(|cell| bare(cell)).collect();
            table.rows.push(Row { place, cells });
        }
    }
    Ok(())
}

/// A cell without the apostrophe that disarms a formula.
fn bare(cell: &str) -> String {
    match cell.strip_prefix('\'') {
        Some(rest) if rest.starts_with(['=', '+', '@', '-']) => rest.to_owned(),
        _ => cell.to_owned(),
    }
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
fn records(text: &str, separator: char) -> Result<Vec<(usize, Vec<String>)>> {
    let mut records = Vec::new();
    let (mut cells, mut cell) = (Vec::new(), String::new());
    let (mut line, mut began, mut quoted) = (1, 1, false);
    let mut quote_line = 1;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if cell.trim().is_empty() => {
                (quoted, quote_line) = (true, line);
                cell.clear();
            }
            '\r' if !quoted && letters.peek() == Some(&'\n') => {}
            '\n' if !quoted => {
                cells.push(std::mem::take(&mut cell));
                records.push((began, std::mem::take(&mut cells)));
                line += 1;
                began = line;
            }
            '\n' => {
                cell.push(letter);
                line += 1;
            }
            _ if letter == separator && !quoted => cells.push(std::mem::take(&mut cell)),
            _ => cell.push(letter),
        }
    }
    if quoted {
        let what = "expected a closing quote, got the end of the file".to_owned();
        return Err(Error::Parse { line: quote_line, column: 1, what });
    }
    if !cell.is_empty() || !cells.is_empty() {
        cells.push(cell);
        records.push((began, cells));
    }
    Ok(records)
}

/// Reads JSON: an object of lists of objects, whose fields are the columns; rows count from 1.
pub(super) fn read_json(text: &str, names: &[&str]) -> Result<Tables> {
    let root = Node::parse(text)?;
    let fields = root.object("an object of tables")?;
    // The command signs what it writes with its version.
    fields.only(&[names, &["kind", "niwaki"]].concat())?;
    let mut all = Vec::new();
    for name in names {
        let Some(node) = fields.get(name) else { continue };
        let mut table = Table { name: (*name).to_owned(), ..Table::default() };
        for (index, row) in node.list("a list of rows")?.iter().enumerate() {
            let cells = row.object("a row: an object of cells")?;
            let mut texts = vec![String::new(); table.columns.len()];
            for (column, value) in cells.all() {
                let place = table.columns.iter().position(|known| known == column).unwrap_or_else(|| {
                    table.columns.push(column.to_owned());
                    texts.push(String::new());
                    table.columns.len() - 1
                });
                texts[place] = value.scalar()?;
            }
            table.rows.push(Row { place: index + 1, cells: texts });
        }
        all.push(table);
    }
    Ok(Tables { all })
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

/// Writes tables as JSON; empty cells are left out.
pub(super) fn write_json(tables: &Tables, kind: &str) -> String {
    let mut parts = vec![format!("  \"kind\": {}", Value::from(kind))];
    for table in &tables.all {
        let row = |row: &Row| {
            let cells = table.columns.iter().zip(&row.cells).filter(|(_, cell)| !cell.trim().is_empty());
            let object: Map<String, Value> =
                cells.map(|(column, cell)| (column.clone(), Value::from(cell.trim()))).collect();
            format!("    {}", Value::from(object))
        };
        let rows: Vec<String> = table.rows.iter().map(row).collect();
        parts.push(format!("  {}: [\n{}\n  ]", Value::from(table.name.as_str()), rows.join(",\n")));
    }
    format!("{{\n{}\n}}\n", parts.join(",\n"))
}

/// One line of CSV. What a spreadsheet would take for a formula is quoted with an apostrophe before it.
pub(crate) fn line<S: AsRef<str>>(cells: &[S]) -> String {
    cells.iter().map(|cell| field(cell.as_ref())).collect::<Vec<_>>().join(",")
}

fn field(cell: &str) -> String {
    let formula = cell.starts_with(['=', '+', '@']) || cell.starts_with('-') && cell.parse::<f64>().is_err();
    let guarded = if formula { format!("'{cell}") } else { cell.to_owned() };
    if guarded.contains(['"', ',', ';', '\t', '\n', '\r']) || guarded.starts_with('#') {
        format!("\"{}\"", guarded.replace('"', "\"\""))
    } else {
        guarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let json = read_json(&write_json(&tables, "shop"), &["operations", "jobs"]).unwrap();
        assert_eq!(json.get("operations").unwrap().rows[0].cells.len(), 3);
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
        assert!(refusal("[shops]\n").contains("got [shops]"));
        assert!(refusal("job,time\nA,1,2\n").contains("expected 2 columns, got more: `2`"));
        let fault = tables.all[0].need(&tables.all[0].rows[0], "machine").err().unwrap().to_string();
        assert_eq!(fault, "operations, row 2, column machine: the table has no such column; add it");
        let tables = read_csv("job,time\nA,\n", &["operations"]).unwrap();
        let fault = tables.all[0].need(&tables.all[0].rows[0], "time").err().unwrap().to_string();
        assert_eq!(fault, "operations, row 2, column time: expected something, got nothing");
    }

    #[test]
    fn formulas_are_disarmed() {
        assert_eq!(line(&["=1+2", "-3", "-x", "a\"b", "plain"]), "'=1+2,-3,'-x,\"a\"\"b\",plain");
    }
}
