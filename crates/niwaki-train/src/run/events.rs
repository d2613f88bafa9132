//! The curve in TensorBoard's format: protobuf events in TFRecord frames.
//!
//! Only the few fields that scalars need are written. But for the times the file is a pure function of the curve.

use super::folder::disk;
use super::lines::Tail;
use crate::{Error, Record};
use niwaki_files::read_own;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The file's name; TensorBoard recognises it by `tfevents`.
pub const NAME: &str = "events.out.tfevents.0.niwaki";

/// Version that TensorBoard expects in the first event.
const VERSION: &str = "brain.Event:2";

/// The scalars of a record, each with its tag.
fn scalars(record: &Record) -> Vec<(&str, f64)> {
    let always = [
        ("batch/reward", record.batch_reward),
        ("batch/zero_reward", f64::from(u8::from(record.zero_reward))),
        ("batch/zero_signal", record.zero_signal),
        ("update/drift", record.drift),
        ("update/clip_fraction", record.clip_fraction),
        ("update/prefix_ess", record.prefix_ess),
        ("update/ess", record.ess),
        ("update/dose", record.dose),
        ("update/rollout_dose", record.rollout_dose),
        ("update/kl", record.kl),
        ("update/entropy", record.entropy),
        ("update/gradient_norm", record.gradient_norm),
    ];
    let sometimes = [
        ("eta", record.eta),
        ("greedy", record.greedy),
        ("gap", record.gap),
        ("update/alpha", record.alpha),
        ("update/conditional_drift", record.conditional_drift),
        ("update/prefix_variance", record.prefix_variance),
    ];
    let sometimes = sometimes.into_iter().filter_map(|(tag, value)| Some((tag, value?)));
    let own = record.own.iter().map(|(tag, value)| (tag.as_str(), *value));
    sometimes.chain(always).chain(own).collect()
}

/// The file while the run goes on: an event per record, at the time at which it was first written.
#[derive(Debug)]
pub(super) struct Events {
    path: PathBuf,
    tail: Tail,
}

impl Events {
    /// Opens the file at the end of a curve. What follows is cut off; from where on it is not what the curve says, it is
    /// written anew. Also says whether that was so.
    pub(super) fn open(path: &Path, curve: &[Record]) -> Result<(Self, bool), Error> {
        let bytes = match read_own(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(disk(path, source)),
        };
        let (standing, end) = standing(&bytes, curve);
        let tail = Tail::open(path, end as u64).map_err(|source| disk(path, source))?;
        let mut events = Self { path: path.to_owned(), tail };
        if standing == 0 {
            frame(events.tail.pending(), &version(now()));
        }
        let missing = curve.get(standing.saturating_sub(1)..).unwrap_or_default();
        missing.iter().for_each(|record| events.push(record));
        Ok((events, !missing.is_empty()))
    }

    /// Adds the event of a record that was just made.
    pub(super) fn push(&mut self, record: &Record) {
        frame(self.tail.pending(), &event(record, now()));
    }

    /// Hands the events to the system; they are written anew where the file was removed, and then true is returned.
    pub(super) fn flush(&mut self, curve: &[Record]) -> Result<bool, Error> {
        match self.tail.flush(false) {
            Ok(()) => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                *self = Self::open(&self.path, curve)?.0;
                self.tail.flush(false).map_err(|source| disk(&self.path, source))?;
                Ok(true)
            }
            Err(source) => Err(disk(&self.path, source)),
        }
    }
}

/// How many events at a file's beginning, the version's among them, are those of a curve, and where they end.
fn standing(bytes: &[u8], curve: &[Record]) -> (usize, usize) {
    let (mut count, mut end) = (0, 0);
    while count <= curve.len() {
        let rest = &bytes[end..];
        // A frame's length and its checksum, the time's tag, the time.
        let Some(time) = rest.get(13..21).and_then(|time| time.try_into().ok()).map(f64::from_le_bytes)
        else {
            break;
        };
        let said = if count == 0 { version(time) } else { event(&curve[count - 1], time) };
        let mut expected = Vec::new();
        frame(&mut expected, &said);
        if !rest.starts_with(&expected) {
            break;
        }
        (count, end) = (count + 1, end + expected.len());
    }
    (count, end)
}

/// The bytes of an events file with zeros in the place of each time and of the checksum that covers it: what must be equal
/// where two runs are.
#[must_use]
pub fn timeless_events(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    // A frame's length and its checksum, the time's tag and the time, what follows, and the checksum.
    while let Some(length) = bytes.get(at..at + 8).and_then(|length| length.try_into().ok()) {
        let end =
            usize::try_from(u64::from_le_bytes(length)).ok().and_then(|length| length.checked_add(at + 12));
        let Some(end) = end.filter(|end| end.checked_add(4).is_some_and(|end| end <= bytes.len())) else {
            break;
        };
        if end >= at + 21 {
            bytes[at + 13..at + 21].fill(0);
        }
        bytes[end..end + 4].fill(0);
        at = end + 4;
    }
    bytes
}

/// When each iteration of an events file was done, in seconds since the file was begun; pauses of a run that was resumed
/// count.
#[must_use]
pub fn event_times(bytes: &[u8]) -> Vec<f64> {
    let (mut times, mut at) = (Vec::new(), 0);
    while let Some(length) = bytes.get(at..at + 8).and_then(|length| length.try_into().ok()) {
        let end =
            usize::try_from(u64::from_le_bytes(length)).ok().and_then(|length| length.checked_add(at + 16));
        let time = bytes.get(at + 13..at + 21).and_then(|time| time.try_into().ok()).map(f64::from_le_bytes);
        let (Some(end), Some(time)) = (end.filter(|end| *end <= bytes.len() && *end >= at + 25), time) else {
            break;
        };
        times.push(time);
        at = end;
    }
    let first = times.first().copied().unwrap_or_default();
    times.drain(..times.len().min(1));
    times.iter_mut().for_each(|time| *time -= first);
    times
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

// Event: wall_time 1 (double), step 2 (varint), file_version 3 (string), summary 5 (message).

fn version(time: f64) -> Vec<u8> {
    let mut event = Vec::new();
    double(&mut event, 1, time);
    chunk(&mut event, 3, VERSION.as_bytes());
    event
}

fn event(record: &Record, time: f64) -> Vec<u8> {
    // Summary: value 1 (message); Value: tag 1 (string), simple_value 2 (float).
    let mut summary = Vec::new();
    for (tag, value) in scalars(record) {
        let mut each = Vec::new();
        chunk(&mut each, 1, tag.as_bytes());
        each.push(2 << 3 | 5);
        each.extend_from_slice(&(value as f32).to_le_bytes());
        chunk(&mut summary, 1, &each);
    }
    let mut event = Vec::new();
    double(&mut event, 1, time);
    event.push(2 << 3);
    varint(&mut event, record.iteration as u64);
    chunk(&mut event, 5, &summary);
    event
}

fn double(to: &mut Vec<u8>, field: u8, value: f64) {
    to.push(field << 3 | 1);
    to.extend_from_slice(&value.to_le_bytes());
}

/// A string or message with its length before it.
fn chunk(to: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    to.push(field << 3 | 2);
    varint(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Seven bits per byte, the lowest first; the top bit says that more follow.
fn varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// A TFRecord: length, its checksum, the bytes, their checksum.
fn frame(to: &mut Vec<u8>, bytes: &[u8]) {
    let length = (bytes.len() as u64).to_le_bytes();
    to.extend_from_slice(&length);
    to.extend_from_slice(&masked(crc32c(&length)).to_le_bytes());
    to.extend_from_slice(bytes);
    to.extend_from_slice(&masked(crc32c(bytes)).to_le_bytes());
}

/// A checksum as TFRecord stores it, so that sums of data with sums in it stay apart.
fn masked(sum: u32) -> u32 {
    sum.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32 with Castagnoli's polynomial, reflected, a byte at a time.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, &byte| TABLE[usize::from(sum as u8 ^ byte)] ^ (sum >> 8))
}

/// The checksum of each single byte.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = (sum >> 1) ^ (0x82f6_3b78 * (sum & 1));
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn checksums_are_those_of_the_standard() {
        // RFC 3720, B.4: 32 bytes of zeros, 32 of ones; and the usual check of "123456789".
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn integers_take_seven_bits_a_byte() {
        let mut bytes = Vec::new();
        varint(&mut bytes, 1);
        // 300 = 10 0101100: the low seven bits with the mark, 0xac, then 0x02.
        varint(&mut bytes, 300);
        assert_eq!(bytes, [1, 0xac, 2]);
    }
    #[test]
    fn events_are_kept_cut_back_and_mended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let record = |iteration| Record { iteration, eta: Some(0.5), dose: 1e300, ..Record::default() };
        let curve: Vec<Record> = (1..=4).map(record).collect();
        let (mut events, mended) = Events::open(&path, &[]).unwrap();
        assert!(!mended);
        curve.iter().for_each(|record| events.push(record));
        assert!(!events.flush(&curve).unwrap());
        let whole = fs::read(&path).unwrap();
        assert_eq!(standing(&whole, &curve), (5, whole.len()));
        // Cut back to two iterations, and on again: the times of the first two stay.
        let (mut events, mended) = Events::open(&path, &curve[..2]).unwrap();
        assert!(!mended);
        let cut = fs::metadata(&path).unwrap().len() as usize;
        assert!(cut < whole.len() && fs::read(&path).unwrap() == whole[..cut]);
        curve[2..].iter().for_each(|record| events.push(record));
        assert!(!events.flush(&curve).unwrap());
        assert_eq!(standing(&fs::read(&path).unwrap(), &curve).0, 5);
        // Damaged in the third event: what is before it stays.
        for damage in [cut + 3, cut + 15, cut + 60] {
            let mut bytes = whole.clone();
            bytes[damage] ^= 4;
            fs::write(&path, &bytes).unwrap();
            let (mut events, mended) = Events::open(&path, &curve).unwrap();
            assert!(mended, "byte {damage}");
            events.flush(&curve).unwrap();
            let bytes = fs::read(&path).unwrap();
            assert_eq!(standing(&bytes, &curve), (5, whole.len()));
            assert!(bytes[..cut] == whole[..cut]);
        }
        // Taken away while the run goes on.
        let (mut events, _) = Events::open(&path, &curve[..3]).unwrap();
        fs::remove_file(&path).unwrap();
        events.push(&curve[3]);
        assert!(events.flush(&curve).unwrap());
        assert_eq!(standing(&fs::read(&path).unwrap(), &curve).0, 5);
    }
}
