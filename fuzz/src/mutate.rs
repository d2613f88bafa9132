//! Changes to an input: bytes, runs of bytes, and numbers where they can be seen.

use niwaki_stream::Stream;

/// Counts that headers lie with.
const EXTREMES: [u64; 14] = [
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    1 << 20,
    0x7FFF_FFFF,
    0xFFFF_FFFF,
    1 << 32,
    1 << 62,
    i64::MAX as u64,
    u64::MAX,
];

/// Numbers as texts lie with them.
const WORDS: [&str; 22] = [
    "0",
    "-1",
    "1",
    "1e308",
    "-1e308",
    "1e-308",
    "1e999",
    "NaN",
    "inf",
    "-inf",
    "null",
    "100000",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "99999999999999999999999",
    "0.5",
    "\"\"",
    "[]",
    "{}",
    "true",
    "1e9",
];

/// Inputs grow to this many bytes at most.
const LONGEST: usize = 1 << 18;

/// Changes an input one to eight times; `other` lends pieces.
pub fn mutate(bytes: &mut Vec<u8>, other: &[u8], noise: &mut Stream) {
    for _ in 0..1 + noise.below(8) {
        change(bytes, other, noise);
        bytes.truncate(LONGEST);
    }
}

fn change(bytes: &mut Vec<u8>, other: &[u8], noise: &mut Stream) {
    let mut place = |bound: usize| noise.below(bound.max(1) as u64) as usize;
    let kind = place(14);
    if bytes.is_empty() {
        bytes.extend_from_slice(&other[..place(other.len() + 1).min(64)]);
        return;
    }
    let at = place(bytes.len());
    let length = 1 + place((bytes.len() - at).min(64));
    let end = (at + length).min(bytes.len());
    match kind {
        0 => bytes[at] ^= 1 << place(8),
        1 => bytes[at] = place(256) as u8,
        2 => bytes[at] = [0, 1, 0x7F, 0x80, 0xFF, b'"', b'{', b'[', b'\n', b'-'][place(10)],
        3 => bytes.truncate(at),
        4 => {
            bytes.drain(at..end);
        }
        5 => {
            let copy = bytes[at..end].to_vec();
            let times = 1 + place(16);
            let to = place(bytes.len());
            bytes.splice(to..to, copy.iter().copied().cycle().take(copy.len() * times));
        }
        6 => {
            let copy = bytes[at..end].to_vec();
            let to = place(bytes.len());
            let upto = (to + copy.len()).min(bytes.len());
            bytes.splice(to..upto, copy);
        }
        7 if !other.is_empty() => {
            let from = place(other.len());
            let upto = (from + 1 + place(128)).min(other.len());
            bytes.splice(at..end, other[from..upto].iter().copied());
        }
        8 | 9 => {
            // A count of one, two, four or eight bytes, little end first.
            let size = [1, 2, 4, 8][place(4)].min(bytes.len() - at);
            let value = EXTREMES[place(EXTREMES.len())].to_le_bytes();
            bytes[at..at + size].copy_from_slice(&value[..size]);
        }
        10 => {
            // A count as thrift and deflate's kin write it, seven bits a byte.
            let mut value = EXTREMES[place(EXTREMES.len())];
            let mut written = Vec::new();
            while value > 127 {
                written.push(value as u8 | 128);
                value >>= 7;
            }
            written.push(value as u8);
            let upto = (at + place(written.len() + 1)).min(bytes.len());
            bytes.splice(at..upto, written);
        }
        _ => {
            // A number in text, from here on, becomes another.
            let digit = |byte: &u8| byte.is_ascii_digit();
            let start = bytes[at..].iter().position(digit).map_or(at, |found| at + found);
            let count = bytes[start..].iter().take_while(|byte| digit(byte)).count();
            let word = WORDS[place(WORDS.len())];
            bytes.splice(start..start + count, word.bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use niwaki_stream::Key;

    #[test]
    fn changes_are_the_same_each_time_and_change_something() {
        let seed = b"{\"jobs\": [[1, 2], [3, 44]]}".to_vec();
        let of = |case: u64| {
            let mut bytes = seed.clone();
            mutate(&mut bytes, b"another", &mut Key::new(1, "fuzz").iteration(case).open());
            bytes
        };
        let cases: Vec<Vec<u8>> = (0..1000).map(of).collect();
        assert_eq!(cases, (0..1000).map(of).collect::<Vec<_>>());
        let changed = cases.iter().filter(|bytes| **bytes != seed).count();
        assert!(changed > 900, "{changed}");
        assert!(cases.iter().any(|bytes| bytes.windows(5).any(|five| five == b"1e308")));
    }
}
