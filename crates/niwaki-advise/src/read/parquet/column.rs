//! One column as a stream of rows, page by page.

use super::decode::{plain, runs, unpack, values, width};
use super::meta::{Header, Leaf};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes in which a page's header is looked for; headers with statistics of long texts may take more.
const HEADER: usize = 1 << 10;

/// No page is larger than this.
const LARGEST_PAGE: usize = 1 << 30;

/// What kinds of pages are called in their headers.
const DATA: i64 = 0;
const DICTIONARY: i64 = 2;
const DATA_SECOND: i64 = 3;

/// Dictionary encodings of values.
const INDICES: [i64; 2] = [2, 8];

/// A column that is read from front to back.
pub(super) struct Column {
    pub(super) leaf: Leaf,
    reader: BufReader<File>,
    next_chunk: usize,
    /// Where the next page starts, and where the chunk ends.
    at: u64,
    end: u64,
    /// Values and levels of the chunk still to come.
    left: u64,
    codec: i64,
    dictionary: Vec<f64>,
    /// Decoded numbers; holes are not numbers.
    numbers: Vec<f64>,
    /// Starts of the rows among them, and whether each row is there at all.
    starts: Vec<usize>,
    there: Vec<bool>,
    /// The next row to give.
    row: usize,
    page: Page,
}

/// Buffers of the page in hand.
#[derive(Default)]
struct Page {
    packed: Vec<u8>,
    bytes: Vec<u8>,
    definitions: Vec<u32>,
    repetitions: Vec<u32>,
    indices: Vec<u32>,
    values: Vec<f64>,
}

impl Column {
    pub(super) fn open(path: &Path, leaf: Leaf) -> std::io::Result<Self> {
        Ok(Self {
            leaf,
            reader: BufReader::with_capacity(1 << 16, File::open(path)?),
            next_chunk: 0,
            at: 0,
            end: 0,
            left: 0,
            codec: 0,
            dictionary: Vec::new(),
            numbers: Vec::new(),
            starts: Vec::new(),
            there: Vec::new(),
            row: 0,
            page: Page::default(),
        })
    }

    /// The next row: its numbers, or none where it is null; the outer none at the end of the column.
    ///
    /// # Errors
    /// In words, where a page cannot be read.
    pub(super) fn next(&mut self) -> Result<Option<Option<&[f64]>>, String> {
        // A row is whole once the next one has begun or its chunk has ended.
        while self.row + 1 >= self.starts.len() && !(self.left == 0 && self.row < self.starts.len()) {
            if self.left == 0 && !self.start_chunk()? {
                return Ok(None);
            }
            self.drop_given();
            self.read_page()?;
        }
        let row = self.row;
        self.row += 1;
        let end = self.starts.get(row + 1).copied().unwrap_or(self.numbers.len());
        Ok(Some(self.there[row].then(|| &self.numbers[self.starts[row]..end])))
    }

    /// Goes on to the next row group with values; false at the end.
    fn start_chunk(&mut self) -> Result<bool, String> {
        let Some(chunk) = self.leaf.chunks.get(self.next_chunk).copied() else { return Ok(false) };
        self.next_chunk += 1;
        self.at = chunk.start;
        self.end = chunk.start.checked_add(chunk.size).ok_or("a chunk without end")?;
        (self.left, self.codec) = (chunk.values, chunk.codec);
        self.dictionary.clear();
        if self.left == 0 { self.start_chunk() } else { Ok(true) }
    }

    /// Forgets rows that were given, but for one that is not whole yet.
    fn drop_given(&mut self) {
        let first = self.starts.get(self.row).copied().unwrap_or(self.numbers.len());
        self.numbers.drain(..first);
        self.starts.drain(..self.row);
        self.starts.iter_mut().for_each(|start| *start -= first);
        self.there.drain(..self.row);
        self.row = 0;
    }

    fn read_page(&mut self) -> Result<(), String> {
        let io = |error: std::io::Error| error.to_string();
        if self.at >= self.end {
            return Err("a column has fewer values than its header says".to_owned());
        }
        let mut look = HEADER;
        let (header, length) = loop {
            let most = (self.end - self.at).min(look as u64);
            self.reader.seek(SeekFrom::Start(self.at)).map_err(io)?;
            self.page.packed.clear();
            self.reader.by_ref().take(most).read_to_end(&mut self.page.packed).map_err(io)?;
            match Header::parse(&self.page.packed) {
                Ok(header) => break header,
                Err(why) if most < look as u64 || look > 1 << 24 => return Err(why),
                Err(_) => look *= 16,
            }
        };
        if header.packed > LARGEST_PAGE || header.unpacked > LARGEST_PAGE {
            return Err("a page of more than a gigabyte".to_owned());
        }
        let start = self.at + length as u64;
        self.at = start + header.packed as u64;
        if self.at > self.end {
            return Err("a page reaches beyond its column".to_owned());
        }
        self.reader.seek(SeekFrom::Start(start)).map_err(io)?;
        self.page.packed.resize(header.packed, 0);
        self.reader.read_exact(&mut self.page.packed).map_err(io)?;
        match header.kind {
            DICTIONARY => {
                unpack(self.codec, &self.page.packed, header.unpacked, &mut self.page.bytes)?;
                self.dictionary.clear();
                plain(&self.page.bytes, self.leaf.physical, header.values, &mut self.dictionary)
            }
            DATA | DATA_SECOND => self.data(&header),
            _ => Ok(()),
        }
    }

    fn data(&mut self, header: &Header) -> Result<(), String> {
        let count = header.values;
        if count as u64 > self.left {
            return Err("a column has more values than its header says".to_owned());
        }
        self.left -= count as u64;
        let Self { page, leaf, codec, .. } = self;
        let Page { packed, bytes, definitions, repetitions, .. } = page;
        definitions.clear();
        repetitions.clear();
        let levels = [
            (width(u32::from(leaf.element_level.is_some())), header.repetition_bytes, &mut *repetitions),
            (width(leaf.value_level), header.definition_bytes, &mut *definitions),
        ];
        let mut at = 0;
        if header.kind == DATA_SECOND {
            let cut = header.repetition_bytes + header.definition_bytes;
            let body = packed.get(cut..).ok_or("a page is cut short")?;
            for (width, size, into) in levels {
                if width > 0 {
                    runs(&packed[at..at + size], width, count, into)?;
                }
                at += size;
            }
            let unpacked = header.unpacked.checked_sub(cut).ok_or("a page is cut short")?;
            unpack(if header.plain { 0 } else { *codec }, body, unpacked, bytes)?;
            at = 0;
        } else {
            unpack(*codec, packed, header.unpacked, bytes)?;
            for (width, _, into) in levels {
                if width > 0 {
                    let size = bytes.get(at..at + 4).ok_or("a page is cut short")?;
                    let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]) as usize;
                    at += 4;
                    runs(bytes.get(at..at + size).ok_or("a page is cut short")?, width, count, into)?;
                    at += size;
                }
            }
        }
        self.fill(header, at)
    }

    /// Decodes the values behind the levels and lays them out in rows.
    fn fill(&mut self, header: &Header, at: usize) -> Result<(), String> {
        let Self { page, leaf, dictionary, numbers, starts, there, .. } = self;
        let Page { bytes, definitions, repetitions, indices, values: found, .. } = page;
        let bytes = &bytes[at..];
        let whole = leaf.value_level;
        let holes = definitions.iter().filter(|&&level| level != whole).count();
        let count = header.values - holes;
        found.clear();
        // Without holes the numbers need no other place.
        let direct = holes == 0;
        let first = numbers.len();
        let into = if direct { &mut *numbers } else { &mut *found };
        if INDICES.contains(&header.encoding) {
            let (&bits, rest) = bytes.split_first().unwrap_or((&0, &[]));
            indices.clear();
            runs(rest, u32::from(bits), count, indices)?;
            for &index in &*indices {
                into.push(*dictionary.get(index as usize).ok_or("an index beyond the dictionary")?);
            }
        } else {
            values(header.encoding, bytes, leaf.physical, count, into)?;
        }
        let Some(element) = leaf.element_level else {
            if direct {
                starts.extend(first..first + count);
                there.resize(starts.len(), true);
                return Ok(());
            }
            let mut values = found.iter();
            for &level in &*definitions {
                starts.push(numbers.len());
                there.push(level == whole);
                numbers.push(if level == whole {
                    values.next().copied().unwrap_or(f64::NAN)
                } else {
                    f64::NAN
                });
            }
            return Ok(());
        };
        if starts.is_empty() && repetitions.first() != Some(&0) {
            return Err("a page that begins within a row".to_owned());
        }
        if direct {
            for (at, &repetition) in repetitions.iter().enumerate() {
                if repetition == 0 {
                    starts.push(first + at);
                }
            }
            there.resize(starts.len(), true);
            return Ok(());
        }
        let mut values = found.iter();
        for (&level, &repetition) in definitions.iter().zip(&*repetitions) {
            if repetition == 0 {
                starts.push(numbers.len());
                // Below the level of an empty list there is no list.
                there.push(level + 1 >= element);
            }
            if level == whole {
                numbers.push(values.next().copied().unwrap_or(f64::NAN));
            } else if level >= element {
                numbers.push(f64::NAN);
            }
        }
        Ok(())
    }
}
