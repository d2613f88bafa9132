//! Tables: named, with a header and rows of cells that know their place; put together from records, read from JSON and written to it.

use super::columns::unread;
use super::local::torn_number;
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

/// A row as a file has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) place: usize,
    /// Whether its first cell is quoted, and so data whatever it begins with.
    pub(super) quoted: bool,
    pub(super) cells: Vec<String>,
}

impl Record {
    pub(super) const fn at(place: usize) -> Self {
        Self { place, quoted: false, cells: Vec::new() }
    }

    /// The first cell, where nothing stands in the others.
    fn alone(&self) -> Option<&str> {
        let (first, others) = self.cells.split_first()?;
        others.iter().all(|cell| cell.trim().is_empty()).then_some(first.trim())
    }
}

/// What of a file's rows is not data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    /// Everything is data.
    Nothing,
    /// A cell `[name]` with nothing beside it begins a table.
    Headings,
    /// That, and rows that begin with `#` are comments.
    CommentsAndHeadings,
}

/// All tables of a file, and what was read and is not in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tables {
    pub(super) all: Vec<Table>,
    /// Whether numbers come as numbers rather than as people write them.
    pub(super) typed: bool,
    /// How many rows were comments.
    pub(super) comments: usize,
    /// Those that begin like a name and have as many cells as the table around them: its name, their place, their first cell.
    pub(super) like_rows: Vec<(String, usize, String)>,
}

impl Tables {
    pub(super) fn get(&self, name: &str) -> Option<&Table> {
        self.all.iter().find(|table| table.name == name)
    }

    /// How many rows were comments, and which of them could have been meant as data.
    pub(super) fn comments(&self) -> Option<String> {
        let mut text = match self.comments {
            0 => return None,
            1 => "1 row was a comment".to_owned(),
            many => format!("{many} rows were comments"),
        };
        if let Some((table, place, cell)) = self.like_rows.first() {
            let count = match (self.comments, self.like_rows.len()) {
                (1, _) => "like a row".to_owned(),
                (_, 1) => "one of them like a row".to_owned(),
                (_, many) => format!("{many} of them like rows"),
            };
            text +=
                &format!(", {count} of {table} (line {place}, `{cell}`): quote its first cell if it counts");
        }
        Some(text)
    }
}

/// A cell of a row, for reading and for complaints.
#[derive(Clone, Copy)]
pub(super) struct Cell<'a> {
    table: &'a Table,
    row: &'a Row,
    pub(super) column: &'a str,
    pub(super) text: &'a str,
}

impl Cell<'_> {
    /// A complaint at this cell.
    pub(super) fn fault(&self, what: impl std::fmt::Display) -> Error {
        self.table.fault(self.row, self.column, what)
    }

    /// Its row, in words.
    pub(super) fn place(&self) -> String {
        format!("row {} of {}", self.row.place, self.table.name)
    }
}

impl Table {
    /// A complaint at a column of a row.
    pub(super) fn fault(&self, row: &Row, column: &str, what: impl std::fmt::Display) -> Error {
        Error::Cell {
            table: self.name.clone(),
            row: row.place,
            column: column.to_owned(),
            what: shortened(what.to_string()),
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
                format!("the cell is empty; write the row's {column}")
            } else {
                "the table has no such column; add it".to_owned()
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
                return Err(self.fault(&header, column, unread(column, known)));
            }
            if self.columns[..index].contains(column) {
                return Err(self.fault(&header, column, "expected each column once"));
            }
        }
        Ok(())
    }
}

/// The most letters of a name: a file may repeat one for nothing, and every row would hold it again.
const NAME: usize = 200;

/// The columns that hold names of people's own, or several between bars.
const NAMES: [&str; 5] = ["job", "operation", "machine", "family", "after"];

impl Tables {
    /// Refuses names that are too long to be one.
    pub(super) fn check_names(&self) -> Result<()> {
        for table in &self.all {
            for column in
                NAMES.into_iter().chain(["from", "to"].into_iter().filter(|_| table.name == "setups"))
            {
                for cell in table.rows.iter().filter_map(|row| table.cell(row, column)) {
                    let is_long = |name: &&str| name.len() > NAME && name.chars().count() > NAME;
                    // An entry of `after` is a job and an operation.
                    let split = cell.text.split(|letter| letter == '|' || letter == '/' && column == "after");
                    if let Some(name) = split.map(str::trim).find(is_long) {
                        let letters = name.chars().count();
                        return Err(cell.fault(format!("a name has at most {NAME} letters, got {letters}")));
                    }
                }
            }
        }
        Ok(())
    }
}

impl<'a> Cell<'a> {
    /// The entries between bars, none of which may be empty.
    pub(super) fn entries(self) -> Result<Vec<&'a str>> {
        let entries: Vec<&str> = self.text.split('|').map(str::trim).collect();
        match entries.iter().position(|entry| entry.is_empty()) {
            Some(place) => Err(self.fault(format!(
                "entry {} of {} in `{}` is empty; fill it, or take out its `|`",
                place + 1,
                entries.len(),
                self.text
            ))),
            None => Ok(entries),
        }
    }
}

/// A complaint that quotes a cell of any length, as one line that can be read.
fn shortened(what: String) -> String {
    const ENDS: usize = 200;
    let letters = what.chars().count();
    if letters <= 3 * ENDS {
        return what;
    }
    let (head, tail) = (what.chars().take(ENDS), what.chars().skip(letters - ENDS));
    head.chain(['…']).chain(tail).collect()
}

/// Tables from records; the first one has this name unless a heading says otherwise.
pub(super) fn assemble(
    records: Vec<Record>,
    names: &[&str],
    first: &str,
    marks: Marks,
    tables: &mut Tables,
) -> Result<()> {
    let mut name = first.to_owned();
    let mut has_header = false;
    // Where tables begin: at their headings, or at their headers where they have none.
    let (mut begun, mut heading_at) = (Vec::<(String, usize)>::new(), None);
    let once = |name: &str, tables: &Tables, begun: &[(String, usize)], place| {
        if names.contains(&name) && tables.get(name).is_none() {
            return Ok(());
        }
        if let Some((_, there)) = begun.iter().find(|(known, _)| known == name) {
            let what = format!("the table [{name}] begins in line {there} already; put its rows there");
            return Err(Error::Parse { line: place, column: 1, what });
        }
        let known = names.iter().copied().filter(|known| tables.get(known).is_none());
        let meant = niwaki_words::nearest(name, known).filter(|_| !names.contains(&name));
        let meant = meant.map_or(String::new(), |meant| format!("; did you mean [{meant}]?"));
        let what = format!("expected one of the tables {}, each once, got [{name}]{meant}", names.join(", "));
        Err(Error::Parse { line: place, column: 1, what })
    };
    for record in records {
        let place = record.place;
        if record.cells.iter().all(|cell| cell.trim().is_empty()) {
            continue;
        }
        let first = record.cells[0].trim();
        if marks == Marks::CommentsAndHeadings && !record.quoted && first.starts_with('#') {
            tables.comments += 1;
            // What is meant for readers has a blank after the sign.
            let is_name = first[1..].starts_with(|letter: char| !letter.is_whitespace() && letter != '#');
            let table = tables.all.last().filter(|table| has_header && is_name && table.columns.len() > 1);
            if let Some(table) = table.filter(|table| table.columns.len() == record.cells.len()) {
                tables.like_rows.push((table.name.clone(), place, first.to_owned()));
            }
            continue;
        }
        let heading = record.alone().filter(|_| marks != Marks::Nothing && !record.quoted);
        if let Some(title) = heading.and_then(|cell| cell.strip_prefix('[')?.strip_suffix(']')) {
            title.trim().clone_into(&mut name);
            has_header = false;
            once(&name, tables, &begun, place)?;
            heading_at = Some(place);
            continue;
        }
        let mut cells = record.cells;
        if !has_header {
            once(&name, tables, &begun, place)?;
            begun.push((name.clone(), heading_at.take().unwrap_or(place)));
            let mut columns: Vec<String> = cells.iter().map(|cell| cell.trim().to_lowercase()).collect();
            while columns.last().is_some_and(String::is_empty) {
                columns.pop();
            }
            tables.all.push(Table { name: name.clone(), columns, rows: Vec::new() });
            has_header = true;
            continue;
        }
        if let Some(table) = tables.all.last_mut() {
            let surplus = cells.iter().skip(table.columns.len()).find(|cell| !cell.trim().is_empty());
            if let Some(cell) = surplus {
                let hint = torn_number(&cells);
                let count = match table.columns.len() {
                    1 => "1 column".to_owned(),
                    many => format!("{many} columns"),
                };
                let what = format!("expected {count}, got more: `{}`{hint}", cell.trim());
                return Err(Error::Parse { line: place, column: 1, what });
            }
            cells.truncate(table.columns.len());
            table.rows.push(Row { place, cells });
        }
    }
    Ok(())
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
    Ok(Tables { all, typed: true, ..Tables::default() })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_come_and_go_as_json() {
        let text = "{\"operations\": [{\"job\": \"#1\", \"time\": 3}, {\"job\": \"[jobs]\"}]}";
        let tables = read_json(text, &["operations", "jobs"]).unwrap();
        let jobs: Vec<&str> = tables.all[0].rows.iter().map(|row| row.cells[0].as_str()).collect();
        assert_eq!((jobs, tables.comments()), (vec!["#1", "[jobs]"], None));
        let again = read_json(&write_json(&tables, "shop"), &["operations", "jobs"]).unwrap();
        assert_eq!(again.get("operations").unwrap().rows[0].cells, ["#1", "3"]);
    }

    #[test]
    fn complaints_about_long_cells_are_short() {
        let text = format!("{{\"operations\": [{{\"job\": \"{}\"}}]}}", "é".repeat(1 << 20));
        let tables = read_json(&text, &["operations"]).unwrap();
        let table = &tables.all[0];
        let cell = table.need(&table.rows[0], "job").unwrap();
        let line = cell.fault(format!("expected a time, got `{}`; write 90", cell.text)).to_string();
        assert!(line.chars().count() < 500, "{}", line.len());
        assert!(line.contains("expected a time, got `é") && line.ends_with("é`; write 90"), "{line}");
    }

    #[test]
    fn what_is_data_depends_on_where_it_stands() {
        let read = |marks| {
            let row = |cells: &[&str]| Record {
                cells: cells.iter().map(|&cell| cell.to_owned()).collect(),
                ..Record::default()
            };
            let rows = vec![
                row(&["job", "due"]),
                row(&["#1", "2"]),
                row(&["[operations]", ""]),
                row(&["job", "time"]),
            ];
            let mut tables = Tables::default();
            assemble(rows, &["operations", "jobs"], "jobs", marks, &mut tables).unwrap();
            (tables.all.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), tables.comments)
        };
        assert_eq!(read(Marks::Nothing), (vec![3], 0));
        assert_eq!(read(Marks::Headings), (vec![1, 0], 0));
        assert_eq!(read(Marks::CommentsAndHeadings), (vec![0, 0], 1));
    }
}
