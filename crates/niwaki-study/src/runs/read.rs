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

/// What some folders hold.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Finished runs, by path.
    pub runs: Vec<Run>,
    /// Folders of runs that have begun and not ended, by path.
    pub unfinished: Vec<PathBuf>,
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

    /// The run of a folder, or all finished runs below it, and which others have begun there.
    ///
    /// # Errors
    /// Where there is none, or a file is not as it was written.
    pub fn below(folder: &Path) -> Result<Found, Error> {
        if folder.join(SPEC).is_file() {
            return Ok(Found { runs: vec![Self::read(folder)?], unfinished: Vec::new() });
        }
        let (mut homes, mut unfinished) = (Vec::new(), Vec::new());
        collect(folder, &mut homes, &mut unfinished)
            .map_err(|source| Error::NoRun { folder: folder.to_owned(), reason: source.to_string() })?;
        homes.sort();
        unfinished.sort();
        if homes.is_empty() {
            let reason = match unfinished.len() {
                0 => "no finished run is in it or below it".to_owned(),
                1 => "its one run is not finished".to_owned(),
                begun => format!("none of its {begun} runs is finished"),
            };
            return Err(Error::NoRun { folder: folder.to_owned(), reason });
        }
        let runs = homes.iter().map(|home| Self::read(home)).collect::<Result<_, _>>()?;
        Ok(Found { runs, unfinished })
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

/// Folders of finished runs, and of those that are not.
fn collect(folder: &Path, homes: &mut Vec<PathBuf>, unfinished: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.join(SPEC).is_file() {
            if path.join(SUMMARY).is_file() { homes.push(path) } else { unfinished.push(path) }
        } else if path.is_dir() {
            collect(&path, homes, unfinished)?;
        }
    }
    Ok(())
}
