//! Keys of groups: what is told apart by a text or a number, as one number.

use niwaki_files::Digest;

/// The key of a group that is a text: that of its number, so that a group has one key, and one fold, in every layout.
#[must_use]
pub fn key_of_text(text: &[u8]) -> u64 {
    key_of_number(number_of_text(text))
}

/// A text as a number, for columns that hold numbers: the first 53 bits of its FNV-1a.
#[must_use]
pub(crate) fn number_of_text(text: &[u8]) -> f64 {
    (Digest::of(text).value() >> 11) as f64
}

/// The key of a group that is a number: its bits, so that a dump can be written with the number again.
#[must_use]
pub const fn key_of_number(number: f64) -> u64 {
    number.to_bits()
}

/// The number of a key.
#[must_use]
pub(crate) const fn number_of_key(key: u64) -> f64 {
    f64::from_bits(key)
}

/// A key with its bits spread, for what is drawn by them.
#[must_use]
pub(crate) fn spread(key: u64) -> u64 {
    Digest::of(key.to_le_bytes()).value()
}

/// The key of a group that is a whole number. Floats tell whole numbers apart up to 2⁵³; beyond, the digits are the name.
#[must_use]
pub fn key_of_whole(number: i128) -> u64 {
    if number.unsigned_abs() <= u128::from(EXACT) {
        key_of_number(number as f64)
    } else {
        key_of_text(number.to_string().as_bytes())
    }
}

/// The largest whole number below which floats tell all of them apart.
const EXACT: u64 = 1 << 53;

/// Whether a number that came as a float may stand for another whole number beside it.
#[must_use]
pub fn is_blurred(number: f64) -> bool {
    number.abs() >= EXACT as f64
}
