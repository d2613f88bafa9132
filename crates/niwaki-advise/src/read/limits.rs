//! What a file may make a reader hold.
//!
//! A header is a claim. Every reader checks what a header claims against the bytes that are there before it takes memory
//! for it, and unpacks in blocks, never beyond the size that was declared. The factors between bytes there and bytes held
//! are these; `tests/laws/garbage.rs` holds files that lie to them.

/// Steps of one trajectory at most: eight times the longest context of a language model today. With fewer than ten
/// lists of eight bytes a step, one trajectory takes some 600 MB at most.
pub(crate) const LONGEST: usize = 1 << 23;

/// Bytes of one line of text at most. A number takes two bytes of it at least (`0,`) and eight in memory: a factor of 4.
pub(crate) const LONGEST_LINE: u64 = 1 << 26;

/// What deflate packs into one byte at most: 258 bytes take two bits.
pub(crate) const DEFLATE: u64 = 1032;

/// What snappy packs into one byte at most: a copy of 64 bytes takes three.
pub(crate) const SNAPPY: usize = 22;

/// Bytes that are unpacked and converted at a time.
pub(crate) const BLOCK: usize = 1 << 16;

/// Values of a column at most, for each byte of a parquet file, beyond [`RUN`]: a run of one value may claim any number
/// of them in five bytes, but the log-probs of the same steps are no run.
pub(crate) const PER_BYTE: u64 = 64;

/// Values that a column of any parquet file may claim.
pub(crate) const RUN: u64 = 1 << 20;

/// Bytes of the largest page.
pub(crate) const LARGEST_PAGE: usize = 1 << 28;

/// Bytes that a page may unpack to however few it is packed in: zeros pack beyond every factor.
pub(crate) const SOUND_PAGE: usize = 1 << 24;
