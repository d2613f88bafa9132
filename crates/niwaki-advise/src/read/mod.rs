//! Dumps of any size, in three layouts, as bounded chunks of trajectories.
//!
//! | file | what belongs there |
//! |---|---|
//! | `dump.rs` | several files as one run; the first pass over rewards; places of faults |
//! | `jsonl.rs` | one object per line |
//! | `npz.rs`, `npy.rs` | NumPy arrays, padded or flat |
//! | `parquet/` | list columns, page by page |

mod dump;
mod jsonl;
mod npy;
mod npz;
mod parquet;

pub use dump::Dump;
