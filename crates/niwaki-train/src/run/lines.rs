//! A file of JSON lines that grows with the run and can be cut back to a checkpoint.

use super::folder::{disk, other};
use crate::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file of lines, open at its end.
#[derive(Debug)]
pub(super) struct Lines {
    path: PathBuf,
    file: File,
    /// Lines not yet handed to the system.
    pending: Vec<u8>,
}

impl Lines {
    /// Opens a file, reads its first `count` lines and cuts off what follows.
    ///
    /// # Errors
    /// Where there are fewer lines, one is damaged, or the disk refuses. Nothing is cut then.
    pub(super) fn open<T: DeserializeOwned>(path: &Path, count: usize) -> Result<(Self, Vec<T>), Error> {
        let failed = |source| disk(path, source);
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let (mut kept, mut end) = (Vec::new(), 0);
        for line in bytes.split_inclusive(|&byte| byte == b'\n').take(count) {
            let place = kept.len() + 1;
            let read = serde_json::from_slice(line).ok().filter(|_| line.ends_with(b"\n"));
            let refuse = || other(path, format!("line {place} is damaged; {RESTART}"));
            kept.push(read.ok_or_else(refuse)?);
            end += line.len();
        }
        if kept.len() < count {
            let found = kept.len();
            let reason =
                format!("it ends after line {found}, but the checkpoint counts on {count}; {RESTART}");
            return Err(other(path, reason));
        }
        file.set_len(end as u64).and_then(|()| file.seek(SeekFrom::Start(end as u64))).map_err(failed)?;
        Ok((Self { path: path.to_owned(), file, pending: Vec::new() }, kept))
    }

    /// Adds a line.
    ///
    /// # Errors
    /// If a value cannot be written as JSON.
    pub(super) fn push(&mut self, value: &impl Serialize) -> Result<(), Error> {
        serde_json::to_writer(&mut self.pending, value)
            .map_err(|error| Error::Unwritable { reason: error.to_string() })?;
        self.pending.push(b'\n');
        Ok(())
    }

    /// Hands the lines to the system, so that readers see them.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.file.write_all(&self.pending).map_err(|source| disk(&self.path, source))?;
        self.pending.clear();
        Ok(())
    }

    /// Waits until the lines are on the disk.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(super) fn sync(&mut self) -> Result<(), Error> {
        self.flush()?;
        self.file.sync_data().map_err(|source| disk(&self.path, source))
    }
}

const RESTART: &str = "put it back, or remove the folder to begin again";

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn lines_are_cut_back_and_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let (mut lines, none) = Lines::open::<u32>(&path, 0).unwrap();
        assert!(none.is_empty());
        for value in [1, 22, 333] {
            lines.push(&value).unwrap();
        }
        lines.sync().unwrap();
        assert_eq!(text(&path), "1\n22\n333\n");
        let (mut lines, kept) = Lines::open::<u32>(&path, 2).unwrap();
        assert_eq!((kept, text(&path).as_str()), (vec![1, 22], "1\n22\n"));
        lines.push(&4).unwrap();
        lines.flush().unwrap();
        assert_eq!(text(&path), "1\n22\n4\n");
    }

    #[test]
    fn a_short_or_damaged_file_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        for (content, said) in [
            ("1\n2\n", "ends after line 2, but the checkpoint counts on 3"),
            ("1\n2\n3", "line 3 is damaged"),
            ("1\nx\n3\n", "line 2 is damaged"),
        ] {
            std::fs::write(&path, content).unwrap();
            let refusal = Lines::open::<u32>(&path, 3).unwrap_err().to_string();
            assert!(refusal.contains(said), "{refusal}");
            assert_eq!(text(&path), content);
        }
    }
}
