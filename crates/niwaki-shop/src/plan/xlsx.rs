//! Spreadsheets (XLSX): every sheet a table by its name, or one sheet with all of them as in CSV.
//!
//! A reader of our own over `zip`, which is here for other archives: the public readers lay a sheet out as one rectangle, so
//! that a single cell in the last corner takes gigabytes, and bring ten crates for old formats. Here a cell costs what it
//! holds, what is unpacked and what cells hold is limited by the file's own size, and formulas count by the values that were
//! saved with them.

mod styles;
mod xml;

use self::styles::{Meaning, meanings, written};
use self::xml::{Event, Scanner};
use super::table::{Marks, Record, Tables, assemble};
use super::{Plan, TABLES};
use crate::{Error, Result};
use std::collections::HashMap;
use std::io::{Cursor, Read};
use zip::ZipArchive;

/// The most bytes of all members together, unpacked; and the most that texts and cells hold, each of them anew.
const LARGEST: u64 = 64 << 20;
const FULLEST: u64 = 256 << 20;

/// What both may be beside [`SHARE`] times the file's bytes. A sheet of few different rows packs 50 to 1, a bomb 1000 to 1.
const FREE: u64 = 4 << 20;
const SHARE: u64 = 128;

/// What a cell or a shared text, and a row, count beside their letters.
const PER_CELL: u64 = 24;
const PER_ROW: u64 = 64;

/// The most cells of all sheets together, those that are empty before others of their row among them, and the most texts that
/// cells share.
const CELLS: usize = 2_000_000;

/// The most sheets.
const SHEETS: usize = 1000;

/// The most columns of a sheet.
const COLUMNS: usize = 64;

impl Plan {
    /// Reads a plan from a spreadsheet's bytes.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn read_xlsx(bytes: &[u8]) -> Result<Self> {
        let mut book = Book::open(bytes)?;
        let mut tables = Tables { typed: true, ..Tables::default() };
        let mut other: Option<(String, Vec<Record>)> = None;
        for (name, path) in book.sheets()? {
            let rows = book.rows(&name, &path)?;
            let table = name.trim().to_lowercase();
            if TABLES.contains(&table.as_str()) {
                assemble(rows, &TABLES, &table, Marks::Nothing, &mut tables)?;
            } else if !rows.is_empty() {
                if let Some((first, _)) = &other {
                    return Err(Error::Instance(format!(
                        "sheets `{first}` and `{name}`: expected names of tables ({}); one other sheet holds the operations",
                        TABLES.join(", ")
                    )));
                }
                other = Some((name, rows));
            }
        }
        if let Some((_, rows)) = other {
            assemble(rows, &TABLES, "operations", Marks::Headings, &mut tables)?;
        }
        Self::from_tables(tables)
    }
}

/// An open workbook.
struct Book<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    /// The file's bytes.
    size: u64,
    /// Bytes that may still be unpacked.
    left: u64,
    /// Bytes that texts and cells may still hold.
    room: u64,
    cells: usize,
    strings: Vec<String>,
    meanings: Vec<Meaning>,
    from_1904: bool,
}

fn broken(what: impl std::fmt::Display) -> Error {
    Error::Instance(format!("expected a spreadsheet (.xlsx): {what}"))
}

fn too_many(what: &str) -> Error {
    broken(format!("expected at most {CELLS} {what}"))
}

impl<'a> Book<'a> {
    fn open(bytes: &'a [u8]) -> Result<Self> {
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
        let mut book = Self {
            archive,
            size: bytes.len() as u64,
            left: allowed(bytes.len() as u64).min(LARGEST),
            room: allowed(bytes.len() as u64).min(FULLEST),
            cells: 0,
            strings: Vec::new(),
            meanings: Vec::new(),
            from_1904: false,
        };
        let texts = book.member("xl/sharedStrings.xml")?.unwrap_or_default();
        book.strings = book.strings(&texts)?;
        book.meanings = meanings(&book.member("xl/styles.xml")?.unwrap_or_default());
        Ok(book)
    }

    /// A member's text, if there is such a member.
    fn member(&mut self, name: &str) -> Result<Option<String>> {
        let Some(index) = self.archive.index_for_name(name) else { return Ok(None) };
        let member = self.archive.by_index(index).map_err(broken)?;
        let mut bytes = Vec::new();
        member.take(self.left + 1).read_to_end(&mut bytes).map_err(broken)?;
        let left = self.left.checked_sub(bytes.len() as u64);
        self.left = left.ok_or_else(|| broken(format!("it unpacks to more than {}", self.limit(LARGEST))))?;
        String::from_utf8(bytes).map(Some).map_err(|_| broken(format!("{name} is not in UTF-8")))
    }

    /// A limit in words.
    fn limit(&self, most: u64) -> String {
        if allowed(self.size) >= most {
            return format!("{} MB", most >> 20);
        }
        format!("{} MB and {SHARE} times its {} bytes", FREE >> 20, self.size)
    }

    /// Takes room for what a text or a cell holds.
    fn take(&mut self, bytes: u64, place: impl FnOnce() -> String) -> Result<()> {
        let room = self.room.checked_sub(bytes);
        self.room =
            room.ok_or_else(|| broken(format!("{} hold more than {}", place(), self.limit(FULLEST))))?;
        Ok(())
    }

    /// The texts that cells share, by number.
    fn strings(&mut self, text: &str) -> Result<Vec<String>> {
        let (mut strings, mut open, mut reading) = (Vec::<String>::new(), false, false);
        for event in Scanner::new(text) {
            match event {
                Event::Begin(element) => match element.name {
                    "si" if strings.len() == CELLS => return Err(too_many("texts that cells share")),
                    "si" => {
                        self.take(PER_CELL, || "texts that cells share".to_owned())?;
                        strings.push(String::new());
                    }
                    "t" => open = true,
                    "rPh" => reading = true,
                    _ => {}
                },
                Event::End("t") => open = false,
                Event::End("rPh") => reading = false,
                Event::Text(part) if open && !reading => {
                    if let Some(last) = strings.last_mut() {
                        *last += &part;
                    }
                }
                _ => {}
            }
        }
        Ok(strings)
    }

    /// Names of sheets and where they are.
    fn sheets(&mut self) -> Result<Vec<(String, String)>> {
        let book = self.member("xl/workbook.xml")?.ok_or_else(|| broken("it has no xl/workbook.xml"))?;
        let links = self.member("xl/_rels/workbook.xml.rels")?.unwrap_or_default();
        let elements = |text| {
            Scanner::new(text)
                .filter_map(|event| if let Event::Begin(element) = event { Some(element) } else { None })
        };
        let targets: HashMap<String, String> = elements(&links)
            .filter(|element| element.name == "Relationship")
            .filter_map(|element| Some((element.get("Id")?, element.get("Target")?)))
            .collect();
        let mut sheets = Vec::new();
        for element in elements(&book) {
            match element.name {
                "workbookPr" => {
                    self.from_1904 = element.get("date1904").is_some_and(|flag| flag == "1" || flag == "true")
                }
                "sheet" => {
                    let (name, id) =
                        (element.get("name").unwrap_or_default(), element.get("id").unwrap_or_default());
                    let target =
                        targets.get(&id).ok_or_else(|| broken(format!("sheet `{name}` is missing")))?;
                    if sheets.len() == SHEETS {
                        return Err(broken(format!("expected at most {SHEETS} sheets")));
                    }
                    let path = target.strip_prefix('/').map_or_else(|| format!("xl/{target}"), str::to_owned);
                    sheets.push((name, path));
                }
                _ => {}
            }
        }
        Ok(sheets)
    }

    /// The rows of a sheet that hold something.
    fn rows(&mut self, name: &str, path: &str) -> Result<Vec<Record>> {
        let text = self.member(path)?.ok_or_else(|| broken(format!("sheet `{name}` is missing")))?;
        let mut rows: Vec<Record> = Vec::new();
        let (mut number, mut column) = (0_usize, 0);
        let mut cell = Cell::default();
        for event in Scanner::new(&text) {
            match event {
                Event::Begin(element) => match element.name {
                    "row" => {
                        number = element
                            .get("r")
                            .and_then(|row| row.parse().ok())
                            .unwrap_or(number.saturating_add(1));
                        column = 0;
                        rows.pop_if(|row| row.cells.is_empty());
                        rows.push(Record::at(number));
                    }
                    "c" => {
                        column = element.get("r").and_then(|place| column_of(&place)).unwrap_or(column + 1);
                        cell = Cell {
                            kind: element.get("t").unwrap_or_default(),
                            style: element.get("s").and_then(|style| style.parse().ok()).unwrap_or(0),
                            ..Cell::default()
                        };
                    }
                    "v" | "t" => (cell.open, cell.saved) = (true, true),
                    "f" => cell.formula = true,
                    // Readings of Japanese text are no part of it.
                    "rPh" => cell.reading = true,
                    _ => {}
                },
                Event::Text(text) if cell.open && !cell.reading => cell.text += &text,
                Event::Text(_) => {}
                Event::End("v" | "t") => cell.open = false,
                Event::End("rPh") => cell.reading = false,
                Event::End("c") => {
                    if cell.is_unsaved_formula() {
                        return Err(Error::Instance(format!(
                            "sheet `{name}`, cell {}{number}: holds a formula without a saved value; open and save the workbook \
                             in a spreadsheet program, or write the value",
                            letters_of(column)
                        )));
                    }
                    let text = self.shown(&cell).map_err(|what| Error::Cell {
                        table: name.to_owned(),
                        row: number,
                        column: column.to_string(),
                        what,
                    })?;
                    if text.trim().is_empty() {
                        continue;
                    }
                    if column > COLUMNS {
                        let what = format!(
                            "sheet `{name}`, row {number}: expected at most {COLUMNS} columns, got `{text}` in column {column}"
                        );
                        return Err(Error::Instance(what));
                    }
                    let (Some(Record { cells, .. }), Some(place)) = (rows.last_mut(), column.checked_sub(1))
                    else {
                        continue;
                    };
                    let added = column.saturating_sub(cells.len());
                    self.cells += added;
                    if self.cells > CELLS {
                        return Err(too_many(&format!("cells up to sheet `{name}`, row {number}")));
                    }
                    let row = if cells.is_empty() { PER_ROW } else { 0 };
                    let held = row + text.len() as u64 + PER_CELL * added as u64;
                    self.take(held, || format!("cells up to sheet `{name}`, row {number}"))?;
                    cells.resize(cells.len().max(column), String::new());
                    cells[place] = text;
                }
                Event::End(_) => {}
            }
        }
        rows.pop_if(|row| row.cells.is_empty());
        Ok(rows)
    }

    /// A cell's content as people write it.
    fn shown(&self, cell: &Cell) -> std::result::Result<String, String> {
        match cell.kind.as_str() {
            "s" => {
                let place = cell.text.trim().parse::<usize>().ok();
                let text = place.and_then(|place| self.strings.get(place));
                text.cloned()
                    .ok_or_else(|| format!("expected a text of the workbook, got number {}", cell.text))
            }
            "inlineStr" | "str" => Ok(cell.text.clone()),
            "d" => Ok(cell.text.trim_end_matches('Z').to_owned()),
            "b" => Ok(if cell.text.trim() == "1" { "yes" } else { "no" }.to_owned()),
            "e" => Err(format!("expected a value, got {}", cell.text)),
            _ if cell.text.trim().is_empty() => Ok(String::new()),
            _ => {
                let meaning = self.meanings.get(cell.style).copied().unwrap_or_default();
                let text = written(&cell.text, meaning, self.from_1904);
                text.ok_or_else(|| format!("expected a number or a date, got `{}`", cell.text))
            }
        }
    }
}

#[derive(Default)]
struct Cell {
    kind: String,
    style: usize,
    text: String,
    open: bool,
    reading: bool,
    formula: bool,
    /// Whether it has a value, which may be an empty text.
    saved: bool,
}

impl Cell {
    /// Whether it holds a formula that nothing has computed. A computed text may be empty, a computed number may not.
    fn is_unsaved_formula(&self) -> bool {
        let empty_text = self.saved && matches!(self.kind.as_str(), "str" | "s" | "inlineStr");
        self.formula && self.text.trim().is_empty() && !empty_text
    }
}

/// The column of a place such as `BC12`, from 1.
fn column_of(place: &str) -> Option<usize> {
    let letters = place.bytes().take_while(u8::is_ascii_uppercase);
    let column = letters.take(4).fold(0, |column, letter| 26 * column + usize::from(letter - b'A') + 1);
    (column > 0).then_some(column)
}

/// The letters of a column, from 1.
fn letters_of(mut column: usize) -> String {
    let mut letters = Vec::new();
    while column > 0 {
        column -= 1;
        letters.push(char::from(b'A' + (column % 26) as u8));
        column /= 26;
    }
    letters.into_iter().rev().collect()
}

/// What a file of a given size may unpack to and hold.
const fn allowed(bytes: u64) -> u64 {
    FREE.saturating_add(SHARE.saturating_mul(bytes))
}

#[cfg(test)]
mod tests;
