//! What can be wrong with a store.

use std::path::PathBuf;

/// A store that refuses, or a text that names none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A folder that refuses.
    #[error("{}: {source}{}", path.display(), remedy(source))]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A text that is not a store.
    #[error("'{came}' is not a store: {mend}")]
    NoStore {
        /// What was written.
        came: String,
        /// What to write.
        mend: String,
    },
    /// A bucket that refuses, or cannot be reached.
    #[error("{place}: {reason}; {mend}")]
    Remote {
        /// The bucket.
        place: String,
        /// What its server said.
        reason: String,
        /// What helps.
        mend: &'static str,
    },
    /// A record that does not read.
    #[error("record {name} of {place}: {reason}")]
    Damaged {
        /// The store.
        place: String,
        /// The record.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

/// What helps, to follow on what the system said.
fn remedy(source: &std::io::Error) -> &'static str {
    use std::io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match source.kind() {
        PermissionDenied | ReadOnlyFilesystem => {
            "; what is there is kept, choose a place that can be written"
        }
        StorageFull | QuotaExceeded => {
            "; what is there is kept, free the place and run the same command again"
        }
        _ => "; what is there is kept",
    }
}
