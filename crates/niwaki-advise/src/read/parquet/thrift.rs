//! Thrift's compact protocol, as far as parquet's headers use it.

/// A cursor over encoded bytes.
pub(super) struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// What a field holds; containers are read or skipped by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    True,
    False,
    Integer,
    Double,
    Binary,
    List,
    Struct,
    Byte,
}

type Read<T> = Result<T, String>;

/// Structures nested deeper than this are not parquet's.
const DEEPEST: usize = 32;

impl<'a> Thrift<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(super) const fn read(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Read<u8> {
        let byte = self.bytes.get(self.at).ok_or("a header is cut short")?;
        self.at += 1;
        Ok(*byte)
    }

    fn unsigned(&mut self) -> Read<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(value);
            }
        }
        Err("a number in a header is too long".to_owned())
    }

    /// A signed number.
    pub(super) fn integer(&mut self) -> Read<i64> {
        let value = self.unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A number that counts something.
    pub(super) fn count(&mut self) -> Read<usize> {
        usize::try_from(self.integer()?).map_err(|_| "a header holds a negative count".to_owned())
    }

    /// A text.
    pub(super) fn text(&mut self) -> Read<String> {
        let length = self.unsigned()? as usize;
        let end = self.at.checked_add(length).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or("a header is cut short")?;
        let text = String::from_utf8_lossy(&self.bytes[self.at..end]).into_owned();
        self.at = end;
        Ok(text)
    }

    /// The kind and the number of a list's elements.
    pub(super) fn list(&mut self) -> Read<(Kind, usize)> {
        let byte = self.byte()?;
        let count = if byte >> 4 == 15 { self.unsigned()? as usize } else { usize::from(byte >> 4) };
        // Every element takes a byte at least.
        if count > self.bytes.len() {
            return Err("a header is cut short".to_owned());
        }
        Ok((kind(byte & 15)?, count))
    }

    /// Calls `visit` with every field of a struct; what it does not read (it returns false) is skipped.
    pub(super) fn fields(&mut self, mut visit: impl FnMut(&mut Self, i64, Kind) -> Read<bool>) -> Read<()> {
        let mut id = 0;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Ok(());
            }
            id = if byte >> 4 == 0 { self.integer()? } else { id + i64::from(byte >> 4) };
            let kind = kind(byte & 15)?;
            if !visit(self, id, kind)? {
                self.skip(kind, 0)?;
            }
        }
    }

    fn skip(&mut self, kind: Kind, depth: usize) -> Read<()> {
        if depth > DEEPEST {
            return Err("a header is nested too deep".to_owned());
        }
        match kind {
            Kind::True | Kind::False => {}
            Kind::Byte => {
                self.byte()?;
            }
            Kind::Integer => {
                self.unsigned()?;
            }
            Kind::Double => {
                for _ in 0..8 {
                    self.byte()?;
                }
            }
            Kind::Binary => {
                self.text()?;
            }
            Kind::List => {
                let (kind, count) = self.list()?;
                for _ in 0..count {
                    // A boolean in a list takes a byte of its own.
                    let kind = if matches!(kind, Kind::True | Kind::False) { Kind::Byte } else { kind };
                    self.skip(kind, depth + 1)?;
                }
            }
            Kind::Struct => loop {
                let byte = self.byte()?;
                if byte == 0 {
                    return Ok(());
                }
                if byte >> 4 == 0 {
                    self.integer()?;
                }
                self.skip(self::kind(byte & 15)?, depth + 1)?;
            },
        }
        Ok(())
    }
}

fn kind(code: u8) -> Read<Kind> {
    Ok(match code {
        1 => Kind::True,
        2 => Kind::False,
        3 => Kind::Byte,
        4..=6 => Kind::Integer,
        7 => Kind::Double,
        8 => Kind::Binary,
        9 | 10 => Kind::List,
        12 => Kind::Struct,
        _ => return Err(format!("a header holds a field of unknown kind {code}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_struct_by_hand() {
        // Field 1: i32 = 150 (zigzag 300 = AC 02); field 3: text "ab"; field 4: list of two i32 1, −1; stop.
        let bytes = [0x15, 0xAC, 0x02, 0x28, 0x02, b'a', b'b', 0x19, 0x25, 0x02, 0x01, 0x00];
        let mut thrift = Thrift::new(&bytes);
        let mut seen = Vec::new();
        let read = thrift.fields(|thrift, id, kind| {
            match id {
                1 => seen.push(thrift.integer()?.to_string()),
                4 => {
                    assert_eq!((kind, thrift.list()?), (Kind::List, (Kind::Integer, 2)));
                    seen.push(format!("{} {}", thrift.integer()?, thrift.integer()?));
                }
                _ => return Ok(false),
            }
            Ok(true)
        });
        assert_eq!((read, seen), (Ok(()), vec!["150".to_owned(), "1 -1".to_owned()]));
        assert_eq!(thrift.read(), bytes.len());
        for cut in 0..bytes.len() {
            assert!(Thrift::new(&bytes[..cut]).fields(|_, _, _| Ok(false)).is_err());
        }
    }
}
