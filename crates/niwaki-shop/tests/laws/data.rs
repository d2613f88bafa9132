//! The shipped instances.

use niwaki_shop::formats::KnownBounds;
use std::path::{Path, PathBuf};

/// The folder of shipped instances.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data")
}

/// The folders with a table of bounds.
pub(crate) const SETS: [&str; 4] = ["jsp", "pfsp", "pfsp-cc-by-sa", "fjsp"];

/// A set's table of bounds.
pub(crate) fn bounds(set: &str) -> KnownBounds {
    KnownBounds::load(&folder().join(set).join("bounds.csv")).unwrap()
}

/// A set's instance files, sorted.
pub(crate) fn files(set: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "txt" || ending == "fjs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&folder().join(set), &mut found);
    found.sort();
    found
}
