//! The readers, their seeds, and what they may take.
//!
//! | file | what is read |
//! |---|---|
//! | `dumps.rs` | log-probs of any trainer: JSONL, npz, parquet, npy |
//! | `shops.rs` | instances, plans, schedules, known bounds; small ones are also scheduled |
//! | `specs.rs` | specs of runs and study files |
//! | `runs.rs` | every file of a finished run's folder, among the others as they were written |
//! | `resumed.rs` | every file of a run that goes on: stopped half-way, or after it diverged |
//! | `studies.rs` | files beside the runs of a study |
//! | `models.rs` | files of pretrained decoders, and of the tasks that they write for |
//! | `sealed.rs` | checksums that fit again after a change |
//! | `words.rs` | words behind flags and in specs |

mod dumps;
mod models;
mod resumed;
mod runs;
mod sealed;
mod shops;
mod specs;
mod studies;
mod words;

use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Reads an input, from a file in the folder where it takes one; true where it gave a value.
type Read = Box<dyn Fn(&[u8], &Path) -> bool + Sync>;

/// A reader under attack.
pub struct Reader {
    /// What it reads.
    pub name: &'static str,
    /// Inputs that it reads, or once broke it.
    pub seeds: Vec<Vec<u8>>,
    /// The reader.
    pub read: Read,
    /// Bytes that it may hold whatever the input, and for each byte of it.
    pub floor: usize,
    /// See `floor`.
    pub factor: usize,
    /// How many of the cases it gets: fast readers get more, so that each gets many.
    pub share: u64,
}

impl Reader {
    /// The seed of its noise, by its name.
    #[must_use]
    pub fn key(&self) -> u64 {
        niwaki_advise::keys::key_of_text(self.name.as_bytes())
    }
}

const MEGABYTE: usize = 1 << 20;

/// Every reader of files that users bring or that we wrote earlier, with the seeds of this repository.
///
/// # Panics
/// Where a folder of seeds is missing or the small runs cannot be trained: a broken checkout.
#[must_use]
pub fn readers() -> Vec<Reader> {
    let mut all = dumps::readers();
    all.extend(shops::readers());
    all.extend(specs::readers());
    all.extend(runs::readers());
    all.extend(resumed::readers());
    all.extend(studies::readers());
    all.extend(models::readers());
    all.extend(words::readers());
    all
}

/// A folder for files, in memory where there is one: what is tried is a reader, not a disk.
///
/// # Errors
/// If the disk refuses.
pub fn folder() -> std::io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }
}

/// Files below `fuzz/corpus/<name>` and other places of the repository, in the order of their paths.
fn seeds(name: &str, places: &[&str], endings: &[&str]) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    walk(&root.join("corpus").join(name), &mut files);
    for place in places {
        walk(&root.join("..").join(place), &mut files);
    }
    files.retain(|file| {
        let ending = file.extension().unwrap_or_default().to_string_lossy();
        endings.contains(&ending.as_ref())
    });
    files.sort();
    let small = |bytes: &Vec<u8>| bytes.len() < 1 << 16;
    files.iter().filter_map(|file| fs::read(file).ok()).filter(small).collect()
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    str::from_utf8(bytes).ok()
}

/// An input as a file; none where the disk refuses, which is no fault of a reader.
fn file(folder: &Path, name: &str, bytes: &[u8]) -> Option<PathBuf> {
    let path = folder.join(name);
    fs::write(&path, bytes).ok().map(|()| path)
}

/// Fails where a value is not the same when it comes back, with the place at which the two part.
fn same<T: std::fmt::Debug + PartialEq>(what: &str, given: &T, back: &T) {
    if given != back {
        let [given, back] = [given, back].map(|value| format!("{value:?}").chars().collect::<Vec<_>>());
        let at = given.iter().zip(&back).take_while(|(one, other)| one == other).count();
        let near = |text: &[char]| -> String { text.iter().skip(at.saturating_sub(60)).take(120).collect() };
        panic!("{what} does not come back: ..{}.. became ..{}..", near(&given), near(&back));
    }
}
