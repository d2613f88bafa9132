//! Packed bytes into numbers: codecs, runs, and the encodings of values.

use super::meta::Physical;
use crate::read::npy::half;
use crate::trajectory::key_of_text;
use std::io::Read;

type Done<T> = Result<T, String>;

const CUT: &str = "a page is cut short";

/// Unpacks a page by its codec.
pub(super) fn unpack(codec: i64, packed: &[u8], size: usize, into: &mut Vec<u8>) -> Done<()> {
    into.clear();
    match codec {
        0 => into.extend_from_slice(packed),
        1 => {
            let length = snap::raw::decompress_len(packed).map_err(|error| error.to_string())?;
            if length != size {
                return Err(CUT.to_owned());
            }
            into.resize(size, 0);
            snap::raw::Decoder::new().decompress(packed, into).map_err(|error| error.to_string())?;
        }
        2 => {
            flate2::read::GzDecoder::new(packed).read_to_end(into).map_err(|error| error.to_string())?;
        }
        6 => {
            let decoder =
                ruzstd::decoding::StreamingDecoder::new(packed).map_err(|error| error.to_string())?;
            decoder.take(size as u64 + 1).read_to_end(into).map_err(|error| error.to_string())?;
        }
        other => {
            let name = ["", "", "", "LZO", "BROTLI", "LZ4", "", "LZ4"];
            let name = usize::try_from(other).ok().and_then(|other| name.get(other)).unwrap_or(&"unknown");
            return Err(format!("packed by {name}; write it with snappy, zstd, gzip or none"));
        }
    }
    if into.len() == size { Ok(()) } else { Err(CUT.to_owned()) }
}

/// Bits that a level or an index up to `most` takes.
pub(super) const fn width(most: u32) -> u32 {
    u32::BITS - most.leading_zeros()
}

/// Decodes `count` numbers from runs and packed groups of eight; returns the bytes used.
pub(super) fn runs(bytes: &[u8], width: u32, count: usize, into: &mut Vec<u32>) -> Done<usize> {
    if width > 32 {
        return Err("indices wider than 32 bits".to_owned());
    }
    let end = into.len() + count;
    let mut at = 0;
    while into.len() < end {
        let header = varint(bytes, &mut at)?;
        if header & 1 == 0 {
            let size = width.div_ceil(8) as usize;
            let word = bytes.get(at..at + size).ok_or(CUT)?;
            at += size;
            let value = word.iter().rev().fold(0_u32, |value, &byte| value << 8 | u32::from(byte));
            let times = usize::try_from(header >> 1).map_err(|_| CUT)?.min(end - into.len());
            into.resize(into.len() + times, value);
        } else {
            let groups = usize::try_from(header >> 1).map_err(|_| CUT)?;
            let size = groups.checked_mul(width as usize).ok_or(CUT)?;
            // The last group may be cut to the bytes it needs.
            let packed = &bytes[at.min(bytes.len())..at.saturating_add(size).min(bytes.len())];
            let times = groups.saturating_mul(8).min(end - into.len());
            if (packed.len() * 8) < times * width as usize {
                return Err(CUT.to_owned());
            }
            at += packed.len();
            unpack_bits(packed, width, times, |value| into.push(value as u32));
        }
    }
    Ok(at)
}

/// Numbers of `width` bits each, least significant first.
fn unpack_bits(bytes: &[u8], width: u32, count: usize, mut give: impl FnMut(u64)) {
    let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
    let (mut held, mut bits, mut next) = (0_u128, 0, bytes.iter());
    for _ in 0..count {
        while bits < width {
            held |= u128::from(next.next().copied().unwrap_or(0)) << bits;
            bits += 8;
        }
        give(held as u64 & mask);
        held >>= width;
        bits -= width;
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

/// Decodes `count` values as they stand.
pub(super) fn plain(bytes: &[u8], physical: Physical, count: usize, into: &mut Vec<f64>) -> Done<()> {
    let size = match physical {
        Physical::Boolean => {
            if bytes.len() * 8 < count {
                return Err(CUT.to_owned());
            }
            into.extend((0..count).map(|bit| f64::from(bytes[bit / 8] >> (bit % 8) & 1)));
            return Ok(());
        }
        Physical::Text => return texts(bytes, count, into),
        Physical::Half => 2,
        Physical::Int32 | Physical::Float => 4,
        Physical::Int64 | Physical::Double => 8,
        Physical::Other => return Err("holds neither numbers nor texts".to_owned()),
    };
    let bytes = count.checked_mul(size).and_then(|end| bytes.get(..end)).ok_or(CUT)?;
    match physical {
        Physical::Float => into.extend(words(bytes).map(|word| f64::from(f32::from_le_bytes(word)))),
        Physical::Double => into.extend(words(bytes).map(f64::from_le_bytes)),
        Physical::Int32 => into.extend(words(bytes).map(|word| f64::from(i32::from_le_bytes(word)))),
        Physical::Int64 => into.extend(words(bytes).map(|word| i64::from_le_bytes(word) as f64)),
        _ => into.extend(words(bytes).map(|word| half(u16::from_le_bytes(word)))),
    }
    Ok(())
}

fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

/// Texts, each behind its length, as whole numbers below 2⁵³ that stand for them.
fn texts(bytes: &[u8], count: usize, into: &mut Vec<f64>) -> Done<()> {
    let mut at = 0;
    for _ in 0..count {
        let length = bytes.get(at..at + 4).ok_or(CUT)?;
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        at += 4;
        into.push(number_of_text(bytes.get(at..at + length).ok_or(CUT)?));
        at += length;
    }
    Ok(())
}

fn number_of_text(text: &[u8]) -> f64 {
    (key_of_text(text) >> 11) as f64
}

/// Decodes `count` whole numbers stored as packed differences; returns them and the bytes used.
fn differences(bytes: &[u8], count: usize) -> Done<(Vec<i64>, usize)> {
    let mut at = 0;
    let block = varint(bytes, &mut at)? as usize;
    let minis = varint(bytes, &mut at)? as usize;
    let total = varint(bytes, &mut at)? as usize;
    let signed = |value: u64| (value >> 1) as i64 ^ -((value & 1) as i64);
    let mut value = signed(varint(bytes, &mut at)?);
    if minis == 0 || !block.is_multiple_of(minis) || !(block / minis).is_multiple_of(8) || total < count {
        return Err(CUT.to_owned());
    }
    let per_mini = block / minis;
    let mut values = Vec::new();
    if total > 0 {
        values.push(value);
    }
    while values.len() < total {
        let least = signed(varint(bytes, &mut at)?);
        let widths = bytes.get(at..at + minis).ok_or(CUT)?;
        at += minis;
        for &width in widths {
            if values.len() >= total {
                break;
            }
            let size = per_mini / 8 * usize::from(width);
            let packed = bytes.get(at..at + size).ok_or(CUT)?;
            at += size;
            let times = per_mini.min(total - values.len());
            if width > 64 {
                return Err(CUT.to_owned());
            }
            unpack_bits(packed, u32::from(width), times, |step| {
                value = value.wrapping_add(least).wrapping_add(step as i64);
                values.push(value);
            });
        }
    }
    values.truncate(count);
    Ok((values, at))
}

/// Decodes the values of a page that are not indices.
pub(super) fn values(
    encoding: i64,
    bytes: &[u8],
    physical: Physical,
    count: usize,
    into: &mut Vec<f64>,
) -> Done<()> {
    match (encoding, physical) {
        (0, _) => plain(bytes, physical, count, into),
        (3, Physical::Boolean) => {
            let mut set = Vec::with_capacity(count);
            runs(bytes.get(4..).ok_or(CUT)?, 1, count, &mut set)?;
            into.extend(set.into_iter().map(f64::from));
            Ok(())
        }
        (5, Physical::Int32 | Physical::Int64) => {
            into.extend(differences(bytes, count)?.0.into_iter().map(|value| value as f64));
            Ok(())
        }
        (6, Physical::Text) => {
            let (lengths, mut at) = differences(bytes, count)?;
            for length in lengths {
                let end =
                    usize::try_from(length).ok().and_then(|length| at.checked_add(length)).ok_or(CUT)?;
                into.push(number_of_text(bytes.get(at..end).ok_or(CUT)?));
                at = end;
            }
            Ok(())
        }
        (9, Physical::Float | Physical::Double | Physical::Int32 | Physical::Int64 | Physical::Half) => {
            // The first bytes of all values, then the second ones, and so on.
            let size = match physical {
                Physical::Half => 2,
                Physical::Float | Physical::Int32 => 4,
                _ => 8,
            };
            if bytes.len() < count * size {
                return Err(CUT.to_owned());
            }
            let mut joined = vec![0; count * size];
            for (at, byte) in joined.iter_mut().enumerate() {
                *byte = bytes[at % size * count + at / size];
            }
            plain(&joined, physical, count, into)
        }
        (other, _) => {
            Err(format!("has encoding {other}, which is not read; write it plain or by dictionary"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_by_hand() {
        // The format's own example: 0 to 7 in three bits are 88 C6 FA, one group (header 3); then six times 5.
        let bytes = [0x03, 0x88, 0xC6, 0xFA, 0x0C, 0x05];
        let mut came = Vec::new();
        assert_eq!(runs(&bytes, 3, 14, &mut came), Ok(6));
        assert_eq!(came, [0, 1, 2, 3, 4, 5, 6, 7, 5, 5, 5, 5, 5, 5]);
        for cut in 0..bytes.len() {
            assert!(runs(&bytes[..cut], 3, 14, &mut Vec::new()).is_err());
        }
        assert_eq!([0, 1, 2, 3, 4].map(width), [0, 1, 2, 2, 3]);
    }

    #[test]
    fn differences_by_hand() {
        // 7, 5, 3, 1, 2, 3, 4, 5: blocks of 128 in 4 minis, 8 values, first 7; least step −2 (zigzag 3), steps less
        // that 0, 0, 0, 3, 3, 3, 3 in two bits.
        let mut bytes = vec![0x80, 0x01, 0x04, 0x08, 0x0E, 0x03, 2, 0, 0, 0];
        bytes.extend([0b1100_0000, 0b0011_1111, 0, 0, 0, 0, 0, 0]);
        let (came, used) = differences(&bytes, 8).unwrap();
        assert_eq!((came, used), (vec![7, 5, 3, 1, 2, 3, 4, 5], bytes.len()));
        assert!(differences(&bytes[..12], 8).is_err());
    }
}
