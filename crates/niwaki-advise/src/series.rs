//! Which files belong to one run.

use crate::Error;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Endings of dumps.
const ENDINGS: [&str; 4] = ["jsonl", "ndjson", "npz", "parquet"];

/// How files given together are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runs {
    /// Names that differ in digits alone are one run, any others are runs of their own.
    #[default]
    ByName,
    /// All files are one run.
    Joined,
    /// Every file is a run of its own.
    Apart,
}

/// The files of each run, in the order in which they were given. A folder stands for the dumps in it, which are one run.
///
/// # Errors
/// Where a folder cannot be listed, or holds no dump, or a run has a file twice.
pub fn series(given: &[PathBuf], runs: Runs) -> Result<Vec<Vec<PathBuf>>, Error> {
    let mut found: Vec<(String, Vec<PathBuf>)> = Vec::new();
    for path in given {
        let (key, files) = if path.is_dir() {
            (path.display().to_string(), dumps(path)?)
        } else {
            (pattern(path), vec![path.clone()])
        };
        let known = match runs {
            Runs::ByName => found.iter_mut().find(|(known, _)| *known == key),
            Runs::Joined => found.first_mut(),
            Runs::Apart => None,
        };
        match known {
            Some((_, run)) => run.extend(files),
            None => found.push((key, files)),
        }
    }
    found.into_iter().map(|(_, files)| once(files)).collect()
}

/// The files of a run, if each is there once.
fn once(files: Vec<PathBuf>) -> Result<Vec<PathBuf>, Error> {
    let mut seen = HashSet::new();
    // A file that cannot be found is refused where it is read.
    let known = |file: &Path| file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    match files.iter().find(|file| !seen.insert(known(file))) {
        Some(file) => Err(Error::Twice { file: file.display().to_string() }),
        None => Ok(files),
    }
}

/// The dumps in a folder, in the order of their names.
fn dumps(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let refuse = |source| Error::File { file: folder.display().to_string(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(refuse)? {
        let path = entry.map_err(refuse)?.path();
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        if ENDINGS.contains(&ending.as_str()) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() { Err(Error::NoDump { folder: folder.display().to_string() }) } else { Ok(files) }
}

/// A path with every number in its file's name made the same.
fn pattern(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut pattern = path.parent().map(|folder| format!("{}/", folder.display())).unwrap_or_default();
    let mut digits = false;
    for letter in name.chars() {
        if !letter.is_ascii_digit() {
            pattern.push(letter);
        } else if !digits {
            pattern.push('#');
        }
        digits = letter.is_ascii_digit();
    }
    pattern
}

/// A run's files in a few words.
#[must_use]
pub fn named(files: &[PathBuf]) -> String {
    let name = |file: &PathBuf| file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    match files {
        [] => String::new(),
        [one] => name(one),
        [first, .., last] => format!("{} … {} ({} files)", name(first), name(last), files.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_make_a_run() {
        let files =
            ["a.jsonl", "b.jsonl", "x/step-1.npz", "x/step-10.npz", "y/step-2.npz"].map(PathBuf::from);
        let sizes = |runs| series(&files, runs).unwrap().iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(Runs::ByName), [1, 1, 2, 1]);
        assert_eq!(sizes(Runs::Joined), [5]);
        assert_eq!(sizes(Runs::Apart), [1; 5]);
        assert_eq!(named(&files[2..4]), "step-1.npz … step-10.npz (2 files)");
        assert_eq!(named(&files[..1]), "a.jsonl");
    }

    #[test]
    fn a_run_has_no_file_twice() {
        let twice = [PathBuf::from("a.jsonl"), PathBuf::from("a.jsonl")];
        assert!(matches!(series(&twice, Runs::ByName), Err(Error::Twice { .. })));
        assert_eq!(series(&twice, Runs::Apart).unwrap().len(), 2);
    }
}
