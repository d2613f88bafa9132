//! One NumPy array as a stream of numbers.

use super::header::Header;
use super::limits::BLOCK;
use super::records::shown;
use crate::error::Error;
use crate::keys::{is_blurred, key_of_number, key_of_text, key_of_whole};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// The kinds of numbers an array may hold, little-endian; texts only as names of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Float(usize),
    Signed(usize),
    Unsigned(usize),
    /// Bytes of one text.
    Text(usize),
    /// Bytes of one text whose letters have four each.
    Letters(usize),
}

/// An array that is read from front to back.
pub(super) struct Array {
    reader: Box<dyn Read + Send>,
    pub(super) kind: Kind,
    /// Shape without trailing axes of one: `[n, 1]` is `[n]`.
    pub(super) shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// An array in memory, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    /// Sizes of its axes, as they were saved.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: Vec<f64>,
}

impl Numbers {
    /// Reads a `.npy` file of numbers, widened to `f64`.
    ///
    /// # Errors
    /// Where the file cannot be read, holds no numbers, or is not as long as its header says.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let io = |source| Error::File { file: shown(file), source };
        let broken = |why: String| Error::Broken { file: shown(file), layout: "npy", why };
        let handle = File::open(file).map_err(io)?;
        let present = handle.metadata().map_err(io)?.len();
        let (mut array, shape) =
            Array::with_shape(Box::new(BufReader::new(handle)), present).map_err(broken)?;
        let mut values = Vec::new();
        array.numbers(shape.iter().product(), &mut values).map_err(|error| broken(error.to_string()))?;
        Ok(Self { shape, values })
    }
}

impl Array {
    /// Reads the header and holds it to the bytes `present` in the file, header and values together.
    ///
    /// # Errors
    /// In words, where it is not an array, is one of another kind, or is not as long as it says.
    pub(super) fn new(reader: Box<dyn Read + Send>, present: u64) -> Result<Self, String> {
        Ok(Self::with_shape(reader, present)?.0)
    }

    /// The same, with the shape as it was saved.
    fn with_shape(mut reader: Box<dyn Read + Send>, present: u64) -> Result<(Self, Vec<usize>), String> {
        let header = Header::read(&mut reader)?;
        let name = header.kind.as_str();
        let size = |rest: &str| rest.parse::<usize>().ok().filter(|size| *size > 0);
        // Kinds are plain ASCII; any other text is refused below, because it has no size.
        let (order, rest) = name.split_at_checked(2).unwrap_or((name, ""));
        let kind = match (order, size(rest)) {
            ("<f" | "|f", Some(size @ (2 | 4 | 8))) => Kind::Float(size),
            ("<i" | "|i", Some(size @ (1 | 2 | 4 | 8))) => Kind::Signed(size),
            ("<u" | "|u" | "|b", Some(size @ (1 | 2 | 4 | 8))) => Kind::Unsigned(size),
            ("<U", Some(size)) if size <= BLOCK / 4 => Kind::Letters(4 * size),
            ("|S", Some(size)) if size <= BLOCK => Kind::Text(size),
            ("<U" | "|S", Some(_)) => return Err(format!("holds texts of {name}, too long for names")),
            _ => return Err(format!("holds {name}; save it as float32 or float64")),
        };
        if header.fortran && header.shape.len() > 1 {
            return Err("is in Fortran order; save numpy.ascontiguousarray(x)".to_owned());
        }
        let mut array = Self { reader, kind, shape: Vec::new(), bytes: Vec::new() };
        // The header's shape must fit the bytes of the file, so that it cannot ask for memory that nothing fills.
        let values = present.saturating_sub(header.length);
        let needed =
            header.shape.iter().try_fold(array.size() as u64, |bytes, &axis| bytes.checked_mul(axis));
        if needed != Some(values) {
            let shape = &header.shape;
            return Err(format!(
                "{values} bytes of values, which is not what shape {shape:?} of {name} takes"
            ));
        }
        let shape = header.shape.iter().map(|&axis| usize::try_from(axis));
        let shape: Vec<usize> = shape.collect::<Result<_, _>>().map_err(|_| "an axis that is too long")?;
        array.shape.clone_from(&shape);
        while array.shape.len() > 1 && array.shape.last() == Some(&1) {
            array.shape.pop();
        }
        Ok((array, shape))
    }

    fn size(&self) -> usize {
        match self.kind {
            Kind::Float(size)
            | Kind::Signed(size)
            | Kind::Unsigned(size)
            | Kind::Text(size)
            | Kind::Letters(size) => size,
        }
    }

    /// Appends the next `count` numbers, a block at a time: memory grows with what has come.
    pub(super) fn numbers(&mut self, count: usize, into: &mut Vec<f64>) -> io::Result<()> {
        let mut left = count;
        while left > 0 {
            let next = left.min(BLOCK / self.size());
            self.block(next, into)?;
            left -= next;
        }
        Ok(())
    }

    fn block(&mut self, count: usize, into: &mut Vec<f64>) -> io::Result<()> {
        self.bytes.resize(count * self.size(), 0);
        self.reader.read_exact(&mut self.bytes)?;
        let bytes = &self.bytes;
        match self.kind {
            Kind::Float(8) => into.extend(words(bytes).map(f64::from_le_bytes)),
            Kind::Float(4) => into.extend(words(bytes).map(|word| f64::from(f32::from_le_bytes(word)))),
            Kind::Float(_) => into.extend(words(bytes).map(|word| half(u16::from_le_bytes(word)))),
            Kind::Signed(1) => into.extend(words(bytes).map(|word| f64::from(i8::from_le_bytes(word)))),
            Kind::Signed(2) => into.extend(words(bytes).map(|word| f64::from(i16::from_le_bytes(word)))),
            Kind::Signed(4) => into.extend(words(bytes).map(|word| f64::from(i32::from_le_bytes(word)))),
            Kind::Signed(_) => into.extend(words(bytes).map(|word| i64::from_le_bytes(word) as f64)),
            Kind::Unsigned(1) => into.extend(bytes.iter().map(|&byte| f64::from(byte))),
            Kind::Unsigned(2) => into.extend(words(bytes).map(|word| f64::from(u16::from_le_bytes(word)))),
            Kind::Unsigned(4) => into.extend(words(bytes).map(|word| f64::from(u32::from_le_bytes(word)))),
            Kind::Unsigned(_) => into.extend(words(bytes).map(|word| u64::from_le_bytes(word) as f64)),
            Kind::Text(_) | Kind::Letters(_) => {
                return Err(io::Error::other("texts where numbers are expected"));
            }
        }
        Ok(())
    }

    /// The key of the next group: a text, or a number. None for a float that does not tell whole numbers apart.
    pub(super) fn key(&mut self) -> io::Result<Option<u64>> {
        let whole = matches!(self.kind, Kind::Signed(8) | Kind::Unsigned(8));
        if !whole && !matches!(self.kind, Kind::Text(_) | Kind::Letters(_)) {
            let mut one = Vec::with_capacity(1);
            self.numbers(1, &mut one)?;
            return Ok((!is_blurred(one[0])).then(|| key_of_number(one[0])));
        }
        self.bytes.resize(self.size(), 0);
        self.reader.read_exact(&mut self.bytes)?;
        if whole {
            let word = self.bytes.first_chunk().copied().unwrap_or_default();
            let signed = self.kind == Kind::Signed(8);
            let number =
                if signed { i64::from_le_bytes(word).into() } else { u64::from_le_bytes(word).into() };
            return Ok(Some(key_of_whole(number)));
        }
        if matches!(self.kind, Kind::Letters(_)) {
            let letter = |word: [u8; 4]| {
                char::from_u32(u32::from_le_bytes(word)).unwrap_or(char::REPLACEMENT_CHARACTER)
            };
            let text: String = words(&self.bytes).take_while(|word| *word != [0; 4]).map(letter).collect();
            return Ok(Some(key_of_text(text.as_bytes())));
        }
        let end = self.bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        Ok(Some(key_of_text(&self.bytes[..end])))
    }
}

fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

/// An IEEE half as a double.
pub(super) fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2.0_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2.0_f64.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn halves() {
        // 0x3C00 = 1, 0xC000 = −2, 0x3555 ≈ ⅓, 0x0001 = 2⁻²⁴, 0x7BFF = 65504.
        assert_eq!(
            [0x3C00, 0xC000, 0x0001, 0x7BFF, 0x8000].map(half),
            [1.0, -2.0, 2.0_f64.powi(-24), 65504.0, 0.0]
        );
        assert!((half(0x3555) - 1.0 / 3.0).abs() < 1e-4);
        assert!(half(0x7C01).is_nan() && half(0x7C00).is_infinite());
    }
}
