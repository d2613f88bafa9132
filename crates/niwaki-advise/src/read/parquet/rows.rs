//! The columns of a dump, row by row.

use super::column::Column;
use super::meta::{Leaf, Meta, Physical};
use crate::error::{Error, Fault, Place};
use crate::keys::{is_blurred, key_of_number};
use crate::read::limits::{PER_BYTE, RUN};
use crate::read::records::{Pass, Records, Unread, shown};
use crate::schema::{Field, Naming};
use crate::trajectory::{Came, Record};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The rows of a file.
pub(crate) struct Table {
    file: PathBuf,
    size: u64,
    columns: Vec<(Field, Column)>,
    names: Vec<String>,
    unread: Unread,
    row: u64,
    total: u64,
}

impl Table {
    pub(crate) fn open(file: &Path, size: u64, naming: &Naming, pass: Pass) -> Result<Self, Error> {
        let io = |source| Error::File { file: shown(file), source };
        let mut handle = File::open(file).map_err(io)?;
        let broken = |why: String| Error::Broken { file: shown(file), layout: "parquet", why };
        let meta = Meta::read(&mut handle, size).map_err(broken)?;
        let mut found: BTreeMap<Field, (usize, Leaf)> = BTreeMap::new();
        let names: Vec<String> = meta.leaves.iter().map(|leaf| leaf.name.clone()).collect();
        for leaf in meta.leaves {
            match naming.field(&leaf.name) {
                Some((field, rank)) if found.get(&field).is_none_or(|(known, _)| rank < *known) => {
                    found.insert(field, (rank, leaf));
                }
                _ => {}
            }
        }
        let mut unread = Unread::default();
        let read = |name: &String| found.values().any(|(_, leaf)| leaf.name == *name);
        names.iter().filter(|name| !read(name)).for_each(|name| unread.add(name));
        let mut columns = Vec::new();
        for (field, (_, mut leaf)) in found {
            if !pass.wants(field) || matches!(field, Field::Length | Field::Offsets) {
                continue;
            }
            if let Some((expected, came)) = unfit(field, &leaf) {
                let place = Place { file: shown(file), unit: "row", row: None };
                return Err(Error::Row {
                    place,
                    fault: Fault::Kind { field, expected, came: came.to_owned() },
                });
            }
            let claimed = leaf.values().max(meta.rows);
            if claimed > size.saturating_mul(PER_BYTE).saturating_add(RUN) {
                return Err(broken(format!("{claimed} values of {field} in a file of {size} bytes")));
            }
            if (field, leaf.physical) == (Field::Group, Physical::Int64) {
                leaf.physical = Physical::Key;
            }
            columns.push((field, Column::open(file, size, leaf).map_err(io)?));
        }
        Ok(Self { file: file.to_path_buf(), size, columns, names, unread, row: 0, total: meta.rows })
    }
}

/// What a column must be and is, where that differs.
fn unfit(field: Field, leaf: &Leaf) -> Option<(&'static str, &'static str)> {
    match leaf.physical {
        _ if leaf.nested => Some(("a list of numbers", "a list of lists")),
        _ if field.is_single() && leaf.element_level.is_some() => {
            Some(("one value per row", "a list column"))
        }
        Physical::Text if field != Field::Group => Some(("a column of numbers", "a column of texts")),
        Physical::Other => Some(("a column of numbers", "a column of another type")),
        _ => None,
    }
}

impl Records for Table {
    fn next(&mut self, record: &mut Record) -> Result<bool, Error> {
        if self.row == self.total {
            return Ok(false);
        }
        self.row += 1;
        let place = || Place { file: shown(&self.file), unit: "row", row: Some(self.row - 1) };
        for (field, column) in &mut self.columns {
            let field = *field;
            let lists = column.leaf.element_level.is_some();
            let broken =
                |why: String| Error::Row { place: place(), fault: Fault::Syntax { field: Some(field), why } };
            let row = column.next().map_err(broken)?;
            let row = row.ok_or_else(|| broken("the column ends before its file does".to_owned()))?;
            let Some(values) = row else { continue };
            match (field, values) {
                (Field::Group, [number]) if !is_blurred(*number) => {
                    record.group = Some(key_of_number(*number))
                }
                (Field::Weight, [weight]) => record.weight = Some(*weight),
                (Field::Kept, [kept]) => record.kept = Some(*kept),
                (Field::Iteration, [number]) if number.fract() == 0.0 && !is_blurred(*number) => {
                    record.iteration = Some(*number as i64)
                }
                (Field::Age, [number]) if !lists && number.fract() == 0.0 && !is_blurred(*number) => {
                    record.age = Some(*number as i64)
                }
                (Field::TrainerVersion, [number]) if number.fract() == 0.0 && !is_blurred(*number) => {
                    record.trainer_version = Some(*number as i64)
                }
                (field, _) if field.is_single() || (field == Field::Age && !lists) => {
                    let came = format!("{values:?}");
                    let fault = Fault::Kind { field, expected: "one whole number below 2^53", came };
                    return Err(Error::Row { place: place(), fault });
                }
                _ => {
                    let came = if lists { Came::Many } else { Came::One };
                    record.fill(field, came).extend_from_slice(values);
                }
            }
        }
        Ok(true)
    }

    fn place(&self) -> Place {
        Place { file: shown(&self.file), unit: "row", row: Some(self.row.saturating_sub(1)) }
    }

    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn unread(&mut self) -> &mut Unread {
        &mut self.unread
    }

    fn done(&self) -> u64 {
        (self.size as f64 * self.row as f64 / self.total.max(1) as f64) as u64
    }
}
