//! One column as a stream of rows, page by page and within a page a batch at a time.

use super::codec::{CUT, unpack};
use super::decode::{Runs, Values, plain, width};
use super::meta::{Header, Leaf};
use crate::read::limits::{BLOCK, LARGEST_PAGE, LONGEST};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes in which a page's header is looked for; headers with statistics of long texts may take more.
const HEADER: usize = 1 << 10;

/// Values and levels that are decoded at a time.
const BATCH: usize = BLOCK / 4;

/// What kinds of pages are called in their headers.
const DATA: i64 = 0;
const DICTIONARY: i64 = 2;
const DATA_SECOND: i64 = 3;

/// A column that is read from front to back.
pub(super) struct Column {
    pub(super) leaf: Leaf,
    reader: BufReader<File>,
    /// Bytes of the file.
    size: u64,
    next_chunk: usize,
    /// Where the next page starts, and where the chunk ends.
    at: u64,
    end: u64,
    /// Values and levels of the chunk in pages still to come.
    left: u64,
    codec: i64,
    dictionary: Vec<f64>,
    /// Decoded numbers; nulls are NaN.
    numbers: Vec<f64>,
    /// Starts of the rows among them, and whether each row is there at all.
    starts: Vec<usize>,
    there: Vec<bool>,
    /// The next row to give.
    row: usize,
    page: Page,
}

/// The page in hand.
#[derive(Default)]
struct Page {
    packed: Vec<u8>,
    /// Levels and values, unpacked.
    bytes: Vec<u8>,
    /// Values and levels still to be decoded.
    left: usize,
    repetition: Option<Runs>,
    definition: Option<Runs>,
    values: Option<Values>,
    /// The batch in hand.
    definitions: Vec<u32>,
    repetitions: Vec<u32>,
    found: Vec<f64>,
}

impl Column {
    /// Opens a column of a file of `size` bytes.
    pub(super) fn open(path: &Path, size: u64, leaf: Leaf) -> std::io::Result<Self> {
        Ok(Self {
            leaf,
            reader: BufReader::with_capacity(1 << 16, File::open(path)?),
            size,
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
        // A row is complete once the next one has begun or its chunk has ended.
        while self.row + 1 >= self.starts.len() {
            if self.page.left > 0 {
                self.drop_given();
                self.batch()?;
                continue;
            }
            if self.left == 0 && (self.row < self.starts.len() || !self.start_chunk()?) {
                break;
            }
            self.read_page()?;
        }
        let row = self.row;
        if row >= self.starts.len() {
            return Ok(None);
        }
        self.row += 1;
        let end = self.starts.get(row + 1).copied().unwrap_or(self.numbers.len());
        Ok(Some(self.there[row].then(|| &self.numbers[self.starts[row]..end])))
    }

    /// Goes on to the next row group with values; false at the end.
    fn start_chunk(&mut self) -> Result<bool, String> {
        while let Some(chunk) = self.leaf.chunks.get(self.next_chunk).copied() {
            self.next_chunk += 1;
            self.at = chunk.start;
            let end = chunk.start.checked_add(chunk.size).filter(|&end| end <= self.size);
            self.end = end.ok_or("a column that reaches beyond its file")?;
            (self.left, self.codec) = (chunk.values, chunk.codec);
            self.dictionary.clear();
            if self.left > 0 {
                return Ok(true);
            }
        }
        Ok(false)
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
            return Err(format!("a page of more than {} MB", LARGEST_PAGE >> 20));
        }
        let start = self.at + length as u64;
        self.at = start + header.packed as u64;
        if self.at > self.end {
            return Err("a page reaches beyond its column".to_owned());
        }
        self.reader.seek(SeekFrom::Start(start)).map_err(io)?;
        self.page.packed.resize(header.packed, 0);
        self.reader.read_exact(&mut self.page.packed).map_err(io)?;
        self.page.bytes.clear();
        match header.kind {
            DICTIONARY => {
                unpack(self.codec, &self.page.packed, header.unpacked, &mut self.page.bytes)?;
                self.dictionary.clear();
                plain(&self.page.bytes, 0, self.leaf.physical, header.values, &mut self.dictionary)?;
                Ok(())
            }
            DATA | DATA_SECOND => self.data(&header),
            _ => Ok(()),
        }
    }

    /// Unpacks a page of values and finds where its levels and values start.
    fn data(&mut self, header: &Header) -> Result<(), String> {
        let count = header.values as u64;
        self.left = self.left.checked_sub(count).ok_or("a column has more values than its header says")?;
        let Self { page, leaf, codec, .. } = self;
        let widths = [width(u32::from(leaf.element_level.is_some())), width(leaf.value_level)];
        let mut ranges = [(0, 0); 2];
        let mut at = 0;
        if header.kind == DATA_SECOND {
            // Levels stand before the values, never packed.
            let sizes = [header.repetition_bytes, header.definition_bytes];
            let cut = sizes[0].checked_add(sizes[1]).filter(|&cut| cut <= page.packed.len()).ok_or(CUT)?;
            page.bytes.extend_from_slice(&page.packed[..cut]);
            let unpacked = header.unpacked.checked_sub(cut).ok_or(CUT)?;
            let codec = if header.plain { 0 } else { *codec };
            unpack(codec, &page.packed[cut..], unpacked, &mut page.bytes)?;
            ranges = [(0, sizes[0]), (sizes[0], cut)];
            at = cut;
        } else {
            unpack(*codec, &page.packed, header.unpacked, &mut page.bytes)?;
            for (range, width) in ranges.iter_mut().zip(widths) {
                if width > 0 {
                    let size = page.bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).ok_or(CUT)?;
                    let start = at + 4;
                    at = start + u32::from_le_bytes(*size) as usize;
                    if at > page.bytes.len() {
                        return Err(CUT.to_owned());
                    }
                    *range = (start, at);
                }
            }
        }
        let level = |(from, to): (usize, usize), width: u32| {
            if width > 0 { Runs::new(from, to, width).map(Some) } else { Ok(None) }
        };
        page.repetition = level(ranges[0], widths[0])?;
        page.definition = level(ranges[1], widths[1])?;
        page.values = Some(Values::new(header.encoding, &page.bytes, at, leaf.physical, header.values)?);
        page.left = header.values;
        Ok(())
    }

    /// Decodes the next values and levels of the page and lays them out in rows.
    fn batch(&mut self) -> Result<(), String> {
        let Self { page, leaf, dictionary, numbers, starts, there, .. } = self;
        let Page { bytes, left, repetition, definition, values, definitions, repetitions, found, .. } = page;
        let size = (*left).min(BATCH);
        *left -= size;
        definitions.clear();
        repetitions.clear();
        found.clear();
        for (levels, into) in [(repetition, &mut *repetitions), (definition, &mut *definitions)] {
            if let Some(levels) = levels {
                levels.take(bytes, size, into)?;
            }
        }
        let whole = leaf.value_level;
        let nulls = definitions.iter().filter(|&&level| level != whole).count();
        // Without nulls the numbers can be decoded in place.
        let direct = nulls == 0;
        let first = numbers.len();
        let into = if direct { &mut *numbers } else { &mut *found };
        let values = values.as_mut().ok_or(CUT)?;
        values.take(bytes, leaf.physical, dictionary, size - nulls, into)?;
        let Some(element) = leaf.element_level else {
            if direct {
                starts.extend(first..first + size);
                there.resize(starts.len(), true);
                return Ok(());
            }
            let mut values = found.iter();
            for &level in &*definitions {
                starts.push(numbers.len());
                there.push(level == whole);
                let value = if level == whole { values.next().copied() } else { None };
                numbers.push(value.unwrap_or(f64::NAN));
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
        } else {
            let mut values = found.iter();
            for (&level, &repetition) in definitions.iter().zip(&*repetitions) {
                if repetition == 0 {
                    starts.push(numbers.len());
                    // A level below that of an empty list means that the list itself is null.
                    there.push(level + 1 >= element);
                }
                if level == whole {
                    numbers.push(values.next().copied().unwrap_or(f64::NAN));
                } else if level >= element {
                    numbers.push(f64::NAN);
                }
            }
        }
        if starts.last().is_some_and(|&start| numbers.len() - start > LONGEST) {
            return Err(format!("a list of more than {LONGEST} values"));
        }
        Ok(())
    }
}
