//! A run from its folder.

use crate::Error;
use niwaki_train::run::{Finished, Identity, SPEC, SUMMARY};
use niwaki_train::{Record, Spec};
use std::path::{Path, PathBuf};

/// What a run is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Reward of the likeliest trajectory.
    Likeliest,
    /// Expected return η.
    Eta,
    /// Mean reward of the batch, where nothing else was measured.
    Batch,
}

impl Judged {
    /// What it is, for axes and tables.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Likeliest => "reward of the likeliest trajectory",
            Self::Eta => "expected return η",
            Self::Batch => "mean reward of the batch",
        }
    }

    /// Its value in a record; nothing where it was not measured.
    #[must_use]
    pub const fn of(self, record: &Record) -> Option<f64> {
        match self {
            Self::Likeliest => record.greedy,
            Self::Eta => record.eta,
            Self::Batch => Some(record.batch_reward),
        }
    }
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its folder.
    pub folder: PathBuf,
    /// What it was asked to do.
    pub spec: Spec,
    /// What came of it.
    pub finished: Finished,
}

impl Run {
    /// Reads the finished run of a folder.
    ///
    /// # Errors
    /// Where there is none, or a file is not as it was written.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(SPEC);
        let text = niwaki_files::read_text(&path)
            .map_err(|source| Error::NoRun { folder: folder.to_owned(), reason: source.to_string() })?;
        let spec = Spec::read(&path.display().to_string(), &text, &[])?;
        let identity = Identity::within(folder, &spec)?;
        let Some(finished) = Finished::read(folder, &identity)? else {
            let reason = "its run is not finished; run the same `niwaki train` again".to_owned();
            return Err(Error::NoRun { folder: folder.to_owned(), reason });
        };
        Ok(Self { folder: folder.to_owned(), spec, finished })
    }

    /// The run of a folder, or all finished runs below it, by path.
    ///
    /// # Errors
    /// Where there is none, or a file is not as it was written.
    pub fn below(folder: &Path) -> Result<Vec<Self>, Error> {
        if folder.join(SPEC).is_file() {
            return Ok(vec![Self::read(folder)?]);
        }
        let mut homes = Vec::new();
        collect(folder, &mut homes)
            .map_err(|source| Error::NoRun { folder: folder.to_owned(), reason: source.to_string() })?;
        homes.sort();
        if homes.is_empty() {
            let reason = "no finished run is in it or below it".to_owned();
            return Err(Error::NoRun { folder: folder.to_owned(), reason });
        }
        homes.iter().map(|home| Self::read(home)).collect()
    }

    /// What it is judged by.
    #[must_use]
    pub fn judged(&self) -> Judged {
        let measured = |what: Judged| self.finished.curve.iter().any(|record| what.of(record).is_some());
        [Judged::Likeliest, Judged::Eta].into_iter().find(|&what| measured(what)).unwrap_or(Judged::Batch)
    }

    /// Iterations and values at which it was measured.
    #[must_use]
    pub fn curve(&self, judged: Judged) -> Vec<(f64, f64)> {
        let point = |record: &Record| judged.of(record).map(|value| (record.iteration as f64, value));
        self.finished.curve.iter().filter_map(point).collect()
    }
}

/// Folders of finished runs.
fn collect(folder: &Path, homes: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.join(SUMMARY).is_file() && path.join(SPEC).is_file() {
            homes.push(path);
        } else if path.is_dir() {
            collect(&path, homes)?;
        }
    }
    Ok(())
}
