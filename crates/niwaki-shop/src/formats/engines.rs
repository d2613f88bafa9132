//! Tables of best-known bounds with what engines reached: CSV with a header that names its columns (`docs/bench-shop.md`).

use super::text::Token;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// A lower and an upper bound, as far as either is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// No schedule is shorter.
    pub lower: Option<u32>,
    /// A schedule this short is known.
    pub upper: Option<u32>,
}

/// One instance of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Best {
    /// What it belongs to: the column `family`, or the letters that its name begins with.
    pub family: String,
    /// No schedule is shorter.
    pub lower: u32,
    /// The shortest schedule known.
    pub upper: u32,
    /// What each engine of the table reached.
    pub engines: Vec<Reached>,
}

/// A table of best-known bounds by instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineTable {
    /// The engines' names.
    pub engines: Vec<String>,
    /// The instances.
    pub rows: BTreeMap<String, Best>,
}

/// Where a table has what.
struct Columns {
    name: usize,
    family: Option<usize>,
    lower: usize,
    upper: usize,
    /// Lower and upper bound of each engine.
    engines: Vec<(usize, usize)>,
}

/// The names under which a column may go.
const NAME: [&str; 2] = ["instance", "name"];
const LOWER: [&str; 2] = ["best_lb", "lb"];
const UPPER: [&str; 2] = ["best_ub", "ub"];

impl Columns {
    fn of(header: &str) -> Result<(Self, Vec<String>)> {
        let cells: Vec<&str> = header.split(',').map(str::trim).collect();
        let fault = |what: String| Error::Parse { line: 1, column: 1, what };
        let find = |names: &[&str]| cells.iter().position(|cell| names.contains(cell));
        let must = |names: [&str; 2]| {
            find(&names).ok_or_else(|| {
                fault(format!("expected a column `{}` or `{}`, got `{header}`", names[0], names[1]))
            })
        };
        let mut engines = Vec::new();
        let mut names = Vec::new();
        for (lower, cell) in cells.iter().enumerate() {
            let Some(engine) = cell.strip_suffix("_lb").filter(|&engine| engine != "best") else { continue };
            let Some(upper) = find(&[&format!("{engine}_ub")]) else {
                return Err(fault(format!("expected a column `{engine}_ub` beside `{cell}`")));
            };
            engines.push((lower, upper));
            names.push(engine.to_owned());
        }
        let columns = Self {
            name: must(NAME)?,
            family: find(&["family"]),
            lower: must(LOWER)?,
            upper: must(UPPER)?,
            engines,
        };
        Ok((columns, names))
    }
}

impl EngineTable {
    /// Reads a table.
    ///
    /// # Errors
    /// The first mistake, with line and column.
    pub fn read(text: &str) -> Result<Self> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let (_, header) = lines.next().ok_or(Error::Parse {
            line: 1,
            column: 1,
            what: "expected a header that names the columns, got an empty table".into(),
        })?;
        let (columns, engines) = Columns::of(header)?;
        let mut rows = BTreeMap::new();
        for (index, line) in lines {
            let mut column = 1;
            let tokens: Vec<Token<'_>> = line
                .split(',')
                .map(|cell| {
                    let token = Token { text: cell.trim(), line: index + 1, column };
                    column += cell.chars().count() + 1;
                    token
                })
                .collect();
            let cell = |at: usize| {
                tokens.get(at).copied().ok_or_else(|| Error::Parse {
                    line: index + 1,
                    column: 1,
                    what: format!("expected {} columns, got {}", at + 1, tokens.len()),
                })
            };
            let name = cell(columns.name)?;
            let (lower, upper) = (cell(columns.lower)?, cell(columns.upper)?);
            // Nothing is known to be impossible where nobody has shown so.
            let least = if lower.text.is_empty() { 0 } else { lower.number("a lower bound")? };
            let most = upper.number("an upper bound")?;
            if least > most {
                return Err(upper.fault("expected an upper bound of at least the lower one"));
            }
            let family = match columns.family {
                Some(column) => cell(column)?.text.to_owned(),
                None => letters(name.text),
            };
            let reached = |&(lower, upper): &(usize, usize)| {
                let number = |at: usize, what: &str| -> Result<Option<u32>> {
                    let cell = cell(at)?;
                    if cell.text.is_empty() { Ok(None) } else { cell.number(what).map(Some) }
                };
                Ok(Reached {
                    lower: number(lower, "a lower bound")?,
                    upper: number(upper, "an upper bound")?,
                })
            };
            let engines = columns.engines.iter().map(reached).collect::<Result<_>>()?;
            let best = Best { family, lower: least, upper: most, engines };
            if rows.insert(name.text.to_owned(), best).is_some() {
                return Err(name.fault(format!("expected each instance once, got {} twice", name.text)));
            }
        }
        Ok(Self { engines, rows })
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

    /// The name under which the table has an instance's file: `la01` in a folder `hurink_edata` is `edata_la01` where the table
    /// has that name, otherwise `la01`.
    #[must_use]
    pub fn name_of(&self, path: &Path) -> Option<&str> {
        let stem = path.file_stem()?.to_str()?;
        let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or("");
        let family = folder.rsplit('_').next().unwrap_or("");
        let row = self.rows.get_key_value(&format!("{family}_{stem}"));
        row.or_else(|| self.rows.get_key_value(stem)).map(|(name, _)| name.as_str())
    }
}

/// The letters that a name begins with.
fn letters(name: &str) -> String {
    name.chars().take_while(|letter| letter.is_alphabetic()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name() {
        let text = "instance,family,size,best_lb,best_ub,x_lb,x_ub,x_seconds,y_ub,y_lb\n\
                    ft06,ft,6x6,55,55,54,55,1,,50\n";
        let table = EngineTable::read(text).unwrap();
        assert_eq!(table.engines, ["x", "y"]);
        let row = &table.rows["ft06"];
        assert_eq!((row.family.as_str(), row.lower, row.upper), ("ft", 55, 55));
        assert_eq!(row.engines[0], Reached { lower: Some(54), upper: Some(55) });
        assert_eq!(row.engines[1], Reached { lower: Some(50), upper: None });
        // Our own tables of bounds are such tables.
        let table =
            EngineTable::read("name,jobs,machines,lb,ub,source\nedata_la01,10,5,,609,x\nta21,1,1,2,3,\n");
        let table = table.unwrap();
        assert_eq!((table.rows["edata_la01"].lower, table.rows["ta21"].family.as_str()), (0, "ta"));
        assert_eq!(table.name_of(Path::new("hurink_edata/la01.fjs")), Some("edata_la01"));
        assert_eq!(table.name_of(Path::new("other/la01.fjs")), None);
    }

    #[test]
    fn mistakes_have_places() {
        let refusal = |text: &str| EngineTable::read(text).unwrap_err().to_string();
        assert_eq!(
            refusal("name,ub\n"),
            "line 1, column 1: expected a column `best_lb` or `lb`, got `name,ub`"
        );
        assert_eq!(refusal("name,lb,ub,x_lb\n"), "line 1, column 1: expected a column `x_ub` beside `x_lb`");
        assert_eq!(
            refusal("name,lb,ub\na,8,7\n"),
            "line 2, column 5: expected an upper bound of at least the lower one"
        );
        assert_eq!(refusal("name,lb,ub\na,7,x\n"), "line 2, column 5: expected an upper bound, got `x`");
        assert_eq!(refusal("name,lb,ub\na,7\n"), "line 2, column 1: expected 3 columns, got 2");
        assert_eq!(
            refusal("name,lb,ub\na,7,7\na,7,7\n"),
            "line 3, column 1: expected each instance once, got a twice"
        );
        assert!(refusal("").contains("empty table"));
    }
}
