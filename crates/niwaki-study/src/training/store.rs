//! The files of a run: claimed by one process, written whole, read back.
//!
//! `summary.json` is written last and atomically: a run is finished where it is there and names the spec's hash, so that
//! the files before it need not be renamed into place. A run in work holds a lock that the system lets go when its
//! process dies.

use super::Planned;
use crate::Error;
use niwaki_train::Record;
use niwaki_train::spec::PolicyKind;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io::Write as _;
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
    let pointer = spec.policy.kind == PolicyKind::Pointer;
    let mut lines = Vec::with_capacity(512 * curve.len());
    for record in curve {
        let record = storable(record.clone(), pointer);
        serde_json::to_writer(&mut lines, &record)
            .map_err(|error| Error::Damaged { path: home.to_owned(), reason: error.to_string() })?;
        lines.push(b'\n');
    }
    let done = curve.last().map_or(0, |record| record.iteration);
    let summary = Summary {
        spec: run.hash.clone(),
        seed: spec.seed,
        iterations: spec.iterations,
        done,
        device: device.to_owned(),
    };
    write_through(&home.join("spec.toml"), spec.to_toml()?.as_bytes())?;
    write_through(&home.join("curve.jsonl"), &lines)?;
    write_whole(&home.join("summary.json"), &(json(home, &summary)? + "\n"))
}

/// A record that reads back: JSON has no infinity, and a prefix ratio after a wild update overflows. Candidates of a
/// pointer are no tokens, so how often each came first or last says nothing and would be most of the file.
fn storable(mut record: Record, pointer: bool) -> Record {
    let numbers = [
        &mut record.drift,
        &mut record.clip_fraction,
        &mut record.prefix_ess,
        &mut record.ess,
        &mut record.dose,
        &mut record.rollout_dose,
        &mut record.kl,
        &mut record.entropy,
        &mut record.gradient_norm,
    ];
    for number in numbers {
        if !number.is_finite() {
            *number = f64::MAX;
        }
    }
    if pointer {
        record.first.clear();
        record.last.clear();
    }
    record
}

/// Writes a file down to the disk, without the care that one which must never be seen half-written needs.
fn write_through(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let written = File::create(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(|source| Error::Disk { path: path.to_owned(), source })
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
    made.and_then(|()| niwaki_files::write_atomically(path, text.as_bytes()))
        .map_err(|source| Error::Disk { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overflowed_reads_back() {
        let wild =
            Record { dose: f64::INFINITY, kl: f64::NAN, drift: 2.0, first: vec![1.0], ..Record::default() };
        let text = serde_json::to_string(&storable(wild, false)).unwrap();
        let back: Record = serde_json::from_str(&text).unwrap();
        assert_eq!((back.dose, back.kl, back.drift), (f64::MAX, f64::MAX, 2.0));
        assert_eq!(back.first, [1.0]);
        assert_eq!(storable(back, true).first, [0.0; 0]);
    }
}
