//! Names of a run's files, whose folder it is, and that only one process works in it.

use super::events;
use super::optima::OPTIMA;
use super::turns::{self, TURNS, Turn};
use crate::Error;
use crate::spec::Spec;
use niwaki_files::{Digest, OnDisk, read_own_text, sweep, sync_folder, write_atomically, write_whole};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The resolved spec.
pub const SPEC: &str = "spec.toml";
/// One record per line.
pub const CURVE: &str = "curve.jsonl";
/// Trajectories for `niwaki advise`.
pub const DUMP: &str = "dump.jsonl";
/// What the policy says at all prefixes, for `niwaki oracle`.
pub const POLICIES: &str = "policies.jsonl";
/// The member and how far it came.
pub const CHECKPOINT: &str = "checkpoint.safetensors";
/// The curve in a few numbers.
pub const SUMMARY: &str = "summary.json";

/// Every file of a run. The summary comes first: without it, the others are those of an unfinished run.
const FILES: [&str; 9] = [SUMMARY, CHECKPOINT, TURNS, CURVE, DUMP, POLICIES, events::NAME, OPTIMA, SPEC];

/// What names a run in all its files: a run is a pure function of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The hash of its spec.
    pub spec: String,
    /// Its seed.
    pub seed: u64,
    /// Where it diverged and went on with other learning rates: what it did before is part of it.
    pub turns: Vec<Turn>,
}

impl Identity {
    /// The name of a spec's run.
    ///
    /// # Errors
    /// As [`Spec::hash`].
    pub fn of(spec: &Spec) -> Result<Self, Error> {
        Ok(Self { spec: spec.hash()?, seed: spec.seed, turns: Vec::new() })
    }

    /// The name of a spec's run as it went in a folder.
    ///
    /// # Errors
    /// Where the folder's turns are not as they were written.
    pub fn within(folder: &Path, spec: &Spec) -> Result<Self, Error> {
        let mut identity = Self::of(spec)?;
        let mut turns = turns::read(folder, spec.seed)?;
        turns.retain(|turn| turn.to.is_some());
        if turns.last().is_some_and(|turn| turn.to.as_ref() == Some(&identity.spec)) {
            identity.turns = turns;
        }
        Ok(identity)
    }

    /// What the checks of a file begin with: the spec that the run began with.
    pub(super) fn chain(&self, file: &str) -> Digest {
        let first = self.turns.first().map_or(&self.spec, |turn| &turn.from);
        Digest::of(format!("{file} {first} {}\n", self.seed))
    }
}

/// What to do with a folder that holds another run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupied {
    /// Refuse it: that run may still be wanted.
    Refuse,
    /// Take its place: the folder is named after what is now another run.
    Replace,
}

/// A folder that this process alone works in, until it is dropped. The system lets go of it when the process dies.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    /// Nothing where nobody else knows the folder.
    _held: Option<File>,
}

impl Claim {
    /// Claims a folder, which is made where it is missing; nothing where another process has it for longer than
    /// `patience`, which is endless where absent.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn take(path: &Path, patience: Option<Duration>) -> Result<Option<Self>, Error> {
        fs::create_dir_all(path).map_err(|source| disk(path, source))?;
        let held = File::open(path).map_err(|source| disk(path, source))?;
        let Some(patience) = patience else {
            held.lock().map_err(|source| disk(path, source))?;
            return Ok(Some(Self { path: path.to_owned(), _held: Some(held) }));
        };
        let began = Instant::now();
        loop {
            match held.try_lock() {
                Ok(()) => return Ok(Some(Self { path: path.to_owned(), _held: Some(held) })),
                Err(TryLockError::Error(source)) => return Err(disk(path, source)),
                Err(TryLockError::WouldBlock) if began.elapsed() < patience => {
                    thread::sleep(Duration::from_millis(30));
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
            }
        }
    }

    /// Claims a folder that no other process knows of, which is made where it is missing. No lock is asked for: some
    /// shared file systems have none.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn private(path: &Path) -> Result<Self, Error> {
        fs::create_dir_all(path).map_err(|source| disk(path, source))?;
        Ok(Self { path: path.to_owned(), _held: None })
    }
}

/// A run's folder, held by this process until it is dropped.
#[derive(Debug)]
pub struct Folder {
    claim: Claim,
    identity: Identity,
    /// The resolved spec as it is written.
    spec: String,
}

/// Whose a folder is.
enum Owner {
    Nobody,
    Ours,
    /// A run that diverged, and this one differs in learning rates alone: its turns, the last one closed.
    Turning(Vec<Turn>),
    Other(Error),
}

impl Folder {
    /// Makes the folder of a checked spec, or opens the one that an earlier process left, and writes the spec first.
    ///
    /// # Errors
    /// Where the folder holds another run that may not be replaced, another process works in it, or the disk refuses.
    pub fn open(path: &Path, spec: &Spec, occupied: Occupied) -> Result<Self, Error> {
        match Claim::take(path, Some(PATIENCE))? {
            Some(claim) => Self::enter(claim, spec, occupied),
            None => Err(other(path, "another process trains in this folder; wait for it".to_owned())),
        }
    }

    /// The same in a folder that was claimed.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn enter(claim: Claim, spec: &Spec, occupied: Occupied) -> Result<Self, Error> {
        let mut folder = Self { claim, identity: Identity::of(spec)?, spec: spec_text(spec)? };
        match (folder.owner(spec)?, occupied) {
            (Owner::Other(refusal), Occupied::Refuse) => return Err(refusal),
            (Owner::Other(_) | Owner::Turning(_), Occupied::Replace) => folder.clear()?,
            (Owner::Turning(turns), Occupied::Refuse) if turns.last().is_some_and(|turn| turn.after > 0) => {
                turns::write(&folder, &turns)?;
            }
            // Nothing was saved before the divergence: it is a run like any other.
            (Owner::Turning(_), Occupied::Refuse) => folder.clear()?,
            (Owner::Nobody | Owner::Ours, _) => {}
        }
        folder.identity = Identity::within(folder.path(), spec)?;
        folder.turn_checkpoint()?;
        folder.sweep()?;
        restore(folder.path(), &folder.spec)?;
        Ok(folder)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.claim.path
    }

    /// Whose it is.
    #[must_use]
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The iteration that its checkpoint is of; 0 where there is none.
    ///
    /// # Errors
    /// Where the checkpoint is not as it was written.
    pub fn saved(&self) -> Result<u64, Error> {
        let path = self.file(CHECKPOINT);
        if !path.exists() {
            return Ok(0);
        }
        let state = niwaki_nn::checkpoint_state(&path).map_err(|error| unsound(&path, error))?;
        Ok(state["iteration"].as_u64().unwrap_or(0))
    }

    /// A file of the folder.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file whole or not at all.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.file(name);
        write_atomically(&path, bytes).map_err(|source| disk(&path, source))
    }

    /// The same for what says that all else is there: after a power cut it stands whole or is written again.
    pub(super) fn write_last(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.file(name);
        write_whole(&path, bytes, OnDisk::Bytes).map_err(|source| disk(&path, source))
    }

    /// Writes what names the run again, where it was removed: without it nobody could go on.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(super) fn keep_name(&self) -> Result<(), Error> {
        if !self.file(SPEC).exists() {
            restore(self.path(), &self.spec)?;
        }
        if !self.identity.turns.is_empty() && !self.file(TURNS).exists() {
            turns::write(self, &self.identity.turns)?;
        }
        Ok(())
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(super) fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.file(name);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(disk(&path, source)),
            _ => Ok(()),
        }
    }

    /// Removes another run. Its page goes first, then its summary, for good: a kill leaves an unfinished run, never a finished one
    /// with the files of another.
    fn clear(&self) -> Result<(), Error> {
        self.remove_page()?;
        for (place, name) in FILES.into_iter().enumerate() {
            self.remove(name)?;
            if place == 0 {
                sync_folder(self.path()).map_err(|source| disk(self.path(), source))?;
            }
        }
        Ok(())
    }

    /// Whose run the folder holds.
    fn owner(&self, ours: &Spec) -> Result<Owner, Error> {
        let path = self.file(SPEC);
        let bytes = match read_own_text(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let stranger = FILES.map(|name| self.file(name)).into_iter().find(|path| path.exists());
                return Ok(stranger.map_or(Owner::Nobody, |path| {
                    let reason = format!("there is no {SPEC} beside it that says whose it is; {MEND}");
                    self.without_spec(&[], other(&path, reason))
                }));
            }
            Err(source) => return Err(disk(&path, source)),
        };
        let Some(text) = std::str::from_utf8(&bytes).ok().filter(|_| !is_empty(&bytes)) else {
            return Ok(self.without_spec(&bytes, other(&path, format!("not a spec; {MEND}"))));
        };
        let theirs = match Spec::read(SPEC, text, &[]) {
            Ok(theirs) => theirs,
            Err(error) => {
                let reason = format!("not a spec of this version ({error}); {MEND}");
                return Ok(self.without_spec(&bytes, other(&path, reason)));
            }
        };
        let turns = turns::read(self.path(), theirs.seed)?;
        let kind = turns::only_rates_differ(&theirs, ours)?;
        let (ours, theirs) = (Identity::of(ours)?, Identity::of(&theirs)?);
        // The turn is noted before the spec is written.
        if ours == theirs || kind && turns.last().is_some_and(|turn| turn.to.as_ref() == Some(&ours.spec)) {
            return Ok(Owner::Ours);
        }
        if let (true, Some((Turn { to: None, from, .. }, _))) = (kind, turns.split_last())
            && *from == theirs.spec
        {
            let mut turns = turns;
            turns.iter_mut().for_each(|turn| _ = turn.to.get_or_insert_with(|| ours.spec.clone()));
            return Ok(Owner::Turning(turns));
        }
        let name = |Identity { spec, seed, .. }| format!("spec {spec} with seed {seed}");
        let reason = format!("the folder holds {}, this run is {}; {MEND}", name(theirs), name(ours));
        Ok(Owner::Other(other(&path, reason)))
    }

    /// Whose run a folder holds that has no sound spec. The spec is written without waiting for the disk, so a power cut may
    /// take it: then the checkpoint says whose the folder is, and before there is one nothing was saved.
    fn without_spec(&self, found: &[u8], refusal: Error) -> Owner {
        let saved = niwaki_nn::checkpoint_state(&self.file(CHECKPOINT)).ok();
        let ours = |state: &serde_json::Value| {
            state["spec"] == *self.identity.spec && state["seed"] == self.identity.seed
        };
        match saved {
            Some(state) if ours(&state) => Owner::Ours,
            None if self.path().join(SPEC).exists() && is_empty(found) && self.holds_nothing() => {
                Owner::Nobody
            }
            _ => Owner::Other(refusal),
        }
    }

    /// Whether there is nothing in the folder that a run had saved.
    fn holds_nothing(&self) -> bool {
        [SUMMARY, CHECKPOINT, TURNS].iter().all(|name| !self.file(name).exists())
    }

    /// The checkpoint that a run turns at is its own from there on.
    fn turn_checkpoint(&self) -> Result<(), Error> {
        let (Some(turn), path) = (self.identity.turns.last(), self.file(CHECKPOINT)) else { return Ok(()) };
        if !path.exists() {
            return Ok(());
        }
        let mut state = niwaki_nn::checkpoint_state(&path).map_err(|error| unsound(&path, error))?;
        if state["spec"] == *turn.from && state["iteration"] == turn.after {
            state["spec"] = self.identity.spec.clone().into();
            niwaki_nn::restate_checkpoint(&path, state).map_err(|error| unsound(&path, error))?;
        }
        Ok(())
    }

    /// Notes that training diverged in an iteration; returns the one whose checkpoint was kept.
    pub(super) fn note_divergence(&self, diverged: usize) -> Result<usize, Error> {
        let after = self.saved()? as usize;
        let mut turns = self.identity.turns.clone();
        turns.push(Turn { diverged, after, from: self.identity.spec.clone(), to: None });
        turns::write(self, &turns)?;
        Ok(after)
    }

    /// Forgets a divergence that did not come again.
    pub(super) fn close_turns(&self) -> Result<(), Error> {
        if self.file(TURNS).exists() { turns::write(self, &self.identity.turns) } else { Ok(()) }
    }

    /// Removes what a killed process left half written, and the lock of an earlier version.
    fn sweep(&self) -> Result<(), Error> {
        sweep(self.path(), &FILES).map_err(|source| disk(self.path(), source))?;
        let lock = self.file("lock");
        if fs::metadata(&lock).is_ok_and(|lock| lock.is_file() && lock.len() == 0) {
            self.remove("lock")?;
        }
        Ok(())
    }
}

/// How long a folder that is in use is waited for: a killed process keeps it until what it was writing is on the disk.
const PATIENCE: Duration = Duration::from_secs(3);

const MEND: &str = "choose another folder, or remove this one";

/// What stands in a run's [`SPEC`].
fn spec_text(spec: &Spec) -> Result<String, Error> {
    let maker = if spec.own.is_some() { "niwaki.Run" } else { "niwaki train" };
    Ok(format!("# {maker}, spec {}\n{}", spec.hash()?, spec.to_commented_toml()?))
}

fn restore(folder: &Path, spec: &str) -> Result<(), Error> {
    let path = folder.join(SPEC);
    match read_own_text(&path) {
        Ok(found) if found == spec.as_bytes() => return Ok(()),
        // Writing into a pipe would wait for a reader.
        Err(source) if source.kind() == io::ErrorKind::InvalidInput => return Err(disk(&path, source)),
        _ => {}
    }
    write_whole(&path, spec.as_bytes(), OnDisk::Later).map_err(|source| disk(&path, source))
}

/// Whether a file is as a power cut leaves one that was not on the disk yet.
fn is_empty(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}

/// Writes the spec of a finished run again where it is not as the run would write it: what it says is vouched for by the
/// summary, and a damaged one would only mislead who reads it.
///
/// # Errors
/// If the disk refuses.
pub fn restore_spec(folder: &Path, spec: &Spec) -> Result<(), Error> {
    restore(folder, &spec_text(spec)?)
}

/// What the disk said, with the file it said it of.
pub(super) fn disk(path: &Path, source: io::Error) -> Error {
    Error::Disk { path: path.to_owned(), source }
}

/// A file that is not this run's.
pub(super) fn other(path: &Path, reason: String) -> Error {
    Error::OtherRun { path: path.to_owned(), reason }
}

/// A file that is not as this run wrote it.
pub(super) fn damaged(path: &Path, reason: String) -> Error {
    Error::Damaged { path: path.to_owned(), reason }
}

/// What a checkpoint was refused for, as a fault of that file.
pub(super) fn unsound(path: &Path, error: niwaki_nn::Error) -> Error {
    match error {
        niwaki_nn::Error::Checkpoint { reason, .. } => damaged(path, reason),
        niwaki_nn::Error::NotFinite { tensor, .. } => {
            damaged(path, format!("tensor {tensor} holds what is not finite"))
        }
        other => other.into(),
    }
}
