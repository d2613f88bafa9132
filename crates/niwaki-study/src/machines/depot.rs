//! Runs on their way into a store: private while they train, put in place whole.
//!
//! In a shared folder a run is a folder, renamed into place. In any other store it is one archive under the name of its
//! spec, created where there is none; what is asked of it is unpacked into a folder of this machine.

use super::archive;
use super::split::home;
use crate::Error;
use crate::training::Planned;
use niwaki_files::{read_own, sync_folder};
use niwaki_store::Store;
use niwaki_train::run::{self, CHECKPOINT, CURVE, Claim, DUMP, EVENTS, OPTIMA, POLICIES, SPEC, SUMMARY};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What a run that goes on needs. The checkpoint comes first: the one that may still write it wrote the lines that it counts
/// on before.
const GOES_ON: [&str; 7] = [CHECKPOINT, CURVE, DUMP, POLICIES, EVENTS, OPTIMA, SPEC];

/// What two finished runs must have in common; times are in none of these.
const RESULTS: [&str; 6] = [SUMMARY, CURVE, OPTIMA, DUMP, POLICIES, CHECKPOINT];

/// The store of a plan's runs, and where this process keeps those that it trains.
pub(super) struct Depot {
    pub(super) store: Arc<dyn Store>,
    /// The folder of the results: the store itself, or where those that are asked for are unpacked.
    root: PathBuf,
    /// The folder of attempts, on the same disk as the results, so that a finished run is renamed into place.
    attempts: PathBuf,
    /// Whether the store is not a folder.
    remote: bool,
}

impl Depot {
    /// The depot of a plan. Where the store is not a folder, its results are unpacked in `scratch`.
    pub(super) fn new(store: Arc<dyn Store>, plan: &str, scratch: &Path) -> Self {
        let (root, remote) = match store.folder() {
            Some(folder) => (folder.to_owned(), false),
            None => (scratch.to_owned(), true),
        };
        let attempts = root.join(records(plan)).join("work");
        Self { store, root, attempts, remote }
    }

    /// The folder of the results, which holds those of some runs that are finished.
    pub(super) fn holding<'a>(&self, runs: impl IntoIterator<Item = &'a Planned>) -> Result<&Path, Error> {
        for run in runs.into_iter().filter(|_| self.remote) {
            let to = self.root.join(&run.home);
            if run::is_finished(&to, &run.identity())? {
                continue;
            }
            if let Some(bytes) = self.store.read(&archived(run))? {
                let part = self.attempts.join(format!("unpacked-{}-{}", std::process::id(), run.hash));
                archive::unpack(&bytes, &part).map_err(|reason| damaged(self.store.as_ref(), run, reason))?;
                let above = to.parent().unwrap_or(&self.root);
                fs::create_dir_all(above).map_err(|source| disk(above, source))?;
                let unpacked = fs::rename(&part, &to);
                let _ = fs::remove_dir_all(&part);
                match unpacked {
                    // Another process of this machine was first.
                    Err(error) if is_taken(&error) => {}
                    unpacked => unpacked.map_err(|source| disk(&to, source))?,
                }
            }
        }
        Ok(&self.root)
    }

    /// Brings a file of a study's folder, where the store has it and the folder has not.
    pub(super) fn bring(&self, name: &Path) -> Result<(), Error> {
        let path = self.root.join(name);
        if self.remote
            && !path.exists()
            && let Some(bytes) = self.store.read(&named(name))?
        {
            path.parent().map_or(Ok(()), fs::create_dir_all).map_err(|source| disk(&path, source))?;
            niwaki_files::write_atomically(&path, &bytes).map_err(|source| disk(&path, source))?;
        }
        Ok(())
    }

    /// Leaves a file of a study's folder in the store, where there is none.
    pub(super) fn leave(&self, name: &Path) -> Result<(), Error> {
        let path = self.root.join(name);
        if self.remote {
            let bytes = read_own(&path).map_err(|source| disk(&path, source))?;
            self.store.create(&named(name), &bytes)?;
        }
        Ok(())
    }

    /// Whether a run is finished.
    pub(super) fn is_finished(&self, run: &Planned) -> Result<bool, Error> {
        if self.remote {
            return Ok(self.store.written(&archived(run))?.is_some());
        }
        Ok(run::is_finished(&self.root.join(&run.home), &run.identity())?)
    }

    /// The folder of an attempt, in which no other process works.
    pub(super) fn attempt(&self, unit: usize, attempt: u32) -> PathBuf {
        self.attempts.join(format!("{unit}.{attempt}"))
    }

    /// Takes over what earlier attempts at a unit, or a process that trained in place, saved of a run: copies, for the
    /// other may not be dead.
    pub(super) fn take_over(&self, run: &Planned, unit: usize, attempt: u32) -> Result<bool, Error> {
        let to = self.attempt(unit, attempt).join(&run.home);
        let earlier = (1..attempt).rev().map(|earlier| self.attempt(unit, earlier).join(&run.home));
        let Some(from) =
            earlier.chain([self.root.join(&run.home)]).find(|from| from.join(CHECKPOINT).exists())
        else {
            return Ok(false);
        };
        fs::create_dir_all(&to).map_err(|source| disk(&to, source))?;
        for name in GOES_ON {
            match fs::copy(from.join(name), to.join(name)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(disk(&from.join(name), error));
                }
                _ => {}
            }
        }
        Ok(true)
    }

    /// Puts a finished run in place; nothing changes where it stands there already, which must be the same.
    pub(super) fn publish(&self, run: &Planned, attempt: &Path) -> Result<(), Error> {
        let (from, to) = (attempt.join(&run.home), self.root.join(&run.home));
        if self.remote {
            return self.archive(run, &from);
        }
        let above = to.parent().unwrap_or(&self.root);
        fs::create_dir_all(above).map_err(|source| disk(above, source))?;
        loop {
            match fs::rename(&from, &to) {
                Ok(()) => return sync_folder(above).map_err(|source| disk(above, source)),
                Err(error) if is_taken(&error) && self.is_finished(run)? => {
                    return same(run, &from, |file| read_own(&to.join(file)).ok());
                }
                Err(error) if is_taken(&error) => self.displace(&to, attempt)?,
                // The attempt that overtook this one cleared it away.
                Err(error) if error.kind() == ErrorKind::NotFound && self.is_finished(run)? => return Ok(()),
                Err(source) => return Err(disk(&to, source)),
            }
        }
    }

    /// The same where the store is not a folder.
    fn archive(&self, run: &Planned, from: &Path) -> Result<(), Error> {
        // A summary was written last: without it another attempt cleared this one away.
        if !from.join(SUMMARY).exists() && self.is_finished(run)? {
            return Ok(());
        }
        let bytes = archive::pack(from).map_err(|source| disk(from, source))?;
        if self.store.create(&archived(run), &bytes)? {
            return Ok(());
        }
        let theirs = self.store.read(&archived(run))?.unwrap_or_default();
        let theirs = archive::files(&theirs).map_err(|reason| damaged(self.store.as_ref(), run, reason))?;
        same(run, from, |file| theirs.iter().find(|(name, _)| name == file).map(|(_, bytes)| bytes.clone()))
    }

    /// Moves an unfinished or another run out of the way, unless it is being trained.
    fn displace(&self, folder: &Path, attempt: &Path) -> Result<(), Error> {
        // A file system without locks has nobody who holds one.
        if matches!(Claim::take(folder, Some(Duration::ZERO)), Ok(None)) {
            return Err(Error::Busy { folder: folder.to_owned() });
        }
        let aside =
            (0_u32..).map(|number| attempt.join(format!("displaced-{number}"))).find(|path| !path.exists());
        match fs::rename(folder, aside.unwrap_or_else(|| attempt.join("displaced"))) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(disk(folder, error)),
            _ => Ok(()),
        }
    }

    /// Removes this attempt at a unit that is done, and those before it.
    pub(super) fn clear(&self, unit: usize, attempt: u32) {
        for earlier in 1..=attempt {
            // Litter is a nuisance, no failure; a holder that comes back may be writing there.
            let _ = fs::remove_dir_all(self.attempt(unit, earlier));
        }
    }

    /// Removes an attempt, to begin it anew.
    pub(super) fn begin_anew(&self, unit: usize, attempt: u32) -> Result<(), Error> {
        let folder = self.attempt(unit, attempt);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(disk(&folder, error)),
            _ => Ok(()),
        }
    }
}

/// The prefix of a plan's records in its store.
pub(super) fn records(plan: &str) -> String {
    format!(".plans/{plan}")
}

/// The name of a run's archive.
fn archived(run: &Planned) -> String {
    format!("{}/{}.zip", home(run), run.hash)
}

/// A path as a store names it.
fn named(path: &Path) -> String {
    path.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// Holds a run against the one that stands in its place.
fn same(run: &Planned, ours: &Path, theirs: impl Fn(&str) -> Option<Vec<u8>>) -> Result<(), Error> {
    for file in RESULTS {
        // The place may hold less: checkpoints may be removed, and the attempt that overtook this one cleared it away.
        if let (Ok(our_bytes), Some(their_bytes)) = (read_own(&ours.join(file)), theirs(file))
            && our_bytes != their_bytes
        {
            return Err(Error::Differs { run: home(run), file, left: ours.to_owned() });
        }
    }
    Ok(())
}

fn damaged(store: &dyn Store, run: &Planned, reason: String) -> Error {
    Error::Plan {
        name: format!("{} in {}", archived(run), store.name()),
        mend: format!("{reason}; remove it and work again"),
    }
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists)
}

fn disk(path: &Path, source: io::Error) -> Error {
    Error::Disk { path: path.to_owned(), source }
}
