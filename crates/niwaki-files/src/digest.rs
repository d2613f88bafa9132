//! The checksum of bytes: FNV-1a with 64 bits.
//!
//! It guards against accidents, not against a forger. Each step is a bijection of the state for a given byte, so a change
//! of any single byte always shows; other accidents pass once in 2⁶⁴.

use std::fmt;

/// A checksum that grows with the bytes it is shown; written as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Digits of a written checksum.
    pub const DIGITS: usize = 16;

    /// The checksum of some bytes.
    #[must_use]
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self::default().and(bytes)
    }

    /// The checksum after more bytes.
    #[must_use]
    pub fn and(self, bytes: impl AsRef<[u8]>) -> Self {
        let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        Self(bytes.as_ref().iter().fold(self.0, step))
    }

    /// The number itself.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standard() {
        // The published test vectors of FNV-1a, 64 bits: the empty string, "a" and "foobar".
        assert_eq!(Digest::of("").to_string(), "cbf29ce484222325");
        assert_eq!(Digest::of("a").to_string(), "af63dc4c8601ec8c");
        assert_eq!(Digest::of("foobar").to_string(), "85944171f73967e8");
        assert_eq!(Digest::of("foo").and("bar"), Digest::of("foobar"));
    }
}
