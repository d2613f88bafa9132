//! Numbers as bytes: whole ones in as few as they need.

use super::exact::{BEYOND, BINS, EMPTY, Exact, Range};

/// Bytes that do not hold what was written; says what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged(pub(crate) &'static str);

/// Whole numbers of a sum stay below this, so that sums of files can still be added.
const LARGEST_BIN: u64 = 1 << 62;

/// Bytes that grow.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
}

impl Writer {
    /// Seven bits a byte, the lowest first.
    pub(crate) fn whole(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    pub(crate) fn count(&mut self, number: usize) {
        self.whole(number as u64);
    }

    /// Small sizes of either sign in few bytes.
    pub(crate) fn signed(&mut self, number: i64) {
        self.whole(((number << 1) ^ (number >> 63)) as u64);
    }

    pub(crate) fn float(&mut self, number: f64) {
        self.bytes.extend(number.to_bits().to_le_bytes());
    }

    pub(crate) fn key(&mut self, key: u64) {
        self.bytes.extend(key.to_le_bytes());
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.bytes.push(u8::from(flag));
    }

    /// A number that may be missing.
    pub(crate) fn maybe(&mut self, number: Option<f64>) {
        self.flag(number.is_some());
        number.into_iter().for_each(|number| self.float(number));
    }

    pub(crate) fn range(&mut self, range: Range) {
        self.float(range.low);
        self.float(range.high);
    }

    pub(crate) fn sums<const N: usize>(&mut self, sums: &Exact<N>) {
        for at in 0..N {
            let (top, bins) = sums.raw(at);
            match top {
                EMPTY => self.whole(0),
                BEYOND => self.whole(1),
                top => self.whole(2 + ((i64::from(top) << 1) ^ (i64::from(top) >> 63)) as u64),
            }
            if top != EMPTY {
                bins.into_iter().for_each(|bin| self.signed(bin));
            }
        }
    }
}

/// Bytes that are read to their end.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.bytes.is_empty()
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (first, rest) = self.bytes.split_first_chunk().ok_or(Damaged("it ends too early"))?;
        self.bytes = rest;
        Ok(*first)
    }

    pub(crate) fn whole(&mut self) -> Result<u64, Damaged> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Damaged("a number is too long"))
    }

    /// A number of things up to a limit.
    pub(crate) fn count(&mut self, most: u64) -> Result<usize, Damaged> {
        self.whole()?
            .try_into()
            .ok()
            .filter(|count| *count as u64 <= most)
            .ok_or(Damaged("a count is too large"))
    }

    pub(crate) fn signed(&mut self) -> Result<i64, Damaged> {
        self.whole().map(|bits| (bits >> 1) as i64 ^ -((bits & 1) as i64))
    }

    pub(crate) fn float(&mut self) -> Result<f64, Damaged> {
        self.take().map(|bytes| f64::from_bits(u64::from_le_bytes(bytes)))
    }

    pub(crate) fn key(&mut self) -> Result<u64, Damaged> {
        self.take().map(u64::from_le_bytes)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Damaged> {
        match self.take()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(Damaged("a flag is neither 0 nor 1")),
        }
    }

    pub(crate) fn maybe(&mut self) -> Result<Option<f64>, Damaged> {
        Ok(if self.flag()? { Some(self.float()?) } else { None })
    }

    pub(crate) fn range(&mut self) -> Result<Range, Damaged> {
        Ok(Range { low: self.float()?, high: self.float()? })
    }

    pub(crate) fn sums<const N: usize>(&mut self) -> Result<Exact<N>, Damaged> {
        let mut sums = Exact::default();
        for at in 0..N {
            let top = match self.whole()? {
                0 => continue,
                1 => BEYOND,
                bits => {
                    let bits = bits - 2;
                    let top = (bits >> 1) as i64 ^ -((bits & 1) as i64);
                    let inside = |top: &i32| *top != EMPTY && *top != BEYOND;
                    top.try_into().ok().filter(inside).ok_or(Damaged("a sum's place is out of range"))?
                }
            };
            let mut bins = [0; BINS];
            for bin in &mut bins {
                *bin = self.signed()?;
                if bin.unsigned_abs() > LARGEST_BIN || (top == BEYOND && *bin < 0) {
                    return Err(Damaged("a sum is too large"));
                }
            }
            sums.restore(at, top, bins);
        }
        Ok(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_return_as_they_went() {
        let mut writer = Writer::default();
        let wholes = [0, 1, 127, 128, 300, u64::MAX];
        let signs = [0, -1, 1, i64::MIN, i64::MAX];
        wholes.iter().for_each(|&number| writer.whole(number));
        signs.iter().for_each(|&number| writer.signed(number));
        writer.maybe(Some(-0.0));
        writer.maybe(None);
        let mut sums = Exact::<4>::default();
        sums.add(&[1.0, -3e-40, f64::NAN, 0.0]);
        writer.sums(&sums);
        // 1 + 1 + 1 + 2 + 2 + 10 bytes, as seven bits go into each.
        let mut reader = Reader::new(&writer.bytes);
        assert_eq!(wholes.map(|_| reader.whole().unwrap()), wholes);
        assert_eq!(signs.map(|_| reader.signed().unwrap()), signs);
        assert_eq!(reader.maybe().unwrap().map(f64::to_bits), Some((-0.0_f64).to_bits()));
        assert_eq!(reader.maybe().unwrap(), None);
        assert_eq!(reader.sums::<4>().unwrap(), sums);
        assert!(reader.is_done());
        assert_eq!(reader.whole(), Err(Damaged("it ends too early")));
        assert_eq!(Reader::new(&[0xff; 11]).whole(), Err(Damaged("a number is too long")));
    }
}
