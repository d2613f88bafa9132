//! One table object for three readers: the page, the terminal and a spreadsheet.

mod cell;
mod csv;
mod html;
mod text;

pub use cell::Cell;
pub use csv::csv_text;

use crate::number::Format;

/// A column: its name, how its numbers are written, and the group it stands under.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    name: String,
    group: Option<String>,
    numeric: bool,
    format: Format,
}

impl Column {
    /// A column of words, aligned left.
    pub fn text(name: impl Into<String>) -> Self {
        Self { name: name.into(), group: None, numeric: false, format: Format::auto() }
    }

    /// A column of numbers, aligned on the decimal point; [`Format::auto`] unless [`Column::format`] says otherwise.
    pub fn number(name: impl Into<String>) -> Self {
        Self { numeric: true, ..Self::text(name) }
    }

    /// How numbers of this column are written where a cell has no format of its own.
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Puts the column under a heading that neighbouring columns of the same group share.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }
}

/// One line of a table's body.
#[derive(Debug, Clone, PartialEq)]
enum Row {
    Heading(String),
    Cells(Vec<Cell>),
}

/// A table with typed cells; see [`Table::to_text`], [`Table::to_csv`] and [`crate::Section::table`].
///
/// Rows may be ragged: missing cells are blank, and cells beyond the last column get an unnamed column.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    caption: String,
    columns: Vec<Column>,
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Table {
    /// An empty table; the caption says what it shows (it may be empty).
    pub fn new(caption: impl Into<String>) -> Self {
        Self { caption: caption.into(), columns: Vec::new(), rows: Vec::new(), notes: Vec::new() }
    }

    /// Adds a column.
    pub fn column(mut self, column: Column) -> Self {
        self.columns.push(column);
        self
    }

    /// Adds several columns.
    pub fn columns(mut self, columns: impl IntoIterator<Item = Column>) -> Self {
        self.columns.extend(columns);
        self
    }

    /// Adds a row of cells.
    pub fn row(mut self, cells: impl IntoIterator<Item = Cell>) -> Self {
        self.push(cells);
        self
    }

    /// Adds a row of cells in place, for loops.
    pub fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(Row::Cells(cells.into_iter().collect()));
    }

    /// Starts a group of rows under a heading of their own.
    pub fn heading(mut self, heading: impl Into<String>) -> Self {
        self.push_heading(heading);
        self
    }

    /// Starts a group of rows in place, for loops.
    pub fn push_heading(&mut self, heading: impl Into<String>) {
        self.rows.push(Row::Heading(heading.into()));
    }

    /// Adds a remark below the table.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The table as aligned plain text, no line wider than `width` columns where the widest number allows it.
    ///
    /// Long words wrap; a table that is still too wide is cut into blocks that repeat the first column. A best cell
    /// carries an asterisk.
    pub fn to_text(&self, width: usize) -> String {
        text::render(self, width)
    }

    /// The table as CSV (RFC 4180 quoting, `\n` line ends) with numbers in full precision.
    ///
    /// A column whose cells carry errors is followed by `… error`, one with intervals by `… low` and `… high`; row
    /// headings become a first column `group`.
    pub fn to_csv(&self) -> String {
        csv::render(self)
    }

    pub(crate) fn to_html(&self, number: usize) -> maud::Markup {
        html::render(self, number)
    }

    /// The columns, with unnamed ones for rows that are longer than the header.
    fn full_columns(&self) -> Vec<Column> {
        let widest = self.body().map(<[Cell]>::len).max().unwrap_or(0);
        let mut columns = self.columns.clone();
        while columns.len() < widest {
            columns.push(Column::text(""));
        }
        columns
    }

    fn body(&self) -> impl Iterator<Item = &[Cell]> {
        self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells.as_slice()),
            Row::Heading(_) => None,
        })
    }
}

/// Neighbouring columns of one group: the group's name and how many columns it spans.
fn spans(columns: &[Column]) -> Vec<(Option<&str>, usize)> {
    let mut spans: Vec<(Option<&str>, usize)> = Vec::new();
    for column in columns {
        let group = column.group.as_deref();
        match spans.last_mut() {
            Some((last, count)) if *last == group => *count += 1,
            _ => spans.push((group, 1)),
        }
    }
    spans
}
