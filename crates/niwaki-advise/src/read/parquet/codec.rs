//! Packed bytes into plain ones, never beyond the size that a page's header declares.

use crate::read::limits::{DEFLATE, LARGEST_PAGE, SNAPPY, SOUND_PAGE};
use std::io::Read;

/// What is said of a page that ends too early, or goes on for too long.
pub(super) const CUT: &str = "a page is cut short";

/// Appends a page's bytes, unpacked by its codec to the declared size.
pub(super) fn unpack(codec: i64, packed: &[u8], size: usize, into: &mut Vec<u8>) -> Result<(), String> {
    let words = |error: &dyn std::fmt::Display| error.to_string();
    let there = packed.len();
    let most = match codec {
        0 => there,
        1 => there.saturating_mul(SNAPPY),
        _ => there.saturating_mul(DEFLATE as usize).max(SOUND_PAGE),
    };
    if size > most.min(LARGEST_PAGE) {
        return Err(format!("a page of {size} bytes in {there}"));
    }
    let start = into.len();
    match codec {
        0 => into.extend_from_slice(packed),
        1 => {
            if snap::raw::decompress_len(packed).map_err(|error| words(&error))? != size {
                return Err(CUT.to_owned());
            }
            into.resize(start + size, 0);
            let unpacked = snap::raw::Decoder::new().decompress(packed, &mut into[start..]);
            unpacked.map_err(|error| words(&error))?;
        }
        2 => {
            let decoder = flate2::read::GzDecoder::new(packed);
            decoder.take(size as u64 + 1).read_to_end(into).map_err(|error| words(&error))?;
        }
        6 => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(packed).map_err(|error| words(&error))?;
            decoder.take(size as u64 + 1).read_to_end(into).map_err(|error| words(&error))?;
        }
        other => {
            let name = ["", "", "", "LZO", "BROTLI", "LZ4", "", "LZ4"];
            let name = usize::try_from(other).ok().and_then(|other| name.get(other)).unwrap_or(&"unknown");
            return Err(format!("packed by {name}; write it with snappy, zstd, gzip or none"));
        }
    }
    if into.len() - start == size { Ok(()) } else { Err(CUT.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn unpacking_stops_at_the_declared_size() {
        // A million zeros in a thousand bytes; the header may claim fewer or more of them, and is not believed.
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(&vec![0; 1 << 20]).unwrap();
        let packed = packer.finish().unwrap();
        assert!(packed.len() < 1100);
        let mut bytes = Vec::new();
        assert_eq!(unpack(2, &packed, 1 << 20, &mut bytes), Ok(()));
        assert_eq!(bytes.len(), 1 << 20);
        for declared in [1000, (1 << 20) + 1] {
            let mut bytes = Vec::new();
            assert_eq!(unpack(2, &packed, declared, &mut bytes), Err(CUT.to_owned()));
            assert!(bytes.capacity() <= 2 << 20, "{}", bytes.capacity());
        }
        let mut bytes = Vec::new();
        let claimed = unpack(2, &packed, 1 << 29, &mut bytes).unwrap_err();
        assert_eq!(claimed, format!("a page of 536870912 bytes in {}", packed.len()));
        assert_eq!(unpack(0, &[1, 2], 3, &mut bytes).unwrap_err(), "a page of 3 bytes in 2");
        // Snappy says how long it is: 2²⁰ in the first three bytes, and nothing behind them.
        assert!(unpack(1, &[0x80, 0x80, 0x40], 1 << 20, &mut bytes).unwrap_err().starts_with("a page of"));
        assert_eq!(bytes.capacity(), 0);
    }
}
