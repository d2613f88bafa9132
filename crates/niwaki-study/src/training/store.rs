//! The files of a run: claimed by one process, written whole, read back.
//!
//! `summary.json` is written last: a run is finished where it is there and names the spec's hash. A run in work holds a
//! lock that the system lets go when its process dies.

use super::Planned;
use crate::Error;
use niwaki_train::Record;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// What says that a run is finished. Nothing in it depends on the clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Summary {
    /// The hash of the spec.
    pub(super) spec: String,
    /// The seed.
    pub(super) seed: u64,
    /// Iterations asked for.
    pub(super) iterations: usize,
    /// Iterations done, fewer where training diverged.
    pub(super) done: usize,
    /// Where it ran.
    pub(super) device: String,
}

/// A run that this process alone works on.
#[derive(Debug)]
pub(super) struct Claim {
    file: File,
    path: PathBuf,
}

impl Claim {
    /// Claims the run at `home`; nothing where another process has it, unless told to wait for that one.
    pub(super) fn take(home: &Path, wait: bool) -> Result<Option<Self>, Error> {
        let path = home.join("lock");
        let disk = |source| Error::Disk { path: path.clone(), source };
        fs::create_dir_all(home).map_err(disk)?;
        let file = File::create(&path).map_err(disk)?;
        if wait {
            file.lock().map_err(disk)?;
        } else {
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(source)) => return Err(disk(source)),
            }
        }
        Ok(Some(Self { file, path }))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Whoever opened the same file meanwhile still finds the run finished; what stays behind is an empty file.
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

/// Whether the run at `home` is finished under this spec.
pub(super) fn finished(home: &Path, hash: &str) -> Result<bool, Error> {
    Ok(read_summary(home)?.is_some_and(|summary| summary.spec == hash))
}

/// Writes a finished run.
pub(super) fn write(home: &Path, run: &Planned, curve: &[Record], device: &str) -> Result<(), Error> {
    let spec = &run.recipe.spec;
    let mut lines = String::new();
    for record in curve {
        lines += &json(home, record)?;
        lines.push('\n');
    }
    let done = curve.last().map_or(0, |record| record.iteration);
    let summary = Summary {
        spec: run.hash.clone(),
        seed: spec.seed,
        iterations: spec.iterations,
        done,
        device: device.to_owned(),
    };
    write_whole(&home.join("spec.toml"), &spec.to_toml()?)?;
    write_whole(&home.join("curve.jsonl"), &lines)?;
    write_whole(&home.join("summary.json"), &(json(home, &summary)? + "\n"))
}

/// Reads a finished run back; nothing where it is not finished under this spec.
pub(super) fn read(home: &Path, hash: &str) -> Result<Option<(Summary, Vec<Record>)>, Error> {
    let Some(summary) = read_summary(home)?.filter(|summary| summary.spec == hash) else { return Ok(None) };
    let path = home.join("curve.jsonl");
    let text = fs::read_to_string(&path).map_err(|source| Error::Disk { path: path.clone(), source })?;
    let curve = text.lines().map(serde_json::from_str).collect::<Result<Vec<Record>, _>>();
    let curve = curve.map_err(|error| Error::Damaged { path, reason: error.to_string() })?;
    Ok(Some((summary, curve)))
}

fn read_summary(home: &Path) -> Result<Option<Summary>, Error> {
    let path = home.join("summary.json");
    match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| Error::Damaged { path, reason: error.to_string() }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Disk { path, source }),
    }
}

fn json(home: &Path, value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value)
        .map_err(|error| Error::Damaged { path: home.to_owned(), reason: error.to_string() })
}

/// Writes a file whole, in a folder that is made where it is missing.
pub(super) fn write_whole(path: &Path, text: &str) -> Result<(), Error> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| niwaki_nn::write_atomically(path, text.as_bytes()))
        .map_err(|source| Error::Disk { path: path.to_owned(), source })
}
