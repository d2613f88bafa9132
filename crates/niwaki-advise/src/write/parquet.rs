//! Columns as a parquet file: one row group, pages of whole rows, packed by deflate.
//!
//! Floats are split into their first bytes, their second ones and so on (byte stream split), since signs and exponents repeat and
//! low bytes do not. Every reader of parquet since 2020 knows that; `python/tests` holds the files to pyarrow.

use super::thrift::{INTS, STRUCT, TEXTS, Thrift};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};
use std::ops::Range;

const MARK: &[u8; 4] = b"PAR1";

/// Values of a page, unless one row has more.
const PAGE: usize = 1 << 17;

/// Numbers of parquet's format.
const INT64: i64 = 2;
const FLOAT: i64 = 4;
const DOUBLE: i64 = 5;
const REQUIRED: i64 = 0;
const REPEATED: i64 = 2;
const LISTED: i64 = 3;
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const SPLIT: i64 = 9;
const GZIP: i64 = 2;

/// A column's values.
#[derive(Debug)]
pub(super) enum Values {
    /// Whole numbers, one a row.
    Wholes(Vec<i64>),
    /// Numbers, one a row.
    Numbers(Vec<f64>),
    /// A list of numbers a row.
    Floats(Vec<f32>),
    /// A list of whole numbers a row.
    Ints(Vec<i64>),
}

/// A column.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) values: Values,
}

impl Values {
    const fn physical(&self) -> i64 {
        match self {
            Self::Wholes(_) | Self::Ints(_) => INT64,
            Self::Numbers(_) => DOUBLE,
            Self::Floats(_) => FLOAT,
        }
    }

    const fn encoding(&self) -> i64 {
        match self {
            Self::Floats(_) | Self::Numbers(_) => SPLIT,
            Self::Wholes(_) | Self::Ints(_) => PLAIN,
        }
    }

    const fn is_listed(&self) -> bool {
        matches!(self, Self::Floats(_) | Self::Ints(_))
    }

    /// Some of the values as bytes.
    fn bytes(&self, of: Range<usize>, into: &mut Vec<u8>) {
        match self {
            Self::Wholes(values) | Self::Ints(values) => {
                into.extend(values[of].iter().flat_map(|value| value.to_le_bytes()))
            }
            Self::Numbers(values) => split(values[of].iter().map(|value| value.to_le_bytes()), into),
            Self::Floats(values) => split(values[of].iter().map(|value| value.to_le_bytes()), into),
        }
    }
}

/// All first bytes, then all second ones.
fn split<const N: usize>(words: impl Iterator<Item = [u8; N]> + Clone, into: &mut Vec<u8>) {
    (0..N).for_each(|byte| into.extend(words.clone().map(|word| word[byte])));
}

/// Levels as runs of one value, each with the four bytes of its length before it.
fn levels(levels: impl Iterator<Item = (u8, usize)>, into: &mut Vec<u8>) {
    let start = into.len();
    into.extend([0; 4]);
    let mut run = (0, 0);
    let mut put = |(level, count): (u8, usize)| {
        let mut head = count << 1;
        while head >= 128 {
            into.push(head as u8 | 128);
            head >>= 7;
        }
        into.extend([head as u8, level]);
    };
    for (level, count) in levels.filter(|(_, count)| *count > 0) {
        if level == run.0 {
            run.1 += count;
        } else {
            if run.1 > 0 {
                put(run);
            }
            run = (level, count);
        }
    }
    if run.1 > 0 {
        put(run);
    }
    let size = (into.len() - start - 4) as u32;
    into[start..start + 4].copy_from_slice(&size.to_le_bytes());
}

/// Where a column lies in the file.
struct Placed {
    start: usize,
    size: usize,
    unpacked: usize,
    levels: usize,
}

/// The file. `offsets` say where each row's values begin in the lists, `[rows + 1]`.
pub(super) fn file(columns: &[Column], offsets: &[usize]) -> io::Result<Vec<u8>> {
    let rows = offsets.len() - 1;
    let mut bytes = MARK.to_vec();
    let mut placed = Vec::new();
    for column in columns {
        placed.push(write(column, offsets, &mut bytes)?);
    }
    let footer = footer(columns, &placed, rows);
    let length = footer.len() as u32;
    bytes.extend(footer);
    bytes.extend(length.to_le_bytes());
    bytes.extend(MARK);
    Ok(bytes)
}

/// Writes a column's pages.
fn write(Column { values, .. }: &Column, offsets: &[usize], bytes: &mut Vec<u8>) -> io::Result<Placed> {
    let mut placed = Placed { start: bytes.len(), size: 0, unpacked: 0, levels: 0 };
    let (rows, listed) = (offsets.len() - 1, values.is_listed());
    let mut first = 0;
    while first < rows {
        let mut end = first + 1;
        let full = |end: usize| if listed { offsets[end] - offsets[first] } else { end - first } >= PAGE;
        while end < rows && !full(end) {
            end += 1;
        }
        let lengths = offsets[first..=end].windows(2).map(|row| row[1] - row[0]);
        let mut page = Vec::new();
        let count = if listed {
            // A row's first value begins a list, the others go on with it; a row without values has a level of its own.
            levels(lengths.clone().flat_map(|length| [(0, 1), (1, length.saturating_sub(1))]), &mut page);
            levels(lengths.clone().map(|length| (u8::from(length > 0), length.max(1))), &mut page);
            values.bytes(offsets[first]..offsets[end], &mut page);
            lengths.map(|length| length.max(1)).sum()
        } else {
            values.bytes(first..end, &mut page);
            end - first
        };
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(&page)?;
        let packed = packer.finish()?;
        let mut header = Thrift::new();
        header.int(1, 0);
        header.int(2, page.len() as i64);
        header.int(3, packed.len() as i64);
        header.inner(5, |data| {
            data.int(1, count as i64);
            data.int(2, values.encoding());
            data.int(3, RLE);
            data.int(4, RLE);
        });
        let header = header.end();
        placed.unpacked += header.len() + page.len();
        placed.levels += count;
        bytes.extend(header);
        bytes.extend(packed);
        first = end;
    }
    placed.size = bytes.len() - placed.start;
    Ok(placed)
}

fn footer(columns: &[Column], placed: &[Placed], rows: usize) -> Vec<u8> {
    let mut footer = Thrift::new();
    footer.int(1, 1);
    let listed = columns.iter().filter(|column| column.values.is_listed()).count();
    footer.list(2, STRUCT, 1 + columns.len() + 2 * listed);
    footer.struct_element(|root| {
        root.text(4, "schema");
        root.int(5, columns.len() as i64);
    });
    for Column { name, values } in columns {
        let leaf = |to: &mut Thrift, name: &str| {
            to.int(1, values.physical());
            to.int(3, REQUIRED);
            to.text(4, name);
        };
        if !values.is_listed() {
            footer.struct_element(|own| leaf(own, name));
            continue;
        }
        footer.struct_element(|list| {
            list.int(3, REQUIRED);
            list.text(4, name);
            list.int(5, 1);
            list.int(6, LISTED);
        });
        footer.struct_element(|repeated| {
            repeated.int(3, REPEATED);
            repeated.text(4, "list");
            repeated.int(5, 1);
        });
        footer.struct_element(|own| leaf(own, "element"));
    }
    footer.long(3, rows as u64);
    footer.list(4, STRUCT, 1);
    footer.struct_element(|group| {
        group.list(1, STRUCT, columns.len());
        for (Column { name, values }, placed) in columns.iter().zip(placed) {
            group.struct_element(|chunk| {
                chunk.long(2, placed.start as u64);
                chunk.inner(3, |own| column(own, name, values, placed));
            });
        }
        group.long(2, placed.iter().map(|placed| placed.unpacked as u64).sum());
        group.long(3, rows as u64);
    });
    footer.text(6, concat!("niwaki ", env!("CARGO_PKG_VERSION")));
    footer.end()
}

fn column(own: &mut Thrift, name: &str, values: &Values, placed: &Placed) {
    own.int(1, values.physical());
    own.list(2, INTS, 2);
    own.element(values.encoding());
    own.element(RLE);
    let path: &[&str] = if values.is_listed() { &[name, "list", "element"] } else { &[name] };
    own.list(3, TEXTS, path.len());
    path.iter().for_each(|part| own.text_element(part));
    own.int(4, GZIP);
    own.long(5, placed.levels as u64);
    own.long(6, placed.unpacked as u64);
    own.long(7, placed.size as u64);
    own.long(9, placed.start as u64);
}
