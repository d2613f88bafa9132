//! A shared folder, over NFS too: every change is one rename.
//!
//! A record is a folder that holds one file. A folder cannot be renamed onto another that is not empty, so that of several
//! processes one creates the record; within it the file is replaced by renaming. Nothing is flushed to the disk: a record
//! that a power failure takes costs an attempt that another worker repeats.

use crate::{Error, Store};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// The file of a record.
const RECORD: &str = "record.json";

/// Where records are made before they are renamed into place.
const MAKING: &str = ".making";

/// A shared folder.
#[derive(Debug)]
pub struct FolderStore {
    root: PathBuf,
}

/// Tells the temporary names of one process apart.
static MADE: AtomicU64 = AtomicU64::new(0);

impl FolderStore {
    /// Opens a folder, which is made where it is missing.
    ///
    /// # Errors
    /// If it cannot be made, or is not a folder.
    pub fn open(root: &Path) -> Result<Self, Error> {
        fs::create_dir_all(root).map_err(|source| disk(root, source))?;
        Ok(Self { root: root.to_owned() })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A temporary name that no other process has: machines that share a folder may share numbers of processes.
    fn fresh(&self, home: &Path) -> Result<PathBuf, Error> {
        let making = home.join(MAKING);
        fs::create_dir_all(&making).map_err(|source| disk(&making, source))?;
        let since =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        loop {
            let count = MADE.fetch_add(1, Ordering::Relaxed);
            let path = making.join(format!("{}.{since:x}.{count}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(source) => return Err(disk(&path, source)),
            }
        }
    }

    /// Opens a record's file. Over NFS an open file is asked for anew, where its attributes alone may be a minute old.
    fn opened(&self, name: &str) -> Result<Option<(PathBuf, File)>, Error> {
        let path = self.at(name).join(RECORD);
        match File::open(&path) {
            Ok(file) => Ok(Some((path, file))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(disk(&path, source)),
        }
    }
}

impl Store for FolderStore {
    fn name(&self) -> String {
        self.root.display().to_string()
    }

    fn folder(&self) -> Option<&Path> {
        Some(&self.root)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some((path, mut file)) = self.opened(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|source| disk(&path, source))?;
        Ok(Some(bytes))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.at(name);
        let part = self.fresh(path.parent().unwrap_or(&self.root))?;
        let (new, old) = (part.join(RECORD), path.join(RECORD));
        let written = fs::write(&new, bytes)
            .and_then(|()| fs::create_dir_all(&path))
            .and_then(|()| fs::rename(&new, &old));
        // What is left of it is of no use to anybody.
        let _ = fs::remove_dir_all(&part);
        written.map_err(|source| disk(&old, source))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, Error> {
        let path = self.at(name);
        let part = self.fresh(path.parent().unwrap_or(&self.root))?;
        let made = fs::write(part.join(RECORD), bytes).and_then(|()| fs::rename(&part, &path));
        if made.is_err() {
            let _ = fs::remove_dir_all(&part);
        }
        match made {
            Ok(()) => Ok(true),
            Err(error) if stands(&error) => Ok(false),
            Err(source) => Err(disk(&path, source)),
        }
    }

    fn list(&self, under: &str) -> Result<Vec<String>, Error> {
        let path = self.at(under);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(disk(&path, source)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(|source| disk(&path, source))?.file_name();
            names.extend(name.to_str().filter(|name| *name != MAKING).map(ToOwned::to_owned));
        }
        names.sort_unstable();
        Ok(names)
    }

    fn written(&self, name: &str) -> Result<Option<SystemTime>, Error> {
        let Some((path, file)) = self.opened(name)? else { return Ok(None) };
        let written = file.metadata().and_then(|about| about.modified());
        written.map(Some).map_err(|source| disk(&path, source))
    }
}

/// Whether a rename was refused because something stands there.
fn stands(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists)
}

fn disk(path: &Path, source: io::Error) -> Error {
    // The temporary name says nothing to anybody.
    let shown = match path.parent() {
        Some(making) if making.file_name() == Some(OsStr::new(MAKING)) => making.parent().unwrap_or(path),
        _ => path,
    };
    Error::Disk { path: shown.to_owned(), source }
}
