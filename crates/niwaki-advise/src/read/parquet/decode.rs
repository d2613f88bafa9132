//! The numbers of a page, taken a few at a time: a run of any length costs what is asked of it.

use super::codec::CUT;
use super::meta::Physical;
use crate::keys::number_of_text;
use crate::read::npy::half;

pub(super) type Done<T> = Result<T, String>;

/// Bits that a level or an index up to `most` takes.
pub(super) const fn width(most: u32) -> u32 {
    u32::BITS - most.leading_zeros()
}

/// Numbers of some bits each, least significant first.
#[derive(Clone, Copy, Debug, Default)]
struct Bits {
    at: usize,
    end: usize,
    held: u128,
    kept: u32,
}

impl Bits {
    const fn new(at: usize, end: usize) -> Self {
        Self { at, end, held: 0, kept: 0 }
    }

    fn take(&mut self, bytes: &[u8], width: u32, count: usize, mut give: impl FnMut(u64)) -> Done<()> {
        let there = bytes.get(self.at..self.end).ok_or(CUT)?;
        let bits = count.checked_mul(width as usize).ok_or(CUT)?;
        if there.len() * 8 + (self.kept as usize) < bits {
            return Err(CUT.to_owned());
        }
        let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
        let (mut held, mut kept, mut next) = (self.held, self.kept, there.iter());
        for _ in 0..count {
            while kept < width {
                held |= u128::from(next.next().copied().unwrap_or(0)) << kept;
                kept += 8;
            }
            give(held as u64 & mask);
            held >>= width;
            kept -= width;
        }
        *self = Self { at: self.end - next.len(), end: self.end, held, kept };
        Ok(())
    }
}

/// Numbers in runs of one value and groups of eight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runs {
    at: usize,
    end: usize,
    width: u32,
    /// Numbers left of the run in hand: all the same where there is a value, packed where there is none.
    left: usize,
    same: Option<u32>,
    bits: Bits,
}

impl Runs {
    /// Runs between two places of a page.
    pub(super) fn new(at: usize, end: usize, width: u32) -> Done<Self> {
        if width > 32 {
            return Err("indices wider than 32 bits".to_owned());
        }
        Ok(Self { at, end, width, left: 0, same: None, bits: Bits::default() })
    }

    /// Appends the next `count` numbers.
    pub(super) fn take(&mut self, bytes: &[u8], mut count: usize, into: &mut Vec<u32>) -> Done<()> {
        let bytes = bytes.get(..self.end).ok_or(CUT)?;
        while count > 0 {
            if self.left == 0 {
                self.start(bytes)?;
                continue;
            }
            let times = self.left.min(count);
            match self.same {
                Some(value) => into.resize(into.len() + times, value),
                None => self.bits.take(bytes, self.width, times, |value| into.push(value as u32))?,
            }
            self.left -= times;
            count -= times;
        }
        Ok(())
    }

    fn start(&mut self, bytes: &[u8]) -> Done<()> {
        let header = varint(bytes, &mut self.at)?;
        let times = usize::try_from(header >> 1).map_err(|_| CUT)?;
        if header & 1 == 0 {
            let size = self.width.div_ceil(8) as usize;
            let word = bytes.get(self.at..self.at + size).ok_or(CUT)?;
            self.at += size;
            self.same = Some(word.iter().rev().fold(0_u32, |value, &byte| value << 8 | u32::from(byte)));
            self.left = times;
        } else {
            let size = times.checked_mul(self.width as usize).ok_or(CUT)?;
            // The last group may be cut to the bytes it needs.
            let end = self.at.saturating_add(size).min(bytes.len());
            (self.same, self.bits) = (None, Bits::new(self.at, end));
            self.left = times.saturating_mul(8);
            self.at = end;
        }
        Ok(())
    }
}

fn varint(bytes: &[u8], at: &mut usize) -> Done<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or(CUT)?;
        *at += 1;
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Ok(value);
        }
    }
    Err(CUT.to_owned())
}

/// Whole numbers stored as packed differences.
#[derive(Clone, Copy, Debug)]
pub(super) struct Differences {
    at: usize,
    per_mini: usize,
    minis: usize,
    /// Numbers still to come, of which the first stands in the header.
    left: usize,
    first: bool,
    value: i64,
    least: i64,
    /// Where the widths of the block's minis stand, and which of them is next.
    widths: usize,
    mini: usize,
    width: u32,
    in_mini: usize,
    bits: Bits,
}

impl Differences {
    pub(super) fn new(bytes: &[u8], mut at: usize) -> Done<Self> {
        let count = |at: &mut usize| usize::try_from(varint(bytes, at)?).map_err(|_| CUT.to_owned());
        let (block, minis, left) = (count(&mut at)?, count(&mut at)?, count(&mut at)?);
        let value = signed(varint(bytes, &mut at)?);
        let per_mini = block.checked_div(minis).unwrap_or(0);
        if per_mini == 0 || !block.is_multiple_of(minis) || !per_mini.is_multiple_of(8) {
            return Err(CUT.to_owned());
        }
        let (mini, bits) = (minis, Bits::default());
        let (least, widths, width, in_mini) = (0, 0, 0, 0);
        Ok(Self { at, per_mini, minis, left, first: true, value, least, widths, mini, width, in_mini, bits })
    }

    fn take(&mut self, bytes: &[u8], mut count: usize, mut give: impl FnMut(i64)) -> Done<()> {
        self.left = self.left.checked_sub(count).ok_or(CUT)?;
        if count > 0 && std::mem::take(&mut self.first) {
            give(self.value);
            count -= 1;
        }
        while count > 0 {
            if self.in_mini == 0 {
                self.start(bytes)?;
            }
            let times = self.in_mini.min(count);
            let (least, value) = (self.least, &mut self.value);
            self.bits.take(bytes, self.width, times, |step| {
                *value = value.wrapping_add(least).wrapping_add(step as i64);
                give(*value);
            })?;
            self.in_mini -= times;
            count -= times;
        }
        Ok(())
    }

    fn start(&mut self, bytes: &[u8]) -> Done<()> {
        if self.mini == self.minis {
            self.least = signed(varint(bytes, &mut self.at)?);
            (self.widths, self.mini) = (self.at, 0);
            self.at = self.at.checked_add(self.minis).filter(|&at| at <= bytes.len()).ok_or(CUT)?;
        }
        let width = *bytes.get(self.widths + self.mini).ok_or(CUT)?;
        if width > 64 {
            return Err(CUT.to_owned());
        }
        let size = (self.per_mini / 8).checked_mul(usize::from(width)).ok_or(CUT)?;
        let end = self.at.checked_add(size).filter(|&end| end <= bytes.len()).ok_or(CUT)?;
        (self.width, self.bits) = (u32::from(width), Bits::new(self.at, end));
        (self.at, self.in_mini) = (end, self.per_mini);
        self.mini += 1;
        Ok(())
    }
}

const fn signed(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The values of a page in one of their encodings.
#[derive(Clone, Copy, Debug)]
pub(super) enum Values {
    /// As they stand, from a place on; truths count by the bit.
    Plain(usize),
    /// Places in the dictionary.
    Indices(Runs),
    /// Truths in runs.
    Truths(Runs),
    Whole(Differences),
    /// Lengths of texts, and the place of the next one.
    Texts(Differences, usize),
    /// The first bytes of all values, then the second ones, and so on: the start, how many, and the next.
    Split(usize, usize, usize),
}

impl Values {
    /// Starts on the values of a page of at most `most` of them, from a place on.
    ///
    /// # Errors
    /// In words, where the encoding is not read, or cannot hold such values.
    pub(super) fn new(encoding: i64, bytes: &[u8], at: usize, physical: Physical, most: usize) -> Done<Self> {
        Ok(match (encoding, physical) {
            (0, Physical::Boolean) => Self::Plain(at.checked_mul(8).ok_or(CUT)?),
            (0, _) => Self::Plain(at),
            (2 | 8, _) => {
                let bits = bytes.get(at).copied().unwrap_or(0);
                Self::Indices(Runs::new((at + 1).min(bytes.len()), bytes.len(), u32::from(bits))?)
            }
            (3, Physical::Boolean) => Self::Truths(Runs::new(at + 4, bytes.len(), 1)?),
            (5, Physical::Int32 | Physical::Int64 | Physical::Key) => {
                Self::Whole(Differences::new(bytes, at)?)
            }
            (6, Physical::Text) => {
                let lengths = Differences::new(bytes, at)?;
                if lengths.left > most {
                    return Err(CUT.to_owned());
                }
                // The texts stand behind all their lengths.
                let mut all = lengths;
                all.take(bytes, all.left, |_| {})?;
                Self::Texts(lengths, all.at)
            }
            (
                9,
                Physical::Float
                | Physical::Double
                | Physical::Int32
                | Physical::Int64
                | Physical::Key
                | Physical::Half,
            ) => Self::Split(at, bytes.len().saturating_sub(at) / physical.size(), 0),
            (other, _) => {
                return Err(format!(
                    "has encoding {other}, which is not read; write it plain or by dictionary"
                ));
            }
        })
    }

    /// Appends the next `count` values.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        physical: Physical,
        dictionary: &[f64],
        count: usize,
        into: &mut Vec<f64>,
    ) -> Done<()> {
        match self {
            Self::Plain(at) => *at = plain(bytes, *at, physical, count, into)?,
            Self::Indices(runs) => {
                let mut indices = Vec::with_capacity(count);
                runs.take(bytes, count, &mut indices)?;
                for index in indices {
                    into.push(*dictionary.get(index as usize).ok_or("an index beyond the dictionary")?);
                }
            }
            Self::Truths(runs) => {
                let mut set = Vec::with_capacity(count);
                runs.take(bytes, count, &mut set)?;
                into.extend(set.into_iter().map(f64::from));
            }
            Self::Whole(whole) => {
                whole.take(bytes, count, |value| into.push(number_of_whole(value, physical)))?
            }
            Self::Texts(lengths, at) => {
                let mut taken = Vec::with_capacity(count);
                lengths.take(bytes, count, |length| taken.push(length))?;
                for length in taken {
                    let end = usize::try_from(length).ok().and_then(|length| at.checked_add(length));
                    let end = end.ok_or(CUT)?;
                    into.push(number_of_text(bytes.get(*at..end).ok_or(CUT)?));
                    *at = end;
                }
            }
            Self::Split(start, stride, next) => {
                let (from, size) = (*next, physical.size());
                *next = from.checked_add(count).filter(|end| end <= stride).ok_or(CUT)?;
                let mut joined = vec![0; count * size];
                for (at, byte) in joined.iter_mut().enumerate() {
                    *byte = *bytes.get(*start + at % size * *stride + from + at / size).ok_or(CUT)?;
                }
                plain(&joined, 0, physical, count, into)?;
            }
        }
        Ok(())
    }
}

/// Decodes `count` values as they stand, from a place on; returns the place behind them.
pub(super) fn plain(
    bytes: &[u8],
    at: usize,
    physical: Physical,
    count: usize,
    into: &mut Vec<f64>,
) -> Done<usize> {
    match physical {
        Physical::Boolean => {
            let end = at.checked_add(count).filter(|&end| end.div_ceil(8) <= bytes.len()).ok_or(CUT)?;
            into.extend((at..end).map(|bit| f64::from(bytes[bit / 8] >> (bit % 8) & 1)));
            return Ok(end);
        }
        Physical::Text => return texts(bytes, at, count, into),
        Physical::Other => return Err("holds neither numbers nor texts".to_owned()),
        _ => {}
    }
    let end = count.checked_mul(physical.size()).and_then(|size| at.checked_add(size)).ok_or(CUT)?;
    let bytes = bytes.get(at..end).ok_or(CUT)?;
    match physical {
        Physical::Float => into.extend(words(bytes).map(|word| f64::from(f32::from_le_bytes(word)))),
        Physical::Double => into.extend(words(bytes).map(f64::from_le_bytes)),
        Physical::Int32 => into.extend(words(bytes).map(|word| f64::from(i32::from_le_bytes(word)))),
        Physical::Int64 | Physical::Key => {
            into.extend(words(bytes).map(|word| number_of_whole(i64::from_le_bytes(word), physical)));
        }
        _ => into.extend(words(bytes).map(|word| half(u16::from_le_bytes(word)))),
    }
    Ok(end)
}

fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

/// Texts, each behind its length, as whole numbers below 2⁵³ that stand for them.
fn texts(bytes: &[u8], mut at: usize, count: usize, into: &mut Vec<f64>) -> Done<usize> {
    for _ in 0..count {
        let length = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).ok_or(CUT)?;
        let start = at + 4;
        at = start.checked_add(u32::from_le_bytes(*length) as usize).ok_or(CUT)?;
        into.push(number_of_text(bytes.get(start..at).ok_or(CUT)?));
    }
    Ok(at)
}

/// A whole number; one that names a group and that a float cannot hold becomes one below 2⁵³ that stands for it.
fn number_of_whole(value: i64, physical: Physical) -> f64 {
    if physical == Physical::Key && value.unsigned_abs() >= 1 << 53 {
        return number_of_text(value.to_string().as_bytes());
    }
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(bytes: &[u8], width: u32, parts: &[usize]) -> Done<Vec<u32>> {
        let (mut runs, mut came) = (Runs::new(0, bytes.len(), width)?, Vec::new());
        parts.iter().try_for_each(|&count| runs.take(bytes, count, &mut came))?;
        Ok(came)
    }

    #[test]
    fn large_names_of_groups_stay_apart() {
        let bytes: Vec<u8> =
            [5_i64, -5, 1 << 53, (1 << 53) + 1].iter().flat_map(|n| n.to_le_bytes()).collect();
        let read = |physical| {
            let mut into = Vec::new();
            plain(&bytes, 0, physical, 4, &mut into).unwrap();
            into
        };
        let (keys, numbers) = (read(Physical::Key), read(Physical::Int64));
        assert!(keys[..2] == numbers[..2] && numbers[2] == numbers[3]);
        assert!(keys[2] != keys[3] && keys.iter().all(|key| key.abs() < (1_u64 << 53) as f64));
    }

    #[test]
    fn runs_by_hand() {
        // The format's own example: 0 to 7 in three bits are 88 C6 FA, one group (header 3); then six times 5.
        let bytes = [0x03, 0x88, 0xC6, 0xFA, 0x0C, 0x05];
        let expected = vec![0, 1, 2, 3, 4, 5, 6, 7, 5, 5, 5, 5, 5, 5];
        for parts in [&[14][..], &[3, 7, 4], &[1, 1, 1, 5, 1, 5], &[9, 5]] {
            assert_eq!(runs(&bytes, 3, parts), Ok(expected.clone()));
        }
        assert!(runs(&bytes, 3, &[14, 1]).is_err());
        for cut in 0..bytes.len() {
            assert!(runs(&bytes[..cut], 3, &[14]).is_err());
        }
        assert_eq!([0, 1, 2, 3, 4].map(width), [0, 1, 2, 2, 3]);
    }

    #[test]
    fn differences_by_hand() {
        // 7, 5, 3, 1, 2, 3, 4, 5: blocks of 128 in 4 minis, 8 values, first 7; least step −2 (zigzag 3), steps less
        // that 0, 0, 0, 3, 3, 3, 3 in two bits.
        let mut bytes = vec![0x80, 0x01, 0x04, 0x08, 0x0E, 0x03, 2, 0, 0, 0];
        bytes.extend([0b1100_0000, 0b0011_1111, 0, 0, 0, 0, 0, 0]);
        let whole = |bytes: &[u8], parts: &[usize]| -> Done<(Vec<i64>, usize)> {
            let (mut differences, mut came) = (Differences::new(bytes, 0)?, Vec::new());
            parts.iter().try_for_each(|&n| differences.take(bytes, n, |value| came.push(value)))?;
            Ok((came, differences.at))
        };
        for parts in [&[8][..], &[1, 7], &[3, 0, 5]] {
            assert_eq!(whole(&bytes, parts), Ok((vec![7, 5, 3, 1, 2, 3, 4, 5], bytes.len())));
        }
        assert!(whole(&bytes, &[8, 1]).is_err() && whole(&bytes[..12], &[8]).is_err());
        // A block that claims 2⁶² numbers of no bits takes what is asked of it and no more.
        let claim: Vec<u8> = [[0x80; 8].as_slice(), &[0x40, 0x01], &[0xFF; 8], &[0x7F, 0, 0, 0]].concat();
        assert_eq!(whole(&claim, &[5]).map(|(came, _)| came), Ok(vec![0; 5]));
    }
}
