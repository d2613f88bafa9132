//! Tables of known bounds: CSV with a header `name,jobs,machines,lb,ub,source`.

use super::text::Token;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;

const HEADER: &str = "name,jobs,machines,lb,ub,source";

/// What is known of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Number of jobs.
    pub jobs: usize,
    /// Number of machines.
    pub machines: usize,
    /// No schedule is shorter, if anyone has shown so.
    pub lower: Option<u32>,
    /// The shortest schedule known.
    pub upper: u32,
    /// Who says so.
    pub source: String,
}

/// A table of known bounds by instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownBounds {
    rows: BTreeMap<String, Known>,
}

impl KnownBounds {
    /// Reads a table.
    ///
    /// # Errors
    /// The first mistake, with line and column.
    pub fn read(text: &str) -> Result<Self> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        if lines.next().is_none_or(|(_, line)| line.trim() != HEADER) {
            return Err(Error::Parse { line: 1, column: 1, what: format!("expected the header `{HEADER}`") });
        }
        let mut rows = BTreeMap::new();
        for (index, line) in lines {
            let cells: Vec<&str> = line.splitn(6, ',').collect();
            let mut columns = cells.iter().scan(1, |next, cell| {
                let column = *next;
                *next += cell.chars().count() + 1;
                Some(Token { text: cell.trim(), line: index + 1, column })
            });
            let mut cell = |what: &str| {
                columns.next().ok_or_else(|| Error::Parse {
                    line: index + 1,
                    column: 1,
                    what: format!("expected 6 columns, got no {what}"),
                })
            };
            let name = cell("name")?;
            let jobs = cell("number of jobs")?.count("a number of jobs")?;
            let machines = cell("number of machines")?.count("a number of machines")?;
            let lower = cell("lower bound")?;
            let lower = if lower.text.is_empty() { None } else { Some(lower.number("a lower bound")?) };
            let upper_cell = cell("upper bound")?;
            let upper = upper_cell.number("an upper bound")?;
            if lower.is_some_and(|lower| lower > upper) {
                return Err(upper_cell.fault("expected an upper bound of at least the lower one"));
            }
            let source = cell("source")?.text.to_owned();
            if rows.insert(name.text.to_owned(), Known { jobs, machines, lower, upper, source }).is_some() {
                return Err(name.fault(format!("expected each name once, got {} twice", name.text)));
            }
        }
        Ok(Self { rows })
    }

    /// Reads a table's file.
    ///
    /// # Errors
    /// If the file cannot be read, or its first mistake; both name the file.
    pub fn load(path: &Path) -> Result<Self> {
        let named = |what: String| Error::File { path: path.display().to_string(), what };
        let text = niwaki_files::read_text(path).map_err(|error| named(error.to_string()))?;
        Self::read(&text).map_err(|error| named(error.to_string()))
    }

    /// All rows by name.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &Known)> {
        self.rows.iter().map(|(name, known)| (name.as_str(), known))
    }

    /// The row of an instance file, and its name: `la01` in a folder `hurink_edata` is `edata_la01` where the table has
    /// that name, otherwise `la01`.
    #[must_use]
    pub fn of_file(&self, path: &Path) -> Option<(&str, &Known)> {
        let stem = path.file_stem()?.to_str()?;
        let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or("");
        let family = folder.rsplit('_').next().unwrap_or("");
        let row =
            self.rows.get_key_value(&format!("{family}_{stem}")).or_else(|| self.rows.get_key_value(stem));
        row.map(|(name, known)| (name.as_str(), known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_file() {
        let text = format!("{HEADER}\nedata_la01,10,5,609,609,x, y\nla01,10,5,,666,z\n");
        let table = KnownBounds::read(&text).unwrap();
        assert_eq!(table.of_file(Path::new("fjsp/hurink_edata/la01.fjs")).unwrap().0, "edata_la01");
        let (_, known) = table.of_file(Path::new("jsp/la01.txt")).unwrap();
        assert_eq!((known.lower, known.upper), (None, 666));
        assert!(table.of_file(Path::new("jsp/la02.txt")).is_none());
    }

    #[test]
    fn mistakes_have_places() {
        let refusal = |row: &str| KnownBounds::read(&format!("{HEADER}\n{row}\n")).unwrap_err().to_string();
        assert_eq!(refusal("a,10,5,7,x,s"), "line 2, column 10: expected an upper bound, got `x`");
        assert_eq!(refusal("a,10,5"), "line 2, column 1: expected 6 columns, got no lower bound");
        assert_eq!(
            refusal("a,10,5,8,7,s"),
            "line 2, column 10: expected an upper bound of at least the lower one"
        );
    }
}
