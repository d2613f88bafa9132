//! Files that are whole or not there, and that say whether they are still what was written.
//!
//! Knows bytes and paths; knows nothing of runs, policies or formats.
//!
//! | module | what belongs there |
//! |---|---|
//! | [`write_atomically`], [`sweep`] | a file is the old one or the new one, and what a kill leaves is removed |
//! | [`Digest`] | the checksum of bytes, 16 hexadecimal digits |

mod atomic;
mod digest;

pub use atomic::{PART, sweep, sync_folder, write_atomically};
pub use digest::Digest;
