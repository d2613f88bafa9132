//! The header of a NumPy array: three keys of a Python dictionary, and nothing else of Python.

use std::io::Read;

/// Bytes of the longest header that is read; NumPy itself refuses longer ones than 10 000.
const LONGEST: usize = 1 << 16;

/// Axes of an array at most, as in NumPy.
const AXES: usize = 64;

/// What an array says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The kind of its values, `<f8` for one.
    pub(super) kind: String,
    /// Whether the first axis is the innermost one.
    pub(super) fortran: bool,
    /// Sizes of its axes.
    pub(super) shape: Vec<u64>,
    /// Bytes before the first value.
    pub(super) length: u64,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// In words, where there is none or it is cut short.
    pub(super) fn read(reader: &mut impl Read) -> Result<Self, String> {
        let mut start = [0_u8; 8];
        fill(reader, &mut start)?;
        if &start[..6] != b"\x93NUMPY" {
            return Err("no array of NumPy".to_owned());
        }
        let (before, length) = match start[6] {
            1 => {
                let mut length = [0; 2];
                fill(reader, &mut length)?;
                (10, usize::from(u16::from_le_bytes(length)))
            }
            2 | 3 => {
                let mut length = [0; 4];
                fill(reader, &mut length)?;
                (12, u32::from_le_bytes(length) as usize)
            }
            other => return Err(format!("version {other} of NumPy's format, which is not known")),
        };
        if length > LONGEST {
            return Err(format!("a header of {length} bytes; one of at most {LONGEST} is read"));
        }
        let mut text = vec![0; length];
        fill(reader, &mut text)?;
        let mut words = Words { bytes: &text, at: 0 };
        let mut header = words.dictionary()?;
        header.length = (before + length) as u64;
        Ok(header)
    }
}

fn fill(reader: &mut impl Read, into: &mut [u8]) -> Result<(), String> {
    reader.read_exact(into).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "the header is cut short".to_owned(),
        _ => error.to_string(),
    })
}

/// A cursor over the dictionary's text.
struct Words<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Words<'_> {
    fn dictionary(&mut self) -> Result<Header, String> {
        let (mut kind, mut fortran, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while self.peek() != Some(b'}') {
            let key = self.quoted()?;
            self.expect(b':')?;
            match key.as_str() {
                "descr" if self.peek() == Some(b'[') => {
                    return Err("holds records; save each column as an array of its own".to_owned());
                }
                "descr" => kind = Some(self.quoted()?),
                "fortran_order" => fortran = Some(self.truth()?),
                "shape" => shape = Some(self.shape()?),
                other => return Err(format!("the header has a key '{other}'")),
            }
            if self.peek() == Some(b',') {
                self.at += 1;
            }
        }
        let lacks = |key: &str| format!("the header has no {key}");
        Ok(Header {
            kind: kind.ok_or_else(|| lacks("descr"))?,
            fortran: fortran.ok_or_else(|| lacks("fortran_order"))?,
            shape: shape.ok_or_else(|| lacks("shape"))?,
            length: 0,
        })
    }

    /// The next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.peek() != Some(byte) {
            return Err(format!("the header lacks '{}' at byte {}", char::from(byte), self.at));
        }
        self.at += 1;
        Ok(())
    }

    /// A text in quotes, without escapes: no key and no kind needs one.
    fn quoted(&mut self) -> Result<String, String> {
        let quote = self.peek().filter(|byte| matches!(byte, b'\'' | b'"'));
        let quote = quote.ok_or_else(|| format!("the header lacks a text at byte {}", self.at))?;
        let rest = &self.bytes[self.at + 1..];
        let length = rest.iter().position(|&byte| byte == quote).ok_or("a text in the header has no end")?;
        self.at += length + 2;
        Ok(String::from_utf8_lossy(&rest[..length]).into_owned())
    }

    fn truth(&mut self) -> Result<bool, String> {
        self.peek();
        for (word, value) in [(&b"True"[..], true), (&b"False"[..], false)] {
            if self.bytes[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err("fortran_order is neither True nor False".to_owned())
    }

    fn shape(&mut self) -> Result<Vec<u64>, String> {
        let mut shape = Vec::new();
        self.expect(b'(')?;
        while self.peek() != Some(b')') {
            let rest = &self.bytes[self.at..];
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let size = str::from_utf8(&rest[..digits]).ok().and_then(|digits| digits.parse().ok());
            shape.push(size.ok_or_else(|| format!("the shape's axis {} is not a count", shape.len()))?);
            if shape.len() > AXES {
                return Err(format!("a shape of more than {AXES} axes"));
            }
            self.at += digits;
            if self.peek() == Some(b',') {
                self.at += 1;
            }
        }
        self.at += 1;
        Ok(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Header, String> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        Header::read(&mut bytes.as_slice())
    }

    #[test]
    fn headers_as_numpy_writes_them() {
        let header = parse("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }   \n").unwrap();
        // 6 of the magic, 2 of the version, 2 of the length, and 63 of text.
        let expected = Header { kind: "<f8".to_owned(), fortran: false, shape: vec![3, 4], length: 73 };
        assert_eq!(header, expected);
        assert_eq!(parse("{'shape': (), 'descr': '|b1', 'fortran_order': True}").unwrap().shape, [0_u64; 0]);
        assert_eq!(parse("{'descr': '<i8', 'fortran_order': False, 'shape': (7,), }").unwrap().shape, [7]);
    }

    #[test]
    fn headers_that_lie_are_refused_in_words() {
        for (text, why) in [
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", "the shape's axis 0 is not a count"),
            (
                "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}",
                "the shape's axis 0 is not a count",
            ),
            ("{'descr': '<f8', 'fortran_order': False", "the header lacks a text at byte 39"),
            ("{'descr': '<f8'", "the header lacks a text at byte 15"),
            ("{'descr': '<f8', }", "the header has no fortran_order"),
            ("{'descr': [('a', '<f8')]}", "holds records; save each column as an array of its own"),
            ("((((((((((", "the header lacks '{' at byte 0"),
        ] {
            assert_eq!(parse(text).unwrap_err(), why, "{text}");
        }
        let mut long = b"\x93NUMPY\x02\x00".to_vec();
        long.extend(u32::MAX.to_le_bytes());
        let why = Header::read(&mut long.as_slice()).unwrap_err();
        assert_eq!(why, "a header of 4294967295 bytes; one of at most 65536 is read");
    }
}
