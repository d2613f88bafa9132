//! Blocks of 256 scalars whose parts have scales of their own, as GGUF's `K` packings keep them.
//!
//! A part has 16 or 32 scalars; its scale is a few bits and is multiplied by the block's half float `d` (its least value,
//! where it has one, by `dmin`).

use super::packing::half;

/// Entries of a block.
pub(super) const SUPER_BLOCK: usize = 256;

fn half_at(block: &[u8], at: usize) -> f32 {
    half(u16::from_le_bytes([block[at], block[at + 1]]))
}

/// `d · scale · q − dmin · least` with two bits, parts of 16: 16 bytes of scales, 64 of bits, `d`, `dmin`.
pub(super) fn two_bits(block: &[u8], out: &mut [f32]) {
    let (scales, bits) = (&block[..16], &block[16..80]);
    let (d, dmin) = (half_at(block, 80), half_at(block, 82));
    for (part, out) in out.chunks_exact_mut(16).enumerate() {
        let (scale, least) = (d * f32::from(scales[part] & 15), dmin * f32::from(scales[part] >> 4));
        quarters(bits, part, out, |_, q| scale * f32::from(q) - least);
    }
}

/// `d · scale · (q − 4)` with three bits, parts of 16: 32 bytes of third bits, 64 of the lower two, 12 of scales, `d`.
pub(super) fn three_bits(block: &[u8], out: &mut [f32]) {
    let (thirds, bits, scales) = (&block[..32], &block[32..96], &block[96..108]);
    let d = half_at(block, 108);
    for (part, out) in out.chunks_exact_mut(16).enumerate() {
        // Six bits of a scale: four by turns in the first eight bytes, two in the last four.
        let low = if part < 8 { scales[part] & 15 } else { scales[part - 8] >> 4 };
        let high = scales[8 + part % 4] >> (2 * (part / 4)) & 3;
        let scale = d * (f32::from(low | high << 4) - 32.0);
        let third = |entry: usize| thirds[part % 2 * 16 + entry] >> (part / 2) & 1;
        quarters(bits, part, out, |entry, q| scale * (f32::from(q | third(entry) << 2) - 4.0));
    }
}

/// The two bits of each entry of a part: a half of the block has 32 bytes, of which each holds four entries 32 apart.
fn quarters(bits: &[u8], part: usize, out: &mut [f32], value: impl Fn(usize, u8) -> f32) {
    let (upper, within) = (part / 8, part % 8);
    for (entry, out) in out.iter_mut().enumerate() {
        let byte = bits[upper * 32 + within % 2 * 16 + entry];
        *out = value(entry, byte >> (2 * (within / 2)) & 3);
    }
}

/// The six bits of a part's scale and of its least value, of eight parts in twelve bytes.
fn scale_and_least(scales: &[u8], part: usize) -> (f32, f32) {
    let (scale, least) = if part < 4 {
        (scales[part] & 63, scales[part + 4] & 63)
    } else {
        (scales[part + 4] & 15 | scales[part - 4] >> 6 << 4, scales[part + 4] >> 4 | scales[part] >> 6 << 4)
    };
    (f32::from(scale), f32::from(least))
}

/// `d · scale · q − dmin · least` with four bits, or five where `fifths` are there, parts of 32.
fn by_eights(block: &[u8], fifths: Option<&[u8]>, bits: &[u8], out: &mut [f32]) {
    let (d, dmin, scales) = (half_at(block, 0), half_at(block, 2), &block[4..16]);
    for (part, out) in out.chunks_exact_mut(32).enumerate() {
        let (scale, least) = scale_and_least(scales, part);
        let (scale, least) = (d * scale, dmin * least);
        for (entry, out) in out.iter_mut().enumerate() {
            let low = bits[part / 2 * 32 + entry] >> (4 * (part % 2)) & 15;
            let high = fifths.map_or(0, |fifths| (fifths[entry] >> part & 1) << 4);
            *out = scale * f32::from(low | high) - least;
        }
    }
}

/// Four bits: `d`, `dmin`, 12 bytes of scales, 128 of bits.
pub(super) fn four_bits(block: &[u8], out: &mut [f32]) {
    by_eights(block, None, &block[16..144], out);
}

/// Five bits: `d`, `dmin`, 12 bytes of scales, 32 of fifth bits, 128 of the lower four.
pub(super) fn five_bits(block: &[u8], out: &mut [f32]) {
    by_eights(block, Some(&block[16..48]), &block[48..176], out);
}

/// `d · scale · (q − 32)` with six bits, parts of 16: 128 bytes of lower bits, 64 of upper, 16 scales with a sign, `d`.
pub(super) fn six_bits(block: &[u8], out: &mut [f32]) {
    let (lower, upper, scales) = (&block[..128], &block[128..192], &block[192..208]);
    let d = half_at(block, 208);
    for (entry, out) in out.iter_mut().enumerate() {
        // Quarter by quarter of each half: two quarters in the low four bits of 64 bytes, two in the high ones.
        let (side, within) = (entry / 128, entry % 128);
        let (quarter, column) = (within / 32, within % 32);
        let low = lower[side * 64 + quarter % 2 * 32 + column] >> (4 * (quarter / 2)) & 15;
        let high = upper[side * 32 + column] >> (2 * quarter) & 3;
        let scale = d * f32::from(scales[entry / 16] as i8);
        *out = scale * (f32::from(low | high << 4) - 32.0);
    }
}
