//! Tensors in files: where each lies, and its scalars as `f32`.
//!
//! | file | what belongs there |
//! |---|---|
//! | `packing.rs` | how scalars are packed, from `f32` to four bits |
//! | `super_blocks.rs` | packings whose blocks of 256 have parts with scales of their own |
//! | `shards.rs` | safetensors, one file or many |
//! | `gguf.rs` | GGUF: its table of keys and its tensors |
//! | `divisors.rs` | what a GGUF file divides the frequencies of positions by, as Llama 3's rule |
//! | `translate.rs` | a GGUF file as a checkpoint: sizes, names, rows in Hugging Face's order |

mod divisors;
mod gguf;
mod packing;
mod shards;
mod super_blocks;
mod translate;

pub use gguf::{Entry, Gguf};
pub use packing::Packing;
pub use shards::Shards;
pub use translate::Translated;

use crate::{Error, Result};
use memmap2::Mmap;
use niwaki_files::Digest;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

/// Where a tensor lies in a mapped file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which of the files.
    pub(crate) file: usize,
    /// Its shape, row-major.
    pub shape: Vec<usize>,
    /// How its scalars are packed.
    pub packing: Packing,
    /// Its bytes.
    pub(crate) bytes: Range<usize>,
}

/// The tensors of a checkpoint, by Hugging Face's names.
pub trait Source: std::fmt::Debug + Send + Sync {
    /// The shape of a tensor.
    ///
    /// # Errors
    /// If there is none of that name.
    fn shape(&self, name: &str) -> Result<Vec<usize>>;

    /// All scalars of a tensor, row-major.
    ///
    /// # Errors
    /// If there is none of that name, or its bytes do not hold its shape.
    fn scalars(&self, name: &str) -> Result<Vec<f32>>;

    /// A checksum that goes on over all bytes of the files.
    fn digest(&self, digest: Digest) -> Digest;

    /// The file to name in a message about all tensors.
    fn path(&self) -> &Path;
}

/// Maps a file into memory.
pub(crate) fn map(path: &Path) -> Result<Mmap> {
    // Asked first: opening a pipe would wait for a writer.
    let there = std::fs::metadata(path).map_err(|error| Error::file(path, error))?;
    if !there.is_file() {
        return Err(Error::file(path, "is not a file, and only a file can be mapped"));
    }
    let file = File::open(path).map_err(|error| Error::file(path, error))?;
    // SAFETY: the map is only read. A file that another process changes meanwhile gives wrong numbers, as reading it would;
    // one that is cut short while it is mapped ends the process, which no reader of weights guards against.
    unsafe { Mmap::map(&file) }.map_err(|error| Error::file(path, error))
}
