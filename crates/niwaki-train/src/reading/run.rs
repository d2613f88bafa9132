//! A run from its folder, however far it came.

use super::Course;
use crate::run::{CURVE, Finished, Identity, SPEC, SUMMARY, Summary, TURNS, is_lost, read_curve};
use crate::{Error, Record, Spec};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is done.
    Finished,
    /// It has begun and not ended: it goes on, or was stopped.
    Running,
    /// Training diverged, and it is over.
    Diverged,
}

impl Standing {
    /// What it is called on pages and in documents.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Running => "unfinished",
            Self::Diverged => "diverged",
        }
    }
}

/// A run as it stands in its folder.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its folder.
    pub folder: PathBuf,
    /// What it was asked to do.
    pub spec: Spec,
    /// How it stands.
    pub standing: Standing,
    /// How it went, as far as it came.
    pub course: Course,
    /// What it was summed up to, where it is done.
    pub summary: Option<Summary>,
}

impl From<Finished> for Course {
    fn from(finished: Finished) -> Self {
        let Summary { iterations, done, diverged, .. } = finished.summary;
        // Another trainer may be done sooner than it said.
        Self { iterations: if diverged { iterations } else { done }, curve: finished.curve, kept: None }
    }
}

/// How long after a change a folder may be between two states of one run, or between two runs.
const SETTLES: Duration = Duration::from_secs(5);

/// How often a folder that is changing is read again, and how long after.
const AGAIN: (usize, Duration) = (3, Duration::from_millis(30));

impl Run {
    /// Reads the run of a folder.
    ///
    /// # Errors
    /// Where the folder has no run, or a file is not as it was written. A folder that is being written is read again first.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let mut read = Self::read_once(folder);
        for _ in 0..AGAIN.0 {
            if read.is_ok() || !Stamp::of(folder).is_fresh() {
                break;
            }
            std::thread::sleep(AGAIN.1);
            read = Self::read_once(folder);
        }
        read
    }

    fn read_once(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(SPEC);
        let name = path.display().to_string();
        let text = niwaki_files::read_text(&path).map_err(|source| Error::Unreadable {
            name: name.clone(),
            line: None,
            reason: source.to_string(),
        })?;
        let spec = Spec::read(&name, &text, &[])?;
        let identity = Identity::within(folder, &spec)?;
        if let Some(finished) = Finished::read(folder, &identity)? {
            let standing = if finished.summary.diverged { Standing::Diverged } else { Standing::Finished };
            let summary = Some(finished.summary.clone());
            return Ok(Self { folder: folder.to_owned(), spec, standing, course: finished.into(), summary });
        }
        // A run that has written nothing yet has no curve.
        let curve = if folder.join(CURVE).exists() { read_curve(folder, &identity)? } else { Vec::new() };
        let standing = if is_lost(folder, &spec)? { Standing::Diverged } else { Standing::Running };
        let course = Course { iterations: spec.iterations, curve, kept: None };
        Ok(Self { folder: folder.to_owned(), spec, standing, course, summary: None })
    }

    /// Its curve's last line.
    #[must_use]
    pub fn last(&self) -> Option<&Record> {
        self.course.curve.last()
    }
}

/// A folder that has files of a run that cannot be read as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The folder.
    pub folder: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// What some folders hold, by path.
#[derive(Clone, Debug)]
pub struct Found<T> {
    /// What each run was made into.
    pub runs: Vec<Arc<T>>,
    /// Folders that cannot be read.
    pub damaged: Vec<Damaged>,
    /// Whether anything may be different from what the same reader found before.
    pub changed: bool,
}

impl<T> Default for Found<T> {
    fn default() -> Self {
        Self { runs: Vec::new(), damaged: Vec::new(), changed: false }
    }
}

/// What was made of a folder, and how it stood then.
type Kept<T> = (Stamp, Result<Arc<T>, Damaged>);

/// Reads runs below folders, again and again: what has not changed is not read twice.
pub struct Reader<T> {
    make: fn(Run) -> T,
    known: BTreeMap<PathBuf, Kept<T>>,
}

impl<T: Send + Sync> Reader<T> {
    /// A reader that keeps of each run what `make` does.
    #[must_use]
    pub fn new(make: fn(Run) -> T) -> Self {
        Self { make, known: BTreeMap::new() }
    }

    /// The runs of some folders and of all folders below them.
    ///
    /// # Errors
    /// Where one of the folders is not there or cannot be listed; what is wrong below them is part of what is found.
    pub fn below(&mut self, places: &[PathBuf]) -> Result<Found<T>, Error> {
        let (mut homes, mut found) = (Vec::new(), Found::default());
        for place in places {
            let failed = |source| Error::Disk { path: place.clone(), source };
            let from = homes.len();
            if is_run(place) {
                homes.push(place.clone());
            } else {
                let mut walk = Walk { homes: &mut homes, damaged: &mut found.damaged, links: Vec::new() };
                walk.folder(place).map_err(failed)?;
            }
            homes[from..].sort();
        }
        let mut once = HashSet::new();
        homes.retain(|home| once.insert(home.clone()));
        let (make, known) = (self.make, &self.known);
        let read: Vec<(PathBuf, Kept<T>)> = homes
            .into_par_iter()
            .map(|home| {
                let stamp = Stamp::of(&home);
                let kept = known.get(&home).filter(|(before, _)| *before == stamp && !stamp.is_fresh());
                let made = kept.map(|(_, made)| made.clone()).unwrap_or_else(|| {
                    let damaged = |error: Error| Damaged { folder: home.clone(), reason: error.to_string() };
                    Run::read(&home).map(|run| Arc::new(make(run))).map_err(damaged)
                });
                (home, (stamp, made))
            })
            .collect();
        for (_, (_, made)) in &read {
            match made {
                Ok(made) => found.runs.push(made.clone()),
                Err(damaged) => found.damaged.push(damaged.clone()),
            }
        }
        let same = |(home, (stamp, _)): &(PathBuf, (Stamp, _))| {
            !stamp.is_fresh() && self.known.get(home).is_some_and(|(before, _)| before == stamp)
        };
        found.changed = read.len() != self.known.len() || !read.iter().all(same);
        self.known = read.into_iter().collect();
        Ok(found)
    }
}

/// Whether a folder has a run, or what is left of one.
fn is_run(folder: &Path) -> bool {
    folder.join(SPEC).is_file() || folder.join(CURVE).is_file()
}

/// All folders of runs below a folder.
struct Walk<'a> {
    homes: &'a mut Vec<PathBuf>,
    damaged: &'a mut Vec<Damaged>,
    /// Where links lead that were followed: a link to a folder above it would never end.
    links: Vec<PathBuf>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if !(kind.is_dir() || kind.is_symlink() && self.leads_on(&path)) {
                continue;
            }
            if is_run(&path) {
                self.homes.push(path);
            } else if let Err(error) = self.folder(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                // What was removed meanwhile is not there.
                self.damaged.push(Damaged { folder: path, reason: error.to_string() });
            }
        }
        Ok(())
    }

    /// Whether a link leads to a folder that was not entered yet.
    fn leads_on(&mut self, link: &Path) -> bool {
        let (Ok(to), Ok(from)) = (fs::canonicalize(link), fs::canonicalize(link.parent().unwrap_or(link)))
        else {
            return false;
        };
        let new = to.is_dir() && !from.starts_with(&to) && !self.links.contains(&to);
        if new {
            self.links.push(to);
        }
        new
    }
}

/// When the files of a run were written last, and how long they are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp([Option<(SystemTime, u64)>; 4]);

impl Stamp {
    fn of(folder: &Path) -> Self {
        let of = |file: Metadata| Some((file.modified().ok()?, file.len()));
        Self([SPEC, CURVE, SUMMARY, TURNS].map(|name| fs::metadata(folder.join(name)).ok().and_then(of)))
    }

    /// Whether something changed a moment ago: the clock of a disk may be coarse, and more may follow.
    fn is_fresh(&self) -> bool {
        let now = SystemTime::now();
        self.0.iter().flatten().any(|(at, _)| now.duration_since(*at).is_ok_and(|age| age < SETTLES))
    }
}
