//! Room on a disk.

use std::path::Path;

/// Bytes that the disk of a folder still takes from this user; nothing where the system does not say.
#[must_use]
pub fn free_space(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let about = rustix::fs::statvfs(folder).ok()?;
        about.f_bavail.checked_mul(about.f_frsize)
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_some_room_and_what_is_not_there_none() {
        let folder = tempfile::tempdir().unwrap();
        if cfg!(unix) {
            let free = free_space(folder.path()).unwrap();
            // No disk has an exbibyte.
            assert!(free > 0 && free < 1 << 60, "{free}");
        }
        assert_eq!(free_space(&folder.path().join("none")), None);
    }
}
