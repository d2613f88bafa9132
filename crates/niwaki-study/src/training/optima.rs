//! Optima of pools of shops, kept beside the studies that play them, so that each pool is searched once: what could not be proven in
//! time must not differ from study to study.

use super::store;
use crate::Error;
use niwaki_files::read_own_text;
use niwaki_shop::Bounds;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    lower: Vec<u32>,
    upper: Vec<u32>,
}

/// What a file knows of a pool of so many shops; nothing where there is none.
///
/// # Errors
/// If the file is damaged, is of another number of shops, or cannot be read.
pub(super) fn read(path: &Path, shops: usize) -> Result<Option<Vec<Bounds>>, Error> {
    let text = match read_own_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::Disk { path: path.to_owned(), source }),
    };
    let damaged = |reason: String| Error::Damaged { path: path.to_owned(), reason };
    let Kept { lower, upper } = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    let pairs = lower.iter().zip(&upper).map(|(&lower, &upper)| Bounds { lower, upper });
    let bounds: Vec<Bounds> =
        pairs.filter(|bounds| 0 < bounds.lower && bounds.lower <= bounds.upper).collect();
    if bounds.len() != shops || lower.len() != shops || upper.len() != shops {
        return Err(damaged(format!("it does not hold the bounds of {shops} shops; remove it")));
    }
    Ok(Some(bounds))
}

/// Keeps what is known of a pool.
///
/// # Errors
/// If the disk refuses.
pub(super) fn write(path: &Path, bounds: &[Bounds]) -> Result<(), Error> {
    let (lower, upper) = bounds.iter().map(|bounds| (bounds.lower, bounds.upper)).unzip();
    store::write_whole(path, &Kept { lower, upper })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_come_back_and_others_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("optima").join("pool.json");
        assert_eq!(read(&path, 2).unwrap(), None);
        let bounds = [Bounds { lower: 3, upper: 3 }, Bounds { lower: 4, upper: 6 }];
        write(&path, &bounds).unwrap();
        assert_eq!(read(&path, 2).unwrap(), Some(bounds.to_vec()));
        let refused = read(&path, 3).unwrap_err().to_string();
        assert!(refused.contains("it does not hold the bounds of 3 shops"), "{refused}");
        write(&path, &[Bounds { lower: 5, upper: 3 }, bounds[0]]).unwrap();
        assert!(read(&path, 2).is_err(), "a bound above the best schedule");
        std::fs::write(&path, "{\"lower\": [1]").unwrap();
        assert!(read(&path, 1).is_err());
    }
}
