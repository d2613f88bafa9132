//! Files that are whole or not there, and that say whether they are still what was written.
//!
//! Knows bytes and paths; knows nothing of runs, policies or formats.
//!
//! | module | what belongs there |
//! |---|---|
//! | [`write_atomically`], [`write_whole`], [`sweep`], [`sweep_dead`] | a file is the old one or the new one, and what a kill leaves is removed |
//! | [`folder_name`] | names that may become folders |
//! | [`free_space`] | how much room a disk has |
//! | [`read_text`], [`read_bytes`] | texts that people bring, up to a size that no sound one has |
//! | [`read_own`], [`read_own_text`] | files that we wrote: of any size, or no longer than a text |
//! | [`Digest`] | the checksum of bytes, 16 hexadecimal digits |

mod atomic;
mod digest;
mod name;
mod space;
mod text;

pub use atomic::{OnDisk, PART, sweep, sweep_dead, sync_folder, write_atomically, write_whole};
pub use digest::Digest;
pub use name::folder_name;
pub use space::free_space;
pub use text::{LONGEST_TEXT, read_bytes, read_own, read_own_text, read_text};
