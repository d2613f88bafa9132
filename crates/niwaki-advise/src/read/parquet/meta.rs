//! What a parquet file says of itself: schema, row groups, columns, pages.

use super::thrift::{Kind, Thrift};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// The footer may not be longer than this: that of a file with a million pages is far shorter.
const LONGEST_FOOTER: u64 = 1 << 30;

/// How values are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Physical {
    Boolean,
    Int32,
    Int64,
    /// A whole number of eight bytes that names a group.
    Key,
    Float,
    Double,
    Text,
    /// Sixteen-bit floats.
    Half,
    Other,
}

impl Physical {
    /// Bytes of one value; 1 where values differ in length or share bytes.
    pub(super) const fn size(self) -> usize {
        match self {
            Self::Half => 2,
            Self::Int32 | Self::Float => 4,
            Self::Int64 | Self::Key | Self::Double => 8,
            Self::Boolean | Self::Text | Self::Other => 1,
        }
    }
}

/// A column and where its values live.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// Name of the outermost field.
    pub(super) name: String,
    pub(super) physical: Physical,
    /// The level at which a value is there.
    pub(super) value_level: u32,
    /// The level from which a list has an element; none for one value per row.
    pub(super) element_level: Option<u32>,
    /// Whether lists are nested.
    pub(super) nested: bool,
    /// One chunk per row group.
    pub(super) chunks: Vec<Chunk>,
}

/// A column's bytes in one row group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chunk {
    pub(super) start: u64,
    pub(super) size: u64,
    pub(super) values: u64,
    pub(super) codec: i64,
}

impl Leaf {
    /// Values and levels that the footer claims, in all row groups.
    pub(super) fn values(&self) -> u64 {
        self.chunks.iter().fold(0, |sum, chunk| sum.saturating_add(chunk.values))
    }
}

/// The whole file.
#[derive(Clone, Debug, Default)]
pub(super) struct Meta {
    pub(super) rows: u64,
    pub(super) leaves: Vec<Leaf>,
}

#[derive(Clone, Debug, Default)]
struct Element {
    physical: Option<i64>,
    width: i64,
    repetition: i64,
    name: String,
    children: usize,
}

/// What stands before a page.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Header {
    pub(super) kind: i64,
    pub(super) unpacked: usize,
    pub(super) packed: usize,
    pub(super) values: usize,
    pub(super) encoding: i64,
    /// Second version only: bytes of the levels, and whether the rest is packed.
    pub(super) definition_bytes: usize,
    pub(super) repetition_bytes: usize,
    pub(super) plain: bool,
}

impl Meta {
    /// Reads the footer.
    ///
    /// # Errors
    /// In words, where the file is not parquet or is cut short.
    pub(super) fn read(file: &mut File, size: u64) -> Result<Self, String> {
        let cut = "no parquet footer at its end: cut short, or another format".to_owned();
        if size < 12 {
            return Err(cut);
        }
        let mut tail = [0_u8; 8];
        let io = |error: std::io::Error| error.to_string();
        file.seek(SeekFrom::Start(size - 8)).map_err(io)?;
        file.read_exact(&mut tail).map_err(io)?;
        let length = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        if &tail[4..] != b"PAR1" || length + 12 > size || length > LONGEST_FOOTER {
            return Err(cut);
        }
        file.seek(SeekFrom::Start(size - 8 - length)).map_err(io)?;
        let mut footer = vec![0; length as usize];
        file.read_exact(&mut footer).map_err(io)?;
        Self::parse(&footer)
    }

    fn parse(footer: &[u8]) -> Result<Self, String> {
        let mut meta = Self::default();
        let mut elements = Vec::new();
        let mut groups: Vec<Vec<Chunk>> = Vec::new();
        Thrift::new(footer).fields(|thrift, id, kind| {
            match (id, kind) {
                (2, Kind::List) => {
                    for _ in 0..thrift.list()?.1 {
                        elements.push(element(thrift)?);
                    }
                }
                (3, Kind::Integer) => meta.rows = thrift.count()? as u64,
                (4, Kind::List) => {
                    for _ in 0..thrift.list()?.1 {
                        groups.push(row_group(thrift)?);
                    }
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let mut rest = elements.iter();
        let root = rest.next().ok_or("a footer without a schema")?;
        for _ in 0..root.children {
            leaves(&mut rest, None, Path::default(), &mut meta.leaves, 0)?;
        }
        for group in &groups {
            if group.len() != meta.leaves.len() {
                return Err("a row group lacks columns of the schema".to_owned());
            }
            meta.leaves.iter_mut().zip(group).for_each(|(leaf, chunk)| leaf.chunks.push(*chunk));
        }
        Ok(meta)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Path {
    level: u32,
    element: Option<u32>,
    nested: bool,
}

/// Walks the schema, which lists a tree in the order of its nodes.
fn leaves<'a>(
    rest: &mut impl Iterator<Item = &'a Element>,
    name: Option<&str>,
    mut path: Path,
    found: &mut Vec<Leaf>,
    depth: usize,
) -> Result<(), String> {
    let node = rest.next().ok_or("a schema that ends too early")?;
    if depth > 64 {
        return Err("a schema that is nested too deep".to_owned());
    }
    match node.repetition {
        0 => {}
        1 => path.level += 1,
        _ => {
            path.level += 1;
            path.nested |= path.element.is_some();
            path.element = Some(path.level);
        }
    }
    let name = name.unwrap_or(&node.name);
    let Some(physical) = node.physical.filter(|_| node.children == 0) else {
        for _ in 0..node.children {
            leaves(rest, Some(name), path, found, depth + 1)?;
        }
        return Ok(());
    };
    let physical = match (physical, node.width) {
        (0, _) => Physical::Boolean,
        (1, _) => Physical::Int32,
        (2, _) => Physical::Int64,
        (4, _) => Physical::Float,
        (5, _) => Physical::Double,
        (6, _) => Physical::Text,
        (7, 2) => Physical::Half,
        _ => Physical::Other,
    };
    found.push(Leaf {
        name: name.to_owned(),
        physical,
        value_level: path.level,
        element_level: path.element,
        nested: path.nested,
        chunks: Vec::new(),
    });
    Ok(())
}

fn element(thrift: &mut Thrift<'_>) -> Result<Element, String> {
    let mut element = Element::default();
    thrift.fields(|thrift, id, kind| {
        match (id, kind) {
            (1, Kind::Integer) => element.physical = Some(thrift.integer()?),
            (2, Kind::Integer) => element.width = thrift.integer()?,
            (3, Kind::Integer) => element.repetition = thrift.integer()?,
            (4, Kind::Binary) => element.name = thrift.text()?,
            (5, Kind::Integer) => element.children = thrift.count()?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(element)
}

fn row_group(thrift: &mut Thrift<'_>) -> Result<Vec<Chunk>, String> {
    let mut chunks = Vec::new();
    thrift.fields(|thrift, id, kind| {
        if (id, kind) != (1, Kind::List) {
            return Ok(false);
        }
        for _ in 0..thrift.list()?.1 {
            let mut chunk = Chunk::default();
            thrift.fields(|thrift, id, kind| {
                if (id, kind) != (3, Kind::Struct) {
                    return Ok(false);
                }
                chunk = column(thrift)?;
                Ok(true)
            })?;
            chunks.push(chunk);
        }
        Ok(true)
    })?;
    Ok(chunks)
}

fn column(thrift: &mut Thrift<'_>) -> Result<Chunk, String> {
    let (mut chunk, mut dictionary) = (Chunk::default(), None);
    thrift.fields(|thrift, id, kind| {
        match (id, kind) {
            (4, Kind::Integer) => chunk.codec = thrift.integer()?,
            (5, Kind::Integer) => chunk.values = thrift.count()? as u64,
            (7, Kind::Integer) => chunk.size = thrift.count()? as u64,
            (9, Kind::Integer) => chunk.start = thrift.count()? as u64,
            (11, Kind::Integer) => dictionary = Some(thrift.count()? as u64),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    // Some writers give 0 where there is no dictionary.
    if let Some(dictionary) = dictionary.filter(|&start| start > 0) {
        chunk.start = chunk.start.min(dictionary);
    }
    Ok(chunk)
}

impl Header {
    /// Reads a page's header; also returns its length in bytes.
    ///
    /// # Errors
    /// In words, where it is cut short.
    pub(super) fn parse(bytes: &[u8]) -> Result<(Self, usize), String> {
        let mut header = Self::default();
        let mut thrift = Thrift::new(bytes);
        thrift.fields(|thrift, id, kind| {
            match (id, kind) {
                (1, Kind::Integer) => header.kind = thrift.integer()?,
                (2, Kind::Integer) => header.unpacked = thrift.count()?,
                (3, Kind::Integer) => header.packed = thrift.count()?,
                (5 | 7, Kind::Struct) => thrift.fields(|thrift, id, _| {
                    match id {
                        1 => header.values = thrift.count()?,
                        2 => header.encoding = thrift.integer()?,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?,
                (8, Kind::Struct) => thrift.fields(|thrift, id, kind| {
                    match id {
                        1 => header.values = thrift.count()?,
                        4 => header.encoding = thrift.integer()?,
                        5 => header.definition_bytes = thrift.count()?,
                        6 => header.repetition_bytes = thrift.count()?,
                        7 => header.plain = kind == Kind::False,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok((header, thrift.read()))
    }
}
