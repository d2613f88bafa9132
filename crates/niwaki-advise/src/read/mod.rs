//! Dumps of any size, in three layouts, as bounded chunks of trajectories.
//!
//! | file | what belongs there |
//! |---|---|
//! | `dump.rs` | several files as one run; the first pass over rewards; places of faults |
//! | `records.rs` | what every layout gives: rows one by one |
//! | `jsonl.rs` | one object per line |
//! | `npz.rs`, `npy.rs`, `header.rs` | NumPy arrays, padded or flat |
//! | `extents.rs` | lengths and offsets of an archive's trajectories |
//! | `parquet/` | list columns, page by page |
//! | `limits.rs` | what a file may make a reader hold |

mod dump;
mod extents;
mod header;
mod jsonl;
pub(crate) mod limits;
mod npy;
mod npz;
mod parquet;
mod records;

pub use dump::Dump;
pub use npy::Numbers;
pub(crate) use records::shown;
