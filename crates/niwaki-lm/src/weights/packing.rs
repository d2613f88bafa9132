//! How scalars are packed in files.
//!
//! Blocks of 32 share a scale `d` (and a lowest value `m`), both half floats. Four- and five-bit blocks keep entry `j` in the
//! low half of byte `j` and entry `j + 16` in its high half; the fifth bits stand in four bytes before them.

use super::super_blocks::{self, SUPER_BLOCK};

/// A way of packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// 32-bit floats.
    F32,
    /// Half floats.
    F16,
    /// The upper halves of 32-bit floats.
    Bf16,
    /// `d · q`, `q` a signed byte.
    Q8_0,
    /// `d · (q − 8)`, four bits.
    Q4_0,
    /// `d · q + m`, four bits.
    Q4_1,
    /// `d · (q − 16)`, five bits.
    Q5_0,
    /// `d · q + m`, five bits.
    Q5_1,
    /// Two bits, scales of four.
    Q2K,
    /// Three bits, scales of six.
    Q3K,
    /// Four bits, scales of six.
    Q4K,
    /// Five bits, scales of six.
    Q5K,
    /// Six bits, scales of eight.
    Q6K,
}

/// Entries of a block of the plain `Q` packings.
const BLOCK: usize = 32;

impl Packing {
    /// Entries and bytes of a block.
    #[must_use]
    pub const fn block(self) -> (usize, usize) {
        match self {
            Self::F32 => (1, 4),
            Self::F16 | Self::Bf16 => (1, 2),
            Self::Q8_0 => (BLOCK, 34),
            Self::Q4_0 => (BLOCK, 18),
            Self::Q4_1 => (BLOCK, 20),
            Self::Q5_0 => (BLOCK, 22),
            Self::Q5_1 => (BLOCK, 24),
            Self::Q2K => (SUPER_BLOCK, 84),
            Self::Q3K => (SUPER_BLOCK, 110),
            Self::Q4K => (SUPER_BLOCK, 144),
            Self::Q5K => (SUPER_BLOCK, 176),
            Self::Q6K => (SUPER_BLOCK, 210),
        }
    }

    /// Bytes of so many entries, or `None` where they do not divide into blocks.
    #[must_use]
    pub fn bytes(self, entries: usize) -> Option<usize> {
        let (each, bytes) = self.block();
        entries.is_multiple_of(each).then(|| entries / each).and_then(|blocks| blocks.checked_mul(bytes))
    }

    /// The scalars of whole blocks.
    #[must_use]
    pub fn unpack(self, bytes: &[u8]) -> Vec<f32> {
        let (each, size) = self.block();
        let mut out = vec![0.0; bytes.len() / size * each];
        for (block, out) in bytes.chunks_exact(size).zip(out.chunks_exact_mut(each)) {
            self.unpack_block(block, out);
        }
        out
    }

    fn unpack_block(self, block: &[u8], out: &mut [f32]) {
        let half_at = |at: usize| half(u16::from_le_bytes([block[at], block[at + 1]]));
        let fifth = |at: usize, entry: usize| (block[at + entry / 8] >> (entry % 8) & 1) << 4;
        match self {
            Self::F32 => out[0] = f32::from_le_bytes([block[0], block[1], block[2], block[3]]),
            Self::F16 => out[0] = half_at(0),
            Self::Bf16 => out[0] = f32::from_bits(u32::from(u16::from_le_bytes([block[0], block[1]])) << 16),
            Self::Q8_0 => {
                let scale = half_at(0);
                for (out, &byte) in out.iter_mut().zip(&block[2..]) {
                    *out = scale * f32::from(byte as i8);
                }
            }
            Self::Q4_0 => {
                let scale = half_at(0);
                nibbles(&block[2..], out, |_, q| scale * (f32::from(q) - 8.0));
            }
            Self::Q4_1 => {
                let (scale, least) = (half_at(0), half_at(2));
                nibbles(&block[4..], out, |_, q| scale * f32::from(q) + least);
            }
            Self::Q5_0 => {
                let scale = half_at(0);
                nibbles(&block[6..], out, |entry, q| scale * (f32::from(q | fifth(2, entry)) - 16.0));
            }
            Self::Q5_1 => {
                let (scale, least) = (half_at(0), half_at(2));
                nibbles(&block[8..], out, |entry, q| scale * f32::from(q | fifth(4, entry)) + least);
            }
            Self::Q2K => super_blocks::two_bits(block, out),
            Self::Q3K => super_blocks::three_bits(block, out),
            Self::Q4K => super_blocks::four_bits(block, out),
            Self::Q5K => super_blocks::five_bits(block, out),
            Self::Q6K => super_blocks::six_bits(block, out),
        }
    }
}

/// Writes each entry from its four bits.
fn nibbles(bytes: &[u8], out: &mut [f32], value: impl Fn(usize, u8) -> f32) {
    for entry in 0..BLOCK {
        let byte = bytes[entry % (BLOCK / 2)];
        let q = if entry < BLOCK / 2 { byte & 15 } else { byte >> 4 };
        out[entry] = value(entry, q);
    }
}

/// A half float: one bit of sign, five of exponent, ten of fraction.
#[must_use]
pub(crate) fn half(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let (exponent, fraction) = (u32::from(bits >> 10 & 31), u32::from(bits & 1023));
    let magnitude = match exponent {
        // Below the smallest normal one: a multiple of 2⁻²⁴.
        0 => (fraction as f32 / 16_777_216.0).to_bits(),
        31 => 255 << 23 | fraction << 13,
        // The exponents' middles are 15 and 127.
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_every_kind() {
        // 1 = 15 · 2¹⁰; −2.5 = −(1 + 1/4) · 2; the smallest is 2⁻²⁴, the largest 65504.
        let cases = [
            (15 << 10, 1.0),
            (0x8000 | 16 << 10 | 256, -2.5),
            (1, 2.0_f32.powi(-24)),
            (0x7bff, 65_504.0),
            (0, 0.0),
        ];
        for (bits, expected) in cases {
            assert_eq!(half(bits), expected, "{bits:x}");
        }
        assert!(half(31 << 10).is_infinite() && half(31 << 10 | 1).is_nan());
        assert_eq!(Packing::Bf16.unpack(&[0x20, 0xc0]), [-2.5]);
    }

    /// A block with scale 1/2 and, where there is one, least value 3; entries 0 and 17 are asked for.
    fn block(packing: Packing, body: &[u8]) -> (f32, f32) {
        // 1/2 = 14 · 2¹⁰, 3 = (1 + 1/2) · 2 = 16 · 2¹⁰ + 512.
        let mut bytes = (14_u16 << 10).to_le_bytes().to_vec();
        if matches!(packing, Packing::Q4_1 | Packing::Q5_1) {
            bytes.extend((16_u16 << 10 | 512).to_le_bytes());
        }
        bytes.extend(body);
        let out = packing.unpack(&bytes);
        assert_eq!(out.len(), 32);
        (out[0], out[17])
    }

    #[test]
    fn packed_blocks_by_hand() {
        // Byte 0 holds entry 0 low, byte 1 entry 17 high.
        let mut four = [0_u8; 16];
        (four[0], four[1]) = (0x05, 0xc0);
        // (5 − 8)/2 and (12 − 8)/2; 5/2 + 3 and 12/2 + 3.
        assert_eq!(block(Packing::Q4_0, &four), (-1.5, 2.0));
        assert_eq!(block(Packing::Q4_1, &four), (5.5, 9.0));
        // The fifth bits of entries 0 and 17: bit 0 of byte 0, bit 1 of byte 2. 5 + 16 = 21, 12 + 16 = 28.
        let five = [&[1, 0, 2, 0][..], &four].concat();
        assert_eq!(block(Packing::Q5_0, &five), (2.5, 6.0));
        assert_eq!(block(Packing::Q5_1, &five), (13.5, 17.0));
        let mut eight = [0_u8; 32];
        (eight[0], eight[17]) = (7, (-4_i8) as u8);
        assert_eq!(block(Packing::Q8_0, &eight), (3.5, -2.0));
        assert_eq!((Packing::Q4_1.bytes(64), Packing::Q4_1.bytes(33)), (Some(40), None));
    }
}
