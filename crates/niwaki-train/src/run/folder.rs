//! Names of a run's files, whose folder it is, and that only one process works in it.

use super::events;
use super::optima::OPTIMA;
use crate::spec::Spec;
use crate::{Error, Recipe, Record};
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
/// The member and how far it came.
pub const CHECKPOINT: &str = "checkpoint.safetensors";
/// The curve in a few numbers.
pub const SUMMARY: &str = "summary.json";

/// A run's folder, held by this process until it is dropped.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Holds the lock.
    _held: File,
}

impl Folder {
    /// Makes the folder of a recipe, or opens the one that an earlier process left, and writes the spec first.
    ///
    /// # Errors
    /// Where the folder holds another run, another process works in it, or the disk refuses.
    pub fn open(path: &Path, recipe: &Recipe) -> Result<Self, Error> {
        fs::create_dir_all(path).map_err(|source| disk(path, source))?;
        let held = File::open(path).map_err(|source| disk(path, source))?;
        lock(&held, path)?;
        let folder = Self { path: path.to_owned(), _held: held };
        folder.check_owner(recipe)?;
        folder.sweep()?;
        let spec = &recipe.spec;
        let text = format!("# niwaki train, spec {}\n{}", spec.hash()?, spec.to_commented_toml()?);
        folder.write(SPEC, text.as_bytes())?;
        Ok(folder)
    }

    /// A file of the folder.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file whole or not at all.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.file(name);
        niwaki_files::write_atomically(&path, bytes).map_err(|source| disk(&path, source))
    }

    /// Writes the curve for TensorBoard.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn write_events(&self, curve: &[Record]) -> Result<(), Error> {
        self.write(events::NAME, &events::encode(curve))
    }

    /// Refuses a folder that holds another run.
    fn check_owner(&self, recipe: &Recipe) -> Result<(), Error> {
        let path = self.file(SPEC);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let stranger = [CURVE, DUMP, CHECKPOINT, SUMMARY].map(|name| self.file(name));
                return match stranger.into_iter().find(|path| path.exists()) {
                    Some(path) => {
                        Err(other(&path, format!("there is no {SPEC} that says whose it is; {MEND}")))
                    }
                    None => Ok(()),
                };
            }
            Err(source) => return Err(disk(&path, source)),
        };
        let theirs = Spec::read(SPEC, &text, &[])
            .map_err(|error| other(&path, format!("not a spec of this version ({error}); {MEND}")))?;
        let (ours, theirs) = ((recipe.spec.hash()?, recipe.spec.seed), (theirs.hash()?, theirs.seed));
        if ours == theirs {
            return Ok(());
        }
        let name = |(hash, seed)| format!("spec {hash} with seed {seed}");
        Err(other(&path, format!("the folder holds {}, this run is {}; {MEND}", name(theirs), name(ours))))
    }

    /// Removes what a killed process left half written.
    fn sweep(&self) -> Result<(), Error> {
        let entries = fs::read_dir(&self.path).map_err(|source| disk(&self.path, source))?;
        for entry in entries {
            let path = entry.map_err(|source| disk(&self.path, source))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let ours = [SPEC, OPTIMA, CURVE, CHECKPOINT, SUMMARY, events::NAME]
                .iter()
                .any(|ours| name.starts_with(ours));
            if ours && name.ends_with(".part") {
                fs::remove_file(&path).map_err(|source| disk(&path, source))?;
            }
        }
        Ok(())
    }
}

/// Waits a while: a killed process keeps its lock until what it was writing is on the disk.
fn lock(held: &File, path: &Path) -> Result<(), Error> {
    let began = Instant::now();
    loop {
        match held.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(source)) => return Err(disk(path, source)),
            Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => thread::sleep(PATIENCE / 100),
            Err(TryLockError::WouldBlock) => {
                return Err(other(path, "another process trains in this folder; wait for it".to_owned()));
            }
        }
    }
}

/// How long a folder that is in use is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

const MEND: &str = "choose another --out, or remove it";

/// What the disk said, with the file it said it of.
pub(super) fn disk(path: &Path, source: io::Error) -> Error {
    Error::Disk { path: path.to_owned(), source }
}

/// A file that is not this run's, or not whole.
pub(super) fn other(path: &Path, reason: String) -> Error {
    Error::OtherRun { path: path.to_owned(), reason }
}
