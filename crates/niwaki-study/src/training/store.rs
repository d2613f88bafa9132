//! Files beside the runs of a study, written whole. The runs' own are those of `niwaki_train::run`.

use crate::Error;
use serde::Serialize;
use std::fs;
use std::path::Path;

/// Writes a value as JSON, whole, in a folder that is made where it is missing.
pub(super) fn write_whole(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::Damaged { path: path.to_owned(), reason: error.to_string() })?;
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| niwaki_files::write_atomically(path, (text + "\n").as_bytes()))
        .map_err(|source| Error::Disk { path: path.to_owned(), source })
}
