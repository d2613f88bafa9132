//! GGUF: a table of keys, a table of tensors, then their bytes.
//!
//! Knows the format, not what the keys mean. Every length is held against the bytes that are there before memory is taken.

use super::{Packing, Place, map};
use crate::{Error, Result};
use memmap2::Mmap;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A value of the table of keys.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// An integer or a truth value.
    Integer(i64),
    /// A float.
    Float(f64),
    /// A text.
    Text(String),
    /// Several of one kind.
    List(Vec<Entry>),
}

impl Entry {
    /// A count.
    #[must_use]
    pub fn count(&self) -> Option<usize> {
        if let Self::Integer(value) = self { usize::try_from(*value).ok() } else { None }
    }

    /// A number.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Text(_) | Self::List(_) => None,
        }
    }

    /// A text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The entries of a list.
    #[must_use]
    pub fn list(&self) -> Option<&[Self]> {
        if let Self::List(list) = self { Some(list) } else { None }
    }
}

/// A GGUF file, mapped.
#[derive(Debug)]
pub struct Gguf {
    path: PathBuf,
    bytes: Mmap,
    entries: BTreeMap<String, Entry>,
    tensors: BTreeMap<String, Place>,
}

impl Gguf {
    /// Maps a file and reads its tables.
    ///
    /// # Errors
    /// If it is no GGUF file of version 2 or 3, cut short, or packs a tensor in an unknown way.
    pub fn open(path: &Path) -> Result<Self> {
        let bytes = map(path)?;
        let (entries, tensors) = read(path, &bytes)?;
        Ok(Self { path: path.to_owned(), bytes, entries, tensors })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All bytes of the file.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The value of a key.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Where a tensor lies.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<&Place> {
        self.tensors.get(name)
    }

    /// All scalars of a tensor.
    #[must_use]
    pub fn scalars(&self, place: &Place) -> Vec<f32> {
        // Reading the tables held it against the file's end.
        place.packing.unpack(self.bytes.get(place.bytes.clone()).unwrap_or_default())
    }
}

/// The bytes that are still to be read.
struct Reader<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn short(&self, what: &str) -> Error {
        Error::file(self.path, format!("cut short within {what}, at byte {}", self.at))
    }

    fn take(&mut self, count: usize, what: &str) -> Result<&'a [u8]> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| self.short(what))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut fixed = [0; N];
        fixed.copy_from_slice(self.take(N, what)?);
        Ok(fixed)
    }

    fn u32(&mut self, what: &str) -> Result<u32> {
        Ok(u32::from_le_bytes(self.fixed(what)?))
    }

    /// A length: more than there are bytes left cannot be.
    fn length(&mut self, what: &str) -> Result<usize> {
        let length = u64::from_le_bytes(self.fixed(what)?);
        let left = self.bytes.len() - self.at;
        usize::try_from(length).ok().filter(|&length| length <= left).ok_or_else(|| self.short(what))
    }

    fn text(&mut self, what: &str) -> Result<String> {
        let length = self.length(what)?;
        let bytes = self.take(length, what)?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    fn entry(&mut self, kind: u32, key: &str, deep: usize) -> Result<Entry> {
        Ok(match kind {
            0 => Entry::Integer(i64::from(u8::from_le_bytes(self.fixed(key)?))),
            1 => Entry::Integer(i64::from(i8::from_le_bytes(self.fixed(key)?))),
            2 => Entry::Integer(i64::from(u16::from_le_bytes(self.fixed(key)?))),
            3 => Entry::Integer(i64::from(i16::from_le_bytes(self.fixed(key)?))),
            4 => Entry::Integer(i64::from(u32::from_le_bytes(self.fixed(key)?))),
            5 => Entry::Integer(i64::from(i32::from_le_bytes(self.fixed(key)?))),
            6 => Entry::Float(f64::from(f32::from_le_bytes(self.fixed(key)?))),
            7 => Entry::Integer(i64::from(self.fixed::<1>(key)?[0])),
            8 => Entry::Text(self.text(key)?),
            9 if deep < 4 => {
                let (kind, length) = (self.u32(key)?, self.length(key)?);
                let mut list = Vec::new();
                for _ in 0..length {
                    list.push(self.entry(kind, key, deep + 1)?);
                }
                Entry::List(list)
            }
            10 | 11 => Entry::Integer(i64::from_le_bytes(self.fixed(key)?)),
            12 => Entry::Float(f64::from_le_bytes(self.fixed(key)?)),
            other => return Err(Error::key(self.path, key, format!("unknown kind {other} of value"))),
        })
    }
}

/// The packings by their numbers in the format.
fn packing(number: u32) -> Option<Packing> {
    Some(match number {
        0 => Packing::F32,
        1 => Packing::F16,
        2 => Packing::Q4_0,
        3 => Packing::Q4_1,
        6 => Packing::Q5_0,
        7 => Packing::Q5_1,
        8 => Packing::Q8_0,
        10 => Packing::Q2K,
        11 => Packing::Q3K,
        12 => Packing::Q4K,
        13 => Packing::Q5K,
        14 => Packing::Q6K,
        30 => Packing::Bf16,
        _ => return None,
    })
}

type Tables = (BTreeMap<String, Entry>, BTreeMap<String, Place>);

fn read(path: &Path, bytes: &[u8]) -> Result<Tables> {
    let mut reader = Reader { path, bytes, at: 0 };
    if reader.fixed::<4>("the file's mark")? != *b"GGUF" {
        return Err(Error::file(path, "no GGUF file: it does not begin with 'GGUF'"));
    }
    let version = reader.u32("the version")?;
    if !matches!(version, 2 | 3) {
        return Err(Error::file(path, format!("GGUF of version {version}; 2 and 3 are read")));
    }
    let (count, keys) = (reader.length("the number of tensors")?, reader.length("the number of keys")?);
    let mut entries = BTreeMap::new();
    for _ in 0..keys {
        let key = reader.text("a key")?;
        let kind = reader.u32(&key)?;
        let entry = reader.entry(kind, &key, 0)?;
        entries.insert(key, entry);
    }
    let mut listed = Vec::new();
    for _ in 0..count {
        let name = reader.text("a tensor's name")?;
        let axes = reader.u32(&name)?;
        if axes > 4 {
            return Err(Error::tensor(path, &name, format!("has {axes} axes")));
        }
        let mut shape = Vec::new();
        for _ in 0..axes {
            shape.push(u64::from_le_bytes(reader.fixed(&name)?) as usize);
        }
        // The format names the fastest axis first.
        shape.reverse();
        let (number, offset) = (reader.u32(&name)?, u64::from_le_bytes(reader.fixed(&name)?) as usize);
        listed.push((name, shape, number, offset));
    }
    let key = "general.alignment";
    let alignment = entries.get(key).map_or(Some(32), Entry::count).filter(|&alignment| alignment > 0);
    let start = alignment.and_then(|alignment| reader.at.checked_next_multiple_of(alignment));
    let start = start.ok_or_else(|| Error::key(path, key, "is not a number of bytes to align tensors to"))?;
    let mut tensors = BTreeMap::new();
    for (name, shape, number, offset) in listed {
        let packing = packing(number).ok_or_else(|| {
            let known = "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1 and Q2_K to Q6_K are read";
            Error::tensor(path, &name, format!("is packed as type {number}; {known}"))
        })?;
        let entries = shape.iter().try_fold(1_usize, |entries, &size| entries.checked_mul(size));
        let size = entries.and_then(|entries| packing.bytes(entries)).ok_or_else(|| {
            Error::tensor(path, &name, format!("shape {shape:?} does not divide into blocks"))
        })?;
        let first = start.checked_add(offset);
        let place = first.and_then(|first| Some(first..first.checked_add(size)?));
        let bytes = place.filter(|place| place.end <= bytes.len()).ok_or_else(|| {
            Error::tensor(
                path,
                &name,
                format!("ends behind the end of the file, which has {} bytes", bytes.len()),
            )
        })?;
        tensors.insert(name, Place { file: 0, shape, packing, bytes });
    }
    apart(path, &tensors)?;
    Ok((entries, tensors))
}

/// Refuses tensors that share bytes: a short file would hold a model of any size.
fn apart(path: &Path, tensors: &BTreeMap<String, Place>) -> Result<()> {
    let mut places: Vec<(&String, &Place)> =
        tensors.iter().filter(|(_, place)| !place.bytes.is_empty()).collect();
    places.sort_by_key(|(_, place)| place.bytes.start);
    match places.windows(2).find(|pair| pair[1].1.bytes.start < pair[0].1.bytes.end) {
        Some(pair) => Err(Error::tensor(path, pair[1].0, format!("begins within tensor '{}'", pair[0].0))),
        None => Ok(()),
    }
}
