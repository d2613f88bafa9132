//! The curve in TensorBoard's format: protobuf events in TFRecord frames.
//!
//! Only the few fields that scalars need are written. The time of every event is zero, so that the bytes are a pure
//! function of the curve.

use crate::Record;

/// The file's name; TensorBoard recognises it by `tfevents`.
pub const NAME: &str = "events.out.tfevents.0.niwaki";

/// Version that TensorBoard expects in the first event.
const VERSION: &str = "brain.Event:2";

/// The scalars of a record, each with its tag.
fn scalars(record: &Record) -> Vec<(&'static str, f64)> {
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
    let sometimes = [("eta", record.eta), ("greedy", record.greedy), ("update/alpha", record.alpha)];
    let sometimes = sometimes.into_iter().filter_map(|(tag, value)| Some((tag, value?)));
    sometimes.chain(always).collect()
}

/// The file's bytes.
#[must_use]
pub fn encode(curve: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Event: wall_time 1 (double), step 2 (varint), file_version 3 (string), summary 5 (message).
    let mut version = Vec::new();
    double(&mut version, 1, 0.0);
    chunk(&mut version, 3, VERSION.as_bytes());
    frame(&mut bytes, &version);
    for record in curve {
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
        double(&mut event, 1, 0.0);
        event.push(2 << 3);
        varint(&mut event, record.iteration as u64);
        chunk(&mut event, 5, &summary);
        frame(&mut bytes, &event);
    }
    bytes
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
}
